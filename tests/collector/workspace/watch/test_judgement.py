"""Watches fire as often as they say, and are quiet for years where nothing changes."""

from __future__ import annotations

from fractions import Fraction
from math import exp, lgamma
from typing import Any, Final

import numpy as np
import pytest
from msgspec.structs import replace

from client_sdk.core.epoch import DAY
from client_sdk.mechanisms import Channel
from client_sdk.registry.contract import Registry
from client_sdk.registry.metric import Metric
from collector.analytics.rows import Row, row_of
from collector.core.catalog import Catalog
from collector.core.cells import Cell
from collector.estimation.estimate import Estimate, score_limits
from collector.storage.records import FIRING, UNABLE
from collector.workspace.watch.judgement import (
    FAKES,
    change_of,
    fewer,
    margin,
    span_of,
    weight_of,
)
from collector.workspace.watch.rules import YEARLY, parse
from tests.support.crowds.asking import answer
from tests.support.device.registries import BOOLEAN, FUNNEL, HEAD
from tests.support.store.stored import queue_one
from tests.support.store.watched import CHANNEL, NEWEST, Desk, catalog_of

WATCHES: Final = 50
RATE: Final = 0.05 / WATCHES / YEARLY["1d"]  # of one evaluation; 2.7e-6


def law(n: int, p: float) -> Any:
    """Return the chances of 0 to n supports."""
    k = np.arange(n + 1)
    logs = np.array([lgamma(i + 1) for i in range(n + 1)])
    return np.exp(logs[n] - logs[k] - logs[n - k] + k * np.log(p) + (n - k) * np.log1p(-p))


def channel_of(epsilon: float, unary: bool) -> Channel:
    q = Fraction(1 / (1 + exp(epsilon)))
    return Channel(Fraction(1, 2) if unary else 1 - q, q)


def rows_of(channel: Channel, n: int, alpha: float) -> list[Row]:
    """Return the row of a share for each number of supports among *n* reports."""
    p, q = float(channel.p), float(channel.q)
    totals = (np.arange(n + 1) - n * q) / (p - q)
    low, high = score_limits(channel, totals, n, alpha)
    rows = []
    for total, least, most in zip(totals, low, high, strict=True):
        estimate = Estimate(total / n, 0.1, least / n, most / n)
        dev = max((1 - q) / (p - q) - total / n, total / n + q / (p - q))
        rows.append(row_of({"item": "a"}, estimate, n, alpha, "share", influence=FAKES * dev))
    return rows


def false_alarms(
    channel: Channel, n: int, share: float, rate: float, alpha: float | None = None
) -> float:
    """Return the exact chance that n reports, a *share* of a, are held to be beyond it.

    Args: alpha: judge by the intervals that an answer of 1 - this level shows.
    """
    held = round(share * n)
    chances = np.convolve(law(held, float(channel.p)), law(n - held, float(channel.q)))
    rows, truth = rows_of(channel, n, alpha or max(2 * rate, 1e-6)), held / n
    spans = [
        (row.ci_low, row.ci_high) if alpha else (span_of(row, rate).low, span_of(row, rate).high)
        for row in rows
    ]
    beyond = np.array([low > truth or truth > high for low, high in spans])  # type: ignore[operator]
    return float(chances[beyond].sum())


@pytest.mark.parametrize("rate", [RATE, 1e-4, 1e-2])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 6.0])
@pytest.mark.parametrize("unary", [False, True])
def test_a_number_is_beyond_the_truth_no_more_often_than_is_said(
    epsilon: float, unary: bool, rate: float
) -> None:
    """Exact: every number of supports is judged by the code, and weighed by its chance.

    A threshold looks at one side; here both are counted, against the rate of one.
    """
    channel = channel_of(epsilon, unary)

    for n in (100, 500):
        for share in (0.0, 0.02, 0.5, 0.96, 1.0):
            assert false_alarms(channel, n, share, rate) <= rate


def test_intervals_of_an_answer_would_not_do_that_far_out() -> None:
    """The control: by an interval of 95 % the alarms are false a thousandfold."""
    channel = channel_of(6.0, unary=False)

    assert false_alarms(channel, 300, 0.5, RATE, alpha=0.05) > 1_000 * RATE


