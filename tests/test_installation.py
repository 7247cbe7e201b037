"""Wheel and sdist install from an index into an empty environment, and run there."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

from client_sdk import __version__
from tests.conftest import NO_INDEX
from tests.support.patience import PATIENCE
from tests.test_packaging import NOT_IN_WHEEL, ROOT

NAME: Final = "hearsay-telemetry"
REAL: Final = "https://pypi.org/simple"  # of dependencies, unless pip is told of another index
COLLECTOR: Final = "hearsay-collector"
PARTS: Final = {NAME: "client_sdk", COLLECTOR: "collector"}

REGISTRY: Final = """
schema = 1
app = "demo"

[metrics.dark_mode]
title = "Dark mode"
question = "Is dark mode on?"
type = "boolean"
mechanism = "grr"
epsilon = "1"
every = "7d"
expected_devices = 1000
longitudinal = "fresh"
owner = "design"
expires = 2099-12-31
"""
RECORDS: Final = """
from client_sdk import Client
nowhere = "https://127.0.0.1:9"
with Client(nowhere, "key", "metrics.toml", consent="granted", data_dir="data") as client:
    client.record("dark_mode", True)
print({reason: count for reason, count in client.stats().items() if count})
"""
EVERY_MODULE: Final = """
import pkgutil, client_sdk, collector
for package in (client_sdk, collector):
    print(sum(1 for _ in pkgutil.walk_packages(package.__path__, package.__name__ + ".")))
    print(package.__file__)
"""


def tracked() -> set[str]:
    """Return the files of the repository, and those that are about to be."""
    command = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}


def build(source: Path, folder: Path, *options: str) -> None:
    """Run ``python -m build`` with the tools of this environment; it needs no network."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", *options, "-o", str(folder), str(source)],
        check=True,
        capture_output=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean copy of the repository: what was built before would get into a wheel."""
    folder = tmp_path_factory.mktemp("tree")
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def dist(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of both sdists and of the wheels that were built from them."""
    folder = tmp_path_factory.mktemp("dist")
    for part in ("", "collector"):
        build(tree / part, folder)
    return folder


def only(folder: Path, pattern: str) -> Path:
    """Return the one file of *folder* that matches *pattern*."""
    (path,) = folder.glob(pattern)
    return path


def wheel_of(name: str) -> str:
    """Return the file of a distribution's wheel."""
    return f"{name.replace('-', '_')}-{__version__}-py3-none-any.whl"


def test_the_wheel_from_the_sdist_is_byte_for_byte_that_from_the_tree(
    tree: Path, dist: Path, tmp_path: Path
) -> None:
    for part in ("", "collector"):
        build(tree / part, tmp_path, "--wheel")

    for name in map(wheel_of, PARTS):
        assert (tmp_path / name).read_bytes() == (dist / name).read_bytes()


@pytest.mark.parametrize("name", PARTS)
def test_a_wheel_holds_every_file_of_its_package_and_none_beside(name: str, dist: Path) -> None:
    with ZipFile(dist / wheel_of(name)) as wheel:
        inside = {name for name in wheel.namelist() if ".dist-info/" not in name}

    files = {file for file in tracked() if file.partition("/")[0] == PARTS[name]}
    assert inside == files - set(NOT_IN_WHEEL)


def test_the_sdist_holds_the_whole_repository_so_that_its_tests_run(dist: Path) -> None:
    with tarfile.open(only(dist, f"hearsay_telemetry-{__version__}.tar.gz")) as sdist:
        inside = {name.partition("/")[2] for name in sdist.getnames()}

    assert sorted(tracked() - inside) == []


