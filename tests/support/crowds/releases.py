"""A registry of every kind of domain, and a store with reports of its metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.analytics.verb import Slice
from collector.core.cells import UNKNOWN, Cell, Source, segment_text
from tests.support.crowds.uploads import COMMON, epoch_today
from tests.support.enumeration.populations import reported
from tests.support.store.memory_storage import MemoryStorage

MIN_REPORTS: Final = 100
_COMMON: Final = COMMON.format(epsilon="4", min_reports=MIN_REPORTS, expires="2099-12-31")
_TABLES: Final = {
    "page": 'type = "category"\nvalues = ["home", "news", "shop"]\nsegments = ["platform"]\n'
    'every = "1d"',
    "dark": 'type = "boolean"\nevery = "once"',
    "plan": 'type = "pair"\nparts = { system = ["linux", "mac"], plan = ["free", "pro", "team"] }\n'
    'every = "once"',
    "age": 'type = "number"\nmechanism = "square_wave"\nmin = 17\nmax = 90\nstep = 1\n'
    'unit = "years"\nevery = "once"',
    "wait": 'type = "duration"\nmechanism = "square_wave"\nmin = 0\nmax = 10\nstep = 0.01\n'
    'unit = "s"\nevery = "once"',
    "place": 'type = "location"\nmin = [5, 47]\nmax = [15, 55]\ncells = [2, 3]\nevery = "once"',
    "tools": 'type = "set"\nvalues = ["a", "b", "c"]\nevery = "once"',
    "price": 'type = "number"\nmin = 0\nmax = 10\nstep = 1\nunit = "EUR"\nevery = "once"',
    "games": 'type = "key_value"\nvalues = ["go", "chess"]\nmin = 0\nmax = 9\nunit = "h"\n'
    'every = "once"',
}
REGISTRY_TEXT: Final = (
    'schema = 1\napp = "release"\n[segments]\nplatform = ["linux", "mac"]\n'
    + "\n".join(
        f'[metrics.{name}]\ntitle = "{name}"\nquestion = "Which {name}?"\n{table}\n{_COMMON}'
        for name, table in _TABLES.items()
    )
)
REGISTRY: Final = Registry.from_text(REGISTRY_TEXT)


def tally_of(metric: Metric, values: Iterable[object], seed: str = "") -> tuple[int, Any]:
    """Return how many reports the devices that hold *values* send, and their tally."""
    tally, n = reported(metric, values, f"{metric.name} {seed}")
    return n, tally


def slice_of(name: str, values: Iterable[object], **dimensions: str) -> Slice:
    """Return the slice of the reports of devices that hold *values*."""
    metric = REGISTRY.metric(name)
    n, tally = tally_of(metric, values, str(dimensions))
    return Slice(metric, dimensions, n, tally, (0,))


def fold(
    storage: Any,
    name: str,
    values: Iterable[object],
    segment: Mapping[str, str] | None = None,
    source: Source = UNKNOWN,
) -> None:
    """Put reports of devices that hold *values* into *storage*, of today's epoch."""
    metric = REGISTRY.metric(name)
    n, tally = tally_of(metric, values, str(segment))
    cell = Cell(metric.digest, epoch_today(metric), segment_text(metric, segment or {}, source))
    storage.put({cell: list(enumerate([n, *tally.tolist()]))})


def stored(*names: str, devices: int = 400) -> MemoryStorage:
    """Return a store with reports of the metrics *names*, of two platforms where they tell it."""
    storage = MemoryStorage()
    for name in names:
        if name == "page":
            for platform in ("linux", "mac"):
                fold(storage, name, values_of(name, devices), {"platform": platform})
        else:
            fold(storage, name, values_of(name, devices))
    return storage


def values_of(name: str, devices: int) -> list[object]:
    """Return what each of *devices* holds."""
    choices: dict[str, list[object]] = {
        "page": ["home", "home", "news", "shop"],
        "dark": [True, False, False],
        "plan": [{"system": s, "plan": p} for s in ("linux", "mac") for p in ("free", "pro")],
        "age": list(range(20, 70)),
        "wait": [i / 10 for i in range(40)],
        "place": [[6, 48], [14, 54], [14, 53]],
        "tools": [["a"], ["a", "b"], []],
        "price": [1, 2, 9],
        "games": [{"go": 3}, {"chess": 4, "go": 1}],
    }
    return [choices[name][i % len(choices[name])] for i in range(devices)]
