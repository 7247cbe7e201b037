"""The vector files: one a mechanism, half written by hand, half made by ``make_vectors``.

By hand: ``textbook`` (formulas over epsilon, d = domain_size and E = e^epsilon), ``enumerate``
(parameters whose whole output law is enumerated, and the mass below which a path is left),
``refused`` (parameters, and the one that the error names), and of each case its parameters, seed,
values and ``bad`` payloads.  Made: ``expected`` of each case.

``enumerate`` names ``domain_sizes``, each taken with every epsilon of EPSILONS; or, where a loop
without bound makes most laws too long to follow, ``pairs`` of epsilon and domain size.
``exhaustive``, where there is one, lists parameters on so coarse a grid that every string of
entropy bytes can be tried.
"""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from client_sdk.mechanisms import FrequencyOracle, Mechanism, load, names

from .enumeration import Law, distribution
from .formula import CONTEXT, evaluate
from .runs import RunPath

FOLDER: Final = Path(__file__).parent.parent / "vectors"
EPSILONS: Final = ("0.01", "0.1", "0.5", "1", "2", "4", "8", "16")  # nats
DOMAIN_SIZES: Final = (2, 3, 4, 7, 16, 64)  # items or grid points


def read(name: str) -> dict[str, Any]:
    """Return the vector file of mechanism *name*."""
    vectors: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return vectors


def textbook(name: str, mechanism: Mechanism[Any]) -> dict[str, Decimal]:
    """Return the textbook's numbers for the parameters of *mechanism*, to 60 digits."""
    epsilon = mechanism.epsilon
    rational = CONTEXT.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    known = {
        "epsilon": rational,
        "E": CONTEXT.exp(rational),
        "d": Decimal(mechanism.domain_size),
    }
    return {key: evaluate(formula, known) for key, formula in read(name)["textbook"].items()}


class Small(NamedTuple):
    """A mechanism small enough to enumerate."""

    name: str
    mechanism: Mechanism[Any]
    least_mass: Fraction

    @property
    def values(self) -> list[Any]:
        """All items; of a range both ends and some positions on and between the grid points."""
        size = self.mechanism.domain_size
        if isinstance(self.mechanism, FrequencyOracle):
            return list(range(size))
        return [Fraction(0), Fraction(1, 3), Fraction(size - 1, 2), Fraction(size - 1)]


def smalls(family: type[Any] = Mechanism) -> list[Small]:
    """Return every mechanism of *family* with parameters that its file enumerates."""
    return [
        Small(name, load(name)(epsilon, size), Fraction(Decimal(plan["least_mass"])))
        for name in names()
        if issubclass(load(name), family)
        for plan in (read(name)["enumerate"],)
        for epsilon, size in plan.get("pairs") or product(EPSILONS, plan["domain_sizes"])
    ]


def grid() -> list[Small]:
    """Return every mechanism at every epsilon and at domain sizes from 2 to 64."""
    return [
        Small(name, load(name)(epsilon, size), Fraction(0))
        for name in names()
        for epsilon, size in product(EPSILONS, DOMAIN_SIZES)
    ]


@cache
def laws(small: Small) -> tuple[Law, ...]:
    """Return the law of the payload for every value."""

    def law(value: Any) -> Law:
        return distribution(
            lambda randomness: small.mechanism.randomize(value, randomness),
            small.least_mass,
            RunPath,
        )

    return tuple(law(value) for value in small.values)


def cases(family: type[Any] = Mechanism) -> list[tuple[str, dict[str, Any]]]:
    """Return (mechanism name, case) for every case of every vector file of *family*."""
    return [
        (name, case)
        for name in names()
        if issubclass(load(name), family)
        for case in read(name)["cases"]
    ]


def build(name: str, case: dict[str, Any]) -> Mechanism[Any]:
    """Return the mechanism of a case."""
    return load(name)(**case["parameters"])


def values_of(mechanism: Mechanism[Any], case: dict[str, Any]) -> list[Any]:
    """Return the values of a case: items, or positions as fractions."""
    kind = int if isinstance(mechanism, FrequencyOracle) else Fraction
    return [kind(value) for value in case["values"]]


def label(thing: object) -> str:
    """Return a short test id."""
    if isinstance(thing, Small):
        m = thing.mechanism
        return f"{thing.name}-{float(m.epsilon):g}-{m.domain_size}"
    return thing if isinstance(thing, str) else ""
