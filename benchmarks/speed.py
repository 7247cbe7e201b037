"""Speed of the mechanisms against their bars: randomize, tally and check, and decode.

Run: ``python -m benchmarks speed``.  The best of TRIES, one thread; a busy machine shows less.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from client_sdk.mechanisms import FrequencyOracle, Mechanism, load, names
from client_sdk.randomness import system_randomness

TRIES: Final = 5
CALLS: Final = 2_000  # of randomize
COLUMN: Final = 100_000  # reports of a column, of which DRAWN differ
DRAWN: Final = 1_000
DECODED: Final = 1 << 16  # items

RANDOMIZE_BARS: Final = {"grr": 3.0, "oue": 25.0, "sue": 25.0}  # microseconds; others below
OTHERS_BAR: Final = 20.0
TALLIES: Final = (("grr", 1_024, 40e6), ("pgr", 1_024, 40e6), ("oue", 128, 5e6))  # reports/s
DECODES: Final = ("hadamard", "pgr", "oue")
DECODE_BAR: Final = 0.1  # s


class Row(NamedTuple):
    """One measurement: *found* against *bar*, and whether it is met."""

    what: str
    found: str
    bar: str
    met: bool


def best(action: Callable[[], object]) -> float:
    """Return the least seconds of TRIES runs."""
    times = []
    for _ in range(TRIES):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def rows() -> Iterator[Row]:
    """Measure everything that has a bar."""
    for name in names():
        kind = load(name)
        if issubclass(kind, FrequencyOracle) and kind.automatic:
            yield _randomize(kind("1", 1_024), RANDOMIZE_BARS.get(name, OTHERS_BAR))
    for name, size, bar in TALLIES:
        mechanism = load(name)("1", size)
        column = _column(mechanism)
        for what, action in (("tally", mechanism.tally), ("check", mechanism.check)):
            speed = COLUMN / best(lambda action=action, column=column: action(column, np))  # type: ignore[misc]  # bound now
            least = bar if what == "tally" else 5e6
            label = f"{what} {name}, {size:,} items"
            yield Row(label, f"{speed / 1e6:.0f} M/s", f"≥ {least / 1e6:.0f} M/s", speed >= least)
    for name in DECODES:
        mechanism = load(name)("1", DECODED)
        tally = mechanism.tally(_column(mechanism, DRAWN), np)
        took = best(lambda m=mechanism, t=tally: m.debias(t, DRAWN, np))  # type: ignore[misc]  # bound now
        label = f"decode {name}, {DECODED:,} items"
        yield Row(label, f"{took * 1e3:.0f} ms", f"≤ {DECODE_BAR * 1e3:.0f} ms", took <= DECODE_BAR)


def _randomize(mechanism: Mechanism[Any], bar: float) -> Row:
    randomness = system_randomness()
    mechanism.randomize(0, randomness)

    def calls() -> None:
        for item in range(CALLS):
            mechanism.randomize(item % mechanism.domain_size, randomness)

    took = best(calls) / CALLS * 1e6
    label = f"randomize {mechanism.name}, {mechanism.domain_size:,} items"
    return Row(label, f"{took:.1f} µs", f"≤ {bar:.0f} µs", took <= bar)


def _column(mechanism: Mechanism[Any], reports: int = COLUMN) -> bytes:
    randomness = system_randomness()
    drawn = b"".join(mechanism.randomize(i % 97, randomness) for i in range(DRAWN))
    return drawn * (reports // DRAWN)


def main() -> None:
    """Print every measurement with its bar."""
    print("| what | measured | bar | |\n|---|---|---|---|")
    for row in rows():
        print(f"| {row.what} | {row.found} | {row.bar} | {'pass' if row.met else 'FAIL'} |")


if __name__ == "__main__":
    main()
