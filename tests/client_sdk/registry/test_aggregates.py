"""Aggregates: exact, of bounded size, and kept as bytes whose length says nothing."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk.core.errors import InvalidValueError
from client_sdk.recording.inbox import Slot
from client_sdk.registry import Registry
from client_sdk.registry.aggregates import MAX_COUNTED, Last, aggregate_of
from client_sdk.registry.encodings import Encoded
from client_sdk.registry.metric import Metric
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    KEY_VALUE,
    NUMBER,
    RECORD,
    SET,
    VECTOR,
    file_with,
)

MANY = "[" + ", ".join(f'"item {i}"' for i in range(200)) + "]"
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def metric(fields: dict[str, str], **changes: str | None) -> Metric:
    """Return the metric of *fields* with *changes*."""
    return Registry.from_text(file_with({**fields, "mechanism": '"auto"'}, **changes)).metric("m")


SUM = metric(NUMBER, min="-3", aggregate='"sum"')
COMMON = metric(CATEGORY, values=MANY, aggregate='"most_common"')


def state_of(aggregate: Last, values: list[Any]) -> Any:
    """Return the state after *values*, kept as bytes from each to the next."""
    state: Any = None
    for value in values:
        kept = None if state is None else aggregate.load(aggregate.dump(state))
        state = aggregate.merge(kept, aggregate.fold(None, [value]))
    return state


def taken(of: Metric, values: list[Any]) -> list[Any]:
    """Return *values* as a slot of the metric hands them to its aggregate."""
    slot = Slot(of, 0.0, aggregate_of(of))
    return [slot.check(value) for value in values]


def result(of: Metric, values: list[Any]) -> Encoded:
    return aggregate_of(of).result(state_of(aggregate_of(of), taken(of, values)))


@given(st.lists(FINITE | st.integers() | st.decimals(-100, 100, places=30), min_size=1))
def test_a_sum_of_any_numbers_is_exact_and_clamped_once(values: list[Any]) -> None:
    """Law: values count as they were given; only the sum is clamped to the range."""
    exact = sum(map(Fraction, values))
    clamped = min(max(exact, Fraction(-3)), Fraction("10.5"))
    expected = (clamped + 3) / Fraction("0.5")

    # far outside the range a sum is cut off: only there may it miss what comes back
    if max(abs(Fraction(value)) for value in values) < 2**60:
        assert result(SUM, values) == expected


def test_a_sum_takes_what_no_float_can_hold() -> None:
    """Law: the largest and smallest numbers neither fail nor fill the state."""
    thirds = [Fraction(1, 3**i) for i in range(2_000)]

    assert result(SUM, [10**5_000, Decimal("1e399"), 5e-324]) == 27
    assert result(SUM, [-(10**5_000), -1.7e308]) == 0
    assert abs(result(SUM, thirds) - (2 * Fraction(3, 2) + 6)) < Fraction(1, 2**50)  # type: ignore[operator]  # a number


def test_a_sum_refuses_what_a_number_refuses_without_showing_it() -> None:
    """Law: an aggregate takes exactly the values that its metric takes."""
    for value in (float("nan"), "7391", True, None, Decimal("1e999")):
        with pytest.raises(InvalidValueError) as caught:
            taken(SUM, [value])
        assert "7391" not in str(caught.value)


@given(st.lists(FINITE, min_size=1))
def test_a_maximum_is_the_largest_value_as_its_metric_encodes_it(values: list[float]) -> None:
    largest = metric(NUMBER, aggregate='"max"')

    assert result(largest, values) == largest.encode(max(values))


@given(st.lists(st.booleans(), min_size=1))
def test_any_is_true_if_one_value_was(values: list[bool]) -> None:
    assert result(metric(BOOLEAN, aggregate='"any"'), values) == int(any(values))


@given(st.lists(st.integers(0, MAX_COUNTED - 1), min_size=1))
def test_the_most_common_item_is_counted_exactly_and_a_tie_goes_to_the_first(
    items: list[int],
) -> None:
    counts = Counter(items)
    expected = min(counts, key=lambda item: (-counts[item], item))

    assert result(COMMON, [f"item {item}" for item in items]) == expected


def test_what_is_common_among_too_many_items_is_kept() -> None:
    """Law: an item that is more than one in MAX_COUNTED is found, however many others come."""
    rest = [f"item {i % 200}" for i in range(600)]

    assert result(COMMON, rest[:300] + ["item 199"] * 60 + rest[300:]) == 199


@pytest.mark.parametrize(
    ("fields", "values"),
    [
        (BOOLEAN, [True, False]),
        (CATEGORY, ["team", "free"]),
        (SET, [["a", "c"], []]),
        (NUMBER, [3, 0.1]),
        (KEY_VALUE, [{"video": 10, "chess": -10}, {}, {"music": 30}]),
        (RECORD, [{"plan": "pro", "age": 41, "label": "left"}]),
        (VECTOR, [[0.5, -0.25, 0], [-9, 9, 1e300]]),
    ],
)
def test_the_last_value_of_every_type_is_kept_exactly(
    fields: dict[str, str], values: list[Any]
) -> None:
    last = metric(fields, aggregate='"last"')

    for count in range(1, len(values) + 1):
        assert result(last, values[:count]) == last.encode(values[count - 1])


@given(FINITE)
def test_the_numbers_of_keys_are_kept_to_a_tiny_part_of_their_range(number: float) -> None:
    of = metric(KEY_VALUE, aggregate='"last"')
    exact = of.encode({"video": number})

    kept = of.domain.encoding.load(of.domain.encoding.dump(exact))

    assert isinstance(exact, dict)
    assert isinstance(kept, dict)
    assert abs(kept[0] - exact[0]) <= Fraction(1, 2**61)


@pytest.mark.parametrize("of", [SUM, COMMON, metric(SET, aggregate='"last"')])
def test_a_state_has_one_length_whatever_was_recorded(of: Metric) -> None:
    """Law: neither how much nor how many different values came shows in the length."""
    aggregate = aggregate_of(of)
    single: list[Any] = [0] if of is SUM else ["item 0"] if of is COMMON else [[]]
    many: list[Any] = [5e-324, 1.7e308] if of is SUM else [["a", "b"]]
    if of is COMMON:
        many = [f"item {i}" for i in range(200)]

    states = [state_of(aggregate, taken(of, values)) for values in (single, many)]
    lengths = {len(aggregate.dump(state)) for state in states}

    assert lengths == {aggregate.size}
    assert of is COMMON or aggregate.size == of.domain.encoding.size


MIXED = st.integers() | st.sampled_from([0.5, -2, Fraction(1, 3), Decimal("0.1")]) | FINITE
VALUES = {
    "sum": (SUM, st.integers(-(2**60), 2**60) | st.floats(-1e9, 1e9)),
    "max": (metric(NUMBER, aggregate='"max"'), MIXED),
    "last": (metric(NUMBER, aggregate='"last"'), MIXED),
    "any": (metric(BOOLEAN, aggregate='"any"'), st.booleans()),
    "most_common": (COMMON, st.sampled_from([f"item {i}" for i in range(60)])),
}


@pytest.mark.parametrize("kind", VALUES)
@settings(deadline=None)
@given(st.data())
def test_however_values_are_grouped_they_make_the_same(kind: str, data: st.DataObject) -> None:
    """Law: added up in memory in any pieces, and merged, they are what they are one by one."""
    of, any_value = VALUES[kind]
    aggregate = aggregate_of(of)
    groups = data.draw(st.lists(st.lists(any_value, min_size=1), min_size=1))
    kept: Any = None

    for group in groups:
        values = taken(of, group)
        half = len(values) // 2
        state = aggregate.fold(None, values[:half]) if half else None
        kept = aggregate.merge(kept, aggregate.fold(state, values[half:]))

    assert aggregate.result(kept) == result(of, [value for group in groups for value in group])
