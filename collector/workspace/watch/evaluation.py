"""What a watch says of one period: asked of published tallies, so it says the same for ever."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any, Final

import msgspec

from client_sdk.core.epoch import ONCE, epoch_of, epoch_start
from client_sdk.core.errors import InvalidParameterError, UnknownMetricError
from client_sdk.registry.metric import COUNT, Metric

from ...analytics.answer import MEAN
from ...analytics.rows import ALL, LEFT_OUT, SHARE, Row
from ...analytics.verb import ACTIVES, ESTIMATE
from ...core.catalog import Catalog
from ...core.cells import MARGIN, ends
from ...core.errors import CollectorError, PrunedError, QueryError, StorageUnavailableError
from ...query import Query, plan, run
from ...query.request import LEAST_ALPHA, MOST_ALPHA
from ...rendering.numbers import POINTS, Numbers, number
from ...rendering.possible import nearest
from ...storage.protocols import TallyStore
from ...storage.records import FIRING, QUIET, UNABLE, UNKNOWN, Verdict
from .judgement import Span, can_change, change_of, fewer, span_of, weight_of
from .rules import Watch, Watches, period_of

USUAL: Final = 4  # earlier periods to compare with; of days, those on the same weekday
MOST_LATE: Final = 35  # periods that are made up for after a pause; older ones are passed over


def newest(watch: Watch, metric: Metric | None, now: float) -> int:
    """Return the number of the last period whose numbers *watch* waits for are published.

    A watch of an unknown metric counts as daily, so that it reports this once a day.
    """
    every = _every(metric)
    period = epoch_of(every, now)
    while ends(every, period)[watch.version] > now - MARGIN:
        period -= 1
    return period


def label(metric: Metric | None, period: int) -> str:
    """Return the first day of a period."""
    return _day(_every(metric), period).isoformat()


def period_from(metric: Metric | None, day: str) -> int:
    """Return the number of the period that begins on *day*."""
    start = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
    return epoch_of(_every(metric), start)


def evaluate(
    watches: Watches, watch: Watch, catalog: Catalog, storage: TallyStore, period: int, now: float
) -> Verdict:
    """Return what *watch* says of *period*; what cannot be computed is a verdict, too.

    Raises: StorageUnavailableError: ask again.
    """
    metric = metric_of(watch, catalog)
    first = label(metric, period - watch.window + 1)
    verdict = Verdict(first, label(metric, period), UNABLE, "", int(now))
    try:
        return _Question(watches, watch, catalog, storage, now).verdict(period, verdict)
    except StorageUnavailableError:
        raise
    except (CollectorError, UnknownMetricError, InvalidParameterError) as error:
        return msgspec.structs.replace(verdict, text=f"{watch.metric}: cannot be computed: {error}")


def metric_of(watch: Watch, catalog: Catalog) -> Metric | None:
    """Return the metric of *watch*; None if there is none of its name."""
    try:
        return catalog.metric(watch.metric)
    except (UnknownMetricError, CollectorError):
        return None


class _Question:
    def __init__(
        self, watches: Watches, watch: Watch, catalog: Catalog, storage: TallyStore, now: float
    ) -> None:
        self._watch, self._catalog, self._storage, self._now = watch, catalog, storage, now
        self._metric = catalog.metric(watch.metric)
        self._left_out: dict[str, None] = {}  # what is to be said of exclusions, in order
        if self._metric.every == ONCE:
            raise QueryError("metric", "is reported once, so nothing of it is ever published")
        self._every = period_of(self._metric.every)
        self._rate = watches.rate(self._metric.every)

    def verdict(self, period: int, verdict: Verdict) -> Verdict:
        """Return *verdict* with what the watch says of *period*."""
        ask = {
            "silent": self._silence,
            "changed": self._change,
        }.get(self._watch.kind, self._threshold)
        return msgspec.structs.replace(verdict, **ask(period))

    def _silence(self, period: int) -> dict[str, Any]:
        part = self._watch.silent or 0.0
        count = self._count(period)
        usual = [n for back in self._backs() if (n := self._count(period - back))]
        if not usual:
            text = f"{count:,} reports; there is no usual number yet to hold them against"
            return {"state": UNKNOWN, "text": self._said(text), "n": count}
        mean = sum(usual) / len(usual)
        fires = count < part * mean and fewer(count, sum(usual), len(usual)) <= self._rate
        state = FIRING if fires else QUIET
        text = f"{count:,} reports, {100 * count / mean:.0f} % of the usual {mean:,.0f}"
        if not fires and count < part * mean:
            text += ", which are too few to tell"
        return {"state": state, "text": self._said(text), "n": count, "value": float(count)}

    def _backs(self) -> Sequence[int]:
        """Return how many periods back the comparable ones are."""
        apart = 7 if self._every == "1d" else 1
        gap = -(-self._watch.window // apart) * apart  # windows do not overlap
        return [gap * place for place in range(1, USUAL + 1)]

    def _count(self, period: int) -> int:
        """Return how many reports came, excluded ones too: silence means silent devices."""
        try:
            return int(self._ask(period, ACTIVES, {}, as_folded=True).meta.n)
        except PrunedError:
            return 0

    def _threshold(self, period: int) -> dict[str, Any]:
        above, below = self._watch.above, self._watch.below
        rows = self._rows(period)
        rate, weight = self._rate / len(rows), weight_of(self._metric)
        judged = [(row, span_of(row, rate, weight)) for row in rows if row.value is not None]
        if not judged:
            return self._no_number(rows)

        def beyond(span: Span) -> float:
            return span.low - above if above is not None else (below or 0.0) - span.high

        row, span = max(judged, key=lambda each: beyond(each[1]))
        limit = number(above if above is not None else below or 0.0, row.unit, 0.0)
        word = "above" if above is not None else "below"
        fires = beyond(span) > 0
        end = "" if fires else "not surely "
        text = f"{_named(row)}{_worded(span, row.unit)}: {end}{word} {limit}"
        return {"state": FIRING if fires else QUIET, "text": self._said(text), **_fields(row, span)}

    def _change(self, period: int) -> dict[str, Any]:
        least = self._watch.changed or 0.0
        after = self._rows(period)
        before = {_place(row): row for row in self._rows(period - self._watch.window)}
        pairs = [
            (old, row)
            for row in after
            if (old := before.get(_place(row))) and None not in (row.value, old.value)
        ]
        if not all(can_change(row) for row in after if row.value is not None):
            rule = "takes shares of all devices, and means; ask above or below of other numbers"
            raise QueryError("changed", rule)
        if not pairs:
            return self._no_number([*after, *before.values()])
        judged = [(row, change_of(old, row, self._metric, self._rate / len(pairs)))
                  for old, row in pairs]  # fmt: skip

        def beyond(span: Span) -> float:
            return max(span.low - least, -least - span.high)

        row, span = max(judged, key=lambda each: beyond(each[1]))
        fires = beyond(span) > 0
        unit = POINTS if row.unit == SHARE else row.unit
        size = f" by more than {number(least, unit, 0.0)}" if least else ""
        how = "changed" if fires else "no change that is sure"
        against = f"against the period before: {how}{size}"
        text = f"{_named(row)}{_worded(span, unit, signed=True)} {against}"
        return {"state": FIRING if fires else QUIET, "text": self._said(text), **_fields(row, span)}

    def _rows(self, period: int) -> list[Row]:
        """Return the rows that the watch is about.  Raises QueryError: there is none."""
        watch, grid = self._watch, self._metric.domain.grid
        rows = list(self._ask(period, watch.verb, watch.options).rows)
        if self._metric.show == COUNT and watch.verb == ESTIMATE:
            rows = rows[-1:]  # of the whole window
        wanted = watch.item or (MEAN if grid and any(row.item == MEAN for row in rows) else None)
        chosen = [row for row in rows if wanted in (None, row.item)]
        if not chosen:
            known = ", ".join(dict.fromkeys(row.item for row in rows)) or "none"
            raise QueryError("item", f"the answer has no such item; it has {known[:200]}")
        return chosen

    def _ask(
        self, period: int, verb: str, options: dict[str, Any], *, as_folded: bool = False
    ) -> Any:
        """Return the answer of the window that ends with *period*.

        Args:   as_folded: include reports that operators excluded since, without a remark.
        """
        watch = self._watch
        window = period - watch.window + 1, period
        first, last = (_day(self._every, each).isoformat() for each in window)
        query = Query(
            metrics=[watch.metric],
            verb=verb,
            date_range=(first, last),
            filters=list(watch.filters),
            alpha=min(max(self._rate, LEAST_ALPHA), MOST_ALPHA),
            version=watch.version,
            options=options,
        )
        # The version decides when a period is complete, not whether exclusions apply.
        resolved = replace(plan(query, self._catalog, self._now), is_as_folded=as_folded)
        answer = run(resolved, self._storage)
        if not as_folded:
            self._left_out.update(dict.fromkeys(answer.meta.facts.get(LEFT_OUT, ())))
        return answer

    def _no_number(self, rows: Sequence[Row]) -> dict[str, Any]:
        reasons = dict.fromkeys(row.reason for row in rows if row.reason)
        text = next(iter(reasons), None) or "no number"
        return {
            "state": UNKNOWN,
            "text": self._said(text),
            "n": max((r.n for r in rows), default=0),
        }

    def _said(self, text: str) -> str:
        return "; ".join((f"{self._metric.title}: {text}", *self._left_out))


def _fields(row: Row, span: Span) -> dict[str, Any]:
    numbers = {"value": span.value, "low": span.low, "high": span.high}
    return {**numbers, "unit": row.unit, "n": row.n}


def _place(row: Row) -> frozenset[tuple[str, str]]:
    """Return the key of *row* within its answer: an item may have several numbers."""
    return frozenset(row.dimensions.items())


def _named(row: Row) -> str:
    words = (text for text in row.dimensions.values() if text not in ("", ALL, MEAN, "true"))
    return "".join(f"{word} " for word in words)


def _worded(span: Span, unit: str, signed: bool = False) -> str:
    shown = nearest(Numbers(span.value, span.low, span.high), unit)
    value, low, high = (number(each, unit, shown.half_width, signed) for each in shown)
    _, space, suffix = high.rpartition(" ")
    return value if low == high else f"{value} ({low.removesuffix(space + suffix)} to {high})"


def _every(metric: Metric | None) -> str:
    return "1d" if metric is None or metric.every == ONCE else period_of(metric.every)


def _day(every: str, period: int) -> date:
    return datetime.fromtimestamp(epoch_start(every, period), UTC).date()


def due(last: int | None, new: int) -> Iterator[int]:
    """Yield the periods to evaluate, oldest first: all since *last*, but the newest of them only
    as far back as MOST_LATE; of a watch that is new the newest alone.
    """
    first = new if last is None else max(last + 1, new - MOST_LATE + 1)
    yield from range(first, new + 1)
