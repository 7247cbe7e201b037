"""Shares of items, with what is left of the whole, and post-processed by name."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from collector.analytics.postprocess import OF_PARTS
from collector.analytics.verb import Slice
from collector.core.errors import QueryError
from tests.support.crowds.asking import ask
from tests.support.device.registries import KEY_VALUE, SET
from tests.support.enumeration.populations import category, metric_of, slice_of

LABELS = ("a", "b", "c", "d")
HELD = (900, 90, 10, 0)


@pytest.mark.parametrize("name", OF_PARTS)
def test_each_post_processing_is_named_and_keeps_the_raw_number(name: str) -> None:
    """A row says what was done to it; its interval stays that of the raw number."""
    one = slice_of(category(*LABELS), HELD)
    raw = ask("frequency", [one]).rows

    found = ask("frequency", [one], postprocess=name).rows

    assert {row.postprocess for row in found} == {name}
    for before, after in zip(raw, found, strict=True):
        assert after.raw == (None if name == "raw" else before.value)
        assert replace(after, value=before.value, raw=None, postprocess="raw") == before


@pytest.mark.parametrize("name", ["norm_sub", "simplex_l2", "simplex_l1"])
def test_shares_made_one_whole_sum_to_one(name: str) -> None:
    """Also in a boolean, whose two items have rows here."""
    rows = ask("frequency", [slice_of(category(*LABELS), HELD)], postprocess=name).rows

    values = [row.value or 0.0 for row in rows]
    assert sum(values) == pytest.approx(1)
    assert min(values) >= 0


@pytest.mark.parametrize("fields", [SET, KEY_VALUE], ids=["set", "key_value"])
def test_items_of_which_a_device_holds_many_are_not_made_one_whole(fields: dict[str, str]) -> None:
    """Their shares do not sum to 1, and nothing is said of what is left."""
    metric = metric_of(fields)
    tally = np.zeros(metric.mechanism.tally_size, dtype=np.int64)
    tally[0] = 1_000
    one = Slice(metric, {}, 1_000, tally, (0,))

    with pytest.raises(QueryError, match=r"postprocess: must be one of raw, base_cut"):
        ask("frequency", [one], postprocess="norm_sub")
    assert "unallocated" not in ask("frequency", [one], postprocess="base_cut").facts


def test_what_is_left_of_the_whole_is_told_with_its_interval() -> None:
    """Randomized response always sums to 1; reports that support many items do not."""
    (exact,) = ask("frequency", [slice_of(category(*LABELS), HELD)]).facts["unallocated"]
    unary = category(*LABELS, mechanism="oue")
    tally = np.array([500, 300, 280, 270])
    (found,) = ask("frequency", [Slice(unary, {"x": "y"}, 1_000, tally, (0,))]).facts["unallocated"]

    assert exact == {"dimensions": {}, **dict.fromkeys(("value", "ci_low", "ci_high"), 0)} or (
        abs(exact["value"]) < 1e-12
    )
    rows = ask("frequency", [Slice(unary, {}, 1_000, tally, (0,))]).rows
    assert found["dimensions"] == {"x": "y"}
    assert found["value"] == pytest.approx(1 - sum(row.value or 0 for row in rows))
    assert found["ci_low"] < found["value"] < found["ci_high"]
