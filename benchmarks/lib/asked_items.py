"""Questions about items and tables: shares, joint answers, maps, keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.lib.crowds import (
    CARRIERS,
    REGISTRY,
    SIDE,
    VISITORS,
    accidents,
    dealt,
    first_pages,
    households,
    scaled,
    visits,
    waits,
)
from benchmarks.lib.draws import drawn, rounded
from benchmarks.lib.questions import ALL, FLIGHTS, MONTH, ONE_DAY, PERSONS, Scenario
from client_sdk.registry.domains import MEAN_OF
from client_sdk.registry.joint_domains import PairDomain

STEPS = (2, 5, 10, 20)  # pages, of the funnel
WEEKS = 4


def items() -> Iterator[Scenario]:
    """Yield the questions about shares of items."""
    held = first_pages()
    labels = REGISTRY.metric("first_page").domain.labels
    truth = dict(zip(labels, (held / held.sum()).tolist(), strict=True))
    asked = {"metrics": ["first_page"], "date_range": ONE_DAY}
    who = f"{VISITORS:,} visitors of a news site, in the proportions of all 989,818"
    draw = drawn("first_page", [({}, held)])
    for title, more in (
        ("First page of a visit", {"verb": "frequency"}),
        ("The six most common first pages", {"verb": "top_k", "options": {"k": 6}}),
    ):
        yield Scenario({**asked, **more}, who, title, draw, lambda d: truth[d["item"]])


def joint() -> Iterator[Scenario]:
    """Yield the questions about several things that one report says."""
    yield _funnel()
    yield _retention()
    yield _crosstab()
    yield _map()
    yield _key_values()


def _funnel() -> Scenario:
    seen = visits()
    whole = np.array([seen.sum(), *(seen[step - 1 :].sum() for step in STEPS), 0])
    held = scaled(-np.diff(whole), VISITORS)
    reached = np.cumsum(held[::-1])[::-1][1:] / held.sum()
    names = [f"{step} pages" for step in STEPS]
    truth = {(name, "reached"): float(x) for name, x in zip(names, reached, strict=True)}
    for name, (before, after) in zip(names[1:], pairwise(reached), strict=True):
        truth[name, "of the step before"] = float(after / before)
    return Scenario(
        {"metrics": ["depth"], "verb": "funnel", "date_range": ONE_DAY},
        f"{VISITORS:,} visitors of a news site, in proportion",
        "How far visitors read",
        drawn("depth", [({}, held)]),
        lambda d: truth[d["item"], d["measure"]],
    )


def _retention() -> Scenario:
    weeks = dealt(WEEKS)
    item = weeks @ (1 << np.arange(WEEKS - 1, -1, -1))  # the first week is the highest bit
    came_first = weeks[weeks[:, 0]]
    truth = {}
    for week in range(WEEKS):
        truth[f"week {week + 1}", "active"] = float(weeks[:, week].mean())
        truth[f"week {week + 1}", "of the first period"] = float(came_first[:, week].mean())
    return Scenario(
        {"metrics": ["weeks"], "verb": "retention", "date_range": MONTH},
        f"{VISITORS:,} visitors, whose pages are dealt over four weeks by chance: "
        "the weeks are made up",
        "Who comes back",
        drawn("weeks", [({}, np.bincount(item, minlength=1 << WEEKS))]),
        lambda d: truth[d["item"], d["measure"]],
    )


def _crosstab() -> Scenario:
    persons = households()
    table = persons.reshape(-1, 2) / persons.sum()
    domain = REGISTRY.metric("household").domain
    assert isinstance(domain, PairDomain)
    (a, first), (b, second) = domain.parts.items()
    truth = {(x, y): float(table[i, j]) for i, x in enumerate(first) for j, y in enumerate(second)}
    truth |= {(x, ALL): float(table[i].sum()) for i, x in enumerate(first)}
    truth |= {(ALL, y): float(table[:, j].sum()) for j, y in enumerate(second)}
    return Scenario(
        {"metrics": ["household"], "verb": "crosstab", "date_range": MONTH},
        f"{persons.sum():,} {PERSONS}",
        "Marital status and income",
        drawn("household", [({}, persons)]),
        lambda d: truth[d[a], d[b]],
    )


def _map() -> Scenario:
    held = accidents()
    return Scenario(
        {"metrics": ["accident"], "verb": "map", "date_range": MONTH},
        f"{held.sum():,} road accidents in Great Britain, on {SIDE} × {SIDE} cells",
        "Road accidents",
        drawn("accident", [({}, held)]),
        _cell(held),
        times=500,
        remark="Of so many cells few can be told from zero. The picture is of the same reports, "
        'asked for with `"options": {"coarsen": 4}`.',
        shown={"options": {"coarsen": 4}},
    )


def _cell(held: Any) -> Callable[[Mapping[str, str]], float]:
    grid = held.reshape(SIDE, SIDE) / held.sum()

    def truth(dimensions: Mapping[str, str]) -> float:
        row, column = map(int, dimensions["item"].split(","))
        return float(grid[row, column])

    return truth


def _key_values() -> Scenario:
    by_carrier = {carrier: waits(carrier) for carrier in CARRIERS}
    total = waits().sum()
    truth: dict[str, float] = {}
    for carrier, held in by_carrier.items():
        mean = float(np.average(np.arange(held.size), weights=held))
        truth |= {carrier: float(held.sum() / total), MEAN_OF + carrier: mean}
    return Scenario(
        {"metrics": ["waits"], "verb": "key_values", "date_range": MONTH},
        f"{total:,} {FLIGHTS}, each with its carrier and its minutes",
        "Minutes to take-off by carrier",
        rounded("waits", list(by_carrier.values())),
        lambda d: truth[d["item"]],
    )
