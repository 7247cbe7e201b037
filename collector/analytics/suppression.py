"""Which numbers are withheld: of too few reports, or not precise enough for their decision.  Pure.

*Too few reports.*  Everything that was asked for together is merged first; only then are sizes
looked at, and only those of the groups asked for.  Groups with too few reports become one,
*(other)*: along the dimension that was asked last within one value of each before it, and if they
are still too few along the one before.  So every report is in some row.  Stretches of time are
never merged.  A group is small where no stretch of it has enough reports, so that *(other)* is
about the same groups in every stretch.

*Not precise enough.*  A registry may declare the half-width of the 95 % interval that a metric's
decision needs.  Where an estimate has not got it, the row has no number but the reason, and says
how many reports are missing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import TypeAlias

from client_sdk.registry.metric import Metric

from ..core.remarks import Code, Remark, remark
from ..estimation.estimate import normal_quantile
from ..estimation.precision import ALPHA, in_words, scale_of, still_needed, wished
from .rows import TIME, Row, empty_row
from .verb import OTHER, Slice, in_order, merged


def shortage(metric: Metric, n: int) -> Remark:
    """Return why *n* reports, fewer than ``min_reports``, give no number, and what is missing."""
    missing = _missing(metric, n)
    return remark(Code.TOO_FEW, n=n, least=metric.min_reports, missing=missing)


def suppress_imprecise(rows: Sequence[Row], metric: Metric) -> tuple[Row, ...]:
    """Return *rows* of estimates of *metric*, without the numbers that miss its declared need.

    Differences, and rows in another unit than that of the need, stay as they are.
    """
    if metric.need is None:
        return tuple(rows)
    need, unit = float(metric.need), scale_of(metric).unit
    return tuple(
        _refused(row, metric, need)
        if row.unit == unit and row.p_value is None and _half_width(row) > need
        else row
        for row in rows
    )


def _half_width(row: Row) -> float:
    """Return the half-width of the 95 % interval, whatever level the row has; 0 of no number."""
    return normal_quantile(ALPHA) * (row.std_error or 0.0)


def _refused(row: Row, metric: Metric, need: float) -> Row:
    """Return the reason in place of the number."""
    width = _half_width(row)
    part = width / scale_of(metric).whole
    planned = still_needed(metric, row.n)
    missing = None if planned is None else max(planned, ceil(row.n * (width / need) ** 2) - row.n)
    said = {"width": in_words(metric, part), "missing": _missing(metric, row.n, missing)}
    return empty_row(
        dimensions=row.dimensions,
        n=row.n,
        alpha=row.alpha,
        unit=row.unit,
        refusal=remark(Code.NOT_PRECISE, **said),
        simultaneous=row.simultaneous,
        is_open=row.is_open,
        notes=row.notes,
    )


def _missing(metric: Metric, n: int, more: int | None = None) -> str:
    """Return how many *more* reports the need takes, or those that the plan says."""
    wish = in_words(metric, wished(metric))
    missing = still_needed(metric, n) if more is None else more
    if missing is None:
        return f"no number of reports gives {wish}"
    return f"{wish} takes {missing:,} more"


Group: TypeAlias = tuple[str, ...]  # the values of all dimensions but time
_Sizes: TypeAlias = Counter[str]  # reports by stretch of time


def merge_small(
    definitions: Sequence[Sequence[Slice]], metric: Metric, *, together: bool
) -> tuple[list[list[Slice]], list[Remark]]:
    """Return the slices of each definition of *metric* as rows tell them, and what to say of it.

    Reports under all the definitions count together.

    Args: together: small groups become *(other)*; otherwise each keeps a row without a number.
    """
    names = _names(definitions, metric.min_reports) if together else {}
    renamed = [_renamed(slices, names) for slices in definitions]
    totals = Counter[Group]()
    for part in (part for slices in renamed for part in slices):
        totals[tuple(part.dimensions.values())] += part.n
    complete = [
        [_judged(part, metric, totals[tuple(part.dimensions.values())]) for part in slices]
        for slices in renamed
    ]
    notes = _merged(names, metric) if together else _withheld(complete, metric)
    return complete, list(notes)


def too_few(metric: Metric, n: int) -> Remark | None:
    """Return why *n* reports of *metric* give no number, None if they do."""
    return shortage(metric, n) if n < metric.min_reports else None


def _judged(part: Slice, metric: Metric, n: int) -> Slice:
    refusal = too_few(metric, n)
    return part if refusal == part.refusal else replace(part, refusal=refusal)


def _group(part: Slice) -> Group:
    return tuple(value for name, value in part.dimensions.items() if name != TIME)


def _names(definitions: Sequence[Sequence[Slice]], least: int) -> dict[Group, Group]:
    """Return the group that each small one becomes part of, where it is not the only one."""
    sizes: dict[Group, _Sizes] = defaultdict(Counter)
    for part in (part for slices in definitions for part in slices):
        sizes[_group(part)][part.dimensions.get(TIME, "")] += part.n
    members: dict[Group, list[Group]] = {group: [group] for group in sizes}
    depth = max(map(len, sizes), default=0)
    for length in reversed(range(depth)):
        for few in _small(sizes, least, length):
            name = tuple(
                values[0] if len(set(values)) == 1 else OTHER for values in zip(*few, strict=True)
            )
            joined = [member for group in few for member in members.pop(group)]
            counts = sum((sizes.pop(group) for group in few), _Sizes())
            members[name] = members.pop(name, []) + joined
            sizes[name] = sizes.pop(name, _Sizes()) + counts
    return {
        member: name for name, groups in members.items() if len(groups) > 1 for member in groups
    }


def _small(sizes: Mapping[Group, _Sizes], least: int, length: int) -> list[list[Group]]:
    """Return the small groups that share their first *length* values, where there are several."""
    alike: dict[Group, list[Group]] = defaultdict(list)
    for group, counts in sizes.items():
        if max(counts.values()) < least:
            alike[group[:length]].append(group)
    return [groups for groups in alike.values() if len(groups) > 1]


def _renamed(slices: Sequence[Slice], names: Mapping[Group, Group]) -> list[Slice]:
    """Return *slices* with those of one name as one."""
    if not names:
        return list(slices)
    parts: dict[Group, list[Slice]] = defaultdict(list)
    for part in slices:
        values = iter(names.get(_group(part), _group(part)))
        place = (text if name == TIME else next(values) for name, text in part.dimensions.items())
        parts[tuple(place)].append(part)
    return in_order(
        merged(few, dict(zip(few[0].dimensions, place, strict=True))) if len(few) > 1 else few[0]
        for place, few in parts.items()
    )


def _merged(names: Mapping[Group, Group], metric: Metric) -> Iterator[Remark]:
    """Yield how many groups are told together."""
    if names:
        yield remark(
            Code.OTHER_GROUPS,
            metric.address,
            name=OTHER,
            groups=len(names),
            least=metric.min_reports,
        )


def _withheld(definitions: Sequence[Sequence[Slice]], metric: Metric) -> Iterator[Remark]:
    """Yield by how much what is added up from the rows with numbers can be off."""
    slices = [part for group in definitions for part in group]
    n, few = (sum(part.n for part in group) for group in (slices, withheld(slices)))
    if few:
        yield remark(
            Code.WITHHELD,
            metric.address,
            few=few,
            n=n,
            least=metric.min_reports,
            off=_off_by(metric, few, n),
        )


def withheld(slices: Sequence[Slice]) -> list[Slice]:
    """Return those of *slices* that have no number."""
    return [part for part in slices if part.refusal is not None]


def _off_by(metric: Metric, few: int, n: int) -> str:
    """Return how far a share or a mean of *n* reports is off at most without *few* of them.

    Derived: with a part f of the reports left out, whose own number lies anywhere between the ends
    of the range, the number of all differs from that of the others by f ranges at most.
    """
    percent = ceil(1000 * few / n) / 10
    return f"{percent:g} {metric.domain.hundredth}"
