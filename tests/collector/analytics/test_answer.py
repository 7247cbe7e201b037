"""An answer of one slice: its rows and their quality, and the need that a row must meet."""

from __future__ import annotations

import numpy as np
import pytest

from client_sdk.registry.metric import Metric
from collector.analytics.answer import expectation
from collector.analytics.rows import Row
from collector.analytics.suppression import shortage, suppress_imprecise
from collector.estimation.estimate import normal_quantile
from collector.estimation.precision import still_needed
from tests.support.crowds.asking import answer
from tests.support.crowds.truths import label_truth
from tests.support.crowds.uploads import registry
from tests.support.device.registries import BOOLEAN, CATEGORY, KEY_VALUE
from tests.support.enumeration.populations import metric_of, reported

REGISTRY = registry(min_reports=500)
PAGE, OPTED_IN, AGE = (REGISTRY.metric(name) for name in ("page", "opted_in", "age"))
ALPHA = 0.05


def empty_answer(metric: Metric, n: int = 0) -> tuple[Row, ...]:
    return answer(metric, np.zeros(metric.mechanism.tally_size, dtype=np.int64), n, ALPHA)


@pytest.mark.parametrize("name", list(REGISTRY.metrics))
@pytest.mark.parametrize("n", [0, 1, 499])
def test_below_min_reports_every_row_has_a_reason_and_no_number(name: str, n: int) -> None:
    rows = empty_answer(REGISTRY.metric(name), n)

    numbers = [(row.value, row.ci_low, row.ci_high, row.std_error) for row in rows]
    assert set(numbers) == {(None, None, None, None)}
    (reason,) = {row.reason or "" for row in rows}
    assert reason.startswith(f"not enough reports: {n} of at least 500 needed; ")
    assert {(row.quality, row.n) for row in rows} == {("insufficient", n)}


def test_from_min_reports_on_every_row_has_a_number_and_no_reason() -> None:
    rows = answer(PAGE, np.array([200, 200, 100]), 500, ALPHA)

    assert all(row.value is not None and row.reason is None for row in rows)


def test_a_category_has_a_row_per_item_in_the_order_of_the_registry() -> None:
    found = answer(PAGE, np.array([100, 300, 200]), 600, ALPHA)

    assert [row.item for row in found] == ["home", "news", "shop"]
    assert {row.unit for row in found} == {"share"}


def test_a_boolean_has_one_row_which_is_the_share_of_true() -> None:
    (row,) = answer(OPTED_IN, np.array([0, 600]), 600, ALPHA)

    assert row.item == "true"
    assert row.value is not None
    assert row.value > 1  # everybody said yes, which some of the noise did


def test_a_number_has_one_row_which_is_its_mean_in_its_unit() -> None:
    found = answer(AGE, np.array([600 * 60, 600 * 3_600, 0]), 600, ALPHA)

    (row,) = found
    assert (row.item, row.unit) == ("mean", "years")
    assert row.value == pytest.approx(40.0)


def test_rows_say_their_level_and_that_nothing_was_done_to_them() -> None:
    rows = answer(PAGE, np.array([100, 300, 200]), 600, 0.01)

    assert {(row.alpha, row.n, row.postprocess) for row in rows} == {(0.01, 600, "raw")}


def test_quality_falls_as_the_interval_widens_against_the_value() -> None:
    p, q = 0.5761, 0.2119  # of three items at epsilon 1
    n = 1_000_000
    held = {"home": 0.7, "news": 0.2999, "shop": 0.0001}
    tally = np.array([round(n * (share * p + (1 - share) * q)) for share in held.values()])

    rows = answer(PAGE, tally, n, ALPHA)

    assert [row.quality for row in rows] == ["good", "good", "poor"]
    few = answer(PAGE, tally // 100, n // 100, ALPHA)
    assert [row.quality for row in few] == ["good", "fair", "poor"]


def test_the_planned_half_width_of_a_mean_is_in_its_unit() -> None:
    predicted = AGE.mechanism.predict(AGE.expected_devices)

    unit, half_width = expectation(AGE, ALPHA)
    assert unit == "years"
    assert half_width == pytest.approx(1.959964 * predicted * 80)


@pytest.mark.parametrize(
    ("metric", "held", "truth"),
    [
        (PAGE, {"home": 1, "shop": 3}, {"home": 0.25, "news": 0.0, "shop": 0.75}),
        (OPTED_IN, {True: 1, False: 4}, {"true": 0.2}),
        (AGE, {20: 1, 50: 2}, {"mean": 40.0}),
    ],
    ids=["labels", "boolean", "numbers"],
)
def test_the_truth_is_the_share_of_items_or_the_mean_of_numbers(
    metric: Metric, held: dict[object, int], truth: dict[str, float]
) -> None:
    assert label_truth(metric, held) == truth


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
