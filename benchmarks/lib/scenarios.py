"""A question of every verb about devices whose true answers are known.

Who is asked comes from real counts.  Where a verb needs what no file of ours has, that is made up
and said: ``devices`` tells which part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise, product
from operator import itemgetter
from typing import Any, Final

import numpy as np

from benchmarks.lib.crowds import (
    AGES,
    CARRIERS,
    HOURS,
    PAGES,
    REGISTRY,
    SIDE,
    VISITORS,
    WAITS,
    AtRandom,
    accidents,
    ages,
    counts_only,
    dealt,
    drawn,
    first_pages,
    hours,
    households,
    long_waits,
    months,
    rounded,
    scaled,
    visits,
    waits,
)
from benchmarks.lib.questions import ALL, MONTH, ONE_DAY, Name, Scenario
from client_sdk.registry.types.items import MEAN_OF
from client_sdk.registry.types.joint import PairDomain
from collector.analytics.rows import Findings
from collector.analytics.verb import Slice
from collector.estimation.estimate import quantile_positions
from tests.support.crowds.truths import label_truth

FLIGHTS: Final = "flights from or to Chicago"
PERSONS: Final = "persons of the US census"
SITE: Final = f"{VISITORS:,} visitors of a news site, in proportion"
LATE: Final = "More than 20 minutes to take-off"
YEAR: Final = ["2015-01-01", "2015-12-31"]
WEEK: Final = ["2026-11-02", "2026-11-08"]
DAYS: Final = 7
WEEKS: Final = 4
STEPS: Final = (2, 5, 10, 20)  # pages, of the funnel
EFFECT: Final = 0.03  # of the treatment that is made up
SHIFT, JULY = 0.05, "2015-07"  # of the share of a carrier, made up, from that month on
LEVELS: Final = (0.25, 0.5, 0.75, 0.9)
POINTS: Final = tuple(range(20, 90, 5))
BUCKETS: Final = 12
RANGES: Final = ((None, 24), (25, 39), (40, 64), (65, None))


def scenarios() -> list[Scenario]:
    """Return all of them, in the order of the page."""
    return [
        *_items(), *_numbers(), _quantile(), _cdf(), _histogram(), _range(),
        _trend(), _adoption(), _actives(), _compare(), _segments(), _lift(), _ratio(),
        _funnel(), _retention(), _crosstab(), _map(), _key_values(),
    ]  # fmt: skip


def _ask(metric: str, verb: str, dates: list[str] = MONTH, **more: Any) -> dict[str, Any]:
    return {"metrics": [metric], "verb": verb, "date_range": dates, **more}


def _of(truth: Mapping[Any, float], *names: str) -> Callable[[Mapping[str, str]], float]:
    """Return the look-up of the true answer of a row by its dimensions *names*."""
    key = itemgetter(*names)
    return lambda dimensions: float(truth[key(dimensions)])


def _whole(metric: str, held: Any) -> Any:
    """Return the draw of one slice without dimensions."""
    return drawn(metric, [({}, held)])


def _sliced(metric: str, name: str, groups: Mapping[str, Any]) -> Any:
    """Return the draw of a slice for each value of the dimension *name*."""
    return drawn(metric, [({name: value}, held) for value, held in groups.items()])


def _items() -> Iterator[Scenario]:
    held = first_pages()
    labels = REGISTRY.metric("first_page").domain.labels
    truth = _of(dict(zip(labels, (held / held.sum()).tolist(), strict=True)), "item")
    who = f"{VISITORS:,} visitors of a news site, in the proportions of all 989,818"
    draw = _whole("first_page", held)
    asked = _ask("first_page", "frequency", ONE_DAY)
    yield Scenario(asked, who, "First page of a visit", draw, truth)
    asked = _ask("first_page", "top_k", ONE_DAY, options={"k": 6})
    yield Scenario(asked, who, "The six most common first pages", draw, truth)


def _numbers() -> Iterator[Scenario]:
    """Yield the questions that one number answers, and the metric's own."""
    held, worked = ages(), hours()
    counts: dict[object, int] = {AGES[0] + i: int(persons) for i, persons in enumerate(held)}
    of_items = _of(label_truth(REGISTRY.metric("age"), counts), "item")
    draw = _whole("age", held)
    yield Scenario(_ask("age", "estimate"), _persons(), "Age", draw, of_items)
    mean = float(np.average(np.arange(HOURS[0], HOURS[1] + 1), weights=worked))
    title, draw_hours = "Hours of work a week", _whole("hours", worked)
    yield Scenario(_ask("hours", "mean"), _persons(), title, draw_hours, lambda _: mean)
    seen = scaled(visits(PAGES[1]), VISITORS)
    total = float(np.arange(PAGES[0], PAGES[1] + 1) @ seen)
    who = f"{SITE}; more than {PAGES[1]} pages count as {PAGES[1]}"
    asked, draw_pages = _ask("pages", "sum", ONE_DAY), _whole("pages", seen)
    yield Scenario(asked, who, "Pages served", draw_pages, lambda _: total)
    spread = float(np.cov(np.arange(held.size), fweights=held, ddof=0))
    asked = _ask("age", "variance")
    yield Scenario(asked, _persons(), "Variance of age", draw, lambda _: spread)


