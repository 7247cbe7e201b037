"""A question of every verb about devices whose true answers are known.

Who is asked comes from real counts.  Where a verb needs what no file of ours has, that is made up
and said: ``devices`` tells which part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from client_sdk.domains import MEAN_OF, ItemDomain
from collector.analytics.answer import label_truth
from collector.analytics.rows import Findings
from collector.analytics.slices import Slice
from collector.distribution import quantile_positions

from ._answers import (
    DEMO,
    EXAMPLES,
    REGISTRY,
    Draw,
    Scenario,
    at_random,
    counted,
    drawn,
    law,
    numbers,
    scaled,
)

ALL: Final = "(all)"
VISITORS: Final = 50_000
CARRIERS: Final = ("AA", "MQ", "OO", "UA", "WN")
MONTH: Final = ["2026-11-01", "2026-11-30"]
FLIGHTS: Final = "flights from or to Chicago"
ONE_DAY: Final = ["2026-11-02", "2026-11-02"]
YEAR: Final = ["2015-01-01", "2015-12-31"]
AGES, HOURS, PAGES = (17, 90), (1, 99), (1, 50)
WAITS: Final = (0, 60)
LONG: Final = 20  # minutes
EFFECT: Final = 0.03  # of the treatment that is planted
SHIFT: Final = 0.05  # of the share of a carrier that is planted


def visits(most: int = 200) -> Any:
    """Return visitors by the pages that they saw, from 1 to *most* and more."""
    return numbers(counted(EXAMPLES / "visits_page_views.csv", "page_views"), 1, most)


def ages() -> Any:
    """Return persons by age."""
    return numbers(counted(EXAMPLES / "age_hours.csv", "age"), *AGES)


def waits(carrier: str | None = None, most: int = WAITS[1]) -> Any:
    """Return flights by minutes from the gate to take-off."""
    counts = counted(EXAMPLES / "flights_taxi_out.csv", "carrier", "minutes")
    one = Counter[tuple[str, ...]]()
    for (name, minutes), flights in counts.items():
        one[(minutes,)] += flights if carrier in (None, name) else 0
    return numbers(one, 0, most)


def long_waits() -> dict[str, Any]:
    """Return of each carrier the flights that waited not long, and long."""
    found = {carrier: waits(carrier) for carrier in CARRIERS}
    return {
        carrier: np.array([held[: LONG + 1].sum(), held[LONG + 1 :].sum()])
        for carrier, held in found.items()
    }


def months() -> dict[str, Any]:
    """Return of each month of 2015 the flights of each carrier."""
    counts = counted(EXAMPLES / "flights_by_month.csv", "month", "carrier")
    names = sorted({month for month, _ in counts})
    return {month: np.array([counts[month, one] for one in CARRIERS]) for month in names}


def households() -> Any:
    """Return persons by marital status and income, in the order of the metric's items."""
    counts = counted(EXAMPLES / "marital_income.csv", "marital_status", "income")
    first, second = REGISTRY.metric("household").domain.parts.values()  # type: ignore[union-attr]  # a pair
    return np.array([counts.get((a, b), 0) for a in first for b in second])


def accidents() -> Any:
    """Return accidents by cell, row by row."""
    counts = counted(EXAMPLES / "accidents_grid.csv", "row", "column")
    held = np.zeros(32 * 32, dtype=np.int64)
    for (row, column), found in counts.items():
        held[32 * int(row) + int(column)] += found
    return held


def dealt(periods: int) -> Any:
    """Return of VISITORS by the pages they saw in which of *periods*: each page by chance in one.

    Shape (visitors, periods), booleans; the same at every call.
    """
    pages = np.repeat(np.arange(1, 201), scaled(visits(), VISITORS))
    return np.random.default_rng(5).multinomial(pages, [1 / periods] * periods) > 0


