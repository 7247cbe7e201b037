"""Lifts and ratios: two numbers as one, with Fieller's interval, or a reason."""

from __future__ import annotations

import dataclasses
from math import sqrt
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.core.dataclass import replace
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.analytics.comparing.differences import (
    compared,
    covers_zero,
    lift,
    pairs_of,
)
from collector.analytics.comparing.numbers import Number, Population, numbers_of
from collector.analytics.comparing.ratios import ratio_of
from collector.analytics.rows import Findings
from collector.analytics.verb import Slice, VerbQuery, load, merged
from collector.core.catalog import Catalog
from collector.core.errors import QueryError
from collector.core.remarks import WORDS, Code, remark
from collector.estimation.estimate import normal_quantile
from collector.query import Query, plan
from tests.support.crowds.asking import ask, holds
from tests.support.crowds.boolean_slices import drawn, exact, is_at_most
from tests.support.crowds.uploads import NOON, registry
from tests.support.device.registries import BOOLEAN, CATEGORY, HEAD, table
from tests.support.enumeration.coverage import fits_rate
from tests.support.enumeration.populations import WAVE, slice_of
from tests.support.known import known

ALPHA: Final = 0.05
PRECISE: Final = registry("4.0").metric("crashed")  # so that noise is a small part of the error
ASKED: Final = {"dimension": "arm", "control": "old"}


def arms(old: float, new: float, n: int = 10_000) -> list[Slice]:
    return [exact({"arm": name}, share, n) for name, share in (("old", old), ("new", new))]


def lifted(slices: list[Slice], **options: Any) -> Findings:
    return ask("lift", slices, options={**ASKED, **options})


def test_difference_and_lift_agree_on_whether_there_is_any() -> None:
    """Fieller's interval of the ratio holds 1 if and only if that of the difference holds 0."""
    for new in np.linspace(0.3, 0.4, 41).tolist():
        points, part = lifted(arms(0.32, new)).rows

        assert (points.note == WORDS[Code.NO_CHANGE]) == (part.note == WORDS[Code.NO_CHANGE])
        assert holds(part, 0) == (part.note == WORDS[Code.NO_CHANGE])


def test_what_cannot_be_seen_is_told_with_what_could() -> None:
    """A null result without its power says nothing."""
    found = lifted(arms(0.32, 0.325))

    (power,) = found.facts["power"]
    assert power["smallest_seen"] == pytest.approx(0.0423, abs=1e-4)  # 2.80 standard errors
    assert power["reports_needed"] == pytest.approx(20_000 * (0.0423 / 0.005) ** 2, rel=0.05)
    _, sentence = found.warnings
    needed = float(f"{power['reports_needed']:.2g}")
    takes = "to settle a difference of this size 8 times in 10 takes"
    assert sentence.metric == DAILY.address
    assert sentence.text.startswith(f"{takes} {needed:,.0f} reports, so more devices")
    assert lifted(arms(0.3, 0.5)).warnings == (remark(Code.LOOK_ONCE, group="arm"),)


def test_several_that_cannot_be_seen_are_told_in_one_sentence() -> None:
    """Law: each by what tells it from the others, however many arms and items there are."""
    third = exact({"arm": "other"}, 0.327, 10_000)
    _, sentence = lifted([*arms(0.32, 0.325), third]).warnings

    assert sentence.text.count(" reports for ") == 2
    assert sentence.text.count("8 times in 10") == 1


def seen(
    old: float, new: float, n: int, rounds: int, population: Population = "drawn"
) -> tuple[int, list[float]]:
    """Return in how many experiments a difference is seen, and the standard errors."""
    chance = np.random.default_rng(20261121)
    hits, errors = 0, []
    for _ in range(rounds):
        slices = [
            drawn({"arm": name}, share, n, chance, metric=PRECISE)
            for name, share in (("old", old), ("new", new))
        ]
        (one,) = compared(pairs_of(slices, "arm", "old"), ("true",), population, ALPHA)
        hits += not covers_zero(one.difference)
        errors.append(one.difference.std_error)
    return hits, errors


