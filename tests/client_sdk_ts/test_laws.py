"""The exact law of every payload of the device in TypeScript is that of the device in Python.

Every string of entropy bits is tried where parameters are coarse enough (``exhaustive`` in the
vector files); with chances as fine as they ship, every path of the draws is followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk.mechanisms import Mechanism, load
from client_sdk.mechanisms.numbers.discrete_laplace import DiscreteLaplace
from tests.client_sdk_ts.channels import MECHANISMS, write_channel, write_value
from tests.support.enumeration.enumeration import distribution
from tests.support.enumeration.vectors import Small, read
from tests.support.node import PACKAGE, Node, patched

LAWS: Final = Path("tests", "support", "laws.js")  # below build
MOST_VALUES: Final = 4  # of a mechanism
TAIL: Final = Fraction(1, 10**4)  # mass below which a path of Laplace noise is left
# its weights have 128 bits in a compiled registry, whatever the precision: paths are followed alone
FINE: Final = {"exponential"}
UNBOUNDED: Final = {"discrete_laplace"}

Laws = list[dict[str, Fraction]]


def coarse(name: str) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = read(name).get("exhaustive", [])
    return parameters


def without_precision(parameters: dict[str, Any]) -> dict[str, Any]:
    return {key: number for key, number in parameters.items() if key != "precision"}


def values_of(name: str, mechanism: Mechanism[Any]) -> list[Any]:
    values = Small(name, mechanism, Fraction(0)).values
    return values[:: -(-len(values) // MOST_VALUES)]


def job(name: str, mechanism: Mechanism[Any], **options: str) -> dict[str, Any]:
    values = [write_value(value) for value in values_of(name, mechanism)]
    return {
        "mechanism": name,
        "channel": write_channel(mechanism),
        "values": values,
        **options,
    }


def laws_of(node: Node, jobs: list[dict[str, Any]], build: Path = PACKAGE / "build") -> list[Laws]:
    answers = node.ask(build / LAWS, question=jobs)
    return [
        [{key: Fraction(mass) for key, mass in law.items()} for law in laws] for laws in answers
    ]


def expected_laws(name: str, mechanism: Mechanism[Any], least: Fraction = Fraction(0)) -> Laws:
    laws = []
    for value in values_of(name, mechanism):
        pmf, rest = distribution(partial(mechanism.randomize, value), least)
        law = {payload.hex(): mass for payload, mass in pmf.items() if isinstance(payload, bytes)}
        laws.append({**law, "rest": rest} if rest else law)
    return laws


def every_coarse() -> Iterator[tuple[str, Mechanism[Any]]]:
    for name in MECHANISMS:
        if name not in FINE:
            yield from ((name, load(name)(**parameters)) for parameters in coarse(name))


def every_fine() -> Iterator[tuple[str, Mechanism[Any]]]:
    for name in MECHANISMS:
        for parameters in coarse(name):
            yield name, load(name)(**without_precision(parameters))


def test_every_string_of_entropy_gives_the_law_of_python(node: Node) -> None:
    every = list(every_coarse())

    laws = laws_of(node, [job(name, mechanism, by="strings") for name, mechanism in every])

    assert {name for name, _ in every} == {*MECHANISMS} - FINE - UNBOUNDED
    for (name, mechanism), law in zip(every, laws, strict=True):
        assert law == expected_laws(name, mechanism), name


def test_every_path_of_the_draws_gives_the_law_of_python(node: Node) -> None:
    """With the chances as they ship, of 128 bits."""
    every = list(every_fine())

    laws = laws_of(node, [job(name, mechanism, by="paths") for name, mechanism in every])

    assert {name for name, _ in every} == {*MECHANISMS} - UNBOUNDED
    for (name, mechanism), law in zip(every, laws, strict=True):
        assert law == expected_laws(name, mechanism), name


def test_the_noise_without_bound_follows_the_law_of_python(node: Node) -> None:
    mechanism = DiscreteLaplace("2", 3)

    (laws,) = laws_of(node, [job("discrete_laplace", mechanism, by="paths", leastMass=str(TAIL))])
    expected = expected_laws("discrete_laplace", mechanism, TAIL)

    for law, other in zip(laws, expected, strict=True):
        rest = law.pop("rest") + other.pop("rest")
        assert rest < Fraction(1, 2)
        assert law.keys() == other.keys()
        assert sum(abs(law[payload] - other[payload]) for payload in law) <= rest


BUGS: Final = {
    "a lie may be the truth": ("core/exact.js", "other >= symbol", "other > symbol", "grr"),
    "the lie is of all items": ("core/exact.js", "symbols - 1n)", "symbols)", "grr"),
    "the largest number is left out": ("core/randomness.js", "drawn < n", "drawn < n - 1n", "grr"),
    "a coin falls once too often": (
        *("core/randomness.js", "(p.denominator) < p.numerator"),
        *("(p.denominator) <= p.numerator", "grr"),
    ),
    "zero is drawn less": ("core/randomness.js", "(drawn < n)", "(drawn < n && drawn)", "hadamard"),
    "a tie is below": ("core/randomness.js", "return below;", "return below | open;", "sue"),
    "digits are read the wrong way": ("core/randomness.js", "open & ~word", "open & word", "oue"),
    "the own bit is seen": ("mechanisms/oue.js", "& ~own", "", "oue"),
    "nothing is flipped": ("mechanisms/sue.js", "flips ^ ", "", "sue"),
    "the sign is never turned": ("core/exact.js", "even = !even", "even = true", "hadamard"),
    "a seed has no offset": ("mechanisms/olh.js", "(seed % prime)", "0n", "olh"),
    "a block without the item may hold it": (
        *("mechanisms/block_design.js", "size + randomness.uniform(prime - size)"),
        *("randomness.uniform(prime)", "block_design"),
    ),
    "the subset lacks a place": (
        *("mechanisms/subset_selection.js", "places.has(place) ? last : place"),
        *("place", "subset_selection"),
    ),
    "rounding is down": (
        "core/exact.js",
        "denominator: b }) ? 1n : 0n",
        "denominator: b }) ? 0n : 0n",
        "duchi",
    ),
    "the window is not skipped": ("core/exact.js", "other + width", "other + 0n", "piecewise"),
    "a value that misses is not raised": (
        *("mechanisms/privset.js", "(y) => width + y"),
        *("(y) => y", "privset"),
    ),
    "a dummy is the last item": (
        "mechanisms/padding_sampling.js",
        "size + slot",
        "slot",
        "padding_sampling",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_changes_a_law(node: Node, tmp_path: Path, bug: str) -> None:
    file, right, wrong, name = BUGS[bug]
    build = patched(tmp_path, PACKAGE / "build", f"src/{file}", {right: wrong})
    every = [(name, load(name)(**parameters)) for parameters in coarse(name)]

    laws = laws_of(node, [job(name, mechanism, by="strings") for name, mechanism in every], build)

    assert laws != [expected_laws(name, mechanism) for name, mechanism in every]
