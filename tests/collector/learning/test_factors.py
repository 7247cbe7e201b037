"""Factors of tastes: what is learned, what is refused, and that noise makes no factor."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from math import exp, sqrt
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.core.errors import InvalidParameterError
from client_sdk.learning.factors import Factors
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.analytics.verb import Slice
from collector.core.errors import DamagedTallyError, QueryError
from collector.learning import factors as learning
from collector.learning.factors import FALSE_ALARM, Moment, learn, summary
from tests.support.device.registries import CATEGORY, TASTE, file_with
from tests.support.enumeration.seeded import SeededRandomness

# 16 words a seed make reports fast to draw; what is learned of them is the same
_FAST: Final = {"mechanism": '"codebook"', "parameters": "{ words = 16 }"}
ALARMED: Final = 5  # of TALLIES; by chance, at FALSE_ALARM each, with 2e-10
TALLIES, REPORTS = 30, 300


def metric_of(count: int = 4, epsilon: str = "4") -> Metric:
    values = json.dumps([f"item {place}" for place in range(count)])
    text = file_with(TASTE, values=values, epsilon=f'"{epsilon}"', **_FAST)
    return Registry.from_text(text).metric("m")


def slice_of(metric: Metric, tastes: Sequence[Sequence[int]], n: int, seed: bytes) -> Slice:
    """Return real reports of *n* devices that have these *tastes* in turn."""
    mechanism, randomness = metric.mechanism, SeededRandomness(seed)
    values = [metric.encode([f"item {item}" for item in taste]) for taste in tastes]
    payloads = b"".join(
        mechanism.randomize(values[device % len(values)], randomness) for device in range(n)
    )
    return Slice(metric, {}, n, mechanism.tally(payloads, np), (0,))


def moment_of(tastes: Sequence[Sequence[int]], count: int) -> Any:
    rows = np.array([[item in taste for item in range(count)] for taste in tastes], dtype=float)
    rows /= np.sqrt(np.maximum(rows.sum(axis=1, keepdims=True), 1))
    return rows.T @ rows / len(rows)


TWO_TASTES: Final = ((0, 1), (0, 1), (2, 3))


@pytest.fixture(scope="module")
def learned() -> tuple[Slice, Any]:
    part = slice_of(metric_of(), TWO_TASTES, 6_000, b"two tastes")
    return part, learn(part)


def test_what_goes_together_becomes_a_factor(learned: tuple[Slice, Any]) -> None:
    part, model = learned
    factors = Factors.of(model)

    assert factors.best([0], 1) == ["item 1"]
    assert factors.best([3], 1) == ["item 2"]
    assert (model.reports, model.metric) == (part.n, "m")
    assert len(factors.eigenvalues) == 2 == model.parts["rank"]


def test_every_eigenvalue_is_in_its_interval(learned: tuple[Slice, Any]) -> None:
    """All at once with 95 %; the seed is fixed, so it is the same in every run."""
    _, model = learned
    truth = sorted(np.linalg.eigvalsh(moment_of(TWO_TASTES, 4)), reverse=True)

    for (value, low, high), exact in zip(model.parts["eigenvalues"], truth, strict=False):
        assert low <= exact <= high
        assert 0 <= low < value < high <= 1


def test_the_shares_are_those_that_the_page_shows(learned: tuple[Slice, Any]) -> None:
    _, model = learned

    for (value, low, high), exact in zip(
        model.parts["shares"], np.diag(moment_of(TWO_TASTES, 4)), strict=True
    ):
        assert low < value < high
        assert abs(value - exact) < 4 * (high - low)


def test_the_moment_is_symmetric_and_unbiased(learned: tuple[Slice, Any]) -> None:
    moment = Moment.of(learned[0])

    assert (moment.matrix == moment.matrix.T).all()
    off = np.abs(moment.matrix - moment_of(TWO_TASTES, 4))
    assert off.max() < 7 * moment.error + moment.bias  # ten normal numbers: below 1e-10


def alarms(limit: float) -> int:
    """Return in how many of TALLIES more directions than the truth has are above the noise.

    All like the same item, or nothing: there is one direction, or none.  *limit*: parts of the
    noise that the rule allows.
    """
    wrong = 0
    for tally in range(TALLIES):
        tastes = ((0,),) if tally % 2 else ((),)
        part = slice_of(metric_of(epsilon="1"), tastes, REPORTS, b"noise %d" % tally)
        moment = Moment.of(part)
        above = np.linalg.eigvalsh(moment.matrix) > limit * moment.noise(FALSE_ALARM)
        wrong += int(above.sum()) > len(tastes[0])
    return wrong


def test_a_direction_of_noise_is_published_as_seldom_as_is_stated() -> None:
    assert alarms(1.0) < ALARMED


def test_a_rule_that_takes_a_third_of_the_noise_would_be_caught() -> None:
    assert alarms(1 / 3) >= ALARMED


@pytest.mark.parametrize("count", [2, 17, 50])
def test_the_noise_rule_bounds_normal_matrices_and_is_not_much_looser(count: int) -> None:
    """Steps 1 and 2; by chance 1,000 matrices exceed the limit 15 times with less than 1e-11."""
    dice, size = np.random.default_rng(count), 1_000 if count < 50 else 100
    moment = Moment(np.zeros((count, count)), 1, 1.0, 0.0, 0.0)
    halves = dice.standard_normal((size, count, count)) / 2
    largest = np.linalg.eigvalsh(halves + halves.transpose(0, 2, 1))[:, -1]

    assert (largest > moment.noise(FALSE_ALARM)).sum() < 15
    assert largest.mean() <= sqrt(2 * count) <= 2.5 * largest.mean()
    assert moment.noise(FALSE_ALARM) < 1.35 * sqrt(2 * count) + 4


@pytest.mark.parametrize("tastes", [((),), ((0,), (1,), (2,), (3,))])
def test_too_few_reports_are_refused_with_how_many_would_do(
    tastes: Sequence[Sequence[int]],
) -> None:
    part = slice_of(metric_of(epsilon="1"), tastes, 300, b"few")

    with pytest.raises(QueryError, match="no eigenvalue is above the noise") as refusal:
        learn(part)

    (enough,) = re.findall(r"([\d,]+) are enough for the first factor", str(refusal.value))
    moment = replace(Moment.of(part), n=int(enough.replace(",", "")))
    shrunk = moment.error * sqrt(300 / moment.n)
    assert 2 * replace(moment, error=shrunk).noise(FALSE_ALARM) < 1 / 4 + moment.bias + 1e-6


def test_as_many_as_are_said_to_be_enough_are_enough() -> None:
    """Of tastes that have nothing in common, the hardest: every eigenvalue is 1/K."""
    few = slice_of(metric_of(2), ((0,), (1,)), 300, b"few")
    enough = Moment.of(few).reports_for(1 / 4)

    assert enough is not None
    assert enough < 20_000
    assert learn(slice_of(metric_of(2), ((0,), (1,)), enough, b"more")).parts["rank"] >= 1


def test_at_most_the_rank_that_is_asked_for_is_published(learned: tuple[Slice, Any]) -> None:
    part, model = learned

    one = learn(part, 1)

    assert one.parts["rank"] == 1
    assert one.parts["eigenvalues"] == model.parts["eigenvalues"][:1]
    assert learn(part, 4).parts["rank"] == 2  # noise stays out, whatever is asked for
    with pytest.raises(InvalidParameterError, match="rank=0: must be at least 1"):
        learn(part, 0)


def test_a_metric_that_is_no_taste_is_refused() -> None:
    metric = Registry.from_text(file_with(CATEGORY)).metric("m")
    part = Slice(metric, {}, 10, np.zeros(metric.mechanism.tally_size, dtype=np.int64), (0,))

    with pytest.raises(QueryError, match="must be of type taste"):
        learn(part)


def test_a_tally_that_no_reports_give_is_refused(learned: tuple[Slice, Any]) -> None:
    part, _ = learned
    wrong = part.tally.copy()
    wrong[0] = 1 << 60

    with pytest.raises(DamagedTallyError, match="run hearsay fsck"):
        learn(replace(part, tally=wrong))


def test_more_reports_make_the_noise_smaller_down_to_the_bias() -> None:
    moment = Moment(np.zeros((17, 17)), 10_000, sqrt(1.63 / 10_000), 0.5, 0.001)

    assert moment.reports_for(0.001) is None
    enough = moment.reports_for(0.05)
    assert enough is not None
    smaller = replace(moment, n=enough, error=sqrt(1.63 / enough))
    assert smaller.noise(FALSE_ALARM) <= 0.05
    assert moment.noise(exp(-50)) > moment.noise(0.5)
    assert learning.FALSE_ALARM <= 1e-3


def test_the_summary_tells_which_items_too_few_devices_report(learned: tuple[Slice, Any]) -> None:
    _, model = learned
    alone = learn(slice_of(metric_of(), ((0,), (1,)), 3_000, b"two items"))

    first, second = summary(model)
    said = list(summary(alone))

    assert first == f"{model.parts['rank']} factors of 6,000 reports at ε 4"
    assert re.fullmatch(
        r"largest eigenvalue 0\.\d{3} \(0\.\d{3} to 0\.\d{3}\); noise alone stays below 0\.\d{3}",
        second,
    )
    assert said[2] == "perhaps liked by nobody, as too few devices report it: item 2, item 3"
