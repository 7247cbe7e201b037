"""A metric of every type, and a store with seeded reports of each."""

from __future__ import annotations

from functools import cache
from itertools import cycle, islice
from typing import Any, Final

import numpy as np

from client_sdk.core.epoch import DAY, epoch_of
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.core.cells import Cell, segment_text
from tests.support.crowds.uploads import COMMON, NOON
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.store.memory_storage import MemoryStorage

N: Final = 600  # reports of a metric in an epoch
EPOCHS: Final = 14
_COMMON: Final = COMMON.format(epsilon="2.0", min_reports=200, expires="2027-12-31")
FORMS: Final = {
    "category": 'type = "category"\nvalues = ["light", "dark", "sepia"]\nsegments = ["platform"]',
    "boolean": 'type = "boolean"\nsegments = ["platform", "arm"]',
    "number": (
        'type = "duration"\nmechanism = "square_wave"\nmin = 0\nmax = 1000\nstep = 10\n'
        'unit = "ms"\nsegments = ["version"]'
    ),
    "mean": (
        'type = "count"\nmechanism = "discrete_laplace"\nmin = 0\nmax = 20\nstep = 1\nunit = "x"'
    ),
    "set": 'type = "set"\nvalues = ["git", "vim", "lint"]',
    "funnel": 'type = "funnel"\nvalues = ["opened", "saved", "shared"]',
    "retention": 'type = "retention"\nperiods = ["week 0", "week 1", "week 2"]',
    "pair": 'type = "pair"\nparts = { sex = ["f", "m"], age = ["-40", "41-"] }',
    "location": 'type = "location"\nmin = [0, 40]\nmax = [4, 43]\ncells = [4, 3]',
    "key_value": (
        'type = "key_value"\nvalues = ["a", "b"]\nmin = 0\nmax = 8\nunit = "hours"\nmost = 2'
    ),
    "string": 'type = "string"\nlength = 4',
    "record": (
        'type = "record"\nlabel = ["stayed", "left"]\n'
        'attributes = { plan = ["free", "pro"], age = { edges = [30, 50] } }'
    ),
    "vector": 'type = "vector"\nvalues = ["speed", "size"]\nunit = "x"\nsegments = ["platform"]',
}
VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "category": ("light", "light", "dark", "sepia"),
    "boolean": (True, False),
    "number": (120, 300, 310, 450),
    "mean": (3, 8),
    "set": (["git"], ["git", "lint"]),
    "funnel": ("opened", "saved", "shared"),
    "retention": (["week 0"], ["week 0", "week 1"]),
    "pair": ({"sex": "f", "age": "-40"}, {"sex": "m", "age": "41-"}),
    "location": ((0.5, 40.5), (2.5, 42.5)),
    "key_value": ({"a": 2.0}, {"a": 3.0, "b": 5.0}),
    "string": ("oops", "oops", "ouch"),
    "record": (
        {"plan": "free", "age": 23, "label": "left"},
        {"plan": "free", "age": 41, "label": "stayed"},
        {"plan": "pro", "age": 65.5, "label": "stayed"},
    ),
    "vector": ((0.5, -0.25), (0.75, 0)),
}
NAMES: Final = tuple(FORMS)


def registry_text(every: str = "1d", without: frozenset[str] = frozenset()) -> str:
    """Return a registry with a metric of every type but those *without*, called as the type is."""
    head = (
        'schema = 1\napp = "types"\n[segments]\nplatform = ["linux", "mac"]\n'
        'arm = ["control", "new"]\nversion = ["1", "2"]\n'
    )
    return head + "".join(
        f'[metrics.{name}]\ntitle = "All of {name}"\nquestion = "What about {name}?"\n'
        f'every = "{every}"\n{form}\n{_COMMON}\n'
        for name, form in FORMS.items()
        if name not in without
    )


def fill(storage: MemoryStorage, every: str = "1d", epochs: int = EPOCHS) -> Registry:
    """Store reports of every metric in its last *epochs*, and return the registry."""
    registry = _registry(every)
    for metric in registry:
        increments = _increments(metric.name, every)
        for back in range(epochs):
            epoch = epoch_of(metric.every, NOON - back * DAY)
            storage.put(
                {Cell(metric.digest, epoch, text): pairs for text, pairs in increments.items()},
            )
    return registry


@cache
def _registry(every: str) -> Registry:
    return Registry.from_text(registry_text(every))


@cache
def _increments(name: str, every: str) -> dict[str, list[tuple[int, int]]]:
    """Return the increments of N reports in each segment."""
    metric = _registry(every).metric(name)
    randomness = SeededRandomness(metric.name.encode())
    payloads = b"".join(
        metric.mechanism.randomize(metric.encode(value), randomness)
        for value in islice(cycle(VALUES[metric.name]), N)
    )
    tally = metric.mechanism.tally(payloads, np)
    pairs = [(0, N), *((i + 1, int(n)) for i, n in enumerate(tally) if n)]
    return {segment_text(metric, segment): pairs for segment in _segments(metric)}


def _segments(metric: Metric) -> list[dict[str, str]]:
    found: list[dict[str, str]] = [{}]
    for name, values in metric.segments.items():
        found = [{**one, name: value} for one in found for value in values]
    return found
