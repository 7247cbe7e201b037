"""Intervals hold for rough populations, as the collector's query answers.

A check of one quantile fails by chance with probability 1e-9 at most if its interval holds at 95 %
or more, so it passes from about 73 % on; those that take a rough population for a smooth one fail.
The benchmark ``rough`` looks closer.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

import numpy as np
import pytest

from benchmarks.accuracy.rough import LEVELS, PAGE, Kind, rough, tallies
from client_sdk.registry import Registry
from client_sdk.registry.keys import SMOOTH
from client_sdk.registry.metric import Metric
from collector.analytics.rows import GOOD, Row
from collector.core.catalog import Catalog
from collector.core.cells import Cell
from collector.query import plan, read, run
from tests.support.crowds.uploads import NOON, TODAY
from tests.support.enumeration.coverage import fits_rate
from tests.support.store.memory_storage import MemoryStorage

ANSWERS: Final = 80
KINDS: Final = rough(45_000)
LEVEL: Final = 0.95
ROUGHEST: Final = ("whole numbers", "counts up to 20", "balances, 10 % at 0", "narrow spike")


def answered(metric: Metric, tally: Any, verb: str, options: dict[str, Any]) -> tuple[Row, ...]:
    """Return the rows of a query about one stored tally."""
    storage, n = MemoryStorage(), int(tally.sum())
    cells = list(enumerate([n, *tally.tolist()]))
    storage.put({Cell(metric.digest, TODAY - 2, ""): cells})
    registry = Registry("test", {}, {metric.name: metric})
    body = {"metrics": [metric.name], "verb": verb, "options": options}
    return tuple(
        run(plan(read(json.dumps(body).encode()), Catalog([registry]), NOON), storage).rows
    )


def named(name: str) -> Kind:
    """Return the kind called *name*."""
    return next(kind for kind in KINDS if kind.name == name)


@cache
def hits(name: str, epsilon: str, shape: str | None = None) -> list[int]:
    """Return how often the interval of each quantile holds, *shape* being declared."""
    kind = named(name)
    metric = kind.metric(epsilon, shape or kind.shape)
    up_to = np.cumsum(kind.held) / kind.held.sum()
    truth = kind.numbers[np.searchsorted(up_to + 1e-12, LEVELS)]
    found = np.zeros(len(LEVELS), dtype=int)
    for tally in tallies(metric, kind.held, ANSWERS):
        rows = answered(metric, tally, "quantile", {"levels": list(LEVELS)})
        low, high = np.array([(row.ci_low, row.ci_high) for row in rows], dtype=float).T
        found += (low - 1e-6 <= truth) & (truth <= high + 1e-6)
    return [int(count) for count in found]


def keeps_level(count: int) -> bool:
    """Return whether *count* of ANSWERS may come from LEVEL or more."""
    return count >= LEVEL * ANSWERS or fits_rate(count, ANSWERS, LEVEL)


@pytest.mark.parametrize("name", ROUGHEST)
def test_intervals_of_quantiles_of_rough_populations_hold(name: str) -> None:
    """Atoms, whole numbers, spikes and long tails."""
    assert all(map(keeps_level, hits(name, "4")))


@pytest.mark.parametrize("name", ROUGHEST)
def test_to_take_a_rough_population_for_a_smooth_one_would_be_seen(name: str) -> None:
    """The same reports, with the smoothness declared that they do not have."""
    assert not all(map(keeps_level, hits(name, "4", SMOOTH)))


def test_the_share_of_an_atom_lies_within_its_interval_and_is_not_called_good() -> None:
    """A tenth of the devices are at 0 exactly, and no bin is that narrow."""
    kind = named("balances, 10 % at 0")
    metric, share = kind.metric("4", kind.shape), 0.1
    for tally in tallies(metric, kind.held, 10):
        (row,) = answered(metric, tally, "range", {"low": 0, "high": 0})

        assert row.ci_low is not None
        assert row.ci_high is not None
        assert row.ci_low <= share <= row.ci_high
        assert row.quality != GOOD


@pytest.mark.parametrize("mark", ["rough", "price"])
def test_the_page_holds_a_row_for_every_population_and_epsilon(mark: str) -> None:
    """What the command prints stands between its marks."""
    _, table, _ = PAGE.read_text(encoding="utf-8").split(f"<!-- {mark} -->")

    assert table.count("\n| ") >= 12
