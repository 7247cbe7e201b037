"""Questions about several slices: stretches of time, segments, arms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from benchmarks.lib.crowds import CARRIERS, VISITORS, dealt, long_waits, months, scaled, visits
from benchmarks.lib.draws import AtRandom, counts_only, drawn
from benchmarks.lib.questions import ALL, FLIGHTS, MONTH, ONE_DAY, Name, Scenario
from collector.analytics.rows import Findings

YEAR: Final = ["2015-01-01", "2015-12-31"]
WEEK: Final = ["2026-11-02", "2026-11-08"]
DAYS: Final = 7
EFFECT: Final = 0.03  # of the treatment that is made up
SHIFT, JULY = 0.05, "2015-07"  # of the share of a carrier, made up, from that month on
LATE: Final = "More than 20 minutes to take-off"


def over_time() -> Iterator[Scenario]:
    """Yield the questions about stretches of time."""
    yield _trend()
    yield _adoption()
    yield _actives()


def between_segments() -> Iterator[Scenario]:
    """Yield the questions about segments and arms."""
    yield _compare()
    yield _segments()
    yield _lift()


def _trend() -> Scenario:
    flown = months()
    share = {month: held / held.sum() for month, held in flown.items()}
    whole = sum(flown.values()) / sum(flown.values()).sum()
    moved = whole + SHIFT * (np.eye(len(CARRIERS))[-1] - np.eye(len(CARRIERS))[0])
    sizes = {month: int(held.sum()) for month, held in flown.items()}
    steady = [({"time": month}, AtRandom(n, whole)) for month, n in sizes.items()]
    shifted = [
        ({"time": month}, AtRandom(n, whole if month < JULY else moved))
        for month, n in sizes.items()
    ]
    return Scenario(
        {
            "metrics": ["flown"],
            "verb": "trend",
            "date_range": YEAR,
            "dimensions": ["time:month"],
            "options": {"item": "WN"},
        },
        f"50,000 {FLIGHTS} in 2015 by five carriers, month by month",
        "Share of flights by WN",
        drawn("flown", [({"time": month}, held) for month, held in flown.items()]),
        lambda d: float(share[d["time"]][CARRIERS.index(d["item"])]),
        seen=_changed,
        beside={
            "one law for all months": drawn("flown", steady),
            f"a share that rises by {100 * SHIFT:g} points in July": drawn("flown", shifted),
        },
    )


def _adoption() -> Scenario:
    flown = months()
    counts: dict[Name, int] = {
        (("time", month), ("carrier", carrier)): int(flights)
        for month, held in flown.items()
        for carrier, flights in zip(CARRIERS, held, strict=True)
    }
    truth = {
        (month, carrier): float(flights / held.sum())
        for month, held in flown.items()
        for carrier, flights in zip(CARRIERS, held, strict=True)
    }
    return Scenario(
        {
            "metrics": ["flown"],
            "verb": "adoption",
            "date_range": YEAR,
            "dimensions": ["time:month", "carrier"],
        },
        "the same flights, as if the carrier were sent in the clear",
        "Flights by carrier",
        counts_only("flown", counts),
        lambda d: truth[d["time"], d["carrier"]],
        times=1,
    )


def _actives() -> Scenario:
    days = dealt(DAYS)
    active = {f"2026-11-{2 + day:02}": int(days[:, day].sum()) for day in range(DAYS)}
    truth = {**active, ALL: int(days.any(axis=1).sum())}
    return Scenario(
        {
            "metrics": ["one_page"],
            "verb": "actives",
            "date_range": WEEK,
            "dimensions": ["time:day"],
        },
        f"{VISITORS:,} visitors, whose pages are dealt over seven days by chance: "
        "the days are made up",
        "Active devices",
        counts_only("one_page", {(("time", day),): n for day, n in active.items()}),
        lambda d: float(truth[d["time"]]),
        times=1,
    )


def _compare() -> Scenario:
    held = long_waits()
    whole = sum(held.values())
    share = {carrier: float(k[1] / k.sum()) for carrier, k in held.items()}
    rest = {c: float((whole - k)[1] / (whole - k).sum()) for c, k in held.items()}
    alike = [({"carrier": c}, scaled(whole, int(k.sum()))) for c, k in held.items()]
    return Scenario(
        {
            "metrics": ["long_wait"],
            "verb": "compare",
            "date_range": MONTH,
            "dimensions": ["carrier"],
            "options": {"population": "reported"},
        },
        f"{whole.sum():,} {FLIGHTS}, by carrier",
        f"{LATE}, beside the others",
        drawn("long_wait", [({"carrier": carrier}, k) for carrier, k in held.items()]),
        lambda d: share[d["carrier"]] - rest[d["carrier"]],
        seen=_significant,
        beside={"no difference": drawn("long_wait", alike)},
    )


def _segments() -> Scenario:
    held = long_waits()
    share = {carrier: float(k[1] / k.sum()) for carrier, k in held.items()}
    return Scenario(
        {
            "metrics": ["long_wait"],
            "verb": "segments",
            "date_range": MONTH,
            "dimensions": ["carrier"],
            "postprocess": "pooled",
        },
        f"{sum(held.values()).sum():,} {FLIGHTS}, by carrier",
        LATE,
        drawn("long_wait", [({"carrier": carrier}, k) for carrier, k in held.items()]),
        lambda d: share[d["carrier"]],
    )


def _lift() -> Scenario:
    seen = visits()
    one = float(seen[0] / seen.sum())
    arms: dict[str, Any] = {
        arm: AtRandom(VISITORS // 2, [1 - share, share])
        for arm, share in (("control", one), ("treated", one - EFFECT))
    }
    truth = {"difference": -EFFECT, "lift": -EFFECT / one}
    return Scenario(
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
        drawn("one_page", [({"arm": arm}, held) for arm, held in arms.items()]),
        lambda d: truth[d["measure"]],
        seen=_significant,
        beside={
            "no difference": drawn("one_page", [({"arm": arm}, arms["control"]) for arm in arms])
        },
    )


def _changed(found: Findings) -> bool:
    return any(change["detected"] for change in found.facts["changes"])


def _significant(found: Findings) -> bool:
    return any(row.p_value is not None and row.p_value <= row.alpha for row in found.rows)