def boolean_rows(metric: Metric, supports: list[int], n: int, alpha: float) -> list[Row]:
    rows = []
    for true in supports:
        (row,) = answer(metric, np.array([n - true, true]), n, alpha)
        dev = 1.6 + abs(row.value or 0.0)
        rows.append(row_of(row.dimensions, Estimate(row.value or 0.0, row.std_error or 0.0,
                    row.ci_low or 0.0, row.ci_high or 0.0), n, alpha, "share",
                    influence=FAKES * dev))  # fmt: skip
    return rows


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_a_change_is_held_to_be_one_no_more_often_than_is_said(share: float) -> None:
    """Exact, too: all pairs of numbers of supports of two days whose devices were drawn anew."""
    metric = catalog_of().metric("m")
    channel: Any = metric.mechanism
    p, q = float(channel.channel.p), float(channel.channel.q)
    n, more, rate = 150, 300, 1e-2
    first, second = (law(size, q + (p - q) * share) for size in (n, more))
    before = boolean_rows(metric, list(range(n + 1)), n, 2 * rate)
    after = boolean_rows(metric, list(range(more + 1)), more, 2 * rate)

    wrong = 0.0
    for x in range(n + 1):
        if first[x] < 1e-7:
            continue
        for y in range(more + 1):
            if second[y] < 1e-7:
                continue
            span = change_of(before[x], after[y], metric, rate)
            wrong += first[x] * second[y] * (not span.low <= 0 <= span.high)

    assert wrong <= rate


def test_a_change_is_judged_by_the_arms_that_point_to_each_other() -> None:
    """The lower number may be higher than it seems, and the higher lower; the rest is no matter."""
    metric = catalog_of().metric("m")
    low, high = (
        row_of({}, Estimate(value, 0.01, value - 0.02, value + 0.03), 150, 0.05, "share")
        for value in (0.4, 0.5)
    )
    outer = replace(low, ci_low=0.1), replace(high, ci_high=0.9)
    inner = replace(low, ci_high=0.45), replace(high, ci_low=0.45)

    for turn in (1, -1):  # a rise and a fall
        before, after = (low, high)[::turn]
        change = change_of(before, after, metric, RATE)
        assert change == change_of(outer[::turn][0], outer[::turn][1], metric, RATE)
        assert change != change_of(before, inner[::turn][1], metric, RATE)
        assert change != change_of(inner[::turn][0], after, metric, RATE)


def test_a_count_is_held_to_be_lower_no_more_often_than_is_said() -> None:
    """Exact: Poisson numbers of reports at one rate, in a week and in four before it."""
    mean, rate = 30.0, 1e-3
    k = np.arange(300)
    logs = np.array([lgamma(i + 1) for i in k])
    now = np.exp(k * np.log(mean) - mean - logs)
    before = np.exp(k * np.log(4 * mean) - 4 * mean - logs)

    wrong = sum(
        now[x] * before[y] for x in range(60) for y in range(60, 200) if fewer(x, y, 4) <= rate
    )

    assert 0 < wrong <= rate


def test_a_margin_is_that_of_bernstein() -> None:
    """At the margin t the bound exp(-t^2 / (2 (V + b t / 3))) is the rate."""
    for error, step, rate in ((1.0, 0.0, 0.01), (0.2, 1.0, 1e-6), (3.0, 0.1, 0.3)):
        t = margin(error, step, rate)
        assert exp(-t * t / (2 * (error**2 + step * t / 3))) == pytest.approx(rate)


