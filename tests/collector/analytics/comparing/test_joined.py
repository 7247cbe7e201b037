"""Differences of who came back scatter as they say; what is not sure is said to be so."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from client_sdk.registry.metric import Metric
from collector.analytics.comparing.differences import difference
from collector.analytics.comparing.numbers import DRAWN, Number, numbers_of
from collector.analytics.verb import Slice
from tests.support.crowds.asking import ask
from tests.support.device.registries import RETENTION
from tests.support.enumeration.coverage import fits_rate
from tests.support.enumeration.populations import metric_of

TRIALS: Final = 1_500
DEVICES: Final = 3_000
# Of 00, 01, 10, 11: a third was active in the first period, 30 % of these in the second.
LAW: Final = (0.4, 0.267, 0.233, 0.1)
ITEM: Final = "week 1"


def retention(epsilon: str) -> Metric:
    changes = {"epsilon": f'"{epsilon}"', "mechanism": '"grr"', "min_reports": "100"}
    return metric_of({**RETENTION, "periods": '["week 0", "week 1"]'}, **changes)


def drawn(metric: Metric, n: int, law: Any, chance: np.random.Generator) -> Slice:
    channel: Any = metric.mechanism.channel  # type: ignore[attr-defined]  # grr has one
    p, q = float(channel.p), float(channel.q)
    held = chance.multinomial(n, law)
    tally = sum(
        chance.multinomial(k, q + (p - q) * row) for k, row in zip(held, np.eye(4), strict=True)
    )
    return Slice(metric, {"arm": "a"}, n, np.asarray(tally), (0,))


@pytest.mark.parametrize("epsilon", ["1.0", "8.0"])
def test_a_difference_of_who_came_back_holds_at_its_level(epsilon: str) -> None:
    """Devices drawn anew in both arms: with ε 1 noise is most of the error, with 8 chance is.

    Were the part that the share is of not counted, the latter would be missed.
    """
    chance = np.random.default_rng(20261122)
    metric = retention(epsilon)
    n = DEVICES * (20 if epsilon == "1.0" else 1)
    inside = inside_without = 0
    for _ in range(TRIALS):
        first, second = (
            numbers_of(drawn(metric, n, LAW, chance), [ITEM], DRAWN, in_time=False)[ITEM]
            for _ in range(2)
        )
        found = difference(first, second, 0.05)
        narrow = difference(without_part(first), without_part(second), 0.05)
        inside += found.ci_low <= 0 <= found.ci_high
        inside_without += narrow.ci_low <= 0 <= narrow.ci_high

    assert fits_rate(inside, TRIALS, 0.95), inside
    assert epsilon == "1.0" or not fits_rate(inside_without, TRIALS, 0.95)


def without_part(one: Number) -> Number:
    """Return a number whose chance of sampling were that of a share of all devices."""
    spread = one.value * (1 - one.value) / one.n
    part = LAW[2] + LAW[3]
    return Number(one.value, one.variance - spread / part + spread, one.n)


def test_a_group_of_which_nobody_may_have_been_active_has_no_comparison() -> None:
    """The reason is that of the verb retention."""
    chance = np.random.default_rng(7)
    metric = retention("0.5")
    few = drawn(metric, 400, (0.5, 0.5, 0.0, 0.0), chance)
    many = drawn(metric, 100_000, LAW, chance)
    parts = [
        Slice(metric, {"arm": arm}, one.n, one.tally, (0,))
        for arm, one in (("a", few), ("b", many))
    ]

    found = ask("lift", parts, options={"dimension": "arm", "control": "b"})

    assert {row.value for row in found.rows} == {None}
    assert all("is in the group before is not sure" in (row.reason or "") for row in found.rows)
