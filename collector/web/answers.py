"""The forms of what routes answer, as the OpenAPI document tells them.  Nothing is decoded here."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from ..analytics.rows import Row
from ..query import Query


class Rejection(Struct, forbid_unknown_fields=True):
    """Why reports of a column were not accepted.  Final: they are not to be sent again."""

    column: int
    reason: str
    count: int


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
    """Uploads can be stored; ``backlog`` entries wait to be folded."""

    status: Literal["ok"]
    backlog: int


class Part(Struct, forbid_unknown_fields=True):
    """One of the two answers of a pair."""

    name: str
    values: list[str]


class Metric(Struct, forbid_unknown_fields=True):
    """A metric, with its domain by the keys of a registry.

    ``values`` are the items, the keys, or the steps of a funnel.  ``min`` and ``max`` are the ends
    of a number, or [longitude, latitude] of a map with ``cells`` [columns, rows].
    """

    name: str
    title: str
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
    expires: str
    values: list[str] | UnsetType = UNSET
    min: float | list[float] | UnsetType = UNSET
    max: float | list[float] | UnsetType = UNSET
    step: float | UnsetType = UNSET
    unit: str | UnsetType = UNSET
    shape: str | UnsetType = UNSET
    most: int | UnsetType = UNSET
    length: int | UnsetType = UNSET
    cells: list[int] | UnsetType = UNSET
    parts: list[Part] | UnsetType = UNSET
    periods: list[str] | UnsetType = UNSET


class Metrics(Struct, forbid_unknown_fields=True):
    """The metrics that the token may see."""

    metrics: list[Metric]


class Window(Struct, rename={"first": "from", "last": "to"}, forbid_unknown_fields=True):
    """The epochs that an answer rests on, both ends included."""

    first: str
    last: str
    epochs: int


class Definition(Struct, forbid_unknown_fields=True):
    """A definition of a metric under which reports of the window were made."""

    digest: str
    mechanism: str
    epsilon_per_report: float
    n: int


class Basis(Struct, forbid_unknown_fields=True):
    """What the numbers of a metric rest on.

    ``version`` null: not published yet, so the answer may still change.
    """

    name: str
    title: str
    question: str
    type: str
    n: int
    late_share: float
    window: Window
    window_open: bool
    version: int | None
    epsilon_per_report: float
    delta_per_report: float
    every: str
    longitudinal: str
    mechanism: str
    digest: str
    unit: str
    expected_half_width: float
    definitions: list[Definition]


class Meta(Struct, forbid_unknown_fields=True):
    """What an answer rests on, and the question as it was understood."""

    verb: str
    metrics: list[Basis]
    n: int
    dimensions: list[str]
    alpha: float
    intervals: Literal["pointwise", "simultaneous", "mixed"]
    postprocess: str
    warnings: list[str]
    facts: dict[str, Any]
    query: Query
    total_rows: int | UnsetType = UNSET
    time_labels: list[str] | UnsetType = UNSET


class Answer(Struct, forbid_unknown_fields=True):
    """The answer to a question: numbers with intervals, or the reason why there is none."""

    meta: Meta
    rows: list[Row]
