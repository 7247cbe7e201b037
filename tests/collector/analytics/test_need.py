"""A number that misses its declared need is replaced by the reason and what is missing."""

from __future__ import annotations

import pytest

from client_sdk.registry.metric import Metric
from collector.analytics.rows import Row
from collector.analytics.suppression import shortage, suppress_imprecise
from collector.estimation.estimate import normal_quantile
from collector.estimation.precision import still_needed
from tests.support.crowds.asking import answer
from tests.support.device.registries import BOOLEAN, CATEGORY, KEY_VALUE
from tests.support.enumeration.populations import metric_of, reported


def rows_of(metric: Metric, value: object, n: int, alpha: float = 0.05) -> tuple[Row, ...]:
    """Return the answer to *n* real reports of devices that all hold *value*."""
    return answer(metric, *reported(metric, [value] * n, "need"), alpha)


def test_a_number_above_its_need_becomes_a_reason_with_the_reports_that_are_missing() -> None:
    """Law: no value, no interval, but the width that it has and how many more reports it takes."""
    metric = metric_of(CATEGORY, need="0.02")
    more = still_needed(metric, 1_000)
    assert more is not None

    rows = suppress_imprecise(rows_of(metric, "free", 1_000), metric)

    assert [row.value for row in rows] == [None] * 3
    assert [row.ci_low for row in rows] == [None] * 3
    told = [row.reason or "" for row in rows]
    assert all(text.startswith("not precise enough: ±") for text in told)
    assert min(int(text.split()[-2].replace(",", "")) for text in told) == more


@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_a_number_that_meets_its_need_stays_at_any_level(alpha: float) -> None:
    """Law: the need is of the 95 % interval, also where a wider one is asked for."""
    metric = metric_of(CATEGORY, need="0.1")
    rows = rows_of(metric, "free", 2_000, alpha)

    kept = suppress_imprecise(rows, metric)

    assert kept == rows
    assert all(normal_quantile(0.05) * (row.std_error or 1) <= 0.1 for row in rows)


def test_without_a_need_every_number_stays() -> None:
    """Law: what was not declared hides nothing."""
    metric = metric_of(BOOLEAN)
    rows = rows_of(metric, True, 600)

    assert suppress_imprecise(rows, metric) == rows


def test_the_need_of_shares_says_nothing_of_means() -> None:
    """Law: a row in another unit than that of the need stays as it is."""
    metric = metric_of(KEY_VALUE, need="0.0001")
    rows = rows_of(metric, {"video": 12}, 3_000)

    kept = suppress_imprecise(rows, metric)

    shares, means = kept[:3], kept[3:]
    assert all(row.value is None for row in shares)
    assert means == rows[3:]


def test_too_few_reports_say_how_many_more_the_need_takes() -> None:
    """Law: beside min_reports stands the number of the plan."""
    metric = metric_of(BOOLEAN, need="0.02", min_reports="500")

    told = shortage(metric, 120)

    assert told.text == (
        "not enough reports: 120 of at least 500 needed; "
        f"±2 points takes {still_needed(metric, 120):,} more"
    )