def _quantile() -> Scenario:
    held = waits()
    positions = quantile_positions(held / held.sum(), LEVELS)
    truth = {f"p{100 * level:g}": float(x) for level, x in zip(LEVELS, positions, strict=True)}
    asked = _ask("taxi_out", "quantile", options={"levels": list(LEVELS)})
    title, draw = "From the gate to take-off", _whole("taxi_out", held)
    return Scenario(asked, _flights(), title, draw, _of(truth, "item"))


def _cdf() -> Scenario:
    held = ages()
    up_to = np.cumsum(held) / held.sum()
    truth = {str(AGES[0] + i): float(share) for i, share in enumerate(up_to)}
    asked = _ask("age", "cdf", options={"points": list(POINTS), "simultaneous": True})
    draw = _whole("age", held)
    return Scenario(asked, _persons(), "Age, cumulative", draw, _of(truth, "item"), x_unit="years")


def _histogram() -> Scenario:
    held = waits()
    edges = np.linspace(*WAITS, BUCKETS + 1)
    up_to = (np.cumsum(held) / held.sum())[edges.astype(int)]
    up_to[0] = 0.0  # the first bucket holds its lower end, too
    names = [f"{low:g}–{high:g}" for low, high in pairwise(edges)]
    truth = _of(dict(zip(names, np.diff(up_to).tolist(), strict=True)), "item")
    asked = _ask("taxi_out", "histogram", options={"buckets": BUCKETS})
    title, draw = "From the gate to take-off", _whole("taxi_out", held)
    return Scenario(asked, _flights(), title, draw, truth, x_unit="min")


def _range() -> Scenario:
    held = ages()
    up_to = np.cumsum(held) / held.sum()
    ends = [0.0, *(up_to[high - AGES[0]] for _, high in RANGES if high is not None), 1.0]
    names = ("up to 24", "25 to 39", "40 to 64", "from 65")
    truth = _of(dict(zip(names, np.diff(ends).tolist(), strict=True)), "item")
    asked = _ask("age", "range", options={"ranges": [list(ends) for ends in RANGES]})
    return Scenario(asked, _persons(), "Age groups", _whole("age", held), truth)


def _trend() -> Scenario:
    flown = months()
    share = {month: held / held.sum() for month, held in flown.items()}
    whole = sum(flown.values()) / sum(flown.values()).sum()
    moved = whole + SHIFT * (np.eye(len(CARRIERS))[-1] - np.eye(len(CARRIERS))[0])
    sizes = {month: int(held.sum()) for month, held in flown.items()}
    steady = {month: AtRandom(n, whole) for month, n in sizes.items()}
    shifted = {m: AtRandom(n, whole if m < JULY else moved) for m, n in sizes.items()}
    return Scenario(
        _ask("flown", "trend", YEAR, dimensions=["time:month"], options={"item": "WN"}),
        f"50,000 {FLIGHTS} in 2015 by five carriers, month by month",
        "Share of flights by WN",
        _sliced("flown", "time", flown),
        lambda d: float(share[d["time"]][CARRIERS.index(d["item"])]),
        seen=lambda found: any(change["detected"] for change in found.facts["changes"]),
        beside={
            "one law for all months": _sliced("flown", "time", steady),
            f"a share that rises by {100 * SHIFT:g} points in July": _sliced(
                "flown", "time", shifted
            ),
        },
    )


