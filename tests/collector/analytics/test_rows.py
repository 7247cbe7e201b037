"""Rows are made fast, and are the same rows."""

from __future__ import annotations

import pytest

from collector.analytics.rows import Row, flat, row_of
from collector.core.remarks import Code, remark
from collector.estimation.estimate import Estimate

SO_FAR = remark(Code.NOTE, text="so far")
FOUND = Estimate(0.5, 0.01, 0.48, 0.52)


def test_a_row_of_an_estimate_is_the_row_of_its_fields() -> None:
    numbers = (0.5, 0.48, 0.52, 0.01)

    made = row_of({"item": "a"}, FOUND, 900, 0.05, "share", notes=(SO_FAR,), is_open=True)

    same = Row({"item": "a"}, *numbers, 900, 0.05, "good", "share", notes=(SO_FAR,), is_open=True)
    assert made == same
    assert list(flat(made)) == list(flat(same))


def test_a_row_cannot_be_changed() -> None:
    row = row_of({}, FOUND, 900, 0.05, "share")

    with pytest.raises(AttributeError):
        row.value = 1.0  # type: ignore[misc]
