"""Whether a number is beyond a threshold, has changed, or fewer devices report.  Pure.

Each judgement is one-sided or two-sided as its question is, and errs with at most the rate that it
is given, however small that is: intervals of normal estimates would not do, since far out in the
tails, where rates of one in a million live, they are too short for skewed sums.

*Numbers.*  An estimate is the mean of what n independent reports stand for, each bounded, so it
exceeds its expectation by t or more with at most exp(-t^2 / (2 (V + b t / 3))), V being its
variance and b the most that one report weighs.  V comes from the interval of the answer, at the arm
that points to the null; b from the reach of a fake report.  If a row has none, b of a share is
the most that a report adds to any sum of shares; of a part of a group that is less than it weighs,
and where nothing is known b is 0: the rate is then no bound.

*Changes.*  Of two numbers of different reports V is the sum, and there which devices happened to
report is chance, too: a share f of n devices drawn at random has the variance f (1 - f) / n, and a
mean within a range no more than a share at its place in it.

*Counts.*  If devices report at an unchanged rate, of x + y reports in one period and k others the
x is binomial with 1 / (k + 1): an exact test, and no noise is in it.

Source: Bernstein's inequality: Boucheron, Lugosi, Massart, *Concentration Inequalities*, 2013,
    eq. 2.10; the mean of a bounded variable: Bhatia, Davis, American Mathematical Monthly 2000;
    the test of two counts: Przyborowski, Wilenski, Biometrika 1940.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Final

from client_sdk.registry.metric import Metric

from ...analytics.answer import MEAN
from ...analytics.rows import ACTIVE, MEASURE, REACHED, SHARE, Row
from ...estimation.estimate import normal_quantile
from ...estimation.significance import binomial_tail

FAKES: Final = 0.01  # of all reports; the share that ``Row.influence`` is of


@dataclass(frozen=True)
class Span:
    """A number with the limits that it is judged by."""

    value: float
    low: float
    high: float


def span_of(row: Row, rate: float, weight: float = 0.0) -> Span:
    """Return the number of a *row* that has one; each limit errs with probability *rate* at most.

    Args:   weight: of one report in any share; see ``weight_of``.
    """
    value, low, high = _numbers(row)
    z, step = normal_quantile(row.alpha), _step(row, weight)
    return Span(
        value,
        value - margin((value - low) / z, step, rate),
        value + margin((high - value) / z, step, rate),
    )


def change_of(before: Row, after: Row, metric: Metric, rate: float) -> Span:
    """Return *after* less *before*; both limits together are wrong with at most *rate*."""
    first, second = _numbers(before), _numbers(after)
    rises = second[0] >= first[0]
    z = normal_quantile(after.alpha)
    # the arms that point to each other, as under the null both numbers lie between them
    arms = (
        (second[0] - second[1], first[2] - first[0])
        if rises
        else (second[2] - second[0], first[0] - first[1])
    )
    law = sum((arm / z) ** 2 for arm in arms) + _drawn(before, after, metric)
    weight = weight_of(metric)
    reach = margin(sqrt(law), max(_step(before, weight), _step(after, weight)), rate / 2)
    value = second[0] - first[0]
    return Span(value, value - reach, value + reach)


def weight_of(metric: Metric) -> float:
    """Return the most by which one report is off in a sum of shares of *metric*; 0: not known.

    Derived: its support of some items is no more than of all, and what is taken off for chance no
    more than for all; the expectation is between 0 and 1.
    """
    reach = metric.mechanism.group_reach(len(metric.domain.labels))
    return max(reach.high, 1.0) - reach.low if reach else 0.0


def can_change(row: Row) -> bool:
    """Return whether it is known how the number of *row* scatters over devices drawn anew.

    Of a part of a group it is not: the row does not say how many devices the group has.
    """
    is_part = row.dimensions.get(MEASURE, REACHED) not in (REACHED, ACTIVE)
    return (row.unit == SHARE and not is_part) or row.item == MEAN


def margin(error: float, step: float, rate: float) -> float:
    """Return what a sum exceeds its expectation by with a chance of at most *rate*.

    Args: error: its standard error.  step: the most that one report weighs in it.
    """
    doubt = -log(rate)
    skew = step * doubt / 3
    return skew + sqrt(skew * skew + 2 * doubt * error * error)


def fewer(count: int, others: int, periods: int) -> float:
    """Return the chance of *count* reports or fewer, if *periods* like it had *others* in all."""
    total = count + others
    if not others:
        return 1.0
    share = 1 / (periods + 1)
    return binomial_tail(others, total, 1 - share)


def _numbers(row: Row) -> tuple[float, float, float]:
    assert row.value is not None  # noqa: S101 - the caller looked
    assert row.ci_low is not None  # noqa: S101 - as above
    assert row.ci_high is not None  # noqa: S101 - as above
    return row.value, min(row.ci_low, row.value), max(row.ci_high, row.value)


def _step(row: Row, weight: float) -> float:
    """Return the most that one report weighs in the number of *row*; 0 if that is not known."""
    if row.influence is None and row.unit == SHARE:
        return weight / max(row.n, 1)
    return (row.influence or 0.0) / FAKES / max(row.n, 1)


def _drawn(before: Row, after: Row, metric: Metric) -> float:
    """Return the variance that devices drawn at random add to a difference that is 0."""
    least, extent = metric.domain.least, metric.domain.extent
    if before.unit == SHARE:
        least, extent = 0.0, 1.0
    n = before.n + after.n
    common = ((before.value or 0.0) * before.n + (after.value or 0.0) * after.n) / n
    share = min(max((common - least) / extent, 0.0), 1.0)
    return extent * extent * share * (1 - share) * (1 / before.n + 1 / after.n)
