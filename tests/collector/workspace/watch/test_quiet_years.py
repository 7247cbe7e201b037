"""Fifty watches over a quiet year, from tallies to messages: no more alarms than the file says."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from client_sdk.core.epoch import DAY
from client_sdk.registry.contract import Registry
from collector.core.catalog import Catalog
from collector.core.cells import Cell
from collector.storage.records import FIRING, UNABLE
from collector.workspace.watch.rules import YEARLY, parse
from tests.support.device.registries import BOOLEAN, HEAD
from tests.support.store.stored import queue_one
from tests.support.store.watched import CHANNEL, NEWEST, Desk

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
