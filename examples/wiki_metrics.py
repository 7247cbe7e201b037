"""Typed handles of the metrics of wiki.

Made by ``hearsay registry codegen``; do not edit, make it anew when the registry changes.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from client_sdk import Client
from client_sdk.handles import Handle, require_definitions

StorageEngineValue: TypeAlias = Literal[
    "sqlite",
    "postgres",
    "mariadb",
]

DIGESTS: Final = {
    "uses_search": "8cb5c13d8d95",
    "storage.engine": "eb82d44ec872",
    "storage.pages": "d4b3eb011e81",
}


class StorageMetrics:
    """The metrics whose names begin with ``storage.``."""

    def __init__(self, client: Client) -> None:
        """Record with *client*."""
        self._client = client

    @property
    def engine(self) -> Handle[StorageEngineValue]:
        """Storage engine

        Which database has to stay supported?

        Reported at most once every 7d, at ε 1 a report, until 2027-12-31.
        """
        return Handle(self._client, "storage.engine")

    @property
    def pages(self) -> Handle[float]:
        """Pages

        How many pages should the defaults be made for?

        From 0 to 10000 pages; what lies beyond counts as the end. Reported at most
        once every 7d, at ε 1 a report, until 2027-12-31.
        """
        return Handle(self._client, "storage.pages")


class Metrics:
    """The metrics of wiki."""

    def __init__(self, client: Client) -> None:
        """Record with *client*.

        Raises: RegistryError: its registry gives a metric another meaning.
        """
        require_definitions(client.registry, DIGESTS)
        self._client = client

    @property
    def uses_search(self) -> Handle[bool]:
        """Search is set up

        Do enough installations set up the search to rewrite it?

        Reported at most once every 7d, at ε 1 a report, until 2027-12-31.
        """
        return Handle(self._client, "uses_search")

    @property
    def storage(self) -> StorageMetrics:
        """The metrics whose names begin with ``storage.``."""
        return StorageMetrics(self._client)
