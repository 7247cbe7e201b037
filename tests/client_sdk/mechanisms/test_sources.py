"""Every mechanism file cites its source, proves its claim and samples without floats."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import client_sdk.mechanisms
from client_sdk.mechanisms import load, names
from tests.support.sampling_path import ROOT, faults_on_path, inexact, path_functions
from tests.support.vectors import FOLDER

HERE = Path(client_sdk.mechanisms.__file__).parent

every_name = pytest.mark.parametrize("name", names())


def sources(name: str) -> dict[str, str]:
    """Return the text of every file that the sampling path of a mechanism can touch."""
    files = [HERE / f"{name}.py", *HERE.glob("_*.py"), HERE.parent / "randomness.py"]
    return {file.name: file.read_text("utf-8") for file in files}


def primitives() -> set[str]:
    """Return the names of all functions of the randomness module."""
    tree = ast.parse((HERE.parent / "randomness.py").read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@every_name
def test_the_file_name_is_the_wire_name(name: str) -> None:
    mechanism = load(name)

    assert mechanism.name == name
    assert mechanism.__module__ == f"client_sdk.mechanisms.{name}"


@every_name
@pytest.mark.parametrize("heading", ["Source: ", "Proof: "])
def test_the_module_cites_its_source_and_proves_its_claim(name: str, heading: str) -> None:
    docstring = inspect.getdoc(import_module(f"client_sdk.mechanisms.{name}"))

    assert docstring is not None
    assert [line for line in docstring.splitlines() if line.startswith(heading)]


@every_name
def test_a_mechanism_that_can_be_loaded_leaves_nothing_abstract(name: str) -> None:
    assert not inspect.isabstract(load(name))


def test_every_mechanism_has_a_vector_file_and_every_vector_file_a_mechanism() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(names())


def test_names_lists_the_files_of_the_folder_sorted() -> None:
    files = sorted(path.stem for path in HERE.glob("[!_]*.py"))

    assert list(names()) == files
    assert {"grr", "discrete_laplace"} <= set(files)


@every_name
def test_the_sampling_path_holds_no_float_and_no_other_chance(name: str) -> None:
    assert faults_on_path(sources(name), {ROOT, *primitives()}) == {}


@every_name
def test_the_sampling_path_reaches_the_mechanism_the_grid_and_the_primitives(name: str) -> None:
    reached = path_functions(sources(name), {ROOT})

    assert {place.split(":")[0] for place in reached} >= {f"{name}.py", "randomness.py"}
    assert not {"debias", "predict", "worst_variance"} & {p.split(":")[1] for p in reached}


@pytest.mark.parametrize(
    ("planted", "fault"),
    [
        ("p = 0.5", "float literal 0.5"),
        ("p = float(self.p)", "call of float"),
        ("p = math.exp(1)", "math.exp"),
        ("p = random.random()", "use of random"),
        ("p = np.random.rand()", "use of np"),
        ("import random", "import of random"),
    ],
)
def test_a_planted_float_or_foreign_chance_is_found_two_calls_away(
    planted: str, fault: str
) -> None:
    text = f"def randomize(self):\n    step(self)\ndef step(self):\n    {planted}\n"

    reached = path_functions({"planted.py": text}, {ROOT})

    assert fault in inexact(reached["planted.py:step"])
