"""The forms of what routes answer, but for questions, as the OpenAPI document tells them."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType


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
