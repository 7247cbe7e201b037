"""The demo's table: each answer beside the truth, and whether its interval covers that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TextIO

from client_sdk.privacy.wording import counted
from client_sdk.registry.contract import Registry

from ..core.text_tables import table_lines
from ..rendering.numbers import number
from .fleet import DEMO_REGISTRY

_HEADINGS: Final = ("", "true", "estimate", "95 % interval", "covered")
_MOST_ROWS: Final = 8  # of a metric that are printed


def covered(metrics: Mapping[str, Any]) -> dict[str, int]:
    """Return how many of the intervals hold the true value, of how many."""
    return _covered_of([row for metric in metrics.values() for row in metric["rows"]])


def _covered_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many of the intervals of *rows* hold the true value, of how many."""
    numbers = [row for row in rows if row["value"] is not None]
    return {"yes": sum(_covers(row) for row in numbers), "of": len(numbers)}


def print_table(
    document: Mapping[str, Any],
    out: TextIO,
    called: Callable[[str, str], str] = lambda metric, item: item,
) -> None:
    """Print every metric's rows, but for the smallest of many, and which part of all covers.

    Args: called: what an item of a metric is called.
    """
    for name, metric in document["metrics"].items():
        print(f"\n{name} ({counted(metric['n'], 'report')})", file=out)
        shown, rest = _greatest(metric["rows"])
        named = [{**row, "item": called(name, row["item"])} for row in shown]
        rows = [_HEADINGS, *(_cells(row, metric["unit"]) for row in named)]
        for line in table_lines(rows, "<>><<", indent="  "):
            print(line, file=out)
        if rest:
            print(
                f"  {len(rest)} smaller, of which {_covered_of(rest)['yes']} are covered", file=out
            )
    count = document["covered"]
    share = 100 * count["yes"] / max(count["of"], 1)
    print(f"\n{count['yes']} of {count['of']} intervals cover ({share:.0f} %)", file=out)


def _greatest(
    rows: Sequence[Mapping[str, Any]],
) -> tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]:
    """Return the _MOST_ROWS of *rows* whose truth is greatest, in their order, and the others."""
    if len(rows) <= _MOST_ROWS:
        return rows, ()
    least = sorted((row["true"] for row in rows), reverse=True)[_MOST_ROWS - 1]
    great = [row for row in rows if row["true"] >= least][:_MOST_ROWS]
    return great, [row for row in rows if row not in great]


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


def in_words(name: str, item: str) -> str:
    """Return what *item* of a metric of the demo is called: of a map its degrees."""
    domain = Registry.from_file(str(DEMO_REGISTRY)).metric(name).domain
    return domain.item_in_words(domain.labels.index(item)) if domain.coded else item
