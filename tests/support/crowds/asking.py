"""Answers from a tally, without a store: one slice, guarded as a query guards it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from client_sdk.registry.metric import Metric
from collector.analytics.rows import Findings, Row
from collector.analytics.suppression import merge_small
from collector.analytics.verb import ESTIMATE, Slice, VerbQuery, load


def answer(metric: Metric, tally: Any, n: int, alpha: float = 0.05) -> tuple[Row, ...]:
    """Return the rows of the metric's own question."""
    return ask(ESTIMATE, [Slice(metric, {}, n, tally, (0,))], alpha).rows


def ask(
    verb: str,
    slices: list[Slice],
    alpha: float = 0.05,
    postprocess: str = "raw",
    options: Mapping[str, Any] | None = None,
) -> Findings:
    """Return what *verb* finds in *slices*; of one metric small ones are told together."""
    asked = load(verb)
    given = msgspec.convert(options or {}, asked.options)
    metrics = tuple({part.metric.address: part.metric for part in slices}.values())
    if len(metrics) == 1 and not asked.counts(given):
        ((slices, *_), _) = merge_small([slices], slices[0].metric, together=asked.merges_small)
    return asked.answer(slices, VerbQuery(alpha, postprocess, given, metrics=metrics))


def holds(row: Row, truth: float) -> bool:
    """Return whether the row has an interval, and *truth* lies in it."""
    return row.ci_low is not None and row.ci_high is not None and row.ci_low <= truth <= row.ci_high
