"""The vector files: one a mechanism, half written by hand, half made by ``make_vectors``.

By hand: ``textbook`` (formulas over epsilon, d = domain_size, E = e^epsilon, the mechanism's own
parameters by name, and the formulas above), ``enumerate`` (parameters whose whole output law is
enumerated, and the mass below which a path is left),
``refused`` (parameters, and the one that the error names), and of each case its parameters, seed,
values and ``bad`` payloads.  Made: ``expected`` of each case.

``enumerate`` names ``domain_sizes``, each taken with every epsilon of EPSILONS; or, where a loop
without bound makes most laws too long to follow, ``pairs`` of epsilon and domain size.  Its
``parameters``, if any, are those of the mechanism's own that keep the law small; ``others`` lists
further parameters with ``domain_sizes`` of their own.
``one_pass`` tells that a sampler restarts too often to be followed beyond its first pass.
``exhaustive`` lists parameters on so coarse a grid that every string of entropy bits can be tried;
only a mechanism that loops without bound has none.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any, Final, NamedTuple

from client_sdk import mechanisms
from client_sdk.core.randomness import Randomness
from client_sdk.mechanisms import (
    UNIT,
    FrequencyOracle,
    ItemMechanism,
    KeyValueMechanism,
    Mechanism,
    Record,
    RecordMechanism,
    SetMechanism,
    TextMechanism,
    VectorMechanism,
    load,
)
from client_sdk.mechanisms.records import Attribute
from tests.support.enumeration.enumeration import Law, distribution
from tests.support.enumeration.formula import CONTEXT, evaluate
from tests.support.enumeration.runs import RunPath, one_pass_law
from tests.support.loops import Test, per_mechanism
from tests.support.references.key_value_reference import HeldPairs, parse_pairs

FOLDER: Final = Path(__file__).parents[2] / "vectors"
EPSILONS: Final = ("0.01", "0.1", "0.5", "1", "2", "4", "8", "16")  # nats
DOMAIN_SIZES: Final = (2, 3, 4, 7, 16, 64)  # items or grid points
STEP: Final = 7  # cases; it has no factor in common with how many sizes a mechanism has, 1 to 6


def path_of(name: str) -> Path:
    """Return the vector file of mechanism *name*; of one that is not shipped it lies beside it."""
    source = Path(str(sys.modules[load(name).__module__].__file__))
    shipped = Path(mechanisms.__file__).parent in source.parents
    return FOLDER / f"{name}.json" if shipped else source.with_suffix(".json")


def read(name: str) -> dict[str, Any]:
    """Return the vector file of mechanism *name*."""
    vectors: dict[str, Any] = json.loads(path_of(name).read_text("utf-8"))
    return vectors


def textbook(name: str, mechanism: Mechanism[Any]) -> dict[str, Decimal]:
    """Return the textbook's numbers for the parameters of *mechanism*, to 60 digits."""
    epsilon = mechanism.epsilon
    rational = CONTEXT.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    known = {
        "epsilon": rational,
        "E": CONTEXT.exp(rational),
        "d": Decimal(mechanism.domain_size),
        **{key: Decimal(number) for key, number in mechanism.parameters.items()},
    }
    numbers: dict[str, Decimal] = {}
    for key, formula in read(name)["textbook"].items():
        numbers[key] = evaluate(formula, known | numbers)
    return numbers


