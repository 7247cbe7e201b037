"""Speed and size beside the peers: device, server, bytes and import, all in one process.

Run: ``make bench-peers``, about two minutes; ``make bench-peers ARGS=--write`` puts the tables into
docs/evidence/tables/peers.md.  It makes .venv-peers from
benchmarks/requirements.txt first.

Contestants take turns: a round is CALLS reports and one answer of each, and what is shown is the
median of ROUNDS rounds, in processor time.  A machine that is busy for a while slows all of them
down, so that their ratio stays.  Every first call, which may compile, is left out.  The peers are
imported when asked for: they live in an environment of their own.
"""

from __future__ import annotations

import gc
import math
import resource
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from statistics import median
from time import process_time
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.lib.page import PAGES, ROOT, mark, publish
from benchmarks.lib.page import table as markdown
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import Mechanism, load

EPSILON: Final = 1.0  # nats per report
OURS: Final = "hearsay"
ABSENT: Final = "–"  # a library without the mechanism


class Contestant(NamedTuple):
    """A mechanism of a library.  ``answer`` is None where the library leaves that to its user."""

    library: str
    mechanism: str
    report: Callable[[int], Any]
    answer: Callable[[list[Any]], Any] | None


def hearsay(name: str, items: int, np: Any) -> Contestant:
    """Return our mechanism *name*, drawing from the operating system."""
    mechanism, randomness = load(name)(str(EPSILON), items), system_randomness()

    def answer(reports: list[bytes]) -> Any:
        return _estimates(mechanism, reports, np)

    return Contestant(OURS, name, lambda item: mechanism.randomize(item, randomness), answer)


def pure_ldp(items: int) -> Iterator[Contestant]:
    """Yield the oracles of pure-ldp; its items begin at 1."""
    package = "pure_ldp.frequency_oracles"
    direct, unary, hashing, hadamard = (
        import_module(f"{package}.{name}")
        for name in ("direct_encoding", "unary_encoding", "local_hashing", "hadamard_response")
    )
    shape = (EPSILON, items)
    response = hadamard.HadamardResponseServer(*shape)
    client = hadamard.HadamardResponseClient(*shape, response.get_hash_funcs())
    pairs = {
        "grr": (direct.DEClient(*shape), direct.DEServer(*shape)),
        "hadamard": (client, response),
    }
    for name, best in (("sue", False), ("oue", True)):
        pairs[name] = unary.UEClient(*shape, use_oue=best), unary.UEServer(*shape, use_oue=best)
    pairs["olh"] = hashing.LHClient(*shape, use_olh=True), hashing.LHServer(*shape, use_olh=True)
    for name, (device, server) in pairs.items():

        def report(item: int, device: Any = device) -> Any:
            return device.privatise(item + 1)

        def answer(reports: list[Any], server: Any = server) -> Any:
            server.reset()
            server.aggregate_all(reports)
            return server.estimate_all(range(1, items + 1), suppress_warnings=True)

        yield Contestant("pure-ldp", name, report, answer)


def multi_freq_ldpy(items: int) -> Iterator[Contestant]:
    """Yield the oracles of multi-freq-ldpy; its answers are shares, cut off at 0 and rescaled."""
    package = "multi_freq_ldpy.pure_frequency_oracles"
    grr, hashing, subset, unary = (
        import_module(f"{package}.{name}") for name in ("GRR", "LH", "SS", "UE")
    )
    calls = {
        "grr": (grr.GRR_Client, grr.GRR_Aggregator_MI, (items, EPSILON), ()),
        "olh": (hashing.LH_Client, hashing.LH_Aggregator_MI, (items, EPSILON), (True,)),
        "oue": (unary.UE_Client, unary.UE_Aggregator_MI, (EPSILON,), (True,)),
        "subset_selection": (subset.SS_Client, subset.SS_Aggregator_MI, (items, EPSILON), ()),
        "sue": (unary.UE_Client, unary.UE_Aggregator_MI, (EPSILON,), (False,)),
    }
    for name, (client, aggregator, shape, best) in calls.items():

        def report(item: int, client: Any = client, best: Any = best) -> Any:
            return client(item, items, EPSILON, *best)

        def answer(reports: Any, server: Any = aggregator, more: Any = (*shape, *best)) -> Any:
            return server(reports, *more)

        yield Contestant("multi-freq-ldpy", name, report, answer)


