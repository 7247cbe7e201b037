"""A ratio of two metrics has Fieller's interval, or is unbounded and says so."""

from __future__ import annotations

from math import sqrt
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.analytics.comparing.numbers import Number
from collector.analytics.comparing.ratios import ratio_of
from collector.analytics.sums import BOUND_NOTE
from collector.analytics.verb import Slice, VerbQuery, load
from collector.core.catalog import Catalog
from collector.core.errors import QueryError
from collector.estimation.estimate import normal_quantile
from collector.query import Query, plan
from tests.support.crowds.asking import ask, holds
from tests.support.crowds.boolean_slices import exact, is_at_most
from tests.support.crowds.uploads import NOON
from tests.support.device.registries import BOOLEAN, CATEGORY, HEAD, table
from tests.support.enumeration.coverage import fits_rate
from tests.support.enumeration.populations import WAVE, slice_of
from tests.support.known import known

ALPHA: Final = 0.05
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
        assert row.note == BOUND_NOTE
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
