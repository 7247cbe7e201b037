"""The shapes of queries and answers, as the OpenAPI document describes them.

Queries have one shape for each verb.  Nothing is decoded here.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ...analytics.verb import ESTIMATE, load, names, summary
from ...intake.validation import Rejection
from ...intake.wire import JSON
from ...query import Query
from .formats import ARROW, GEOJSON, PARQUET

# The answers in other forms than JSON: see ``formats``.
ALTERNATIVES: Final[dict[str, dict[str, object]]] = {
    JSON: {"type": "array", "items": {"type": "object"}, "title": "Flat records"},
    "text/csv": {"type": "string"},
    ARROW: {},
    PARQUET: {},
    GEOJSON: {"type": "object", "title": "Cells of a map, as RFC 7946 has them"},
}


class Acknowledgement(Struct, forbid_unknown_fields=True):
    """What became of an upload.  Accepted reports are counted exactly once."""

    accepted: int
    duplicate: bool
    rejected: list[Rejection]


class Fault(Struct, forbid_unknown_fields=True):
    """Which part of a question is wrong: a JSON Pointer into the body, or a parameter's name."""

    detail: str
    pointer: str | UnsetType = UNSET
    parameter: str | UnsetType = UNSET


class Problem(Struct, forbid_unknown_fields=True):
    """An error, as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Fault] | UnsetType = UNSET


class Alive(Struct, forbid_unknown_fields=True):
    """The process answers."""

    status: Literal["ok"]


class Ready(Struct, forbid_unknown_fields=True):
    """Uploads can be stored; ``backlog`` entries wait to be folded.

    Of the acknowledged uploads, the store has lost ``lost`` since this process began.  Uploads of
    the shards ``refusing``, whose server is away, full or emptied, are answered 503.
    """

    status: Literal["ok"]
    backlog: int
    lost: int
    refusing: list[int]


class Part(Struct, forbid_unknown_fields=True):
    """One of the two answers of a pair."""

    name: str
    values: list[str]


class Attribute(Struct, forbid_unknown_fields=True):
    """An attribute of a record; of numbers the edges between its values, which are ranges."""

    name: str
    values: list[str]
    edges: list[float] | UnsetType = UNSET


class Metric(Struct, forbid_unknown_fields=True):
    """A metric, with its domain by the keys of a registry.

    ``name`` is ``app/name`` where several apps have a metric of this name.
    A panel lets each device report with the chance ``inclusion``; it is 1 without one.
    ``values`` are the items, the keys, or the steps of a funnel.  ``min`` and ``max`` are the ends
    of a number, or [longitude, latitude] of a map with ``cells`` [columns, rows].
    """

    name: str
    app: str
    title: str
    group: str
    show: str
    question: str
    type: str
    digest: str
    epsilon_per_report: float
    delta_per_report: float
    mechanism: str
    every: str
    longitudinal: str
    aggregate: str | None
    segments: dict[str, list[str]]
    min_reports: int
    expected_devices: int
    inclusion: float
    expires: str
    values: list[str] | UnsetType = UNSET
    other: str | UnsetType = UNSET
    min: float | list[float] | UnsetType = UNSET
    max: float | list[float] | UnsetType = UNSET
    step: float | UnsetType = UNSET
    unit: str | UnsetType = UNSET
    shape: str | UnsetType = UNSET
    most: int | UnsetType = UNSET
    length: int | UnsetType = UNSET
    norm: str | UnsetType = UNSET
    bound: float | UnsetType = UNSET
    cells: list[int] | UnsetType = UNSET
    parts: list[Part] | UnsetType = UNSET
    periods: list[str] | UnsetType = UNSET
    attributes: list[Attribute] | UnsetType = UNSET
    label: list[str] | UnsetType = UNSET


class Metrics(Struct, forbid_unknown_fields=True):
    """The metrics that the token may see."""

    metrics: list[Metric]


def forms() -> list[type[Struct]]:
    """Return the question of each verb, with the verb's own options and post-processings."""
    return [_form(name) for name in names()]


def _form(name: str) -> type[Struct]:
    verb = load(name)
    camel = name.title().replace("_", "")
    options = msgspec.defstruct(
        f"{camel}Options",
        [],
        bases=(verb.options,),
        namespace={"__doc__": verb.options.__doc__},
        frozen=True,
        forbid_unknown_fields=True,
    )
    may_be_left_out = not any(field.required for field in msgspec.structs.fields(verb.options))
    said: Any = Literal[name] | UnsetType if name == ESTIMATE else Literal[name]
    own: dict[str, tuple[Any, ...]] = {
        "verb": ("verb", said, UNSET) if name == ESTIMATE else ("verb", said),
        "options": ("options", options | UnsetType, UNSET)
        if may_be_left_out
        else ("options", options),
        "postprocess": ("postprocess", Literal[verb.postprocess], "raw"),
    }
    fields: list[Any] = [own.get(field.name) or _as_it_is(field) for field in _common()]
    return msgspec.defstruct(
        f"{camel}Query",
        fields,
        namespace={"__doc__": summary(name)},
        frozen=True,
        forbid_unknown_fields=True,
        kw_only=True,
    )


def _common() -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(Query)


def _as_it_is(field: msgspec.structs.FieldInfo) -> tuple[Any, ...]:
    if field.required:
        return field.name, field.type
    if field.default_factory is not msgspec.NODEFAULT:
        return field.name, field.type, msgspec.field(default_factory=field.default_factory)
    return field.name, field.type, field.default
