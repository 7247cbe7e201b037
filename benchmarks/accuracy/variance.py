"""Whether the error of every mechanism is the one that its formula states.

Devices draw real reports from the system's entropy, over and over; the collector's own ``debias``
gives the estimates of every run, and from the reports of all runs together the variance that it
states of one.  A ratio of 1 says that squared errors are as large as stated; a bias would show too.

Run: ``python -m benchmarks variance``; some minutes.  Numbers are of devices that all hold the
same: reports of one bit cannot show how scattered devices are, and state the worst.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.accuracy.accuracy import population
from benchmarks.lib import page
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import (
    UNIT,
    ItemMechanism,
    KeyValueMechanism,
    Mechanism,
    Record,
    RecordMechanism,
    SetMechanism,
    VectorMechanism,
    load,
    names,
)
from client_sdk.mechanisms.composite.pem import PEM
from client_sdk.mechanisms.composite.sampled_item import SampledItem
from client_sdk.mechanisms.deployed._sketch import Sketch
from client_sdk.mechanisms.items.hierarchy import Hierarchy
from collector.analytics.text.sketches import shares_of, sketches_of

EPSILON: Final = "1"  # nats per report
ITEMS: Final = 16
POINTS: Final = 101  # of the grid of a number
HELD: Final = 3  # items of a set, or keys of a mapping
PLACE: Final = 30  # the grid point that every device holds
DEVICES: Final = 300  # a run
RUNS: Final = 400
NUMBER_RUNS: Final = 1_500  # a run gives one squared error then, instead of ITEMS
VECTOR_WORDS: Final = 16  # of a seed; the formulas are the same with more
COUNTED: Final = (
    ItemMechanism,
    SetMechanism,
    RecordMechanism,
    KeyValueMechanism,
    PEM,
)  # they count, not add up
STRING_BYTES: Final = 6
STRING_ROWS: Final = 4  # so that 300 devices are several a row and level


class Row(NamedTuple):
    """Squared errors over stated variances of a mechanism, and the standard error of that ratio."""

    name: str
    ratio: float
    error: float


# Collisions do not grow in proportion to n, nor what a finite codebook adds; samples differ
# in size from run to run.
UNEVEN: Final = (Sketch, SampledItem, Hierarchy, PEM, RecordMechanism, VectorMechanism)


def measure(name: str) -> Row:
    """Measure the errors of mechanism *name* over many runs."""
    mechanism, randomness = made(name), system_randomness()
    runs = RUNS if isinstance(mechanism, COUNTED) else NUMBER_RUNS
    values = [value_of(mechanism, place) for place in population(ITEMS, DEVICES)]
    squares, stated = [], []
    together = np.zeros(mechanism.tally_size, dtype=np.int64)
    for _ in range(runs):
        column = b"".join(mechanism.randomize(value, randomness) for value in values)
        tally = mechanism.tally(column, np)
        together += tally
        totals, variances = estimated(mechanism, tally)
        squares.append(float(((totals - truth(mechanism, values)) ** 2).sum()))
        stated.append(float(variances.sum()))
    scale = float(np.mean(stated))
    if not isinstance(mechanism, UNEVEN):
        scale = float(mechanism.debias(together, runs * DEVICES, np).variances.sum()) / runs
    spread = float(np.std(squares, ddof=1)) / math.sqrt(runs)
    return Row(name, float(np.mean(squares)) / scale, spread / scale)


def estimated(mechanism: Mechanism[Any], tally: Any) -> tuple[Any, Any]:
    """Return the totals of one run and their stated variances; of strings those of the shares."""
    if not isinstance(mechanism, PEM):
        return mechanism.debias(tally, DEVICES, np)
    texts = [text_of(place) for place in range(ITEMS)]
    found = shares_of(sketches_of(mechanism, tally, DEVICES), texts, 1.0)
    rows = np.array([(one.value, one.std_error) for one in found]).T * DEVICES
    return rows[0], rows[1] ** 2


def text_of(place: int) -> bytes:
    """Return a string."""
    return b"item%d" % place


def made(name: str) -> Mechanism[Any]:
    """Return mechanism *name* over ITEMS items, or POINTS grid points."""
    kind = load(name)
    own: dict[str, int] = {}
    if issubclass(kind, VectorMechanism):
        few = {"words": VECTOR_WORDS} if "words" in kind.parameter_names() else {}
        return kind(EPSILON, ITEMS, **few)
    if issubclass(kind, PEM):
        return kind(EPSILON, STRING_BYTES, rows=STRING_ROWS)
    if issubclass(kind, RecordMechanism):
        own["starts"] = 1 | 1 << ITEMS // 2
    if "pad" in kind.parameter_names():
        own["pad"] = HELD
    if issubclass(kind, KeyValueMechanism):
        own["top"] = POINTS - 1
    return kind(EPSILON, ITEMS if issubclass(kind, COUNTED) else POINTS, **own)


def value_of(mechanism: Mechanism[Any], place: int) -> Any:
    """Return what a device holds whose first item is *place*."""
    if isinstance(mechanism, ItemMechanism):
        return place
    if isinstance(mechanism, PEM):
        return text_of(place)
    if isinstance(mechanism, VectorMechanism):  # all alike: what is stated holds their spread, too
        return (UNIT // 2, *(0,) * (ITEMS - 1))
    if isinstance(mechanism, RecordMechanism):
        return Record(first + place % (ITEMS // 2) for first in (0, ITEMS // 2))
    held = [(place + i) % ITEMS for i in range(HELD)]
    if isinstance(mechanism, SetMechanism):
        return frozenset(held)
    return (
        dict.fromkeys(held, PLACE) if isinstance(mechanism, KeyValueMechanism) else Fraction(PLACE)
    )


def truth(mechanism: Mechanism[Any], values: list[Any]) -> Any:
    """Return the totals that *values* really have."""
    if isinstance(mechanism, VectorMechanism):
        return (np.array(values) / UNIT + 1).sum(axis=0) / 2
    if not isinstance(mechanism, COUNTED):
        return np.array([float(sum(values))])
    if isinstance(mechanism, PEM):
        return np.array([values.count(text_of(place)) for place in range(ITEMS)])
    held = [[value] if isinstance(value, int) else list(value) for value in values]
    counts = np.bincount([item for items in held for item in items], minlength=ITEMS)
    if isinstance(mechanism, KeyValueMechanism):
        return np.concatenate([counts, counts * PLACE])
    return counts


def main() -> None:
    """Print every ratio, and how far it is from 1."""
    rows = (
        (row.name, f"{row.ratio:.3f} ({row.error:.3f})", f"{(row.ratio - 1) / row.error:+.1f}")
        for row in map(measure, names())
    )
    page.show(("mechanism", "measured / stated", "standard errors from 1"), rows)
