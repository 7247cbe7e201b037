"""Where the mark of a row leads: to the page of its metric, of its segment, item or days alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from flask import url_for
from msgspec import structs

from client_sdk.privacy.wording import counted
from client_sdk.registry.metric import Metric

from ...analytics.rows import ITEM, TIME, Period, Row
from ...query import Answer, Query, options
from .choices import DATES, Choices, only

_DAYS: Final = {f"{TIME}:day": 1, f"{TIME}:week": 7, "1d": 1, "7d": 7, "28d": 28}


@dataclass(frozen=True)
class Lead:
    """Gives a row of a metric the address of the page that it leads to.

    It is "" for what leads nowhere else: a row of no segment, item or day, or of those chosen.
    """

    page: str
    choices: Choices
    items: tuple[str, ...]  # that can be chosen
    segments: Mapping[str, tuple[str, ...]]
    days: int  # that a point stands for; 0 for no such stretch

    def __call__(self, row: Row) -> str:
        """Return the address that *row* leads to."""
        picked = self.choices
        for name, value in row.dimensions.items():
            if name in self.segments and value in self.segments[name]:
                others = [entry for entry in picked.segment if entry[0] != name]
                picked = replace(picked, segment=tuple(sorted([*others, (name, only(value))])))
            elif name == ITEM and value in self.items:
                picked = replace(picked, item=value)
            elif name == TIME and self.days:
                picked = _within(picked, value, self.days)
        return self.page + picked.address() if picked != self.choices else ""


def leads(metric: Metric, choices: Choices, items: tuple[str, ...], stretch: str = TIME) -> Lead:
    """Return what gives a row of *metric* the address of the page that it leads to.

    Args: items: that can be chosen.  stretch: of time, that a point stands for.
    """
    page = url_for("metric.metric_page", name=metric.address)
    days = _DAYS.get(metric.every if stretch == TIME else stretch, 0)
    return Lead(page, choices, items, metric.segments, days)


def _within(choices: Choices, label: str, days: int) -> Choices:
    """Return *choices* of the *days* from the one named *label*, if it names one, or "a/b"."""
    period = Period.read(label)
    if period is None or period.days is None:
        return choices
    first, until = period.days[0], period.days[1] + timedelta(days=days - 1)
    ends = first.isoformat(), until.isoformat()
    return replace(choices, range=DATES, first=ends[0], last=ends[1], against="")


def earlier_questions(query: Query, reply: Answer) -> list[tuple[str, str]]:
    """Return what asks for the reports of each earlier definition alone: words and ``q``."""
    basis, *others = reply.meta.metrics
    return [
        (
            f"Only the {counted(definition.n, 'report')} of the earlier {definition.mechanism},"
            f" ε {definition.epsilon_per_report:.2g}",
            options.as_json(structs.replace(query, definition=definition.digest)),
        )
        for definition in basis.definitions[1:]
        if not others
    ]
