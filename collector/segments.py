"""Segments: the public dimensions by which a metric's tallies are kept apart.  Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from client_sdk.metric import Metric

# A segment text is "" for a metric without dimensions, otherwise the JSON list of the values of the
# metric's dimensions, sorted by dimension; null where the device did not say.


def is_declared(segment: Mapping[str, str], vocabulary: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether every dimension and value of *segment* is in the registry's *vocabulary*."""
    return all(value in vocabulary.get(dimension, ()) for dimension, value in segment.items())


def segment_text(metric: Metric, segment: Mapping[str, str]) -> str:
    """Return the text of *segment* as far as *metric* keeps it apart."""
    if not metric.segments:
        return ""
    values = [segment.get(dimension) for dimension in metric.segments]
    return json.dumps(values, separators=(",", ":"), ensure_ascii=True)


def matches(metric: Metric, text: str, wanted: Mapping[str, str]) -> bool:
    """Return whether a stored segment *text* has the *wanted* value of each dimension."""
    if not wanted:
        return True
    values = dict(zip(metric.segments, json.loads(text), strict=True)) if text else {}
    return all(values.get(dimension) == value for dimension, value in wanted.items())
