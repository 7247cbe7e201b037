"""The demo's table: true, estimate, interval, covered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TextIO

from client_sdk.privacy.wording import counted

from .core.text_tables import table_lines
from .rendering.numbers import number

_HEADINGS: Final = ("", "true", "estimate", "95 % interval", "covered")


def covered(metrics: Mapping[str, Any]) -> dict[str, int]:
    """Return how many of the intervals hold the true value, of how many."""
    rows = [row for metric in metrics.values() for row in metric["rows"]]
    numbers = [row for row in rows if row["value"] is not None]
    return {"yes": sum(_covers(row) for row in numbers), "of": len(numbers)}


def print_table(document: Mapping[str, Any], out: TextIO) -> None:
    """Print every metric's rows and the share of intervals that cover."""
    for name, metric in document["metrics"].items():
        print(f"\n{name} ({counted(metric['n'], 'report')})", file=out)
        rows = [_HEADINGS, *(_cells(row, metric["unit"]) for row in metric["rows"])]
        for line in table_lines(rows, "<>><<", indent="  "):
            print(line, file=out)
    count = document["covered"]
    share = 100 * count["yes"] / max(count["of"], 1)
    print(f"\n{count['yes']} of {count['of']} intervals cover ({share:.0f} %)", file=out)


def _cells(row: Mapping[str, Any], unit: str) -> tuple[str, ...]:
    if row["value"] is None:
        return row["item"], number(row["true"], unit, 0), "", "", "not enough reports"
    names = ("true", "value", "ci_low", "ci_high")
    half_width = (row["ci_high"] - row["ci_low"]) / 2
    true, value, low, high = (number(row[name], unit, half_width) for name in names)
    verdict = "yes" if _covers(row) else "NO"
    return row["item"], true, value, f"{low} … {high}", verdict


def _covers(row: Mapping[str, Any]) -> bool:
    return bool(row["ci_low"] <= row["true"] <= row["ci_high"])
