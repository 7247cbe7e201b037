"""What a registry costs a device: ε of a report, of a week, of a year and for life.  Pure."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final, NamedTuple

from client_sdk.epoch import DAY, LENGTHS, ONCE
from client_sdk.limits import DEFAULT_CAP_LIFETIME, DEFAULT_CAP_WEEK
from client_sdk.metric import Metric
from client_sdk.registry import Registry

WEEK: Final = 7  # days
YEAR: Final = 365  # days
_NANO: Final = 10**9


class Cost(NamedTuple):
    """The most that a device is charged for one metric, in nats; δ is per report."""

    metric: str
    longitudinal: str
    every: str
    report: Fraction  # the dearest one
    week: Fraction
    year: Fraction
    life: Fraction | None  # None: every report adds up, until a cap ends it
    delta: Fraction


def costs(registry: Registry) -> list[Cost]:
    """Return the cost of each metric for a device that reports in every window."""
    return [cost_of(metric) for metric in registry]


def cost_of(metric: Metric) -> Cost:
    """Return the cost of *metric* for a device that reports in every window."""
    report = Fraction(metric.most_nano, _NANO)
    life = metric.policy.spent_for_life() if metric.policy is not None else None
    if metric.every == ONCE:
        life = report if life is None else min(life, report)
    return Cost(
        metric.name,
        metric.longitudinal,
        metric.every,
        report,
        _within(metric, report, WEEK, life),
        _within(metric, report, YEAR, life),
        life,
        metric.mechanism.delta,
    )


def budget_lines(registry: Registry) -> Iterator[str]:
    """Yield the costs of *registry* as a table, and how they compare with the default caps."""
    rows = costs(registry)
    yield f"{registry.app}: the most that a device is charged, in ε"
    heads = ("metric", "asked again", "every", "a report", "a week", "a year", "for life")
    table = [heads, *(_cells(row) for row in rows)]
    widths = [max(len(cells[i]) for cells in table) for i in range(len(heads))]
    for cells in table:
        sides = [cell.ljust(width) for cell, width in zip(cells[:3], widths[:3], strict=True)]
        sides += [cell.rjust(width) for cell, width in zip(cells[3:], widths[3:], strict=True)]
        yield "  " + "  ".join(sides).rstrip()
    for row in rows:
        if row.delta:
            yield f"  {row.metric} also costs δ {float(row.delta):g} a report"
    week, year = sum(row.week for row in rows), sum(row.year for row in rows)
    yield f"all together {_decimal(week)} a week; the SDK's default cap is {DEFAULT_CAP_WEEK}"
    yield f"and {_decimal(year)} a year; its cap for life is {DEFAULT_CAP_LIFETIME}"


def _within(metric: Metric, report: Fraction, days: int, life: Fraction | None) -> Fraction:
    """Return what the windows of *days* days cost, as many as can begin in them."""
    length = LENGTHS.get(metric.every)
    spent = report if length is None else report * max(days * DAY // length, 1)
    return spent if life is None else min(spent, life)


def _cells(row: Cost) -> tuple[str, ...]:
    amounts = (_decimal(amount) for amount in (row.report, row.week, row.year))
    life = "no bound" if row.life is None else _decimal(row.life)
    return row.metric, row.longitudinal, row.every, *amounts, life


def _decimal(amount: Fraction | int) -> str:
    """Return *amount* rounded up to a thousandth: a cost is never stated too low."""
    thousandths = -(-amount * 1000 // 1)
    return f"{thousandths / 1000:,.10g}"