def test_fifty_watches_over_quiet_years_have_no_more_alarms_than_is_said() -> None:
    """400 years of 50 daily watches: 7.3 million evaluations at the worst truth, the threshold.

    The code says from which number of supports on it fires; the numbers are drawn.  If any year had
    an alarm with 5 %, more than 55 of 400 had one with a chance below 1e-9; without the division
    among evaluations each year has dozens.
    """
    metric = catalog_of().metric("m")
    channel: Any = metric.mechanism
    p, q = float(channel.channel.p), float(channel.channel.q)
    n, held, years = 2_000, 600, 400
    draw = np.random.default_rng(20261123)
    size = (years, 365 * WATCHES)

    def years_with_an_alarm(rate: float) -> int:
        least = next(
            true
            for true in range(n // 3, n)
            if span_of(boolean_rows(metric, [true], n, max(2 * rate, 1e-6))[0], rate).low > held / n
        )
        return int(np.any(supports >= least, axis=1).sum())

    supports = draw.binomial(held, p, size) + draw.binomial(n - held, q, size)

    assert years_with_an_alarm(RATE) <= 55
    assert years_with_an_alarm(0.05) == years


def test_shares_of_groups_are_judged_by_what_a_report_weighs_in_them() -> None:
    """Exact: 100 devices that took no step, at an epsilon where two noisy reports are rare."""
    metric = catalog_of(form={**FUNNEL, "epsilon": '"8.0"'}).metric("m")
    channel: Any = metric.mechanism
    p, q = float(channel.channel.p), float(channel.channel.q)
    n, steps = 100, 2  # of the last two items, which nobody is
    chances = law(n, steps * q)

    def rate_of(weight: float) -> float:
        fired = 0.0
        for count, chance in enumerate(chances[:20]):
            value = (count - n * steps * q) / (p - q) / n
            error = (count * (1 - p) * p + n * steps * q) ** 0.5 / (p - q) / n
            ends = Estimate(value, error, value - 4.89 * error, value + 4.89 * error)
            row = row_of({"item": "cart"}, ends, n, 1e-6, "share")
            fired += chance * (span_of(row, RATE, weight).low > 0)
        return fired

    assert rate_of(weight_of(metric)) <= RATE
    assert rate_of(0.0) > 100 * RATE  # the planted fault: as if a report weighed nothing


METRICS: Final = 10
SHARE: Final = 0.3  # of the devices of a day; a threshold stands right there
N: Final = 2_000  # devices a day, on average
BEFORE: Final = 35  # days of reports before the first evaluation
MOST_FALSE: Final = 5  # if 0.05 are expected, more come with a chance below 1e-10
# Two thresholds at the truth, a window of a week, any change, and silence.
RULES: Final = (
    f"above = {SHARE}",
    f"below = {SHARE}",
    f"above = {SHARE}\nwindow = 7",
    "changed = 0",
    "silent = 0.99",
)


def catalog_of_many() -> Catalog:
    fields = {**BOOLEAN, "every": '"1d"', "min_reports": "100"}
    rest = "\n".join(f"{name} = {text}" for name, text in fields.items())
    tables = "".join(f"[metrics.m{number}]\n{rest}\n" for number in range(METRICS))
    return Catalog([Registry.from_text(HEAD + tables)])


def file_of_many(false_alarms: float) -> str:
    watches = "".join(
        f'[[watch]]\nname = "m{number}-{place}"\nmetric = "m{number}"\n{rule}\n'
        for number in range(METRICS)
        for place, rule in enumerate(RULES)
    )
    return f"false_alarms = {false_alarms}\n{watches}{CHANNEL}"


def quiet(days: int, seed: int) -> Desk:
    """Return a desk with so many days on which nothing changed but who came, and their noise."""
    desk = Desk(file_of_many(0.05), catalog_of_many())
    draw = np.random.default_rng(seed)
    for metric in desk.catalog:
        mechanism: Any = metric.mechanism
        p, q = float(mechanism.channel.p), float(mechanism.channel.q)
        for day in range(NEWEST - BEFORE, NEWEST + days):
            n = int(draw.poisson(N))
            held = round(SHARE * n)
            true = int(draw.binomial(held, p) + draw.binomial(n - held, q))
            shard, entry = queue_one(desk.tallies)
            cell = Cell(metric.digest, day, "")
            desk.tallies.fold(shard, [entry], {cell: list(enumerate((n, n - true, true)))})
    return desk


def alarms(desk: Desk, days: int) -> int:
    """Return how many evaluations of these days fire; none may fail."""
    fired = 0
    for _ in range(days):
        desk.rounds("one").round()
        said = [series.verdicts[0] for series in desk.store.series().values()]
        assert not [verdict.text for verdict in said if verdict.state == UNABLE]
        assert {verdict.n > 0 for verdict in said} == {True}
        fired += sum(verdict.state == FIRING for verdict in said)
        desk.store.clock += DAY
    return fired


def test_three_days_of_fifty_watches_are_quiet() -> None:
    """The small version of the year below: the same bound, on fewer evaluations."""
    desk = quiet(3, 1)

    assert len(desk.watches.watch) == 50
    assert desk.watches.rate("1d") == pytest.approx(0.05 / 50 / YEARLY["1d"])
    assert alarms(desk, 3) <= MOST_FALSE
    assert len(desk.received) <= MOST_FALSE


def test_watches_that_each_spent_the_rate_of_all_would_not_be_quiet() -> None:
    """The planted fault: without the division among watches and days dozens come in two days."""
    desk = quiet(2, 1)
    desk.watches = parse(file_of_many(0.5))
    shares = 0.5 / desk.watches.rate("1d")

    class Undivided(type(desk.watches)):  # type: ignore[misc]  # a class of the value at hand
        def rate(self, every: str) -> float:
            return float(super().rate(every) * shares)

    fields = {name: getattr(desk.watches, name) for name in desk.watches.__struct_fields__}
    desk.watches = Undivided(**fields)

    assert alarms(desk, 2) > 3 * MOST_FALSE


@pytest.mark.slow
def test_a_quiet_year_of_fifty_watches_has_no_more_alarms_than_is_said() -> None:
    """18,250 evaluations at 2.7e-6 each: 0.05 are expected at most."""
    desk = quiet(365, 2)

    assert alarms(desk, 365) <= MOST_FALSE
