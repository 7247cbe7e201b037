"""Useless parameters, values, payloads and tallies are refused by name, before any draw."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk.core.errors import (
    InvalidParameterError,
    InvalidValueError,
    UnknownMechanismError,
)
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import (
    UNIT,
    ItemMechanism,
    KeyValueMechanism,
    MeanMechanism,
    Mechanism,
    Record,
    RecordMechanism,
    SetMechanism,
    TextMechanism,
    VectorMechanism,
    load,
    names,
)
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.registry.types.numbers import NumberDomain
from tests.support.enumeration.enumeration import Untouchable
from tests.support.enumeration.vectors import (
    Small,
    build,
    every_case,
    laws,
    read,
    smalls,
)
from tests.support.loops import in_turn, per_mechanism

every_name = pytest.mark.parametrize("name", names())

NO_EPSILON: list[object] = [
    *(0, -1, 0.0, -0.5, float("nan"), float("inf"), -float("inf"), 1e9, 17, 16.5, True, None, b"1"),
    *("0", "-1", "", "nan", "NaN", "sNaN", "inf", "Infinity", "1e9", "1/2", "one", "0x1", [], 1j),
    *("1e999999999", "1e-999999999", "0e-999999999", "1" * 5000, Decimal("sNaN"), Fraction(-1, 2)),
    *(-0.0, 5e-324, -5e-324, 1 << 63),
]
NO_DOMAIN_SIZE = [0, 1, -3, True, False, 1 << 31, 1 << 63, 10**30, 2.0, "2", None, Fraction(4)]


@every_name
@in_turn(
    "parameter,value",
    [
        *(("epsilon", value) for value in NO_EPSILON),
        *(("domain_size", value) for value in NO_DOMAIN_SIZE),
    ],
)
def test_a_mechanism_refuses_an_epsilon_or_a_domain_size_out_of_range(
    name: str, parameter: str, value: Any
) -> None:
    """An epsilon is a decimal in range, a domain size a count in range."""
    given = {"epsilon": "1", "domain_size": 4, parameter: value}

    with pytest.raises(InvalidParameterError) as caught:
        load(name)(given["epsilon"], given["domain_size"])

    assert caught.value.name == parameter
    assert str(caught.value).startswith(f"{parameter}=")


@per_mechanism("name,refused", lambda name: [(name, way) for way in read(name)["refused"]])
def test_the_parameters_that_a_vector_file_lists_as_refused_are(
    name: str, refused: dict[str, Any]
) -> None:
    parameters = {key: value for key, value in refused.items() if key != "parameter"}

    with pytest.raises(InvalidParameterError) as caught:
        load(name)(**parameters)

    assert caught.value.name == refused["parameter"]


@every_name
def test_equal_numbers_of_any_type_make_the_same_mechanism(name: str) -> None:
    mechanism = load(name)

    same = {mechanism(e, 4) for e in ("0.5", 0.5, Decimal("0.50"), Fraction(1, 2), "5e-1")}

    assert same == {mechanism("0.5", 4)}
    assert mechanism("0.5", 4) not in {mechanism("0.5", 5), mechanism("0.6", 4)}


@every_name
def test_a_float_epsilon_stands_for_the_decimal_that_python_prints(name: str) -> None:
    assert load(name)(0.1, 4).epsilon == Fraction(1, 10)


def wrong_values(size: int, frequency: bool) -> list[object]:
    """Return what no domain of *size* holds."""
    items: list[object] = [0.0, Fraction(1, 2), Fraction(1)] if frequency else [0.5]
    outside = [-1, size, size + 10**20, True, False, None, "1", b"1", float("nan"), Decimal(1)]
    odd = [float("inf"), -float("inf"), -0.0, 5e-324, -5e-324, 1 << 63, -(1 << 63), "0", "", "٣"]
    return [*outside, *odd, *items, Fraction(-1, 10**9), Fraction(size) - Fraction(1, 10**9)]


def wrong_values_of(mechanism: Mechanism[Any]) -> list[Any]:
    """Return what *mechanism* must refuse: of sets also what they may not hold, and no items."""
    size, frequency = mechanism.domain_size, isinstance(mechanism, ItemMechanism)
    if isinstance(mechanism, KeyValueMechanism):
        keys = wrong_values(size, frequency=True)
        positions = wrong_values(mechanism.top + 1, frequency=False)
        pairs = [*({key: 0} for key in keys[1:]), *({0: position} for position in positions)]
        return [*keys, 0, [(0, 0)], {0}, *pairs]
    if isinstance(mechanism, TextMechanism):
        texts = [*("", "a"), bytearray(b"a"), b"a" * (size + 1), [b"a"], (), frozenset()]
        return [v for v in wrong_values(size, frequency=True) if type(v) is not bytes] + texts
    if isinstance(mechanism, RecordMechanism):
        firsts: list[Any] = [attribute.first for attribute in mechanism.attributes]
        others: list[Any] = [tuple(firsts), firsts, Record(firsts[1:]), Record((*firsts, 0))]
        items: list[Any] = wrong_values(size, frequency=True)
        return [*items, 0, *others, *(Record((item, *firsts[1:])) for item in items)]
    if isinstance(mechanism, VectorMechanism):
        rest = (0,) * (size - 1)
        numbers = [*wrong_values(2, frequency=True), UNIT + 1, -UNIT - 1, 10**400]
        wrong = [
            (number, *rest) for number in numbers if type(number) is not int or abs(number) > 20
        ]
        lengths: list[Any] = [(), rest, (0, 0, *rest), [0, *rest]]
        lengths += [] if mechanism.cube else [(UNIT, *rest[:-1], 1)]
        return [*wrong_values(size, frequency=True), 0, *wrong, *lengths]
    if not isinstance(mechanism, SetMechanism):
        return wrong_values(size, frequency)
    items = wrong_values(size, frequency=True)
    return [*items, 0, {0}, [0], (0,), *(frozenset({item}) for item in items)]


@every_case()
def test_a_value_outside_the_domain_is_refused_before_anything_is_drawn(
    name: str, case: dict[str, Any]
) -> None:
    mechanism = build(name, case)

    for value in wrong_values_of(mechanism):
        with pytest.raises(InvalidValueError):
            mechanism.randomize(value, Untouchable())


@every_name
@in_turn("canary", ["987654321987", 987654321987, Fraction(987654321987, 10)])
def test_the_error_of_a_refused_value_does_not_show_it(name: str, canary: object) -> None:
    mechanism = load(name)("1", 4)

    with pytest.raises(InvalidValueError) as caught:
        mechanism.randomize(canary, Untouchable())

    assert "98765432198" not in f"{caught.value} {caught.value!r} {vars(caught.value)}"
    assert str(caught.value).startswith(f"{name}: must be ")


def test_an_unknown_name_is_refused_and_the_known_ones_are_shown() -> None:
    with pytest.raises(UnknownMechanismError) as caught:
        load("no_such_mechanism")

    assert str(caught.value) == (
        f"mechanism=no_such_mechanism: is not known; known: {', '.join(names())}"
    )


@pytest.mark.parametrize("name", ["_base", "_exact", "..errors", "", "GRR", "os"])
def test_load_imports_nothing_but_a_mechanism(name: str) -> None:
    with pytest.raises(UnknownMechanismError):
        load(name)


OWN: Final = [(name, own) for name in names() for own in load(name).parameter_names()]
NO_COUNT: Final = [
    *(True, False, 1.0, 2.0, -0.0, 5e-324, float("nan"), float("inf")),
    *("1", "", b"1", 1 << 63, -(1 << 63)),
]
MOST_BYTES: Final = 2  # of a payload, so that every string of them can be tried
BY_VECTORS: Final = {"cms", "discrete_gaussian", "discrete_laplace"}  # all are too many


@in_turn("name,own", OWN)
@in_turn("number", NO_COUNT)
def test_a_parameter_of_a_mechanism_refuses_what_is_no_count_in_range(
    name: str, own: str, number: Any
) -> None:
    """A parameter beyond epsilon and domain_size is an int in range, never a bool."""
    parameters = {**load(name)("1", 8).parameters, own: number}

    with pytest.raises(InvalidParameterError) as caught:
        load(name)("1", 8, **parameters)

    assert caught.value.name == own


def enumerable(name: str) -> list[Small]:
    """Return mechanism *name* at epsilon 1 where its law is known and its payloads are short."""
    found = [small for small in smalls(name) if small.mechanism.payload_size <= MOST_BYTES]
    return [small for small in found if not small.least_mass and small.mechanism.epsilon == 1]


def reports_of_nobody(small: Small) -> set[bytes]:
    """Return the payloads of the right size that no value can give."""
    size = small.mechanism.payload_size
    possible = {cast("bytes", payload) for law in laws(small) for payload in law.pmf}
    return {number.to_bytes(size, "big") for number in range(256**size)} - possible


@per_mechanism("small", enumerable, lambda mechanism: mechanism.name not in BY_VECTORS)
def test_exactly_the_payloads_that_no_value_gives_are_refused(small: Small) -> None:
    """Of all byte strings of a payload's size, ``check`` keeps those that some value can give."""
    nobody = reports_of_nobody(small)
    size = small.mechanism.payload_size
    every = b"".join(number.to_bytes(size, "big") for number in range(256**size))

    kept = small.mechanism.check(every, np)

    assert nobody.isdisjoint(small.mechanism.split(kept.payloads))
    assert len(kept.payloads) // size == 256**size - len(nobody)
    assert sum(kept.rejected.values()) == len(nobody)


