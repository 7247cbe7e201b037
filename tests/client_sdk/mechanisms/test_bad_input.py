"""Hostile payloads, tallies and odd numbers are refused or clamped, and leave nothing behind."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any, Final, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk.core.errors import InvalidParameterError, InvalidTallyError, InvalidValueError
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import MeanMechanism, Mechanism, load, names
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.numbers._sums import SumReports
from client_sdk.registry.number_domains import NumberDomain
from tests.support.enumeration.enumeration import Untouchable
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.enumeration.vectors import (
    Small,
    build,
    cases,
    every_case,
    laws,
    smalls,
    values_of,
)
from tests.support.loops import in_turn, per_mechanism

every_count = per_mechanism(
    "name,case",
    cases,
    lambda mechanism: not issubclass(mechanism, SumReports),  # sums, not counts: below
)

OWN: Final = [(name, own) for name in names() for own in load(name).parameter_names()]
NO_COUNT: Final = [
    *(True, False, 1.0, 2.0, -0.0, 5e-324, float("nan"), float("inf")),
    *("1", "", b"1", 1 << 63, -(1 << 63)),
]
REPORTS: Final = 10
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


def honest(name: str, case: dict[str, Any]) -> tuple[Mechanism[Any], Any]:
    """Return the mechanism of a case and the tally of REPORTS honest reports."""
    mechanism, randomness = build(name, case), SeededRandomness(b"honest")
    values = values_of(mechanism, case)
    rows = [mechanism.randomize(values[i % len(values)], randomness) for i in range(REPORTS)]
    return mechanism, mechanism.tally(b"".join(rows), np)


@every_count
def test_an_entry_above_the_reports_is_refused_in_any_cell(name: str, case: dict[str, Any]) -> None:
    """No cell that counts reports can exceed their number, wherever it stands."""
    mechanism, tally = honest(name, case)
    for place, entry in product((0, tally.size // 2, -1), (REPORTS + 1, 1 << 40, (1 << 63) - 1)):
        wrong = tally.copy()
        wrong[place] = entry

        with pytest.raises(InvalidTallyError):
            mechanism.debias(wrong, REPORTS, np)


@every_case(SumReports)
@in_turn("place", [0, 1, 2])
def test_sums_that_the_reports_cannot_have_are_refused_in_any_cell(
    name: str, case: dict[str, Any], place: int
) -> None:
    """A sum must fit its squares, and both halves of the squares the number of reports."""
    mechanism, tally = honest(name, case)
    for entry in (1 << 62, (1 << 63) - 1, -(1 << 63)):
        wrong = tally.copy()
        wrong[place] = entry

        with pytest.raises(InvalidTallyError):
            mechanism.debias(wrong, REPORTS, np)


@every_case()
def test_integers_that_an_int64_cannot_hold_are_no_tally(name: str, case: dict[str, Any]) -> None:
    """Unsigned entries of 2^63 and more are refused, not wrapped round to small ones."""
    mechanism = build(name, case)
    wrong = np.full(mechanism.tally_size, 1 << 63, dtype=np.uint64)

    with pytest.raises(InvalidTallyError):
        mechanism.debias(wrong, REPORTS, np)


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
REFUSED: Final = [
    *(float("nan"), float("inf"), -float("inf"), True, False, "1", b"1", None, 1j, [1], object()),
    *(Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1e999999999")),
]
CLAMPED: Final = [
    *(-0.0, 1e308, -1e308, 5e-324, -5e-324, 2**63, -(2**63), 10**400, 1.7976931348623157e308),
    *(
        Decimal("-0"),
        Decimal("4.9999999999999999999999999"),
        Fraction(1, 3**200),
        4.999999999999999,
    ),
]


@pytest.mark.parametrize("value", REFUSED, ids=lambda each: type(each).__name__)
def test_what_is_no_finite_number_is_refused_before_anything_is_drawn(value: object) -> None:
    for mechanism in MECHANISMS:
        with pytest.raises(InvalidValueError):
            mechanism.randomize(DOMAIN.encode(value, "odd"), Untouchable())


@pytest.mark.parametrize("value", CLAMPED, ids=lambda value: repr(value)[:20])
def test_a_finite_number_however_odd_gives_a_valid_payload(value: object) -> None:
    for mechanism in MECHANISMS:
        payload = mechanism.randomize(DOMAIN.encode(value, "odd"), system_randomness())
        assert len(payload) == mechanism.payload_size
        assert mechanism.reason(payload) is None


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
