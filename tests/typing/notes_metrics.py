"""Typed handles of the metrics of notes.

Made by ``hearsay registry codegen``; do not edit, make it anew when the registry changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, TypedDict

from client_sdk.handles import (
    ClientLike,
    Counter,
    Flag,
    Handle,
    Items,
    TimeCounter,
    Timer,
    require_definitions,
)

UiThemeValue: TypeAlias = Literal[
    "light",
    "dark",
]

FormatsValue: TypeAlias = Literal[
    "pdf",
    "html",
    "latex",
]

MinutesValue: TypeAlias = Literal[
    "edit",
    "read",
]

ExportValue: TypeAlias = Literal[
    "opened",
    "chosen",
    "saved",
]

WeeksValue: TypeAlias = Literal[
    "week 0",
    "week 1",
    "week 2",
]

DIGESTS: Final = {
    "ui.theme": "74abaed0901c",
    "ui.panel.open": "1e5a34e1c513",
    "note_count": "7f6286765446",
    "formats": "0ef800dc661d",
    "minutes": "37203f6c5ba5",
    "depot": "fe12d651897c",
    "person": "fac9ad915640",
    "export": "5b5f46bb90a0",
    "weeks": "592b1cadf905",
    "terminal": "fde2f58acf2e",
    "plugins": "f139d04749b9",
    "saves": "991741cde3c8",
    "exported": "bc7bafe03a66",
    "startup": "c4c346af4d9e",
    "indexing": "23d8c108ab4b",
}


class PersonValue(TypedDict):
    """A value of ``person``."""

    sex: Literal[
        "female",
        "male",
    ]
    income: Literal[
        "low",
        "middle",
        "high",
    ]


class UiPanelMetrics:
    """The metrics whose names begin with ``ui.panel.``."""

    def __init__(self, client: ClientLike) -> None:
        """Record with *client*."""
        self._client = client

    @property
    def open(self) -> Handle[bool]:
        """Panel

        Is the panel worth its place?

        Reported at most once every 7d, at ε 1 a report, until 2099-12-31.
        """
        return Handle(self._client, "ui.panel.open")


class UiMetrics:
    """The metrics whose names begin with ``ui.``."""

    def __init__(self, client: ClientLike) -> None:
        """Record with *client*."""
        self._client = client

    @property
    def theme(self) -> Handle[UiThemeValue]:
        """Theme

        Which theme should be the default?

        Reported at most once every 7d, at ε 1 a report, until 2099-12-31.
        """
        return Handle(self._client, "ui.theme")

    @property
    def panel(self) -> UiPanelMetrics:
        """The metrics whose names begin with ``ui.panel.``."""
        return UiPanelMetrics(self._client)


class Metrics:
    """The metrics of notes."""

    def __init__(self, client: ClientLike) -> None:
        """Record with *client*.

        Raises: RegistryError: its registry gives a metric another meaning.
        """
        require_definitions(client, DIGESTS)
        self._client = client

    @property
    def ui(self) -> UiMetrics:
        """The metrics whose names begin with ``ui.``."""
        return UiMetrics(self._client)

    @property
    def note_count(self) -> Handle[float]:
        """Notes

        Do people need folders?

        From 0 to 500 notes; what lies beyond counts as the end. Reported at most
        once every 7d, at ε 1 a report, until 2099-12-31.
        """
        return Handle(self._client, "note_count")

    @property
    def formats(self) -> Handle[Items[FormatsValue]]:
        """Formats

        Which export formats are used at all?

        Reported at most once every 7d, at ε 2 a report, until 2099-12-31.
        """
        return Handle(self._client, "formats")

    @property
    def minutes(self) -> Handle[Mapping[MinutesValue, float]]:
        """Minutes a view

        Which view is worth making faster?

        From 0 to 60 min; what lies beyond counts as the end. Reported at most once
        every 7d, at ε 2 a report, until 2099-12-31.
        """
        return Handle(self._client, "minutes")

    @property
    def depot(self) -> Handle[tuple[float, float]]:
        """Depot

        Where is the next depot worth its rent?

        Longitude from 5.9 to 10.5 and latitude from 45.8 to 47.85, in this order;
        what lies beyond counts as the nearest cell. Reported at most once every 7d,
        at ε 2 a report, until 2099-12-31.
        """
        return Handle(self._client, "depot")

    @property
    def person(self) -> Handle[PersonValue]:
        """Sex and income

        Do incomes differ?

        Reported at most once every 7d, at ε 2 a report, until 2099-12-31.
        """
        return Handle(self._client, "person")

    @property
    def export(self) -> Handle[ExportValue | None]:
        """Export

        Where do people give up?

        The furthest step that was reached; None if none was. Reported at most once
        every 7d, at ε 2 a report, until 2099-12-31.
        """
        return Handle(self._client, "export")

    @property
    def weeks(self) -> Handle[Items[WeeksValue]]:
        """Weeks

        Do people come back?

        The periods with activity. Reported at most once every 7d, at ε 2 a report,
        until 2099-12-31.
        """
        return Handle(self._client, "weeks")

    @property
    def terminal(self) -> Handle[str]:
        """Terminal

        Which terminal deserves a fix of its own?

        One of xterm, kitty, other; anything else counts as other. Reported at most
        once every 7d, at ε 1 a report, until 2099-12-31.
        """
        return Handle(self._client, "terminal")

    @property
    def plugins(self) -> Handle[Items[str]]:
        """Plugins

        Which plugins must an update not break?

        One of git, spelling, another; anything else counts as another. Reported at
        most once every 7d, at ε 1 a report, until 2099-12-31.
        """
        return Handle(self._client, "plugins")

    @property
    def saves(self) -> Counter:
        """Saves a day

        Is saving by itself worth building?

        From 0 to 200 saves; what lies beyond counts as the end. The values of a
        period make one report: the sum. Reported at most once every 1d, at ε 1/2 a
        report, until 2099-12-31.
        """
        return Counter(self._client, "saves")

    @property
    def exported(self) -> Flag:
        """Exported

        Is export worth its place in the menu?

        The values of a period make one report: whether any was true. Reported at
        most once every 7d, at ε 1/2 a report, until 2099-12-31.
        """
        return Flag(self._client, "exported")

    @property
    def startup(self) -> Timer:
        """Start-up time

        Is starting fast enough?

        From 0 to 5000 ms; what lies beyond counts as the end. Reported at most once
        every 7d, at ε 1 a report, until 2099-12-31.
        """
        return Timer(self._client, "startup", 1_000_000)

    @property
    def indexing(self) -> TimeCounter:
        """Indexing

        Is indexing worth a process of its own?

        From 0 to 600 s; what lies beyond counts as the end. The values of a period
        make one report: the sum. Reported at most once every 1d, at ε 1/2 a report,
        until 2099-12-31.
        """
        return TimeCounter(self._client, "indexing", 1_000_000_000)
