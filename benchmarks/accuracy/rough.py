"""How often intervals of distributions hold, of rough populations and of smooth ones.

Run: ``python -m benchmarks rough``; six minutes.  With ``--write`` the tables go into
docs/evidence/tables/rough.md, between their marks.  Every answer is asked of a verb, its tally
drawn anew from the exact law of the mechanism, from a fixed seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.lib.page import PAGES, named_once, publish, table, verdict
from benchmarks.lib.tallies import law_of
from client_sdk.mechanisms import DistributionMechanism
from client_sdk.registry import Registry
from client_sdk.registry.keys import ANY, GRID, SMOOTH
from client_sdk.registry.metric import Metric
from collector.analytics.rows import GOOD
from collector.analytics.verb import Slice
from tests.support.crowds.asking import ask
from tests.support.device.registries import NUMBER, file_with

LEVELS: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
SEED: Final = 20261122


@dataclass(frozen=True)
class Kind:
    """Devices by the grid place of their number, and a range whose share is asked for."""

    name: str
    low: int
    step: int
    held: Any
    part: tuple[int, int]
    shape: str = ANY

    @property
    def numbers(self) -> Any:
        """The number of each grid place."""
        return self.low + self.step * np.arange(self.held.size)

    def metric(self, epsilon: str, shape: str) -> Metric:
        """Return the metric that is asked about them."""
        ends = {"min": self.low, "max": int(self.numbers[-1]), "step": self.step}
        changes = {key: str(number) for key, number in ends.items()}
        text = file_with(
            NUMBER,
            every='"1d"',
            mechanism='"square_wave"',
            epsilon=f'"{epsilon}"',
            shape=f'"{shape}"',
            **changes,
        )
        return Registry.from_text(text).metric("m")


def rough(devices: int) -> list[Kind]:
    """Return populations with atoms, gaps, whole numbers and spikes."""
    random = np.random.default_rng(SEED)
    part = [round(share * devices) for share in (0.08, 0.1, 0.15, 0.3, 0.35, 0.6)]
    debts, none, same, free, busy, tens = part

    def bell(middle: float, deviation: float, n: int) -> Any:
        return random.normal(middle, deviation, n)

    def joined(*parts: Any) -> Any:
        return np.concatenate(parts)

    balance = joined(
        -10 * random.integers(1, 80, debts),
        np.zeros(none),
        10 + random.exponential(1_300, devices - debts - none) // 10 * 10,
    )
    preset = joined(np.full(same, 370), bell(400, 130, devices - same))
    scores = bell(45, 20, devices)
    scores[:tens] = np.rint(scores[:tens] / 10) * 10
    paid = joined(np.zeros(free), random.lognormal(4.6, 1.1, devices - free))
    spike = joined(bell(250, 4, busy), bell(500, 200, devices - busy))
    return [
        _kind("balances, 10 % at 0", balance, (-2_000, 8_000, 10), (0, 0)),
        _kind("a preset, 15 % at it", preset, (0, 1_000, 1), (370, 370)),
        _kind("whole numbers", bell(40.9, 10.6, devices), (18, 95, 1), (30, 49), GRID),
        _kind("counts up to 20", random.poisson(3, devices), (0, 20, 1), (1, 2), GRID),
        _kind("rounded to tens", scores, (0, 100, 1), (41, 60)),
        _kind("money, 30 % at 0", paid, (0, 5_000, 1), (0, 0)),
        _kind("long tail", random.lognormal(5, 1, devices), (0, 3_000, 1), (0, 99)),
        _kind("narrow spike", spike, (0, 1_000, 1), (240, 260)),
    ]


def gap(devices: int, level: float, surplus: int) -> Kind:
    """Return devices at 30 and at 70, of which the first are *surplus* more than *level*."""
    held = np.zeros(101, dtype=np.int64)
    held[30] = round(level * devices) + surplus
    held[70] = devices - held[30]
    return Kind(f"p{100 * level:.0f}", 0, 1, held, (30, 70), GRID)


def smooth(devices: int) -> list[Kind]:
    """Return populations as those that ``shape = "smooth"`` is for."""
    random = np.random.default_rng(SEED)
    first = random.random(devices) < 0.58
    peaks = random.normal(np.where(first, 300, 720), np.where(first, 80, 70))
    waits = np.where(random.random(devices) < 0.4, 0, random.exponential(200, devices))
    return [
        _kind("one hump", 1_000 * random.beta(2, 5, devices), (0, 1_000, 1), (100, 299)),
        _kind("two humps", peaks, (0, 1_000, 1), (200, 499)),
        _kind("waits, 40 % at the lower end", waits, (0, 1_000, 1), (100, 299)),
    ]


def _kind(
    name: str, numbers: Any, grid: tuple[int, int, int], part: tuple[int, int], shape: str = ANY
) -> Kind:
    low, high, step = grid
    places = np.rint((np.clip(numbers, low, high) - low) / step).astype(int)
    return Kind(
        name, low, step, np.bincount(places, minlength=(high - low) // step + 1), part, shape
    )


class Held(NamedTuple):
    """Of many answers to one question, row by row."""

    rates: Any  # how often each interval held, shape (rows,)
    widths: Any  # its mean half-width, in the unit of the row
    good: int  # rows that are called good
    misled: int  # of them, those whose interval does not hold


def quantiles(
    kind: Kind,
    epsilon: str,
    times: int,
    shape: str | None = None,
    levels: Sequence[float] = LEVELS,
) -> Held:
    """Ask for quantiles, whose truth is the least number up to which so many devices are.

    Args: shape: what is declared of the numbers, by default what holds.
    """
    up_to = np.cumsum(kind.held) / kind.held.sum()
    truth = kind.numbers[np.searchsorted(up_to + 1e-12, levels)]
    return _asked(kind, epsilon, times, shape, "quantile", {"levels": list(levels)}, truth)


def parts(kind: Kind, epsilon: str, times: int, shape: str | None = None) -> Held:
    """Ask for the range of the kind, the shares up to both its ends, and eight buckets."""
    places = [(end - kind.low) // kind.step for end in kind.part]
    up_to = np.concatenate([[0], np.cumsum(kind.held)]) / kind.held.sum()
    first, last = places
    share = [up_to[last + 1] - up_to[first]]
    ends = sorted(set(kind.part))
    shares = [up_to[place + 1] for place in sorted(set(places))]
    edges = np.linspace(0, kind.held.size - 1, 9)
    at = np.concatenate([[0], up_to[np.floor(edges[1:] + 1e-9).astype(int) + 1]])
    asked: list[tuple[str, Mapping[str, Any], Any]] = [
        ("range", {"low": kind.part[0], "high": kind.part[1]}, share),
        ("cdf", {"points": ends}, shares),
        ("histogram", {"buckets": 8}, np.diff(at)),
    ]
    found = [
        _asked(kind, epsilon, times, shape, verb, options, np.array(truth))
        for verb, options, truth in asked
    ]
    rates, widths = (np.concatenate([one[i] for one in found]) for i in (0, 1))
    return Held(rates, widths, *(sum(one[i] for one in found) for i in (2, 3)))


def _asked(
    kind: Kind,
    epsilon: str,
    times: int,
    shape: str | None,
    verb: str,
    options: Mapping[str, Any],
    truth: Any,
) -> Held:
    metric = kind.metric(epsilon, shape or kind.shape)
    unit = max(np.abs(kind.numbers).max(), 1)
    rates, widths, good, misled = np.zeros(len(truth)), np.zeros(len(truth)), 0, 0
    for tally in tallies(metric, kind.held, times):
        rows = ask(verb, [Slice(metric, {}, int(tally.sum()), tally, (0,))], options=options).rows
        low, high = np.array([(row.ci_low, row.ci_high) for row in rows], dtype=float).T
        inside = (low - 1e-9 * unit <= truth) & (truth <= high + 1e-9 * unit)
        called = np.array([row.quality == GOOD for row in rows])
        rates, widths = rates + inside / times, widths + (high - low) / (2 * times)
        good, misled = good + int(called.sum()), misled + int((called & ~inside).sum())
    return Held(rates, widths, good, misled)


def tallies(metric: Metric, held: Any, times: int) -> Any:
    """Return tallies of one report of each device, each number rounded to a bin by chance."""
    mechanism = metric.mechanism
    assert isinstance(mechanism, DistributionMechanism)
    law = law_of(mechanism)
    random = np.random.default_rng(SEED)
    place = np.arange(held.size) * (mechanism.bins - 1) / mechanism.top
    below = np.minimum(np.floor(place + 1e-12), mechanism.bins - 2).astype(int)
    up = random.binomial(held, np.clip(place - below, 0, 1), (times, held.size))
    bins = np.zeros((times, mechanism.bins), dtype=np.int64)
    np.add.at(bins.T, below, (held - up).T)
    np.add.at(bins.T, below + 1, up.T)
    return law.drawn(bins, times, random)


PAGE: Final = PAGES / "evidence" / "tables" / "rough.md"
QUANTILES: Final = [f"p{100 * level:.0f}" for level in LEVELS]
EPSILONS: Final = ("0.5", "1", "2", "4")
DEVICES: Final = 45_000
FEW: Final = 2_000
TIMES: Final = 300  # answers of quantiles
OF_PARTS: Final = 120  # of ranges, cumulative shares and histograms
AT_GAPS: Final = 500  # of a quantile at one edge of a gap
SURPLUS: Final = 10  # devices at an edge beyond the level: far fewer than noise can show
BAR: Final = 94.0  # percent


def main() -> None:
    """Print what goes between the marks of docs/evidence/tables/rough.md, or put it there."""
    publish((PAGE, {"rough": rough_table(), "gaps": gap_table(), "price": price_table()}))


def rough_table() -> str:
    """Return a row a population and epsilon, and the count of what misses the bar."""
    rows, least, good, misled = [], [], 0, 0
    for kind in rough(DEVICES):
        width = float(kind.numbers[-1] - kind.numbers[0])
        for epsilon in EPSILONS:
            found, shares = quantiles(kind, epsilon, TIMES), parts(kind, epsilon, OF_PARTS)
            declared = quantiles(kind, epsilon, TIMES // 4, SMOOTH)
            cells = (*_cells(found, width), _two(shares), _two(declared))
            rows.append((f"{kind.name}, `{kind.shape}`", epsilon, *cells))
            least += [found.rates.min(), shares.rates.min()]
            good, misled = good + found.good + shares.good, misled + found.misled + shares.misled
    few = [quantiles(kind, e, TIMES // 2).rates for kind in rough(FEW) for e in EPSILONS]
    heads = ("population, shape", "ε", *QUANTILES, "parts: all, least", "declared smooth")
    return (
        f"{table(heads, named_once(rows, 1))}\n\n"
        f"The least of all rates is {100 * min(least):.1f} %. "
        f"Of {good:,} rows that are called good, {misled:,} miss. "
        f"With {FEW:,} devices the least rate of a quantile is "
        f"{100 * np.min(few):.1f} %, the mean {100 * np.mean(few):.1f} %."
    )


def gap_table() -> str:
    """Return a row a number of devices and epsilon: quantiles at either edge of a gap, and both."""
    rows, least = [], 100.0
    for devices in (5_000, 45_000, 500_000):
        for epsilon in EPSILONS:
            cells = []
            for shape in (GRID, ANY):
                for level in (0.5, 0.9):
                    found = [
                        quantiles(gap(devices, level, side), epsilon, AT_GAPS, shape, [level])
                        for side in (SURPLUS, -SURPLUS)
                    ]
                    rate = 100 * float(np.mean([one.rates for one in found]))
                    half = float(np.mean([one.widths for one in found]))
                    least = min(least, rate)
                    cells.append(f"{rate:.1f} ±{half:.1f}")
            rows.append((f"{devices:,}", epsilon, *cells))
    heads = ("devices", "ε", "`grid`: p50", "p90", "`any`: p50", "p90")
    passed = verdict(least >= BAR)
    return f"{table(heads, rows)}\n\nBar: {BAR:.0f} % in every cell; least {least:.1f} %: {passed}."


def price_table() -> str:
    """Return a row a smooth population and epsilon: undeclared and, after it, declared smooth."""
    rows = []
    for kind in smooth(DEVICES):
        width = float(kind.numbers[-1] - kind.numbers[0])
        for epsilon in EPSILONS:
            both = (quantiles(kind, epsilon, TIMES, shape) for shape in (kind.shape, SMOOTH))
            cells = zip(*(_cells(one, width) for one in both), strict=True)
            rows.append((kind.name, epsilon, *map("; ".join, cells)))
    return table(("population", "ε", *QUANTILES), named_once(rows, 1))


def _cells(found: Held, width: float) -> list[str]:
    """Return the rate and the half-width in percent of the range, a cell a quantile."""
    return [
        f"{100 * rate:.1f} ±{100 * half / width:.2f}"
        for rate, half in zip(found.rates, found.widths, strict=True)
    ]


def _two(found: Held) -> str:
    return f"{100 * np.mean(found.rates):.1f}, {100 * np.min(found.rates):.1f}"
