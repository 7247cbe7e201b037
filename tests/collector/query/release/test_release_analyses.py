"""What analysts find in synthetic records is what the estimates say, and what is true.

People are those of the demo's data: 48,842 with their age and whether they earn more than 50,000.
Their reports are drawn from the exact law of the mechanism.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from importlib.resources import files
from math import sqrt
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.registry import Registry
from client_sdk.registry.types.joint import PairDomain
from collector.analytics.answer import QUANTILES, quantile_estimates
from collector.analytics.verb import Slice
from collector.estimation.estimate import shares
from collector.query.release.release import Part, parts_of, records
from tests.support.crowds.analyses import slope, two_means

FALSE_ALARM: Final = 1e-9
Z: Final = 6.11  # a normal is beyond it, either side, with chance FALSE_ALARM
WIDTH: Final = 10  # years of an age group
GROUPS: Final = tuple(f"{age}-{age + WIDTH - 1}" for age in range(17, 91, WIDTH))
MIDDLES: Final = {group: int(group[:2]) + (WIDTH - 1) / 2 for group in GROUPS}
# Over 100 replications the centres were off by 0.09 and 0.14 years with standard deviations of 0.23
# and 0.41; so far they go with a chance of FALSE_ALARM if errors are normal.
LOWER_REACH, UPPER_REACH = 0.09 + Z * 0.23, 0.14 + Z * 0.41  # years

_COMMON: Final = """
title = "People"
question = "Who signs up?"
every = "once"
longitudinal = "fresh"
expected_devices = 50000
min_reports = 1000
owner = "tests"
expires = 2099-12-31
"""
REGISTRY: Final = Registry.from_text(
    f"""
schema = 1
app = "people"
[metrics.people]
type = "pair"
epsilon = "4"
mechanism = "grr"
parts = {{ age_group = {list(GROUPS)}, rich = ["no", "yes"] }}
{_COMMON}
[metrics.age]
type = "number"
epsilon = "2"
mechanism = "square_wave"
min = 17
max = 90
step = 1
unit = "years"
{_COMMON}
""".replace("'", '"')
)
PEOPLE, AGE = REGISTRY.metric("people"), REGISTRY.metric("age")


def persons() -> Counter[tuple[int, bool]]:
    """Return how many persons have each age and income."""
    text = (files("collector.demo") / "data" / "age_income.csv").read_text("utf-8")
    return Counter(
        {
            (int(row["age"]), row["income_over_50k"] == "true"): int(row["persons"])
            for row in csv.DictReader(text.splitlines())
        }
    )


def joint_counts() -> Any:
    """Return how many persons hold each item of PEOPLE."""
    held = np.zeros(PEOPLE.domain.size, dtype=np.int64)
    for (age, rich), count in persons().items():
        held[item_of(GROUPS[(age - 17) // WIDTH], "yes" if rich else "no")] += count
    return held


def item_of(group: str, rich: str) -> int:
    """Return the item of PEOPLE that stands for both answers."""
    assert isinstance(PEOPLE.domain, PairDomain)
    return PEOPLE.domain.encode({"age_group": group, "rich": rich}, PEOPLE.name)


def age_counts() -> Any:
    """Return how many persons have each age from 17 to 90."""
    held = np.zeros(74, dtype=np.int64)
    for (age, _), count in persons().items():
        held[age - 17] += count
    return held


def reported(metric: Any, laws: Any, held: Any, seed: int) -> tuple[Slice, Part]:
    """Return the slice and the histogram of reports, drawn from the law of each of *held*."""
    chance = np.random.default_rng(seed)
    rows = zip(held, laws / laws.sum(axis=1, keepdims=True), strict=True)
    tally = np.asarray(sum(chance.multinomial(count, law) for count, law in rows))
    one = Slice(metric, {}, int(held.sum()), tally, (0,))
    (part,) = parts_of([one], FALSE_ALARM)
    return one, part


def grr_laws() -> Any:
    """Return the chance of each report, a row a true item."""
    p = float(PEOPLE.mechanism.channel.p)  # type: ignore[attr-defined]  # it is GRR
    size = PEOPLE.domain.size
    laws = np.full((size, size), (1 - p) / (size - 1))
    np.fill_diagonal(laws, p)
    return laws


def slope_of_shares(found: Any) -> float:
    """Return the slope of income on age over the items of PEOPLE, weighted by shares or counts."""
    x = [MIDDLES[group] for group in GROUPS for _ in range(2)]
    return slope(x, [0, 1] * len(GROUPS), found)


def slope_of_records(drawn: Mapping[str, Any]) -> float:
    x = [MIDDLES[group] for group in drawn["age_group"]]
    return slope(x, [rich == "yes" for rich in drawn["rich"]])


def slope_error(held: Any) -> float:
    """Return the standard error of the slope that reports give, by the law of GRR.

    The slope is linear in small errors of the shares; a report adds its own part of it.
    """
    truth, n = held / held.sum(), int(held.sum())
    tiny = 1e-6
    steps = tiny * np.eye(held.size)
    rises = [slope_of_shares(truth + step) - slope_of_shares(truth - step) for step in steps]
    gradient = np.array(rises) / (2 * tiny)
    laws = grr_laws()
    scatter = truth @ (laws @ gradient**2 - (laws @ gradient) ** 2)
    p, q = laws[0, 0], laws[0, 1]
    return float(sqrt(scatter / n) / (p - q))


def independent(drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Return the records of a release that forgets what was reported together: the planted bug."""
    chance = np.random.default_rng(3)
    return {name: chance.permutation(values).tolist() for name, values in drawn.items()}


