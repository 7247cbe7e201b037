"""How often experiments without any effect seem to show one, and how often real effects are found.

Run: ``python -m benchmarks looks``; a few minutes.  With ``--write`` the table goes into
docs/evidence/tables/looks.md.  Two arms report a yes or no every day for four weeks, either the
same devices each day or new ones, and ``lift`` is asked on every day.  All is drawn anew from the
exact law of the mechanism, from a fixed seed.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.lib.page import PAGES, publish, table, verdict
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.analytics.comparing.differences import smallest_seen
from collector.analytics.comparing.numbers import DRAWN, NEW, Population
from collector.analytics.rows import Row
from collector.analytics.verb import Slice
from tests.support.crowds.asking import ask
from tests.support.device.registries import BOOLEAN, file_with

PAGE: Final = PAGES / "evidence" / "tables" / "looks.md"
SEED: Final = 20261122
DAYS: Final = 28
DEVICES: Final = 1_000  # of each arm, each day
SHARE: Final = 0.1  # of the devices that say yes
TIMES: Final = 1_000  # experiments
ALPHA: Final = 0.05
POWER: Final = 0.8
SLACK: Final = 3 * (ALPHA * (1 - ALPHA) / TIMES) ** 0.5  # of a rate; three standard errors
LEAST_POWER: Final = POWER - 3 * (POWER * (1 - POWER) / TIMES) ** 0.5
CONTROL, TREATED = "control", "new"


class World(NamedTuple):
    """Whether the same devices report every day, and what is taken for granted of them."""

    are_same: bool
    population: Population

    @property
    def is_right(self) -> bool:
        """Whether what is taken for granted holds."""
        return not (self.are_same and self.population == NEW)


WORLDS: Final = (World(True, DRAWN), World(False, DRAWN), World(False, NEW), World(True, NEW))


class Found(NamedTuple):
    """Parts of the experiments that show a difference."""

    ever: float  # on any day
    last: float  # on the last day
    seen: float  # on the last day, of an effect as large as ``lift`` promises to see


def metric() -> Metric:
    """Return the metric that the arms report."""
    return Registry.from_text(file_with(BOOLEAN, every='"1d"')).metric("m")


def days_of(world: World, share: float, chance: Any, reports_of: Metric, times: int) -> Any:
    """Return how many reports say yes up to each day, shape (times, DAYS)."""
    mechanism: Any = reports_of.mechanism
    p, q = mechanism.chances
    shape = (times, DAYS)
    draws = chance.binomial(DEVICES, share, (times, 1) if world.are_same else shape)
    held = np.broadcast_to(draws, shape)
    return np.cumsum(chance.binomial(held, p) + chance.binomial(DEVICES - held, q), axis=1)


def difference(metric: Metric, yes: tuple[int, int], day: int, population: Population) -> Row:
    """Return the row of the difference of both arms after so many days."""
    n = DEVICES * day
    slices = [
        Slice(metric, {"arm": arm}, n, np.array([n - int(count), int(count)]), tuple(range(day)))
        for arm, count in zip((CONTROL, TREATED), yes, strict=True)
    ]
    options = {"dimension": "arm", "control": CONTROL, "population": population}
    return ask("lift", slices, options=options).rows[0]


def found(world: World, times: int = TIMES, looks: range = range(1, DAYS + 1)) -> Found:
    """Return how often a difference is seen, with the chance of its p-value at most ALPHA."""
    chance, one = np.random.default_rng(SEED), metric()

    def p_values(effect: float, days: range) -> Any:
        arms = [days_of(world, share, chance, one, times) for share in (SHARE, SHARE + effect)]
        return np.array(
            [
                [
                    difference(one, (a[day - 1], b[day - 1]), day, world.population).p_value
                    for day in days
                ]
                for a, b in zip(*arms, strict=True)
            ]
        )

    null = p_values(0.0, looks) <= ALPHA
    last = range(DAYS, DAYS + 1)
    real = p_values(smallest(world), last) <= ALPHA
    return Found(null.any(axis=1).mean(), null[:, -1].mean(), real.mean())


def smallest(world: World) -> float:
    """Return the effect that ``lift`` promises to see after all days, POWER of the time."""
    one = metric()
    mechanism: Any = one.mechanism
    p, q = mechanism.chances
    n = DEVICES * DAYS
    yes = round(n * (q + (p - q) * SHARE))
    row = difference(one, (yes, yes), DAYS, world.population)
    assert row.std_error is not None  # these are enough reports
    return smallest_seen(row.std_error, ALPHA)


def looks_table() -> str:
    """Return a row a world, and whether the bars are met."""
    rows, passed = [], True
    for world in WORLDS:
        one = found(world)
        cells = [f"{100 * part:.1f} %" for part in one]
        rows.append((_named(world), *cells, f"{100 * smallest(world):.2f} points"))
        if world.is_right:
            passed &= one.last <= ALPHA + SLACK
            passed &= one.seen >= LEAST_POWER or world.population == DRAWN
    heads = ("devices, `population`", "on any of 28 days", "on the last", "real effect", "of")
    return (
        f"{table(heads, rows)}\n\nBars: at most {ALPHA:.0%} on the last day, and {POWER:.0%} of "
        f"real effects, where what is taken for granted holds: {verdict(passed)}."
    )


def _named(world: World) -> str:
    return f"{'the same' if world.are_same else 'new'} each day, `{world.population}`"


def main() -> None:
    """Print what goes between the marks of docs/evidence/tables/looks.md, or put it there."""
    publish((PAGE, {"looks": looks_table()}))