def shares_by_item(metric: str, held: Any) -> dict[str, float]:
    """Return the true share of each item."""
    domain = REGISTRY.metric(metric).domain
    assert isinstance(domain, ItemDomain)
    return dict(zip(domain.labels, (held / held.sum()).tolist(), strict=True))


def by_item(metric: str, held: Any) -> Any:
    """Return the truth of a row by its item."""
    truth = shares_by_item(metric, held)
    return lambda dimensions: truth[dimensions["item"]]


def pages_of_visits() -> Iterator[Scenario]:
    """Yield those about shares of items."""
    counts = counted(DEMO / "first_page.csv", "first_page", count="visitors")
    names = shares_by_item("first_page", np.ones(17))
    held = scaled([counts[(name,)] for name in names], VISITORS)
    asked = {"metrics": ["first_page"], "date_range": ONE_DAY}
    who = f"{VISITORS:,} visitors of a news site, in the proportions of all 989,818"
    draw, truth = drawn("first_page", [({}, held)]), by_item("first_page", held)
    yield Scenario({**asked, "verb": "frequency"}, who, "First page of a visit", draw, truth)
    top = {**asked, "verb": "top_k", "options": {"k": 6}}
    yield Scenario(top, who, "The six most common first pages", draw, truth)


def one_number() -> Iterator[Scenario]:
    """Yield those that give one number, and the metric's own question."""
    held, first = ages(), AGES[0]
    persons = f"{held.sum():,} persons of the US census"
    truth = label_truth(REGISTRY.metric("age"), {first + i: int(k) for i, k in enumerate(held)})
    years = np.arange(held.size)
    variance = float(np.cov(years, fweights=held, ddof=0))
    asked = {"metrics": ["age"], "date_range": MONTH}
    draw = drawn("age", [({}, held)])
    yield Scenario(
        {**asked, "verb": "estimate"},
        persons,
        "Age",
        draw,
        lambda d: truth[d["item"]],
    )
    work = numbers(counted(EXAMPLES / "age_hours.csv", "hours_per_week"), *HOURS)
    mean = float(np.average(np.arange(HOURS[0], HOURS[1] + 1), weights=work))
    yield Scenario(
        {**asked, "metrics": ["hours"], "verb": "mean"},
        persons,
        "Hours of work a week",
        drawn("hours", [({}, work)]),
        lambda _: mean,
    )
    some = scaled(visits(PAGES[1]), VISITORS)
    total = float(np.arange(PAGES[0], PAGES[1] + 1) @ some)
    yield Scenario(
        {"metrics": ["pages"], "verb": "sum", "date_range": ONE_DAY},
        f"{VISITORS:,} visitors of a news site, in proportion; "
        f"more than {PAGES[1]} pages count as {PAGES[1]}",
        "Pages served",
        drawn("pages", [({}, some)]),
        lambda _: total,
    )
    yield Scenario(
        {**asked, "verb": "variance"}, persons, "Variance of age", draw, lambda _: variance
    )