def _adoption() -> Scenario:
    flown = months()
    cells = {
        (month, carrier): (int(flights), float(flights / held.sum()))
        for month, held in flown.items()
        for carrier, flights in zip(CARRIERS, held, strict=True)
    }
    counts: dict[Name, int] = {
        (("time", m), ("carrier", c)): flights for (m, c), (flights, _) in cells.items()
    }
    return Scenario(
        _ask("flown", "adoption", YEAR, dimensions=["time:month", "carrier"]),
        "the same flights, as if the carrier were sent in the clear",
        "Flights by carrier",
        counts_only("flown", counts),
        _of({key: share for key, (_, share) in cells.items()}, "time", "carrier"),
        times=1,
    )


def _actives() -> Scenario:
    days = dealt(DAYS)
    active = {f"2026-11-{2 + day:02}": int(days[:, day].sum()) for day in range(DAYS)}
    return Scenario(
        _ask("one_page", "actives", WEEK, dimensions=["time:day"]),
        f"{VISITORS:,} visitors, whose pages are dealt over seven days by chance: "
        "the days are made up",
        "Active devices",
        counts_only("one_page", {(("time", day),): n for day, n in active.items()}),
        _of({**active, ALL: int(days.any(axis=1).sum())}, "time"),
        times=1,
    )


def _compare() -> Scenario:
    held = long_waits()
    whole = sum(held.values())
    truth = {c: k[1] / k.sum() - (whole - k)[1] / (whole - k).sum() for c, k in held.items()}
    alike = {carrier: scaled(whole, int(k.sum())) for carrier, k in held.items()}
    return Scenario(
        _ask("long_wait", "compare", dimensions=["carrier"], options={"population": "reported"}),
        f"{whole.sum():,} {FLIGHTS}, by carrier",
        f"{LATE}, beside the others",
        _sliced("long_wait", "carrier", held),
        _of(truth, "carrier"),
        seen=_significant,
        beside={"no difference": _sliced("long_wait", "carrier", alike)},
    )


def _segments() -> Scenario:
    held = long_waits()
    return Scenario(
        _ask("long_wait", "segments", dimensions=["carrier"], postprocess="pooled"),
        f"{sum(held.values()).sum():,} {FLIGHTS}, by carrier",
        LATE,
        _sliced("long_wait", "carrier", held),
        _of({carrier: k[1] / k.sum() for carrier, k in held.items()}, "carrier"),
    )


