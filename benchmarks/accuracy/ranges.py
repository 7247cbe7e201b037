"""What a hierarchy is worth: errors of ranges of ordered items, beside what ``auto`` takes.

Run: ``python -m benchmarks ranges``; a test holds docs/evidence/tables/ranges.md to it.
Nothing is drawn: errors are those that the laws state, for devices that hold all items alike.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, Final

import numpy as np

from benchmarks.lib import page
from client_sdk.mechanisms import ItemMechanism, Mechanism
from client_sdk.mechanisms.items.hierarchy import Hierarchy
from client_sdk.mechanisms.items.pgr import PGR, points
from client_sdk.registry.keys import AUTO
from client_sdk.registry.selection import choose
from collector.analytics.sums import Shares
from collector.estimation.estimate import normal_quantile

DEVICES: Final = 100_000
EPSILONS: Final = ("0.5", "1", "2", "4")
SIZES: Final = (16, 64, 256, 1_024)
ALPHA: Final = 0.05
THRESHOLDS: Final = 32  # at most; a mean over more is the same to two digits


def half_width(mechanism: Mechanism[Any]) -> float:
    """Return the root mean square half-width of the share up to an item, in points."""
    assert isinstance(mechanism, ItemMechanism)
    items = mechanism.domain_size
    steps = min(items - 1, THRESHOLDS)
    ends = np.arange(1, steps + 1) * items // (steps + 1)
    weights = (np.arange(items) < ends[:, None]).astype(float)
    tally = expected(mechanism)
    shares = Shares(mechanism, tally, DEVICES, np.full(items, 1 / items))
    return 100 * normal_quantile(ALPHA) * sqrt(shares.variances(weights).mean())


def expected(mechanism: ItemMechanism) -> Any:
    """Return the tally to expect, as far as variances look at it."""
    if isinstance(mechanism, Hierarchy):
        sizes = np.diff(mechanism.starts)
        return np.repeat(DEVICES / len(sizes) / sizes, sizes)
    if isinstance(mechanism, PGR):
        items, truth = mechanism.domain_size, float(mechanism.channel.p)
        (met,) = mechanism.report_sums(np.ones((1, items)), np)
        near = points(mechanism.order, mechanism.dimension - 1)  # reports orthogonal to an item
        told, other = truth / near, (1 - truth) / (mechanism.points - near)
        return DEVICES / items * (told * met + other * (items - met))
    return np.zeros(mechanism.tally_size)


def table() -> str:
    """Return the table as Markdown."""
    errors = "up to an item", "one item"
    heads = ("ε", "items", "`auto` takes", *errors, "`hierarchy`", *errors)
    rows = []
    z = 100 * normal_quantile(ALPHA)
    for epsilon in EPSILONS:
        for size in SIZES:
            name, flat = choose(AUTO, ItemMechanism, epsilon, size)
            tree = Hierarchy(epsilon, size)
            found = [
                f"±{number:.2f}"
                for one in (flat, tree)
                for number in (half_width(one), z * one.predict(DEVICES))
            ]
            shape = f"fanout {tree.fanout}"
            rows.append((epsilon, f"{size:,}", f"`{name}`", *found[:2], shape, *found[2:]))
    return page.table(heads, rows)


def main() -> None:
    """Print the table."""
    print(table())