class Small(NamedTuple):
    """A mechanism small enough to enumerate."""

    name: str
    mechanism: Mechanism[Any]
    least_mass: Fraction
    one_pass: bool = False

    @property
    def values(self) -> list[Any]:
        """All items or all sets; of a range both ends and some points on and off the grid.

        Of pairs every set of keys, each at either end or between.  Of vectors the middle, ends,
        corners of a cube and places between.  Of records all.  Of strings the empty one, some
        with a common beginning, and one as long as they may be.
        """
        size = self.mechanism.domain_size
        if isinstance(self.mechanism, ItemMechanism):
            return list(range(size))
        if isinstance(self.mechanism, SetMechanism):
            return [
                frozenset(s) for held in range(size + 1) for s in combinations(range(size), held)
            ]
        if isinstance(self.mechanism, RecordMechanism):
            return list(map(Record, product(*map(items_of, self.mechanism.attributes))))
        if isinstance(self.mechanism, KeyValueMechanism):
            top = Fraction(self.mechanism.top)
            positions = [Fraction(0), top, top / 3]
            return [
                HeldPairs(zip(keys, places, strict=True))
                for held in range(size + 1)
                for keys in combinations(range(size), held)
                for places in product(positions, repeat=held)
            ]
        if isinstance(self.mechanism, VectorMechanism):
            rest = (0,) * (size - 2)
            few = [(0, 0), (1, -1), (-UNIT, 0), (UNIT // 3, UNIT // 2)]
            few += [(UNIT // 2, -UNIT // 4), (UNIT, 0)]
            few += [(UNIT, UNIT), (UNIT, -UNIT)] if self.mechanism.cube else []
            return [(*pair, *rest) for pair in few]
        if isinstance(self.mechanism, TextMechanism):
            return [text[:size] for text in (b"", b"a", b"b", b"ab", b"abc\xff"[-size:])]
        return [Fraction(0), Fraction(1, 3), Fraction(size - 1, 2), Fraction(size - 1)]


def items_of(attribute: Attribute) -> range:
    """Return the items of an attribute of a record."""
    return range(attribute.first, attribute.end)


@cache
def made(name: str, epsilon: str, size: int, **own: int) -> Mechanism[Any]:
    """Return the mechanism of these parameters; it never changes, so many tests share it."""
    return load(name)(epsilon, size, **own)


def smalls(name: str) -> list[Small]:
    """Return mechanism *name* with every choice of parameters that its file enumerates."""
    whole = read(name)["enumerate"]
    least, one_pass = Fraction(Decimal(whole["least_mass"])), whole.get("one_pass", False)
    return [
        Small(name, made(name, epsilon, size, **plan.get("parameters", {})), least, one_pass)
        for plan in (whole, *whole.get("others", ()))
        for epsilon, size in plan.get("pairs") or product(EPSILONS, plan["domain_sizes"])
    ]


def is_pure(mechanism: type[Mechanism[Any]]) -> bool:
    """Whether *mechanism* is a frequency oracle whose channel alone gives the estimate."""
    return issubclass(mechanism, FrequencyOracle) and mechanism.pure


def small_parameters(name: str) -> dict[str, int]:
    """Return the parameters that keep the output law of mechanism *name* small."""
    parameters: dict[str, int] = read(name)["enumerate"].get("parameters", {})
    return parameters


def grid(name: str) -> list[Small]:
    """Return mechanism *name* at every epsilon and at domain sizes from 2 to 64."""
    return [
        Small(name, made(name, epsilon, size), Fraction(0))
        for epsilon, size in product(EPSILONS, DOMAIN_SIZES)
    ]


@cache
def laws(small: Small) -> tuple[Law, ...]:
    """Return the law of the payload for every value."""

    def law(value: Any) -> Law:
        def sample(randomness: Randomness) -> bytes:
            return small.mechanism.randomize(value, randomness)

        if small.one_pass:
            return one_pass_law(sample, small.least_mass)
        return distribution(sample, small.least_mass, RunPath)

    return tuple(law(value) for value in small.values)


def cases(name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return (mechanism name, case) for every case of the vector file of mechanism *name*."""
    return [(name, case) for case in read(name)["cases"]]


def every_small(family: type[Any] = Mechanism) -> Callable[[Test], Test]:
    """Run a test of ``small`` on every enumerated mechanism of *family*."""
    return every_of(smalls, of_family(family))


def every_of(
    smalls_of: Callable[[str], list[Small]],
    which: Callable[[type[Mechanism[Any]]], bool] = lambda _: True,
) -> Callable[[Test], Test]:
    """Run a test of ``small`` on *smalls_of* mechanisms; make test takes each STEP-th of them."""
    return per_mechanism("small", smalls_of, which, STEP)


def every_case(family: type[Any] = Mechanism) -> Callable[[Test], Test]:
    """Run a test of ``name`` and ``case`` on every case of the vector files of *family*."""
    return per_mechanism("name,case", cases, of_family(family))


def of_family(family: type[Any]) -> Callable[[type[Any]], bool]:
    """Return whether a mechanism is of *family*, as a function of the mechanism."""
    return lambda mechanism: issubclass(mechanism, family)


def build(name: str, case: dict[str, Any]) -> Mechanism[Any]:
    """Return the mechanism of a case."""
    return load(name)(**case["parameters"])


def values_of(mechanism: Mechanism[Any], case: dict[str, Any]) -> list[Any]:
    """Return the values of a case: items, positions, or sets or pairs between blanks, or text."""
    if isinstance(mechanism, KeyValueMechanism):
        return [parse_pairs(value) for value in case["values"]]
    if isinstance(mechanism, SetMechanism):
        return [frozenset(map(int, value.split())) for value in case["values"]]
    if isinstance(mechanism, RecordMechanism):
        return [Record(map(int, value.split())) for value in case["values"]]
    if isinstance(mechanism, TextMechanism):
        return [value.encode() for value in case["values"]]
    if isinstance(mechanism, VectorMechanism):
        return [tuple(map(int, value.split())) for value in case["values"]]
    kind = int if isinstance(mechanism, ItemMechanism) else Fraction
    return [kind(value) for value in case["values"]]


def label(thing: object) -> str:
    """Return a short test id."""
    if isinstance(thing, Small):
        m = thing.mechanism
        return f"{thing.name}-{float(m.epsilon):g}-{m.domain_size}"
    return thing if isinstance(thing, str) else ""
