"""A query as it arrives: the body of POST /v1/query, or the parameters of an address.  Strict.

The body has one shape for every verb; an address asks one metric its own question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct, field
from msgspec.inspect import (
    ListType,
    LiteralType,
    StructType,
    TupleType,
    UnionType,
    VarTupleType,
    type_info,
)

from client_sdk.registry.metric import Metric

from ..analytics.verb import ESTIMATE
from ..core.cells import LAST_VERSION
from ..core.errors import QueryError
from ..estimation.precision import ALPHA
from .window import Against, day_of_text, days_for, days_of, epochs_of, usual_range

LEAST_ALPHA, MOST_ALPHA = 1e-6, 0.5  # 1 - level
MOST_ROWS: Final = 10_000  # of one page
TOGETHER: Final = "other"  # what becomes of groups with too few reports
WITHHOLD: Final = "withhold"
# How msgspec begins a complaint that repeats what was sent.
_REPEATING: Final = ("Object contains unknown field", "Invalid enum value")
_DATES: Final = ', or two dates such as ["2026-01-01", "2026-01-31"]'
T = TypeVar("T")

_Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=100)]
_PLACE: Final = re.compile(r"^(?P<rule>.*) - at `(?P<place>.*)`$", re.DOTALL)
_STEP: Final = re.compile(r"\[(\d+|\.\.\.)\]|\.([^.\[]+)")
_ANY: Final = "..."  # a step of msgspec into an object whose names are free
PARAMETERS: Final = ("range", "from", "to", "alpha", "version")
SEGMENT: Final = "segment."  # what the name of a dimension follows
_NUMBER: Final = re.compile(r"[0-9]{0,20}(\.[0-9]{1,40})?(?<=[0-9])([eE][+-]?[0-9]{1,3})?")


class Pagination(Struct, frozen=True, forbid_unknown_fields=True):
    """Which of the rows are wanted: ``limit`` of them after the first ``offset``."""

    limit: Annotated[int, Meta(ge=1, le=MOST_ROWS)] = 1_000
    offset: Annotated[int, Meta(ge=0, le=10_000_000)] = 0


class Query(Struct, frozen=True, forbid_unknown_fields=True):
    """One question.  What is left out has the value shown."""

    metrics: Annotated[list[_Name], Meta(min_length=1, max_length=8)]
    verb: _Name = ESTIMATE
    date_range: str | tuple[str, str] | None = None  # None: the usual one of the metrics
    against: Against | None = None  # an earlier range beside it
    dimensions: Annotated[list[_Name], Meta(max_length=4)] = field(default_factory=list)
    filters: Annotated[
        list[
            tuple[
                Literal["is", "is_not"],
                _Name,
                Annotated[list[_Name], Meta(min_length=1, max_length=1_000)],
            ]
        ],
        Meta(max_length=16),
    ] = field(default_factory=list)
    order_by: Annotated[list[tuple[_Name, Literal["asc", "desc"]]], Meta(max_length=4)] = field(
        default_factory=list
    )
    include: list[Literal["total_rows", "time_labels"]] = field(default_factory=list)
    alpha: Annotated[float, Meta(ge=LEAST_ALPHA, le=MOST_ALPHA)] = ALPHA
    postprocess: _Name = "raw"
    small_cells: Literal["other", "withhold"] = TOGETHER
    version: Annotated[int, Meta(ge=0, le=LAST_VERSION)] | None = None
    definition: _Name | None = None  # digest of one in a registry file; None: that in use
    pagination: Pagination = field(default_factory=Pagination)
    options: dict[str, Any] = field(default_factory=dict)


def read(body: bytes) -> Query:
    """Return the question that a JSON *body* is.

    Raises: QueryError: ``place: rule``, with the place as a path of the document; no value is
        repeated.
    """
    try:
        query = msgspec.json.decode(body, type=Query)
        json.loads(body, object_pairs_hook=_once)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise _fault(error, Query, "") from None
    return query


def convert(value: Any, form: type[T], place: str) -> T:
    """Return *value*, of JSON types, as *form*.  Raises QueryError as ``read``, below *place*."""
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        raise _fault(error, form, place) from None


def _once(pairs: list[tuple[str, Any]]) -> None:
    """Raise QueryError if a name stands twice in an object: two readers would read two questions.

    Names that are not ours are those of options.
    """
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            below = "pagination." if name in Pagination.__struct_fields__ else ""
            known = below or name in Query.__struct_fields__
            raise QueryError(f"{below}{name if known else 'options'}", "must be given once")
        seen.add(name)


def _fault(error: Exception, form: Any, below: str) -> QueryError:
    """Return the complaint of msgspec about a *form* as ours: the place first, then the rule."""
    if isinstance(error, QueryError):
        return error
    if not isinstance(error, msgspec.ValidationError):
        return QueryError("body", "must be one JSON object in UTF-8")
    match = _PLACE.match(str(error))
    rule = match["rule"] if match else str(error)
    steps = [a or b for a, b in _STEP.findall(match["place"])] if match else []
    steps = [step for step in steps if step != _ANY]
    if rule.startswith(_REPEATING):
        rule = f"known are {', '.join(_choices(type_info(form), steps)) or 'none'}"
        rule += _DATES if steps == ["against"] else ""
    place = ".".join([*([below] if below else []), *steps]) or "body"
    return QueryError(place, f"{rule[:1].lower()}{rule[1:]}")


def _choices(kind: Any, steps: Sequence[str]) -> list[str]:
    """Return the names or values that may stand where *steps* lead in *kind*."""
    match kind:
        case UnionType(types=types):
            return [name for type_ in types for name in _choices(type_, steps)]
        case LiteralType(values=values) if not steps:
            return [str(value) for value in values]
        case StructType(fields=fields):
            if not steps:
                return [field.name for field in fields]
            return next(
                _choices(field.type, steps[1:]) for field in fields if field.name == steps[0]
            )
        case TupleType(item_types=kinds) if steps:
            return _choices(kinds[int(steps[0])], steps[1:])
        case ListType(item_type=item) | VarTupleType(item_type=item) if steps:
            return _choices(item, steps[1:])
    return []


def question(metric: Metric, parameters: Mapping[str, str], now: float) -> Query:
    """Read a question from text *parameters*: range, or from and to, alpha, version, segment.<…>.

    Raises: QueryError: names the parameter at fault and what would work.
    """
    today = datetime.fromtimestamp(now, UTC).date()
    last = day_of_text(parameters["to"], "to") if "to" in parameters else today
    first, _ = days_of(usual_range([metric]), last, "from")
    if "range" in parameters:
        if not {"from", "to"}.isdisjoint(parameters):
            raise QueryError("range", "must stand without from and to")
        first, last = days_for(parameters["range"], [metric], now, "range")
    if "from" in parameters:
        first = day_of_text(parameters["from"], "from")
    epochs_of(metric, first, last, "from")
    return Query(
        metrics=[metric.address],
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
        values = metric.segments.get(dimension)
        if values is None:
            dimensions = ", ".join(metric.segments) or "none"
            raise QueryError("segment", f"this metric has the dimensions: {dimensions}")
        if value not in values:
            raise QueryError(f"segment.{dimension}", f"must be one of {', '.join(values)}")
        yield "is", dimension, [value]


def _alpha(parameters: Mapping[str, str]) -> float:
    text = parameters.get("alpha")
    if text is None:
        return ALPHA
    # float also takes 0_1, digits of any script, and spaces around them
    alpha = float(text) if _NUMBER.fullmatch(text) else 0.0
    if not LEAST_ALPHA <= alpha <= MOST_ALPHA:
        raise QueryError("alpha", f"must be a number from {LEAST_ALPHA:f} to {MOST_ALPHA}")
    return alpha


def _version(parameters: Mapping[str, str]) -> int | None:
    text = parameters.get("version")
    if text is not None and text not in map(str, range(LAST_VERSION + 1)):
        raise QueryError("version", f"must be from 0 to {LAST_VERSION}")
    return None if text is None else int(text)