def opendp(items: int) -> Iterator[Contestant]:
    """Yield randomized response, which OpenDP does not debias, and its bit vectors, which it does.

    Its bits of a one-hot vector are flipped with probability f/2 each: symmetric unary encoding.
    """
    dp, measurements = import_module("opendp.prelude"), import_module("opendp.measurements")
    dp.enable_features("contrib")
    truth = math.exp(EPSILON) / (math.exp(EPSILON) + items - 1)
    yield Contestant(
        "opendp", "grr", dp.m.make_randomized_response(list(range(items)), truth), None
    )
    f = 2 / (math.exp(EPSILON / 2) + 1)
    vectors = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
    flip = dp.m.make_randomized_response_bitvec(*vectors, f=f)

    def report(item: int) -> bytes:
        bits = bytearray((items + 7) // 8)
        bits[item // 8] = 1 << item % 8  # OpenDP counts from the lowest bit
        made: bytes = flip(bytes(bits))
        return made

    def answer(reports: list[bytes]) -> Any:
        return measurements.debias_randomized_response_bitvec(reports, f)

    yield Contestant("opendp", "sue", report, answer)


PEERS: Final = (pure_ldp, multi_freq_ldpy, opendp)


def size_of(report: Any) -> int:
    """Return the bytes of a report as its library holds it: 8 a number that is in no array."""
    if isinstance(report, bytes):
        return len(report)
    if hasattr(report, "nbytes"):
        return int(report.nbytes)
    return sum(map(size_of, report)) if isinstance(report, tuple | list) else 8


def _estimates(mechanism: Mechanism[Any], reports: list[bytes], np: Any) -> Any:
    column = mechanism.check(b"".join(reports), np).payloads
    return mechanism.debias(mechanism.tally(column, np), len(reports), np).totals


PAGE: Final = PAGES / "evidence" / "tables" / "peers.md"
MARK: Final = mark("peers")  # stands before and after the tables of both pages

SIZES: Final = (16, 128, 1_024)  # items
NAMES: Final = ("grr", "hadamard", "olh", "oue", "pgr", "subset_selection", "sue")
REPORTS: Final = 2_000  # that a server answers from
CALLS: Final = 200  # reports that a device makes in a round
ROUNDS: Final = 11
IMPORTS: Final = {
    OURS: "client_sdk.mechanisms.items.grr",  # the package alone loads nothing
    "multi-freq-ldpy": "multi_freq_ldpy.pure_frequency_oracles.GRR",
    "opendp": "opendp.prelude",
    "pure-ldp": "pure_ldp.frequency_oracles",
}


class Row(NamedTuple):
    """One contestant: µs a report on device and server (None: it has no server), and bytes."""

    mechanism: str
    items: int
    library: str
    device: float
    server: float | None
    size: int


def measure(contestants: list[Contestant], items: int) -> list[Row]:
    """Return a row a contestant, after ROUNDS rounds in which they take turns."""
    people = [i * i % items for i in range(REPORTS)]
    reports = [[c.report(person) for person in people] for c in contestants]
    devices: dict[int, list[float]] = defaultdict(list)
    servers: dict[int, list[float]] = defaultdict(list)
    for turn in range(ROUNDS + 1):
        for place, contestant in enumerate(contestants):
            made = _seconds(lambda c=contestant: [c.report(person) for person in people[:CALLS]])  # type: ignore[misc]  # bound now
            devices[place].append(made / CALLS * 1e6)
            if (answer := contestant.answer) is not None:
                took = _seconds(lambda a=answer, r=reports[place]: a(r))  # type: ignore[misc]  # bound now
                servers[place].append(took / REPORTS * 1e6)
        if turn == 0:
            devices.clear()  # first calls may compile
            servers.clear()
    return [
        Row(
            contestant.mechanism,
            items,
            contestant.library,
            median(devices[place]),
            median(servers[place]) if servers[place] else None,
            size_of(reports[place][0]),
        )
        for place, contestant in enumerate(contestants)
    ]


def rows() -> list[Row]:
    """Measure every mechanism at every size, ours beside the peers that have it."""
    found = []
    for items in SIZES:
        peers = [contestant for library in PEERS for contestant in library(items)]
        for name in NAMES:
            same = [peer for peer in peers if peer.mechanism == name]
            found += measure([hearsay(name, items, np), *same], items)
    return sorted(found)


def imports() -> dict[str, float]:
    """Return the milliseconds that each library adds to the start of an interpreter."""
    modules = {"": "sys", **IMPORTS}
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS + 1):
        for library, module in modules.items():
            command = [sys.executable, "-c", f"import {module}"]
            found[library].append(1e3 * _child_seconds(command))
    bare = median(found.pop("")[1:])  # the first start reads cold files
    return {library: median(times[1:]) - bare for library, times in found.items()}


def table(found: Iterable[Row]) -> str:
    """Return a line a mechanism and size; in bold where a peer is ahead of our same mechanism."""
    rows = list(found)
    libraries = sorted({row.library for row in rows})
    lines = []
    for mechanism, items in sorted({(row.mechanism, row.items) for row in rows}):
        same = (row for row in rows if (row.mechanism, row.items) == (mechanism, items))
        cells = {row.library: _cells(row, rows) for row in same}
        columns = zip(*(cells.get(library, [ABSENT] * 3) for library in libraries), strict=True)
        lines.append((mechanism, f"{items:,}", *map("; ".join, columns)))
    device = f"device µs: {'; '.join(libraries)}"
    return markdown(("mechanism", "items", device, "server µs", "bytes"), lines)


def import_table(found: dict[str, float]) -> str:
    """Return the import times as Markdown."""
    lines = ((library, f"{took:,.0f}") for library, took in sorted(found.items()))
    return markdown(("library", "import ms"), lines)


def parse(page: str) -> tuple[list[Row], dict[str, float]]:
    """Return the rows and import times that a page with ``table`` and ``import_table`` holds."""
    found, starts, libraries = [], {}, [""]
    for line in page.split(MARK)[1].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[1] == "items":
            libraries = cells[2].partition(": ")[2].split("; ")
        elif len(cells) == 5 and cells[1][0].isdigit():
            plain = [cell.replace("*", "").replace(",", "") for cell in cells]
            of = zip(libraries, *(cell.split("; ") for cell in plain[2:]), strict=True)
            found += [
                Row(cells[0], int(plain[1]), library, float(device), _number(server), int(size))
                for library, device, server, size in of
                if device != ABSENT
            ]
        elif len(cells) == 2 and cells[1][:1].isdigit():
            starts[cells[0]] = float(cells[1].replace(",", ""))
    return found, starts


def _number(text: str) -> float | None:
    return None if text == "none" else float(text)


def ahead(found: Iterable[Row]) -> tuple[int, int, int]:
    """Return how many peer rows are ahead of ours on the device, on the server, and in bytes."""
    rows = list(found)
    bold = [_cells(row, rows) for row in rows]
    device, server, size = (sum(cells[i].startswith("*") for cells in bold) for i in range(3))
    return device, server, size


def _cells(row: Row, rows: list[Row]) -> list[str]:
    """Return device, server and bytes, in bold where what is shown is below ours."""
    mine = next(r for r in rows if r[:3] == (row.mechanism, row.items, OURS))
    cells = []
    for number, own, form in (
        (row.device, mine.device, ".1f"),
        (row.server, mine.server, ".2f"),
        (row.size, mine.size, ",.0f"),
    ):
        shown = "none" if number is None else format(number, form)
        less = number is not None and own is not None and round(number, 2) < round(own, 2)
        bold = less and row.library != OURS and shown != format(own, form)
        cells.append(f"**{shown}**" if bold else shown)
    return cells


def _seconds(action: Callable[[], Any]) -> float:
    """Return the processor time that *action* takes, without the garbage of others."""
    gc.disable()
    start = process_time()
    action()
    took = process_time() - start
    gc.enable()
    return took


def _child_seconds(command: list[str]) -> float:
    """Return the processor time of a child."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Print the tables, write them with ``--write``; or say how to get the peers."""
    warnings.simplefilter("ignore")  # the peers warn of numpy's and numba's changes
    try:
        found = rows()
    except ModuleNotFoundError as missing:
        print(f"{missing.name} is not installed here: make bench-peers")
        return
    starts = imports()
    publish((PAGE, {"peers": f"{table(found)}\n\n{import_table(starts)}"}))
    device, server, size = ahead(found)
    print(
        f"peer rows ahead of ours: {device} on the device, {server} on the server, {size} in bytes"
    )
