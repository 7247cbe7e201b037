"""An answer as a row of a table: a population, a question, and what must be answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from collector.analytics.rows import RAW, Findings, Row
from collector.analytics.verb import Slice
from tests.support.crowds.asking import ask

ROUNDING = 1e-8  # of sums of floats at the ends of intervals


class Part(str):
    """A text that is part of what must stand in its place."""


@dataclass(frozen=True)
class Scenario:
    """What *verb* must answer about *slices*: of each column that is named all rows, in order.

    A column is a field of a row or a dimension; one value that is no list stands in every row.
    Of facts those that are named are compared, of mappings in them the keys that are named.
    """

    verb: str
    slices: Sequence[Slice]
    options: Mapping[str, Any]
    rows: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    remarks: Sequence[Any] | None = None  # codes, whole remarks, or parts of their text
    postprocess: str = RAW
    within: float = 2e-3  # of numbers

    def answer(self) -> Findings:
        """Return what is answered."""
        return ask(self.verb, [*self.slices], postprocess=self.postprocess, options=self.options)


def check(scenario: Scenario) -> None:
    """Assert that *scenario* is answered as it says, and that each row is in itself a sound one."""
    found = scenario.answer()
    for row in found.rows:
        assert is_sound(row), row
    for name, expected in scenario.rows.items():
        column = [cell(row, name) for row in found.rows]
        every = expected if isinstance(expected, list) else [expected] * len(column)
        assert fits(column, every, scenario.within), (name, column)
    assert fits(found.facts, scenario.facts, scenario.within), found.facts
    if scenario.remarks is not None:
        said = [
            each.text if isinstance(part, Part) else each if hasattr(part, "code") else each.code
            for each, part in zip(found.warnings, scenario.remarks, strict=True)
        ]
        assert fits(said, [*scenario.remarks], scenario.within), said


def is_sound(row: Row) -> bool:
    """Return whether a row has a number within its interval, or the reason why it has none."""
    if row.value is None:
        return bool(row.reason)
    unbiased = row.value if row.raw is None else row.raw
    low, high = row.ci_low, row.ci_high
    assert low is not None
    return (
        row.reason is None
        and low - ROUNDING <= unbiased
        and (high is None or unbiased <= high + ROUNDING)
    )


def cell(row: Row, name: str) -> Any:
    """Return what *row* has in a column."""
    return getattr(row, name) if hasattr(row, name) else row.dimensions.get(name)


def fits(found: Any, expected: Any, within: float) -> bool:
    """Return whether *found* is what is expected: numbers within so much, ``...`` any at all."""
    if expected is ...:
        return found is not None
    if isinstance(expected, Part):
        return expected in (found or "")
    if isinstance(expected, Mapping):
        return all(fits(found.get(name), part, within) for name, part in expected.items())
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(
            fits(one, part, within) for one, part in zip(found, expected, strict=True)
        )
    if isinstance(expected, int | float) and not isinstance(expected, bool):
        return bool(found == pytest.approx(expected, abs=within))
    return bool(found == expected)
