"""Odd numbers, from NaN to subnormals: each is refused or clamped, and never leaves the grid."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk.core.errors import InvalidValueError
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import MeanMechanism, load, names
from client_sdk.registry.number_domains import NumberDomain
from tests.support.enumeration.enumeration import Untouchable

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


@settings(max_examples=1000, deadline=None)
@given(st.one_of(st.floats(), st.integers(), st.decimals(), st.fractions(), st.booleans()))
def test_any_number_is_refused_or_gives_a_valid_payload(value: object) -> None:
    try:
        position = DOMAIN.encode(value, "odd")
    except InvalidValueError:
        return

    payloads = [(m, m.randomize(position, system_randomness())) for m in MECHANISMS]

    assert 0 <= position <= DOMAIN.size - 1
    assert all(m.reason(payload) is None for m, payload in payloads)
