"""A registry of aggregated metrics, and what is in the windows of a device."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from client_sdk.registry import Registry
from tests.support.device.device import metric_text, registry_of, rows

NUMBER: Final = 'type = "count"\nmin = 0\nmax = 100\nstep = 1\nunit = "files"\naggregate = "{}"'
ITEMS: Final = 'type = "category"\nvalues = ["a", "b", "c"]\naggregate = "{}"'


def number(name: str, aggregate: str, more: str = "", **changes: str) -> str:
    """Return an aggregated number as TOML."""
    return metric_text(name, f"{NUMBER.format(aggregate)}\n{more}", epsilon="0.01", **changes)


def items(name: str, aggregate: str, more: str = "", **changes: str) -> str:
    """Return an aggregated category as TOML."""
    return metric_text(name, f"{ITEMS.format(aggregate)}\n{more}", epsilon="0.01", **changes)


def boolean(name: str, more: str = "", **changes: str) -> str:
    """Return a boolean of which any counts, as TOML."""
    kind = f'type = "boolean"\naggregate = "any"\n{more}'
    return metric_text(name, kind, epsilon="0.01", **changes)


REGISTRY: Final = registry_of(
    number("edits", "sum"),
    number("peak", "max", every="1h"),
    items("tool", "most_common", every="7d"),
    items("mode", "last"),
)
SCHEDULED: Final[Registry] = registry_of(
    number("crashes", "sum", "otherwise = 0"), boolean("used", "otherwise = false", every="7d")
)


def open_windows(folder: Path) -> int:
    """Return how many windows are open in the database of *folder*."""
    return int(rows(folder, "SELECT count(*) FROM windows")[0][0])
