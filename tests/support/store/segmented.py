"""A fleet whose devices differ by segment: its reports as a store keeps them, and the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np

from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.core.cells import Cell, segment_text
from collector.storage.values import Index
from tests.support.store.stored import Tallies

PLATFORMS: Final = ("android", "ios", "web")
VERSIONS: Final = tuple(f"1.{i}" for i in range(20))
COUNTRIES: Final = tuple(f"c{i:02}" for i in range(30))
DIMENSIONS: Final = {"platform": PLATFORMS, "version": VERSIONS, "country": COUNTRIES}
SEGMENTS: Final = [
    dict(zip(DIMENSIONS, values, strict=True)) for values in product(*DIMENSIONS.values())
]
PAGES: Final = ("home", "news", "shop", "help")
OTHER: Final = "(other)"
_WEIGHTS: Final = (
    np.array([0.55, 0.3, 0.15]),
    1 / np.arange(1, len(VERSIONS) + 1),
    1 / np.arange(1, len(COUNTRIES) + 1),
)
_STABLE: Final = 2  # versions, the first ones, of which few devices crash
_RATES: Final = (0.05, 0.2)  # of the devices of a stable version that crash, and of another

_METRIC: Final = """
[metrics.{name}]
title = "{name}"
question = "Which is it?"
{type}
segments = ["platform", "version", "country"]
every = "1d"
epsilon = "1.0"
longitudinal = "fresh"
expected_devices = 100000
min_reports = 1000
owner = "tests"
expires = 2027-12-31
"""
TEXT: Final = "\n".join(
    [
        'schema = 1\napp = "fleet"\n\n[segments]',
        *(f"{name} = {list(values)}".replace("'", '"') for name, values in DIMENSIONS.items()),
        _METRIC.format(name="crashed", type='type = "boolean"'),
        _METRIC.format(
            name="page",
            type='type = "category"\nmechanism = "oue"\n'
            + f"values = {list(PAGES)}".replace("'", '"'),
        ),
    ]
)
REGISTRY: Final = Registry.from_text(TEXT)
Held: TypeAlias = Any  # int64, shape (segments, items): devices of each segment by what they hold


def fleet(devices: int, generator: np.random.Generator, metric: Metric) -> Held:
    """Return so many devices, drawn by chance, by segment and item.

    Who crashes depends on the version, and which page is first on all three dimensions.
    """
    weights = np.einsum("i,j,k->ijk", *_WEIGHTS).ravel()
    counts = generator.multinomial(devices, weights / weights.sum())
    return generator.multinomial(counts, _law(metric))


def _law(metric: Metric) -> Any:
    places = np.array(list(product(*(range(len(part)) for part in DIMENSIONS.values()))))
    if metric.name == "crashed":
        rates = np.array(_RATES)[(places[:, 1] >= _STABLE).astype(int)]
        return np.column_stack([1 - rates, rates])
    shares = 1.0 + (places @ np.array([5, 1, 2]))[:, None] % np.array([2, 3, 5, 7])
    return shares / shares.sum(axis=1, keepdims=True)


def perturbed(metric: Metric, held: Held, generator: np.random.Generator) -> Any:
    """Return the tally of each segment, from the law of one report.

    Of randomized response the others are equally likely; of unary encoding bits are independent.
    """
    channel: Any = metric.mechanism.channel  # type: ignore[attr-defined]  # grr and oue have one
    p, q = float(channel.p), float(channel.q)
    if metric.mechanism_name == "oue":
        others = held.sum(axis=1, keepdims=True) - held
        return generator.binomial(held, p) + generator.binomial(others, q)
    law = q + (p - q) * np.eye(held.shape[1])
    return sum(generator.multinomial(held[:, i], law[i]) for i in range(held.shape[1]))


def texts_of(metric: Metric, segments: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the segments as a store names them."""
    return [segment_text(metric, segment) for segment in segments]


def stored(metric: Metric, epoch: int, held: Held, tallies: Any, texts: Sequence[str]) -> Tallies:
    """Return what a store keeps of one epoch, of the segments with these *texts*."""
    counts = np.column_stack([held.sum(axis=1), tallies]).astype(">i8")
    return {
        Cell(metric.digest, epoch, text): [row.tobytes()]
        for text, row in zip(texts, counts, strict=True)
        if row[0]
    }


class TallyStore:
    """A store that has tallies only: all that questions read."""

    shards = 1

    def __init__(self) -> None:
        self._cells: Tallies = {}

    def put(self, tallies: Tallies) -> None:
        """Keep these in place of what was there of the same cells."""
        self._cells.update(tallies)

    def index(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Index:
        """Return which tallies of a metric there are."""
        wanted = set(epochs)
        cells = [cell for cell in self._cells if cell.metric == metric and cell.epoch in wanted]
        return Index(cells, sum(len(self._cells[cell]) for cell in cells), cells)

    def vectors(self, index: Index, width: int) -> Iterator[tuple[Cell, bytes]]:
        """Yield them."""
        for cell in index.places:
            for vector in self._cells[cell]:
                yield cell, vector

    def pruned(self, metrics: Sequence[bytes]) -> Mapping[bytes, int]:
        """Return what was deleted: nothing."""
        return {}

    def exclusions(self) -> Mapping[str, bytes]:
        """Return what was taken out: nothing."""
        return {}


def members(
    held: Held, names: Sequence[str], rows: Iterable[Sequence[str]]
) -> dict[tuple[str, ...], Any]:
    """Return the devices by item that each row stands for, every device in exactly one.

    Worked out from the labels alone: a segment is in the row with the most of its values, and of
    two with as many in that with the first ones.  Whoever asks holds it against the reports of the
    rows.
    """
    known = {tuple(row) for row in rows}
    ways = sorted(product((True, False), repeat=len(names)), key=lambda way: -sum(way))
    found: dict[tuple[str, ...], Any] = {row: 0 for row in known}
    for segment, devices in zip(SEGMENTS, held, strict=True):
        if devices.any():
            found[_row_of([segment[name] for name in names], ways, known)] += devices
    return found


def _row_of(
    values: Sequence[str], ways: Sequence[Sequence[bool]], known: set[tuple[str, ...]]
) -> tuple[str, ...]:
    return next(row for row in _candidates(values, ways) if row in known)


def _candidates(values: Sequence[str], ways: Sequence[Sequence[bool]]) -> Iterator[tuple[str, ...]]:
    for way in ways:
        yield tuple(value if kept else OTHER for value, kept in zip(values, way, strict=True))


def reports_of(rows: Iterable[Mapping[str, Any]], names: Sequence[str]) -> Counter[tuple[str, ...]]:
    """Return the reports of the rows of JSON answers by the values of *names*, each once."""
    return Counter(
        {tuple(row["dimensions"][name] for name in names): int(row["n"]) for row in rows}
    )