def test_a_treatment_without_effect_is_seen_as_often_as_alpha() -> None:
    """Devices are put into arms by chance: an error that only counts noise errs in half of all."""
    rounds = 1_000

    hits, _ = seen(0.3, 0.3, 2_000, rounds)
    careless, _ = seen(0.3, 0.3, 2_000, rounds, "reported")

    assert fits_rate(hits, rounds, ALPHA)
    assert not is_at_most(careless, rounds, ALPHA)


def test_an_effect_of_the_smallest_size_is_seen_with_the_power_that_is_stated() -> None:
    """2.80 standard errors, four times of five."""
    _, errors = seen(0.3, 0.3, 2_000, 20)
    effect = (1.959964 + 0.841621) * sum(errors) / len(errors)

    hits, _ = seen(0.3 - effect / 2, 0.3 + effect / 2, 2_000, 600)

    assert fits_rate(hits, 600, 0.8)


def test_the_interval_of_a_lift_holds_the_true_lift_as_often_as_it_says() -> None:
    """Of 1,000 experiments with a rare outcome; the interval of the ratio alone is too narrow."""
    chance = np.random.default_rng(20261122)
    rounds, held, narrow = 1_000, 0, 0
    for _ in range(rounds):
        new, old = (
            numbers_of(
                drawn({}, share, 500, chance, metric=PRECISE), ("true",), "drawn", in_time=True
            )["true"]
            for share in (0.12, 0.08)
        )
        found = known(lift(new, old, ALPHA))
        held += found.ci_low <= 0.5 <= found.ci_high
        sure = known(lift(new, Number(old.value, 0.0, old.n), ALPHA))
        narrow += sure.ci_low <= 0.5 <= sure.ci_high

    assert fits_rate(held, rounds, 1 - ALPHA)
    assert not fits_rate(narrow, rounds, 1 - ALPHA)


DAILY: Final = replace(registry().metric("crashed"), every="1d")