def curves() -> Iterator[Scenario]:
    """Yield those about distributions of numbers."""
    held, flights = ages(), waits()
    persons = f"{held.sum():,} persons of the US census"
    some = f"{flights.sum():,} {FLIGHTS}; more than {WAITS[1]} minutes count as {WAITS[1]}"
    at, spread = np.cumsum(held) / held.sum(), np.cumsum(flights) / flights.sum()
    levels = [0.25, 0.5, 0.75, 0.9]
    asked = {"date_range": MONTH}
    positions = quantile_positions(flights / flights.sum(), levels)
    truth = {f"p{100 * level:g}": float(x) for level, x in zip(levels, positions, strict=True)}
    draw = drawn("taxi_out", [({}, flights)])
    yield Scenario(
        {**asked, "metrics": ["taxi_out"], "verb": "quantile", "options": {"levels": levels}},
        some,
        "From the gate to take-off",
        draw,
        lambda d: truth[d["item"]],
        remark="The minutes pile up more sharply around 15 than the intervals of a quantile assume "
        "([numbers](numbers.md)).",
    )
    points = list(range(20, 90, 5))
    yield Scenario(
        {
            **asked,
            "metrics": ["age"],
            "verb": "cdf",
            "options": {"points": points, "simultaneous": True},
        },
        persons,
        "Age, cumulative",
        drawn("age", [({}, held)]),
        lambda d: float(at[int(d["item"]) - AGES[0]]),
        x_unit="years",
    )
    edges = np.linspace(*WAITS, 13)
    up_to = spread[edges.astype(int)]
    up_to[0] = 0.0
    buckets = {
        f"{a:g}–{b:g}": float(y - x)
        for (a, b), (x, y) in zip(pairwise(edges), pairwise(up_to), strict=True)
    }
    yield Scenario(
        {**asked, "metrics": ["taxi_out"], "verb": "histogram", "options": {"buckets": 12}},
        some,
        "From the gate to take-off",
        draw,
        lambda d: buckets[d["item"]],
        x_unit="min",
    )
    ranges = [[None, 24], [25, 39], [40, 64], [65, None]]
    ends = [0.0, *(float(at[high - AGES[0]]) for high in (24, 39, 64)), 1.0]
    parts = dict(
        zip(("up to 24", "25 to 39", "40 to 64", "from 65"), np.diff(ends).tolist(), strict=True)
    )
    yield Scenario(
        {**asked, "metrics": ["age"], "verb": "range", "options": {"ranges": ranges}},
        persons,
        "Age groups",
        drawn("age", [({}, held)]),
        lambda d: parts[d["item"]],
    )


def over_time() -> Iterator[Scenario]:
    """Yield those about stretches of time."""
    flown = months()
    share = {month: held / held.sum() for month, held in flown.items()}
    asked = {"metrics": ["flown"], "date_range": YEAR, "dimensions": ["time:month"]}
    whole = sum(flown.values()) / sum(flown.values()).sum()
    moved = whole + SHIFT * (np.eye(len(CARRIERS))[-1] - np.eye(len(CARRIERS))[0])
    sizes = {month: int(held.sum()) for month, held in flown.items()}
    steady = [({"time": month}, at_random(n, whole)) for month, n in sizes.items()]
    shifted = [
        ({"time": month}, at_random(n, whole if month < "2015-07" else moved))
        for month, n in sizes.items()
    ]
    yield Scenario(
        {**asked, "verb": "trend", "options": {"item": "WN"}},
        "the 50,000 flights from or to Chicago in 2015 by five carriers, month by month",
        "Share of flights by WN",
        drawn("flown", [({"time": m}, held) for m, held in flown.items()]),
        lambda d: float(share[d["time"]][CARRIERS.index(d["item"])]),
        seen=_changed,
        beside={
            "one law for all months": drawn("flown", steady),
            f"a share that rises by {100 * SHIFT:g} points in July": drawn("flown", shifted),
        },
    )
    spread = {**asked, "verb": "adoption", "dimensions": ["time:month", "carrier"]}
    yield Scenario(
        spread,
        "the same flights, as if the carrier were sent in the clear",
        "Flights by carrier",
        _counts(
            "flown",
            {
                (("time", m), ("carrier", c)): int(k)
                for m, held in flown.items()
                for c, k in zip(CARRIERS, held, strict=True)
            },
        ),
        lambda d: float(share[d["time"]][CARRIERS.index(d["carrier"])]),
        times=1,
    )
    days = dealt(7)
    active = {f"2026-11-{2 + day:02}": int(days[:, day].sum()) for day in range(7)}
    truth = {**active, ALL: int(days.any(axis=1).sum())}
    yield Scenario(
        {
            "metrics": ["one_page"],
            "verb": "actives",
            "date_range": ["2026-11-02", "2026-11-08"],
            "dimensions": ["time:day"],
        },
        f"{VISITORS:,} visitors, whose pages are dealt over seven days by chance: "
        "the days are made up",
        "Active devices",
        _counts("one_page", {(("time", day),): n for day, n in active.items()}),
        lambda d: float(truth[d["time"]]),
        times=1,
    )