def _lift() -> Scenario:
    seen = visits()
    one = float(seen[0] / seen.sum())
    control, treated = (AtRandom(VISITORS // 2, [1 - p, p]) for p in (one, one - EFFECT))
    options = {"dimension": "arm", "control": "control"}
    alike = {"control": control, "treated": control}
    return Scenario(
        _ask("one_page", "lift", ONE_DAY, dimensions=["arm"], options=options),
        f"two arms of {VISITORS // 2:,} visitors, drawn anew each time; that the treatment keeps "
        f"{100 * EFFECT:g} more of 100 is made up",
        "Left after one page",
        _sliced("one_page", "arm", {"control": control, "treated": treated}),
        _of({"difference": -EFFECT, "lift": -EFFECT / one}, "measure"),
        seen=_significant,
        beside={"no difference": _sliced("one_page", "arm", alike)},
    )


def _ratio() -> Scenario:
    seen = scaled(visits(PAGES[1]), VISITORS)
    one = scaled(visits(), VISITORS)
    total = float(np.arange(PAGES[0], PAGES[1] + 1) @ seen)
    left = np.array([one.sum() - one[0], one[0]])
    pages, alone = _whole("pages", seen), _whole("one_page", left)

    def draw(times: int, generator: np.random.Generator) -> Iterator[list[Slice]]:
        for above, below in zip(pages(times, generator), alone(times, generator), strict=True):
            yield [*above, *below]

    return Scenario(
        {
            "metrics": ["pages", "one_page"],
            "verb": "ratio",
            "date_range": ONE_DAY,
            "options": {"of": "totals"},
        },
        f"{SITE}; more than {PAGES[1]} pages count as {PAGES[1]}",
        "Pages for each visitor who left after one",
        draw,
        lambda _: total / float(left[1]),
    )


def _funnel() -> Scenario:
    seen = visits()
    whole = np.array([seen.sum(), *(seen[step - 1 :].sum() for step in STEPS), 0])
    held = scaled(-np.diff(whole), VISITORS)
    reached = np.cumsum(held[::-1])[::-1][1:] / held.sum()
    names = [f"{step} pages" for step in STEPS]
    truth = {(name, "reached"): x for name, x in zip(names, reached, strict=True)}
    for name, (before, after) in zip(names[1:], pairwise(reached), strict=True):
        truth[name, "of the step before"] = after / before
    asked, draw = _ask("depth", "funnel", ONE_DAY), _whole("depth", held)
    return Scenario(asked, SITE, "How far visitors read", draw, _of(truth, "item", "measure"))


def _retention() -> Scenario:
    weeks = dealt(WEEKS)
    item = weeks @ (1 << np.arange(WEEKS - 1, -1, -1))  # the first week is the highest bit
    parts = {"active": weeks, "of the first period": weeks[weeks[:, 0]]}
    truth = {
        (f"week {week + 1}", name): held[:, week].mean()
        for week, (name, held) in product(range(WEEKS), parts.items())
    }
    return Scenario(
        _ask("weeks", "retention"),
        f"{VISITORS:,} visitors, whose pages are dealt over four weeks by chance: "
        "the weeks are made up",
        "Who comes back",
        _whole("weeks", np.bincount(item, minlength=1 << WEEKS)),
        _of(truth, "item", "measure"),
    )


def _crosstab() -> Scenario:
    persons = households()
    table = persons.reshape(-1, 2) / persons.sum()
    domain = REGISTRY.metric("household").domain
    assert isinstance(domain, PairDomain)
    (a, first), (b, second) = domain.parts.items()
    truth = {(x, y): table[i, j] for i, x in enumerate(first) for j, y in enumerate(second)}
    truth |= {(x, ALL): table[i].sum() for i, x in enumerate(first)}
    truth |= {(ALL, y): table[:, j].sum() for j, y in enumerate(second)}
    who, draw = f"{persons.sum():,} {PERSONS}", _whole("household", persons)
    asked = _ask("household", "crosstab")
    return Scenario(asked, who, "Marital status and income", draw, _of(truth, a, b))


def _map() -> Scenario:
    held = accidents()
    shares = zip(product(range(SIDE), repeat=2), held / held.sum(), strict=True)
    return Scenario(
        _ask("accident", "map"),
        f"{held.sum():,} road accidents in Great Britain, on {SIDE} × {SIDE} cells",
        "Road accidents",
        _whole("accident", held),
        _of({f"{row},{column}": share for (row, column), share in shares}, "item"),
        times=500,
        remark="Of so many cells few can be told from zero. The picture is of the same reports, "
        'asked for with `"options": {"coarsen": 4}`.',
        shown={"options": {"coarsen": 4}},
    )


def _key_values() -> Scenario:
    by_carrier = {carrier: waits(carrier) for carrier in CARRIERS}
    total = waits().sum()
    truth = {carrier: held.sum() / total for carrier, held in by_carrier.items()}
    for carrier, held in by_carrier.items():
        truth[MEAN_OF + carrier] = np.average(np.arange(held.size), weights=held)
    return Scenario(
        _ask("waits", "key_values"),
        f"{total:,} {FLIGHTS}, each with its carrier and its minutes",
        "Minutes to take-off by carrier",
        rounded("waits", list(by_carrier.values())),
        _of(truth, "item"),
    )


def _significant(found: Findings) -> bool:
    return any(row.p_value is not None and row.p_value <= row.alpha for row in found.rows)


def _persons() -> str:
    return f"{ages().sum():,} {PERSONS}"


def _flights() -> str:
    return f"{waits().sum():,} {FLIGHTS}; more than {WAITS[1]} minutes count as {WAITS[1]}"