def test_only_long_payloads_and_noise_without_bound_are_left_to_the_vectors() -> None:
    """Every other mechanism has all its payloads tried."""
    assert {name for name in names() if not enumerable(name)} == BY_VECTORS


class _Lenient(GRR):
    """Planted fault: an item outside the domain is let through."""

    def reason(self, payload: bytes) -> str | None:
        return None if payload[0] <= self.domain_size else "item_out_of_range"


def test_one_report_too_many_let_through_would_be_seen() -> None:
    """The law above fails on a check that accepts the first item beyond the domain."""
    faulty = Small("lenient", _Lenient("1", 3), Fraction(0))

    assert {p for p in reports_of_nobody(faulty) if faulty.mechanism.reason(p) is None} == {b"\3"}


DOMAIN: Final = NumberDomain(Fraction(-5), Fraction(5), Fraction(1, 4), "steps")
MECHANISMS: Final = [
    load(name)("1", DOMAIN.size) for name in names() if issubclass(load(name), MeanMechanism)
]


@settings(max_examples=1000)
@given(st.one_of(st.floats(), st.integers(), st.decimals(), st.fractions(), st.booleans()))
def test_any_number_is_refused_or_gives_a_valid_payload(value: object) -> None:
    try:
        position = DOMAIN.encode(value, "odd")
    except InvalidValueError:
        return

    payloads = [(m, m.randomize(position, system_randomness())) for m in MECHANISMS]

    assert 0 <= position <= DOMAIN.size - 1
    assert all(m.reason(payload) is None for m, payload in payloads)
