"""Vectors in a registry: what is declared, what a value becomes, and what is refused."""

from __future__ import annotations

from array import array
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core.errors import InvalidValueError, RegistryError
from client_sdk.mechanisms import UNIT
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.planning.compilation import compiled
from tests.support.device.registries import VECTOR, file_with
from tests.support.enumeration.enumeration import Untouchable

CANARY: Final = 73_917_391
NO_VECTORS: Final[list[Any]] = [
    *(None, 1, "abc", b"abc", bytearray(b"abc"), {"a": 1, "b": 2, "c": 3}, {1, 2, 3}),
    *([], [CANARY, 0], [CANARY, 0, 0, 0], iter([1, 2, 3]), range(2_000_000)),
    *([float("nan"), 0, CANARY], [0, float("inf"), CANARY], [True, 0, CANARY], ["1", 0, CANARY]),
    *([None, 0, 0], [[1], 0, 0], [1j, 0, 0], [Decimal("sNaN"), 0, 0], [Decimal("1e9999999"), 0, 0]),
    *(np.zeros((3, 3)), np.array(["1", "2", "3"]), np.array([np.nan, 0, 0]), np.float64(3)),
]


def metric(**changes: str | None) -> Metric:
    return Registry.from_text(file_with(VECTOR, **changes)).metric("m")


@pytest.mark.parametrize(
    "value",
    [
        [0.5, -0.25, 0],
        (0.5, Decimal("-0.25"), Fraction(0)),
        array("d", [0.5, -0.25, 0]),
        np.array([0.5, -0.25, 0]),
        [np.float32(0.5), -0.25, np.int64(0)],
    ],
)
def test_any_sequence_of_numbers_is_a_vector(value: Any) -> None:
    assert metric().encode(value) == (UNIT // 2, -UNIT // 4, 0)


@pytest.mark.parametrize("value", NO_VECTORS, ids=lambda value: repr(value).split(" at 0x")[0])
def test_what_is_no_vector_is_refused_and_not_shown(value: Any) -> None:
    with pytest.raises(InvalidValueError) as caught:
        metric().encode(value)

    assert str(CANARY) not in f"{caught.value} {vars(caught.value)}"


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3))
def test_whatever_its_length_a_vector_becomes_one_within_the_bound(value: list[float]) -> None:
    """The mechanism takes it: its own check comes before any draw."""
    for norm in ("l2", "max"):
        of = metric(norm=f'"{norm}"', bound="2.5")
        encoded = of.encode(value)
        with pytest.raises(AssertionError, match="drawn"):
            of.mechanism.randomize(encoded, Untouchable())
        if norm == "max" or sum(Fraction(x) ** 2 for x in value) <= Fraction("6.25"):
            kept = [min(max(Fraction(x), Fraction("-2.5")), Fraction("2.5")) for x in value]
            numbers: Any = of.domain.as_given(encoded)
            off = [abs(a - Fraction(b)) for a, b in zip(kept, numbers, strict=True)]
            assert max(off) < Fraction("2.5") / UNIT


def test_a_longer_vector_counts_as_that_of_the_bound_in_its_direction() -> None:
    assert metric().encode([30, 40, 0]) == (UNIT * 3 // 5, UNIT * 4 // 5, 0)
    assert metric(norm='"max"').encode([30, -40, 0.5]) == (UNIT, -UNIT, UNIT // 2)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"length": "1"}, "length: must be how many numbers, from 2 to 4096"),
        ({"length": "4097"}, "length: must be how many"),
        ({"length": "true"}, "length: must be how many"),
        ({"length": None}, "length: must be how many"),
        ({"values": '["a", "b"]'}, "length: must be absent, or the number of values"),
        ({"values": '["a"]', "length": None}, "values: must be a list of at least 2"),
        ({"norm": '"l1"'}, "norm: must be one of l2, max"),
        ({"bound": "0"}, "bound: must be positive"),
        ({"bound": "nan"}, "bound: must be a finite number"),
        ({"unit": None}, "unit: must be a non-empty text"),
        ({"longitudinal": '"permanent"'}, "longitudinal: must be fresh for a vector"),
        ({"mechanism": '"grr"'}, "does not fit this type; fitting: auto, codebook, sampled_number"),
        ({"mechanism": '"codebook"', "parameters": "{ cube = 1 }"}, "follows from the metric's"),
    ],
)
def test_a_table_that_breaks_a_rule_is_refused_by_it(
    changes: dict[str, str | None], rule: str
) -> None:
    with pytest.raises(RegistryError, match=rf"metrics\.m\b.*{rule}"):
        metric(**changes)


def test_what_the_numbers_mean_is_in_the_digest_and_names_of_length_are_not() -> None:
    same = metric(values='["1", "2", "3"]', length=None)
    others = [
        metric(length="4"),
        metric(values='["a", "b", "c"]'),
        metric(norm='"max"'),
        metric(bound="2"),
        metric(unit='"ms"'),
    ]

    assert same.digest == metric().digest
    assert len({metric().digest, *(other.digest for other in others)}) == 6


@pytest.mark.parametrize("norm", ["l2", "max"])
@pytest.mark.parametrize("names", [{"length": "3"}, {"length": None, "values": '["a", "b", "c"]'}])
def test_a_compiled_registry_gives_the_same_metric(norm: str, names: dict[str, str | None]) -> None:
    changes: dict[str, str | None] = {
        **names,
        "norm": f'"{norm}"',
        "bound": "0.3",
        "aggregate": '"last"',
        "otherwise": "[0.1, -0.05, 0]",
    }
    registry = Registry.from_text(file_with(VECTOR, **changes))

    (of,) = Registry.from_text(compiled(registry))

    assert of.meaning == registry.metric("m").meaning
    assert of.mechanism == registry.metric("m").mechanism
    assert of.otherwise == registry.metric("m").otherwise
    assert of.domain == registry.metric("m").domain


def test_a_report_of_a_cube_reaches_its_corners_by_the_diagonal() -> None:
    """With ``max`` no vector is cut to the ball, and errors are those of the longest."""
    named = {"mechanism": '"codebook"'}
    ball, cube = metric(**named).mechanism, metric(**named, norm='"max"').mechanism

    assert cube.predict(1) == pytest.approx(3**0.5 * ball.predict(1))
    assert (ball.parameters["cube"], cube.parameters["cube"]) == (0, 1)
