"""What is asked, as POST /v1/query takes it: one shape for every verb.  Strict."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from ..analytics.verb import ESTIMATE
from ..errors import QueryError
from ..lateness import LAST_VERSION
from .window import DEFAULT_RANGE

DEFAULT_ALPHA: Final = 0.05
LEAST_ALPHA, MOST_ALPHA = 1e-6, 0.5  # 1 - level
MOST_ROWS: Final = 10_000  # of one page
TIME: Final = "time"  # the dimension of epochs; "time:week" and its like ask for longer stretches
T = TypeVar("T")

_Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=100)]
_PLACE: Final = re.compile(r"^(?P<rule>.*) - at `(?P<place>.*)`$", re.DOTALL)
_STEP: Final = re.compile(r"\[(\d+|\.\.\.)\]|\.([^.\[]+)")


class Pagination(Struct, frozen=True, forbid_unknown_fields=True):
    """Which of the rows are wanted: ``limit`` of them after the first ``offset``."""

    limit: Annotated[int, Meta(ge=1, le=MOST_ROWS)] = 1_000
    offset: Annotated[int, Meta(ge=0, le=10_000_000)] = 0


class Query(Struct, frozen=True, forbid_unknown_fields=True):
    """One question.  What is left out has the value shown."""

    metrics: Annotated[list[_Name], Meta(min_length=1, max_length=8)]
    verb: _Name = ESTIMATE
    date_range: str | tuple[str, str] = DEFAULT_RANGE
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
    alpha: Annotated[float, Meta(ge=LEAST_ALPHA, le=MOST_ALPHA)] = DEFAULT_ALPHA
    postprocess: _Name = "raw"
    version: Annotated[int, Meta(ge=0, le=LAST_VERSION)] | None = None
    pagination: Pagination = field(default_factory=Pagination)
    options: dict[str, Any] = field(default_factory=dict)


def read(body: bytes) -> Query:
    """Return the question that a JSON *body* is.

    Raises: QueryError: ``place: rule``, with the place as a path of the document; no value is
        repeated.
    """
    try:
        return msgspec.json.decode(body, type=Query)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _fault(error, "") from None


def convert(value: Any, form: type[T], place: str) -> T:
    """Return *value*, of JSON types, as *form*.  Raises QueryError as ``read``, below *place*."""
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        raise _fault(error, place) from None


def _fault(error: Exception, below: str) -> QueryError:
    """Return the complaint of msgspec as ours: the place first, then the rule."""
    found = _PLACE.match(str(error))
    if not isinstance(error, msgspec.ValidationError):
        return QueryError("body: must be one JSON object in UTF-8")
    rule = found["rule"] if found else str(error)
    steps = [a or b for a, b in _STEP.findall(found["place"])] if found else []
    place = ".".join([*([below] if below else []), *steps]) or "body"
    return QueryError(f"{place}: {rule[:1].lower()}{rule[1:]}")
