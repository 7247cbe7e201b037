"""Segments: the public dimensions by which a metric's tallies are kept apart.  Pure.

A segment text is "" for a metric without dimensions, otherwise a JSON object of the metric's
dimensions, sorted, with null where the device did not say.  Dimensions are named in it because they
are not part of the digest: a registry may add or drop one, and what was stored keeps its meaning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from client_sdk.registry.metric import Metric


def is_declared(segment: Mapping[str, str], metric: Metric) -> bool:
    """Return whether *segment* has declared values in every dimension that *metric* keeps apart."""
    return all(
        segment[dimension] in vocabulary
        for dimension, vocabulary in metric.segments.items()
        if dimension in segment
    )


def segment_text(metric: Metric, segment: Mapping[str, str]) -> str:
    """Return the text of *segment* as far as *metric* keeps it apart."""
    if not metric.segments:
        return ""
    values = {dimension: segment.get(dimension) for dimension in sorted(metric.segments)}
    return json.dumps(values, separators=(",", ":"), ensure_ascii=True)


def matches(text: str, wanted: Mapping[str, str]) -> bool:
    """Return whether a stored segment *text* has the *wanted* value of each dimension."""
    values = json.loads(text) if text else {}
    return all(values.get(dimension) == value for dimension, value in wanted.items())