def test_a_regression_on_records_of_a_pair_agrees_with_the_estimates_and_the_truth() -> None:
    """Income on age group: within 6.11 standard errors of the unbiased and of the true slope.

    As many records as reports have the very slope of the histogram; that is no matter of chance.
    Records whose two columns are drawn apart miss all three.
    """
    held = joint_counts()
    one, part = reported(PEOPLE, grr_laws(), held, seed=1)
    unbiased = [e.value for e in shares(PEOPLE.mechanism, one.tally, one.n, FALSE_ALARM)]
    slopes = [slope_of_shares(each) for each in (unbiased, held)]
    reach = Z * slope_error(held)

    drawn = records((part,), one.n, seed=2)

    found, apart = slope_of_records(drawn), slope_of_records(independent(drawn))
    assert reach < slopes[1] / 4
    assert found == pytest.approx(slope_of_shares(part.counts), rel=1e-9)
    assert max(abs(found - one) for one in slopes) < reach
    assert min(abs(apart - one) for one in slopes) > reach


def test_a_regression_on_few_records_agrees_as_far_as_records_are_rounded() -> None:
    """A thousand records: each cell is off by less than one of them."""
    held = joint_counts()
    _, part = reported(PEOPLE, grr_laws(), held, seed=4)
    counts = Counter({i: int(n) for i, n in enumerate(part.counts)})

    drawn = records((part,), 1_000, seed=5)

    labels = zip(drawn["age_group"], drawn["rich"], strict=True)
    seen = Counter(item_of(group, rich) for group, rich in labels)
    assert all(abs(seen[i] - 1_000 * n / counts.total()) < 1 for i, n in counts.items())
    assert abs(slope_of_records(drawn) / slope_of_shares(part.counts) - 1) < 0.1


def test_a_clustering_of_records_agrees_with_the_histogram_and_the_truth() -> None:
    """2-means of ages: the histogram's centres exactly, the true ones within a few years.

    Records spread evenly over the range, as of a release that lost its counts, miss both.
    """
    held, ages = age_counts(), np.arange(17, 91)
    one, part = reported(AGE, AGE.mechanism.spread(np.eye(74), np), held, seed=6)  # type: ignore[attr-defined]
    of_histogram, true = two_means(ages, part.counts), two_means(ages, held)

    found = two_means(records((part,), one.n, seed=7)["age"])
    even = two_means(ages, np.ones(74))

    assert found == of_histogram
    assert abs(found[0] - true[0]) < LOWER_REACH
    assert abs(found[1] - true[1]) < UPPER_REACH
    assert abs(even[0] - true[0]) > LOWER_REACH
    assert abs(even[1] - true[1]) > UPPER_REACH


def test_quantiles_of_records_lie_in_the_intervals_of_the_estimates() -> None:
    """At a level of 1 - 1e-9, all five, to whole years; records spread evenly do not."""
    one, part = reported(AGE, AGE.mechanism.spread(np.eye(74), np), age_counts(), seed=8)  # type: ignore[attr-defined]
    intervals = quantile_estimates(AGE, one.tally, one.n, FALSE_ALARM / len(QUANTILES))

    drawn = records((part,), one.n, seed=9)["age"]

    levels = list(QUANTILES.values())
    found, even = (np.quantile(ages, levels) for ages in (drawn, np.arange(17, 91)))
    low, high = ([getattr(e, end) for e in intervals.values()] for end in ("ci_low", "ci_high"))
    assert np.all((np.floor(low) <= found) & (found <= np.ceil(high)))
    assert not np.all((np.floor(low) <= even) & (even <= np.ceil(high)))
