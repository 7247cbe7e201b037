"""Where the mark of a row leads: to the page of its metric, of its segment, item or days alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from typing import Final

from flask import url_for

from client_sdk.registry.metric import Metric

from ...analytics.rows import ITEM, TIME, Row
from .choices import DATES, Choices, only

_DAYS: Final = {f"{TIME}:day": 1, f"{TIME}:week": 7, "1d": 1, "7d": 7, "28d": 28}


def leads(
    metric: Metric, choices: Choices, items: tuple[str, ...], stretch: str = TIME
) -> Callable[[Row], str]:
    """Return what gives a row of *metric* the address of the page that it leads to.

    It is "" for what leads nowhere else: a row of no segment, item or day, or of those chosen.

    Args: items: that can be chosen.  stretch: of time, that a point stands for.
    """
    page = url_for("metric.metric_page", name=metric.address)
    days = _DAYS.get(metric.every if stretch == TIME else stretch, 0)

    def address(row: Row) -> str:
        picked = choices
        for name, value in row.dimensions.items():
            if name in metric.segments and value in metric.segments[name]:
                others = [entry for entry in picked.segment if entry[0] != name]
                picked = replace(picked, segment=tuple(sorted([*others, (name, only(value))])))
            elif name == ITEM and value in items:
                picked = replace(picked, item=value)
            elif name == TIME and days:
                picked = _within(picked, value, days)
        return page + picked.address() if picked != choices else ""

    return address


def _within(choices: Choices, label: str, days: int) -> Choices:
    """Return *choices* of the *days* from the one named *label*, if it names one, or "a/b"."""
    first, _, last = label.partition("/")
    try:
        begin, end = date.fromisoformat(first), date.fromisoformat(last or first)
    except ValueError:
        return choices
    until = (end + timedelta(days=days - 1)).isoformat()
    return replace(choices, range=DATES, first=begin.isoformat(), last=until, against="")
