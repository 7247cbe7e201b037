"""Speed of the mechanisms against their bars: randomize, tally and check, and decode.

Run: ``python -m benchmarks speed``.  The least processor time of many short tries, one thread: what
a busy machine gives to others is not counted, though it may still be slower than an idle one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from benchmarks.lib.page import show, verdict
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import ItemMechanism, Mechanism, load

TRIES: Final = 20
CALLS: Final = 100  # of randomize, in a try
SHORT_TRIES: Final = 100
COLUMN: Final = 100_000  # reports of a column, of which DRAWN differ
DRAWN: Final = 1_000
DECODED: Final = 1 << 16  # items

RANDOMIZE: Final = (  # items, or grid points; microseconds
    ("grr", 1_024, 3.0),
    ("hadamard", 1_024, 20.0),
    ("olh", 1_024, 20.0),
    ("pgr", 1_024, 20.0),
    ("subset_selection", 16, 20.0),
    ("subset_selection", 128, 20.0),
    ("subset_selection", 1_024, 20.0),
    ("discrete_laplace", 101, 20.0),
    ("oue", 1_024, 25.0),
    ("sue", 1_024, 25.0),
)
TALLIES: Final = (("grr", 1_024, 40e6), ("pgr", 1_024, 40e6), ("oue", 128, 5e6))  # reports/s
DECODES: Final = ("hadamard", "pgr", "oue")
DECODE_BAR: Final = 0.1  # s


def best(action: Callable[[], object], tries: int = TRIES) -> float:
    """Return the least seconds of processor time of *tries* runs."""
    times = []
    for _ in range(tries):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Measure everything that has a bar."""
    for name, size, bar in RANDOMIZE:
        yield _randomize(load(name)("1", size), bar)
    for name, size, bar in TALLIES:
        mechanism = load(name)("1", size)
        column = _column(mechanism)
        for what, action in (("tally", mechanism.tally), ("check", mechanism.check)):
            speed = COLUMN / best(lambda action=action, column=column: action(column, np))  # type: ignore[misc]  # bound now
            least = bar if what == "tally" else 5e6
            label = f"{what} {name}, {size:,} items"
            bars = f"{speed / 1e6:.0f} M/s", f"≥ {least / 1e6:.0f} M/s"
            yield label, *bars, verdict(speed >= least)
    for name in DECODES:
        mechanism = load(name)("1", DECODED)
        tally = mechanism.tally(_column(mechanism, DRAWN), np)
        took = best(lambda m=mechanism, t=tally: m.debias(t, DRAWN, np))  # type: ignore[misc]  # bound now
        label = f"decode {name}, {DECODED:,} items"
        bars = f"{took * 1e3:.0f} ms", f"≤ {DECODE_BAR * 1e3:.0f} ms"
        yield label, *bars, verdict(took <= DECODE_BAR)


def _randomize(mechanism: Mechanism[Any], bar: float) -> tuple[str, str, str, str]:
    randomness = system_randomness()
    mechanism.randomize(0, randomness)

    def calls() -> None:
        for item in range(CALLS):
            mechanism.randomize(item % mechanism.domain_size, randomness)

    took = best(calls, SHORT_TRIES) / CALLS * 1e6
    unit = "items" if isinstance(mechanism, ItemMechanism) else "grid points"
    label = f"randomize {mechanism.name}, {mechanism.domain_size:,} {unit}"
    return label, f"{took:.1f} µs", f"≤ {bar:.0f} µs", verdict(took <= bar)


def _column(mechanism: Mechanism[Any], reports: int = COLUMN) -> bytes:
    randomness = system_randomness()
    drawn = b"".join(mechanism.randomize(i % 97, randomness) for i in range(DRAWN))
    return drawn * (reports // DRAWN)


def main() -> None:
    """Print every measurement with its bar."""
    show(("what", "measured", "bar", ""), rows())
