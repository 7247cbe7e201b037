"""Every mechanism file cites its source, proves its claim and samples without floats."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import pytest

import client_sdk.mechanisms
from client_sdk.mechanisms import load, names
from tests.support.enumeration.sampling_path import (
    PRIMITIVES,
    ROOT,
    faults_on_path,
    path_nodes,
    sources,
)
from tests.support.enumeration.vectors import FOLDER

HERE = Path(client_sdk.mechanisms.__file__).parent

every_name = pytest.mark.parametrize("name", names())


@every_name
def test_the_file_name_is_the_wire_name(name: str) -> None:
    mechanism = load(name)

    assert mechanism.name == name
    assert mechanism.__module__.startswith("client_sdk.mechanisms.")
    assert mechanism.__module__.rpartition(".")[2] == name


@every_name
@pytest.mark.parametrize("heading", ["Source: ", "Proof: ", "Draws: "])
def test_the_module_cites_its_source_proves_its_claim_and_tells_its_draws(
    name: str, heading: str
) -> None:
    docstring = inspect.getdoc(import_module(load(name).__module__))

    assert docstring is not None
    assert [line for line in docstring.splitlines() if line.startswith(heading)]


@every_name
def test_a_mechanism_that_can_be_loaded_leaves_nothing_abstract(name: str) -> None:
    assert not inspect.isabstract(load(name))


def test_every_mechanism_has_a_vector_file_and_every_vector_file_a_mechanism() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(names())


def test_names_lists_the_files_of_the_folder_sorted() -> None:
    files = sorted(path.stem for path in HERE.glob("*/[!_]*.py"))

    assert list(names()) == files
    assert {"grr", "discrete_laplace"} <= set(files)


@every_name
def test_the_sampling_path_holds_no_float_and_no_other_chance(name: str) -> None:
    assert faults_on_path(sources(name), {ROOT, *PRIMITIVES}) == {}


@every_name
def test_the_sampling_path_reaches_the_mechanism_the_grid_and_the_primitives(name: str) -> None:
    reached = path_nodes(sources(name), {ROOT})

    assert {place.split(":")[0] for place in reached} >= {f"{name}.py", "randomness.py"}
    assert not {"debias", "predict", "worst_variance"} & {p.split(":")[1] for p in reached}


@pytest.mark.parametrize(
    ("planted", "fault"),
    [
        ("p = 0.5", "float literal 0.5"),
        ("p = float(self.p)", "use of float"),
        ("p = math.exp(1)", "math.exp"),
        ("p = sqrt(value)", "use of sqrt"),
        ("p = list(map(sqrt, [value]))", "use of sqrt"),
        ("p = value / 3", "quotient value / 3"),
        ("value /= 3", "quotient value /= 3"),
        ("p = value ** -1", "quotient value ** (-1)"),
        ("p = round(value)", "use of round"),
        ("p = random.random()", "random.random"),
        ("p = np.random.rand()", "np.random"),
        ("p = time.time_ns()", "time.time_ns"),
        ("p = os.urandom(1)", "os.urandom"),
        ("p = hash(value)", "use of hash"),
        ("import random", "import of random"),
    ],
)
def test_a_planted_float_or_foreign_chance_is_found_two_calls_away(
    planted: str, fault: str
) -> None:
    text = (
        "from math import sqrt\ndef randomize(self, value):\n    step(self, value)\n"
        f"def step(self, value: int):\n    {planted}\n"
    )

    found = faults_on_path({"planted.py": text}, {ROOT})

    assert fault in found["planted.py:step"]


@pytest.mark.parametrize("rate", ["RATE = 0.25", "RATE: Final = 0.25", "RATE = 1 / 4"])
def test_a_planted_constant_of_the_module_is_found_where_the_path_mentions_it(rate: str) -> None:
    text = f"{rate}\nUNUSED = 0.5\ndef randomize(self, value):\n    return value < RATE\n"

    found = faults_on_path({"planted.py": text}, {ROOT})

    assert list(found) == ["planted.py:RATE"]


def test_a_planted_default_of_a_parameter_is_found() -> None:
    text = "def randomize(self, value, rate=0.25):\n    return value < rate\n"

    assert faults_on_path({"planted.py": text}, {ROOT}) == {
        "planted.py:randomize": ["float literal 0.25"]
    }


def test_quotients_of_fractions_are_exact_and_no_fault() -> None:
    text = (
        "class Channel:\n    p: Fraction\n"
        "def truth(self) -> Fraction:\n    return self.p / 3\n"
        "def randomize(self, value: Fraction):\n"
        "    p, q = self.p, 3\n    return (1 - p) / q + value / 2 + 1 / truth(self)\n"
    )

    assert faults_on_path({"planted.py": text}, {ROOT}) == {}


@pytest.mark.parametrize(
    ("name", "sibling"),
    [("padding_sampling", "oue.py"), ("sampled_attribute", "subset_selection.py")],
)
def test_a_fault_planted_in_the_sibling_of_a_mechanism_is_found(name: str, sibling: str) -> None:
    files = sources(name)
    sound = files[sibling]
    body = sound.replace(
        "        self.require_value(value)\n", "        self.require_value(value / 3)\n"
    )

    found = faults_on_path({**files, sibling: body}, {ROOT})

    assert body != sound
    assert found == {f"{sibling}:randomize": ["quotient value / 3"]}
