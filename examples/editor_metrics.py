"""Typed handles of the metrics of editor.

Made by ``hearsay registry codegen``; do not edit, make it anew when the registry changes.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from client_sdk.handles import ClientLike, Counter, Handle, Timer, require_definitions

ThemeValue: TypeAlias = Literal[
    "light",
    "dark",
    "system",
]

DIGESTS: Final = {
    "theme": "9a5d6d2ce2ea",
    "uses_plugins": "5ec7bb2336a9",
    "startup_ms": "6d1cf69031cb",
    "saves": "7956cb41d80a",
}


class Metrics:
    """The metrics of editor."""

    def __init__(self, client: ClientLike) -> None:
        """Record with *client*.

        Raises: RegistryError: its registry gives a metric another meaning.
        """
        require_definitions(client, DIGESTS)
        self._client = client

    @property
    def theme(self) -> Handle[ThemeValue]:
        """Theme

        Which theme should be the default?

        Reported at most once every 7d, at ε 1 a report, until 2027-12-31.
        """
        return Handle(self._client, "theme")

    @property
    def uses_plugins(self) -> Handle[bool]:
        """Plug-ins in use

        Do enough people use plug-ins to go on with them?

        Reported at most once every 7d, at ε 1 a report, until 2027-12-31.
        """
        return Handle(self._client, "uses_plugins")

    @property
    def startup_ms(self) -> Timer:
        """Start-up time

        Did the last release make starting slower?

        From 0 to 5000 ms; what lies beyond counts as the end. Reported at most once
        every 7d, at ε 1 a report, until 2027-12-31.
        """
        return Timer(self._client, "startup_ms", 1_000_000)

    @property
    def saves(self) -> Counter:
        """Saves a day

        Is saving by itself worth building?

        From 0 to 200 saves; what lies beyond counts as the end. The values of a
        period make one report: the sum, or else 0 saves. Reported at most once every
        1d, at ε 1/4 a report, until 2027-12-31.
        """
        return Counter(self._client, "saves")