def differences() -> Iterator[Scenario]:
    """Yield those about segments."""
    held = long_waits()
    whole = sum(held.values())
    share = {carrier: float(counts[1] / counts.sum()) for carrier, counts in held.items()}
    rest = {c: float((whole - k)[1] / (whole - k).sum()) for c, k in held.items()}
    groups = [({"carrier": carrier}, counts) for carrier, counts in held.items()]
    asked = {"metrics": ["long_wait"], "date_range": MONTH, "dimensions": ["carrier"]}
    flights = "48,604 flights from or to Chicago, by carrier"
    yield Scenario(
        {**asked, "verb": "compare", "options": {"population": "reported"}},
        flights,
        "More than 20 minutes to take-off, beside the others",
        drawn("long_wait", groups),
        lambda d: share[d["carrier"]] - rest[d["carrier"]],
        seen=_significant,
        beside={
            "no difference": drawn(
                "long_wait", [(d, scaled(whole, int(k.sum()))) for d, k in groups]
            )
        },
    )
    yield Scenario(
        {**asked, "verb": "segments", "postprocess": "pooled"},
        flights,
        "More than 20 minutes to take-off",
        drawn("long_wait", groups),
        lambda d: share[d["carrier"]],
    )
    seen = visits()
    one = float(seen[0] / seen.sum())
    arms: dict[str, Any] = {
        arm: at_random(VISITORS // 2, [1 - p, p])
        for arm, p in (("control", one), ("treated", one - EFFECT))
    }
    truth = {"difference": -EFFECT, "lift": -EFFECT / one}
    alike = at_random(VISITORS // 2, [1 - one, one])
    yield Scenario(
        {
            "metrics": ["one_page"],
            "verb": "lift",
            "date_range": ONE_DAY,
            "dimensions": ["arm"],
            "options": {"dimension": "arm", "control": "control"},
        },
        f"two arms of {VISITORS // 2:,} visitors, drawn anew each time; that the treatment keeps "
        f"{100 * EFFECT:g} more of 100 is made up",
        "Left after one page",
        drawn("one_page", [({"arm": arm}, k) for arm, k in arms.items()]),
        lambda d: truth[d["measure"]],
        seen=_significant,
        beside={"no difference": drawn("one_page", [({"arm": arm}, alike) for arm in arms])},
    )


def joint() -> Iterator[Scenario]:
    """Yield those about several things that one report says."""
    seen = visits()
    steps = (2, 5, 10, 20)
    reached = [float(seen[step - 1 :].sum() / seen.sum()) for step in steps]
    held = scaled(-np.diff([seen.sum(), *(seen[step - 1 :].sum() for step in steps), 0]), VISITORS)
    names = [f"{step} pages" for step in steps]
    exact = np.cumsum(held[::-1])[::-1][1:] / held.sum()
    assert np.allclose(exact, reached, atol=1e-4)
    funnel = {(n, "reached"): float(x) for n, x in zip(names, exact, strict=True)}
    funnel |= {
        (n, "of the step before"): float(b / a)
        for n, (a, b) in zip(names[1:], pairwise(exact), strict=True)
    }
    yield Scenario(
        {"metrics": ["depth"], "verb": "funnel", "date_range": ONE_DAY},
        f"{VISITORS:,} visitors of a news site, in proportion",
        "How far visitors read",
        drawn("depth", [({}, held)]),
        lambda d: funnel[d["item"], d["measure"]],
    )
    weeks = dealt(4)
    places = weeks @ (1 << np.arange(3, -1, -1))
    back = {(f"week {i + 1}", "active"): float(weeks[:, i].mean()) for i in range(4)}
    back |= {
        (f"week {i + 1}", "of the first period"): float(weeks[weeks[:, 0], i].mean())
        for i in range(1, 4)
    }
    yield Scenario(
        {"metrics": ["weeks"], "verb": "retention", "date_range": MONTH},
        f"{VISITORS:,} visitors, whose pages are dealt over four weeks by chance: "
        "the weeks are made up",
        "Who comes back",
        drawn("weeks", [({}, np.bincount(places, minlength=16))]),
        lambda d: back[d["item"], d["measure"]],
    )
    yield _crosstab()
    yield _map()
    yield _key_values()


def _crosstab() -> Scenario:
    persons = households()
    table = persons.reshape(-1, 2) / persons.sum()
    domain = REGISTRY.metric("household").domain
    (a, first), (b, second) = domain.parts.items()  # type: ignore[union-attr]  # a pair
    truth = {(x, y): float(table[i, j]) for i, x in enumerate(first) for j, y in enumerate(second)}
    truth |= {(x, ALL): float(table[i].sum()) for i, x in enumerate(first)}
    truth |= {(ALL, y): float(table[:, j].sum()) for j, y in enumerate(second)}
    return Scenario(
        {"metrics": ["household"], "verb": "crosstab", "date_range": MONTH},
        f"{persons.sum():,} persons of the US census",
        "Marital status and income",
        drawn("household", [({}, persons)]),
        lambda d: truth[d[a], d[b]],
    )


def _map() -> Scenario:
    held = accidents()
    return Scenario(
        {"metrics": ["accident"], "verb": "map", "date_range": MONTH},
        f"{held.sum():,} road accidents in Great Britain, on 32 × 32 cells",
        "Road accidents",
        drawn("accident", [({}, held)]),
        _cell(held),
        times=500,
        remark="Of so many cells few can be told from zero. The picture is of the same reports, "
        'asked for with `"options": {"coarsen": 4}`.',
        shown={"options": {"coarsen": 4}},
    )


def _cell(held: Any) -> Any:
    grid = held.reshape(32, 32) / held.sum()

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
        _rounded("waits", list(by_carrier.values())),
        lambda d: truth[d["item"]],
    )


def _rounded(name: str, held: Sequence[Any]) -> Draw:
    """Return the draw of devices that hold one key each, by key and number.

    Each rounds its number to one of both ends by chance, as devices do.
    """
    metric = REGISTRY.metric(name)

    def draw(times: int, generator: np.random.Generator) -> Iterator[list[Slice]]:
        parts = [np.arange(one.size) / (one.size - 1) for one in held]
        high = np.array(
            [
                generator.binomial(k, x, (times, k.size)).sum(axis=1)
                for k, x in zip(held, parts, strict=True)
            ]
        ).T
        n = np.array([one.sum() for one in held])
        tallies = law(name).drawn(np.hstack([n - high, high]), times, generator)
        for tally in tallies:
            yield [Slice(metric, {}, int(n.sum()), tally, (0,))]

    return draw


def _counts(name: str, counts: Mapping[tuple[tuple[str, str], ...], int]) -> Draw:
    """Return the draw of slices whose verb counts reports, whatever they say."""
    metric = REGISTRY.metric(name)

    def draw(times: int, generator: np.random.Generator) -> Iterator[list[Slice]]:
        del generator  # nothing is left to chance
        nothing = np.zeros(metric.mechanism.tally_size, dtype=np.int64)
        for _ in range(times):
            yield [Slice(metric, dict(d), n, nothing, (0,)) for d, n in counts.items()]

    return draw


def _changed(found: Findings) -> bool:
    return any(change["detected"] for change in found.facts["changes"])


def _significant(found: Findings) -> bool:
    return any(row.p_value is not None and row.p_value <= row.alpha for row in found.rows)


def scenarios() -> list[Scenario]:
    """Return all of them, in the order of the page."""
    groups = (pages_of_visits, one_number, curves, over_time, differences, joint)
    return [scenario for group in groups for scenario in group()]
