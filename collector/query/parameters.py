"""A question in the parameters of an address: one metric, its own question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from client_sdk.registry.metric import Metric

from ..core.cells import LAST_VERSION
from ..core.errors import QueryError
from ..estimation.precision import ALPHA
from .request import LEAST_ALPHA, MOST_ALPHA, Query
from .window import DEFAULT_RANGE, FIRST_DAY, day_of_text, epochs_of

PARAMETERS: Final = ("from", "to", "alpha", "version")
SEGMENT: Final = "segment."  # and a dimension
_DAYS: Final = int(DEFAULT_RANGE.removesuffix("d"))  # of a window whose beginning is not given
_NUMBER: Final = re.compile(r"[0-9]{0,20}(\.[0-9]{1,40})?(?<=[0-9])([eE][+-]?[0-9]{1,3})?")


def question(metric: Metric, parameters: Mapping[str, str], now: float) -> Query:
    """Read a question from text *parameters*: from, to, alpha, version, segment.<dimension>.

    Raises: QueryError: names the parameter at fault and what would work.
    """
    today = datetime.fromtimestamp(now, UTC).date()
    last = day_of_text(parameters["to"], "to") if "to" in parameters else today
    first = max(last - timedelta(days=_DAYS - 1), FIRST_DAY)
    if "from" in parameters:
        first = day_of_text(parameters["from"], "from")
    epochs_of(metric, first, last, "from")
    return Query(
        metrics=[metric.name],
        date_range=(first.isoformat(), last.isoformat()),
        filters=list(_filters(metric, parameters)),
        alpha=_alpha(parameters),
        version=_version(parameters),
    )


def _filters(
    metric: Metric, parameters: Mapping[str, str]
) -> Iterator[tuple[Literal["is"], str, list[str]]]:
    for name, value in parameters.items():
        if not name.startswith(SEGMENT):
            continue
        dimension = name.removeprefix(SEGMENT)
        known = metric.segments.get(dimension)
        if known is None:
            dimensions = ", ".join(metric.segments) or "none"
            raise QueryError(f"segment: this metric has the dimensions: {dimensions}")
        if value not in known:
            raise QueryError(f"segment.{dimension}: must be one of {', '.join(known)}")
        yield "is", dimension, [value]


def _alpha(parameters: Mapping[str, str]) -> float:
    text = parameters.get("alpha")
    if text is None:
        return ALPHA
    # float also takes 0_1, digits of any script, and spaces around them
    alpha = float(text) if _NUMBER.fullmatch(text) else 0.0
    if not LEAST_ALPHA <= alpha <= MOST_ALPHA:
        raise QueryError(f"alpha: must be a number from {LEAST_ALPHA:f} to {MOST_ALPHA}")
    return alpha


def _version(parameters: Mapping[str, str]) -> int | None:
    text = parameters.get("version")
    if text is not None and text not in map(str, range(LAST_VERSION + 1)):
        raise QueryError(f"version: must be from 0 to {LAST_VERSION}")
    return None if text is None else int(text)