def days_of(count: int, old: float = 0.32, new: float = 0.34, per_day: int = 600) -> list[Slice]:
    """Return arms of an experiment that ran for *count* days, the second with half the devices."""
    return [
        exact({"arm": name}, share, n * count, *range(count), metric=DAILY)
        for name, share, n in (("old", old, per_day), ("new", new, per_day // 2))
    ]


@pytest.mark.parametrize(("population", "effect"), [("reported", 0.02), ("drawn", 0.1)])
def test_an_experiment_that_ran_as_long_as_it_must_can_show_its_effect(
    population: str, effect: float
) -> None:
    """Law: after so many days the effect is what is seen with 80 % power, and not a day before."""
    options = {"population": population, "effect": effect}
    (power,) = lifted(days_of(7), **options).facts["power"]
    days = power["days_needed"]

    after, before = (
        lifted(days_of(count), **options).facts["power"][0]["smallest_seen"]
        for count in (days, days - 1)
    )

    assert days > 7
    assert after <= effect < before


def test_days_are_those_of_epochs_and_are_told_in_words() -> None:
    """Of a weekly metric seven each; of one that is reported once there are none."""
    found = lifted(days_of(7), population="reported", effect=0.02)
    weekly, once = (
        lifted(
            [dataclasses.replace(part, metric=replace(DAILY, every=every)) for part in days_of(7)],
            population="reported",
            effect=0.02,
        )
        for every in ("7d", "once")
    )

    (days,), (weeks,), (never,) = (one.facts["power"] for one in (found, weekly, once))
    assert weeks["days_needed"] == 7 * days["days_needed"]
    assert never["days_needed"] is None
    takes = f"{float(format(days['reports_needed'], '.2g')):,.0f} reports"
    told = f"to settle 2 points 8 times in 10 takes {takes} ({days['days_needed']:,} days at this"
    assert f"{told} rate: look once, when they are over)" in found.warnings[1].text
    assert "days" not in once.warnings[1].text


def test_devices_that_may_repeat_themselves_are_not_waited_for() -> None:
    """The same thousand devices say no more in a year about others than they did in a week."""
    found = lifted(days_of(7), effect=0.001)

    (power,) = found.facts["power"]
    assert power["days_needed"] is None
    assert "more devices: running longer is not enough" in found.warnings[1].text
    assert 'if none reports twice, ask with population "new"' in found.warnings[1].text


@pytest.mark.parametrize("epochs", [1, 7, 28])
@pytest.mark.parametrize("metric", [DAILY, PRECISE])
def test_new_devices_in_each_epoch_are_worth_as_many_reports_of_one_epoch(
    epochs: int, metric: Metric
) -> None:
    """And the answer says that it is taken for granted, if there are several epochs."""
    one, several = (
        lifted(
            [exact({"arm": arm}, share, 9_000, *range(count), metric=metric)
             for arm, share in (("old", 0.1), ("new", 0.12))],
            population=population,
        )
        for count, population in ((1, "drawn"), (epochs, "new"))
    )  # fmt: skip

    assert [row.std_error for row in several.rows] == [row.std_error for row in one.rows]
    assert (remark(Code.ONCE_EACH, metric.address) in several.warnings) == (epochs > 1)


def seen_after_a_week(
    effect: float, population: Population, chance: np.random.Generator, rounds: int
) -> int:
    """Return in how many experiments whose devices are new each day a difference is seen."""
    slices = (
        [
            merged([drawn({}, share, 300, chance, day, PRECISE) for day in range(7)], {"arm": arm})
            for arm, share in (("old", 0.3), ("new", 0.3 + effect))
        ]
        for _ in range(rounds)
    )
    return sum(
        not covers_zero(compared(pairs_of(pair, "arm", "old"), ("true",), population, ALPHA)[0]
                        .difference)
        for pair in slices
    )  # fmt: skip


def test_experiments_of_new_devices_err_and_find_as_often_as_they_say() -> None:
    """If that is not said, they hardly ever err, and miss most of what they could find."""
    chance, rounds = np.random.default_rng(20261122), 600
    error = (2 * (0.3 * 0.7 + 0.019) / 2_100) ** 0.5  # noise at ε 4, and which devices reported
    effect = (1.959964 + 0.841621) * error

    wrong, right = (seen_after_a_week(size, "new", chance, rounds) for size in (0, effect))
    timid = seen_after_a_week(effect, "drawn", chance, rounds)

    assert fits_rate(wrong, rounds, ALPHA)
    assert fits_rate(right, rounds, 0.8)
    assert not fits_rate(timid, rounds, 0.8)


TRIALS: Final = 600


SURE: Final = {"epsilon": '"6"', "min_reports": "100"}
KINDS: Final = {
    "bought": (BOOLEAN, {}),
    "saw": (BOOLEAN, {}),
    "waited": (WAVE, {}),
    "plan": (CATEGORY, {}),
    "weekly": (BOOLEAN, {"every": '"7d"'}),
    "yes": (BOOLEAN, SURE),
    "no": (BOOLEAN, SURE),
}
REGISTRY: Final = Registry.from_text(
    HEAD
    + "".join(
        table(
            name,
            {"mechanism": '"grr"', **fields},
            **{"every": '"1d"', "min_reports": "100", **more},
        )
        for name, (fields, more) in KINDS.items()
    )
)
BOUGHT, SAW, WAITED, PLAN, WEEKLY, YES, NO = (REGISTRY.metric(name) for name in KINDS)


def test_numbers_keep_their_unit_and_totals_count_every_report() -> None:
    """Twice as many reports of the first make a total twice as large for each of the second."""
    held = [0] * 20 + [40_000] + [0] * 27
    named = [slice_of(WAITED, held), exact({}, 0.5, 20_000, metric=SAW)]

    means, totals = (ask("ratio", named, options={"of": of}) for of in ("means", "totals"))

    assert means.rows[0].unit == "minutes"
    assert means.rows[0].value == pytest.approx(40, rel=0.02)
    assert totals.rows[0].value == pytest.approx(80, rel=0.02)
    assert (
        " reports and saw 20,000, so the means are of different devices" in means.warnings[0].text
    )
    assert totals.warnings == ()


@pytest.mark.parametrize("under", [0.5, 0.12])
def test_intervals_cover_at_their_level_and_a_sure_denominator_would_not(under: float) -> None:
    """Law: 95 % of 600 fleets, also where the denominator is only just above 0.

    An unbounded answer says nothing wrong.  The planted bug takes the denominator for exact.
    """
    chance = np.random.default_rng(20261123)
    n, over = 3_000, 0.8
    missed = careless = 0
    error = normal_quantile(ALPHA) * sqrt(noise_of(over, BOUGHT) / n)
    for _ in range(TRIALS):
        parts = [fixed(over, n, chance, BOUGHT), fixed(under, n, chance, SAW)]
        found = ask("ratio", parts)
        (row,), (fact,) = found.rows, found.facts["sides"]
        missed += row.value is not None and not holds(row, over / under)
        if row.value is not None:
            careless += abs(row.value - over / under) > error / fact["denominator"]

    assert is_at_most(missed, TRIALS, ALPHA)
    assert under < 0.2 or fits_rate(missed, TRIALS, ALPHA)
    assert not is_at_most(careless, TRIALS, ALPHA)


def noise_of(share: float, metric: Metric) -> float:
    """Return the variance of one report of devices of which this share says true."""
    channel: Any = metric.mechanism
    p, q = float(channel.channel.p), float(channel.channel.q)
    return (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2


def fixed(share: float, n: int, chance: np.random.Generator, metric: Metric) -> Slice:
    """Return the reports of *n* devices of which just this share says true."""
    channel: Any = metric.mechanism
    p, q = float(channel.channel.p), float(channel.channel.q)
    holders = round(n * share)
    said = chance.binomial(holders, p) + chance.binomial(n - holders, q)
    return Slice(metric, {}, n, np.array([n - said, said]), (0,))


def test_of_drawn_devices_it_is_a_bound_that_holds_however_both_go_together() -> None:
    """Law: 95 % also where who says yes to one says no to the other, which widens a ratio most.

    The planted bug takes both numbers for independent: at so large an epsilon it misses.
    """
    chance = np.random.default_rng(11)
    n, share = 400, 0.5
    missed = careless = 0
    for _ in range(TRIALS):
        holders = int(chance.binomial(n, share)) / n
        parts = [fixed(holders, n, chance, YES), fixed(1 - holders, n, chance, NO)]
        (row,) = ask("ratio", parts, options={"population": "drawn"}).rows
        assert row.note == WORDS[Code.BOUND]
        missed += not holds(row, 1.0)
        numbers = [Number(x, x * (1 - x) / n, n) for x in (holders, 1 - holders)]
        independent = known(ratio_of(numbers[0], numbers[1], ALPHA))
        careless += not independent.ci_low <= 1.0 <= independent.ci_high

    assert is_at_most(missed, TRIALS, ALPHA)
    assert not is_at_most(careless, TRIALS, ALPHA)


@pytest.mark.parametrize("a", [-3.0, -0.1, 0.0, 0.1, 2.0])
@pytest.mark.parametrize("b", [-2.0, 2.0])
@pytest.mark.parametrize("shared", [0.0, 0.05])
def test_the_ends_are_where_the_test_of_a_ratio_turns(a: float, b: float, shared: float) -> None:
    """Derived from the definition: at each end (a - r b)^2 is z^2 times its variance."""
    first, under = Number(a, 0.09, 10), Number(b, 0.16, 10)

    ratio = known(ratio_of(first, under, ALPHA, shared))

    z = normal_quantile(ALPHA)
    for end in (ratio.ci_low, ratio.ci_high):
        variance = 0.09 + end**2 * 0.16 + 2 * shared * abs(end)
        assert abs(a - end * b) == pytest.approx(z * sqrt(variance))
    assert ratio.ci_low < ratio.value < ratio.ci_high


def test_the_first_metric_is_divided_even_where_it_has_no_reports() -> None:
    """The order is that of the question, not that of the reports."""
    verb = load("ratio")
    query = VerbQuery(ALPHA, options=verb.options(), metrics=(BOUGHT, SAW))

    (row,) = verb.answer([exact({}, 0.5, 4_000, metric=SAW)], query).rows

    assert row.item == "bought / saw"
    assert (row.reason or "").startswith("bought: not enough reports: 0")


def test_one_metric_is_refused_before_anything_is_read() -> None:
    """And so is an item that several have to be chosen from."""
    with pytest.raises(QueryError, match="metrics: verb ratio takes 2; name another"):
        plan(Query(["saw"], "ratio"), Catalog([REGISTRY]), NOON)
    with pytest.raises(QueryError, match="numerator: must be one of: free, pro, team"):
        ask("ratio", items())


def items() -> list[Slice]:
    tally = np.array([2_000, 1_000, 1_000])
    return [Slice(PLAN, {}, 4_000, tally, (0,)), exact({}, 0.5, 4_000, metric=SAW)]
