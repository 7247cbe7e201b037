"""A metric may declare the half-width that its decision needs."""

from __future__ import annotations

from fractions import Fraction

import pytest

from client_sdk.core.errors import RegistryError
from client_sdk.registry import Registry
from tests.support.device.registries import CATEGORY, KEY_VALUE, NUMBER, file_with


@pytest.mark.parametrize(
    ("fields", "need", "exact"),
    [
        (CATEGORY, "0.02", Fraction(1, 50)),
        (CATEGORY, "1", Fraction(1)),
        (NUMBER, "2.5", Fraction(5, 2)),
        (NUMBER, "10.5", Fraction(21, 2)),
        (KEY_VALUE, "0.1", Fraction(1, 10)),
    ],
)
def test_a_need_is_read_exactly(fields: dict[str, str], need: str, exact: Fraction) -> None:
    """Law: a share, or a part of the range in the metric's unit."""
    assert Registry.from_text(file_with(fields, need=need)).metric("m").need == exact


def test_a_metric_without_a_need_has_none() -> None:
    assert Registry.from_text(file_with(CATEGORY)).metric("m").need is None


def test_a_need_is_no_part_of_the_digest() -> None:
    """Law: it changes what is shown, and nothing of what a report means."""
    plain, needy = (
        Registry.from_text(file_with(CATEGORY, need=need)).metric("m") for need in (None, "0.02")
    )

    assert plain.digest == needy.digest


@pytest.mark.parametrize(
    ("fields", "need", "rule"),
    [
        (CATEGORY, "0", "must be above 0 and at most 1"),
        (CATEGORY, "-0.1", "must be above 0 and at most 1"),
        (CATEGORY, "5", "must be above 0 and at most 1"),
        (NUMBER, "11", "must be above 0 and at most 10.5"),
        (CATEGORY, '"0.02"', "must be a finite number"),
        (CATEGORY, "nan", "must be a finite number"),
    ],
)
def test_a_need_that_no_interval_can_have_is_refused(
    fields: dict[str, str], need: str, rule: str
) -> None:
    with pytest.raises(RegistryError) as refused:
        Registry.from_text(file_with(fields, need=need))

    assert refused.value.problems == (f"metrics.m.need: {rule}",)