@contextmanager
def index(dist: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the address of an index (PEP 503) that has *dist*, and what was taken from it.

    Other names are those of the index that pip uses here, to which it is sent on.
    """
    files = {path.name: path.read_bytes() for path in dist.iterdir()}
    taken: list[str] = []
    configured = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
    )
    real = configured.stdout.strip().rstrip("/") or REAL

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            project = self.path.removeprefix("/simple/").rstrip("/")
            if project in PARTS:
                page = (
                    f'<a href="/files/{n}#sha256={hashlib.sha256(b).hexdigest()}">{n}</a>'
                    for n, b in files.items()
                    if n.startswith(project.replace("-", "_"))
                )
                self.answer(200, "\n".join(page).encode(), "text/html")
            elif self.path.startswith("/files/") and name in files:
                taken.append(name)
                self.answer(200, files[name], "application/octet-stream")
            else:
                self.answer(302, b"", "text/html", real + self.path.removeprefix("/simple"))

        def answer(self, status: int, body: bytes, kind: str, place: str = "") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if place:
                self.send_header("Location", place)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing of requests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/simple", taken
        finally:
            server.shutdown()


class Environment:
    """An environment that has Python and nothing else until something is installed."""

    def __init__(self, folder: Path) -> None:
        """Make it in *folder*, in which commands run, too."""
        self._folder = folder
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        venv = ("-m", "venv", "--without-pip", str(folder / "venv"))
        subprocess.run([sys.executable, *venv], check=True)
        (folder / "metrics.toml").write_text(REGISTRY)

    def install(self, address: str, *requirements: str) -> None:
        """Have the pip of this environment install *requirements* from the index at *address*."""
        pip = ("-m", "pip", "--python", str(self.bin / "python"), "install", "--quiet")
        of_system = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run(
            [sys.executable, *pip, "--index-url", address, *requirements], check=True, env=of_system
        )

    def run(self, command: str, *options: str, **variables: str) -> str:
        """Return what *command* of this environment prints, be it an error."""
        done = subprocess.run(
            [str(self.bin / command), *options],
            cwd=self._folder,
            env={
                "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(self._folder),
                "HEARSAY_TELEMETRY": "1",  # whatever machine this is
                **variables,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=5 * PATIENCE,
        )
        return done.stdout

    def version(self) -> str:
        """Return the version of the distribution that is installed."""
        return self.run(
            "python", "-c", f"import importlib.metadata as m; print(m.version('{NAME}'))"
        ).strip()


def test_the_device_part_installs_from_an_index_alone_and_records(
    dist: Path, tmp_path: Path
) -> None:
    """Law: it records without any dependency, which only the first upload needs."""
    environment = Environment(tmp_path)
    with index(dist) as (address, taken):
        environment.install(address, "--no-deps", NAME)

    assert taken == [wheel_of(NAME)]
    assert environment.version() == __version__
    assert environment.run("python", "-c", RECORDS) == "{'recorded': 1}\n"
    assert environment.run("hearsay", "--version") == (
        "hearsay: the collector is not installed: pip install hearsay-collector"
        "; of a device, python -m client_sdk shows what is sent\n"
    )
    with index(dist) as (address, _):
        environment.install(address, "--no-deps", COLLECTOR)
    assert environment.run("python", "-c", "import collector") == ""

    (tmp_path / "other" / "collector").mkdir(parents=True)
    other = tmp_path / "other" / "collector" / "__init__.py"
    other.touch()
    ours = only(tmp_path, "venv/lib/python3*/site-packages/collector")

    assert environment.run("hearsay", "--version", PYTHONPATH=str(tmp_path / "other")) == (
        f"hearsay: collector={other}: must be {ours}; another package or folder of that name "
        "comes first: install hearsay-collector into an environment of its own\n"
    )


@pytest.fixture
def package_index(tmp_path: Path) -> None:
    """An index that pip reaches."""
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(tmp_path))
    if subprocess.run([*pip, "requests"], capture_output=True).returncode:
        pytest.skip(NO_INDEX)


@pytest.mark.slow
@pytest.mark.usefixtures("package_index")
@pytest.mark.parametrize("form", ["wheel", "sdist"])
def test_the_device_part_installs_with_what_it_needs(form: str, dist: Path, tmp_path: Path) -> None:
    """Law: from the sdist as from the wheel, and what it needs is requests."""
    environment = Environment(tmp_path)
    with index(dist) as (address, taken):
        environment.install(address, *(("--no-binary", NAME) if form == "sdist" else ()), NAME)

    assert taken == [
        wheel_of(NAME) if form == "wheel" else f"hearsay_telemetry-{__version__}.tar.gz"
    ]
    assert environment.version() == __version__
    assert environment.run("python", "-c", RECORDS) == "{'recorded': 1}\n"
    assert environment.run("python", "-c", "import requests, client_sdk.upload.transport") == ""


@pytest.mark.slow
@pytest.mark.usefixtures("package_index")
def test_the_collector_installs_with_what_it_needs_and_the_demo_runs(
    dist: Path, tmp_path: Path
) -> None:
    environment = Environment(tmp_path)
    with index(dist) as (address, taken):
        environment.install(address, COLLECTOR)
        version = environment.run("hearsay", "--version")
        walked = environment.run("python", "-c", EVERY_MODULE)
        environment.install(address, f"{COLLECTOR}[demo]")

    assert sorted(taken) == sorted(map(wheel_of, PARTS))
    assert version == f"hearsay, version {__version__}\n"
    assert walked.count(str(tmp_path)) == 2
    demo = environment.run("hearsay", "demo", "--once", "--devices", "1000")
    assert "devices: 1,000 of 1,000 have reported" in demo
