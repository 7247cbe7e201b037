"""The forms of what routes answer, as the OpenAPI document tells them.  Nothing is decoded here."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from ..analytics.answer import Row


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


class Problem(Struct, forbid_unknown_fields=True):
    """An error, as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str


class Alive(Struct, forbid_unknown_fields=True):
    """The process answers."""

    status: Literal["ok"]


class Ready(Struct, forbid_unknown_fields=True):
    """Uploads can be stored; ``backlog`` entries wait to be folded."""

    status: Literal["ok"]
    backlog: int


class Metric(Struct, forbid_unknown_fields=True):
    """A metric: ``values`` of items and of keys, ``min`` to ``max`` of numbers."""

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
    min: float | UnsetType = UNSET
    max: float | UnsetType = UNSET
    step: float | UnsetType = UNSET
    unit: str | UnsetType = UNSET
    most: int | UnsetType = UNSET


class Metrics(Struct, forbid_unknown_fields=True):
    """The metrics that the token may see."""

    metrics: list[Metric]


class Window(Struct, rename={"first": "from", "last": "to"}, forbid_unknown_fields=True):
    """The epochs that an answer rests on, both ends included."""

    first: str
    last: str
    epochs: int


class Meta(Struct, forbid_unknown_fields=True):
    """What an answer rests on.  ``version`` null: not published yet, so it may still change."""

    metric: str
    question: str
    n: int
    window: Window
    window_open: bool
    version: int | None
    segment: dict[str, str]
    alpha: float
    intervals: str
    epsilon_per_report: float
    delta_per_report: float
    mechanism: str
    digest: str
    late_share: float
    unit: str
    expected_half_width: float


class Estimate(Struct, forbid_unknown_fields=True):
    """The answer to a metric's question."""

    meta: Meta
    rows: list[Row]
