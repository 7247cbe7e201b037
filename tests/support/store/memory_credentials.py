"""Keys and tokens in a dictionary: the CredentialStore protocol without a server."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from collector.core.credentials import Credential, digest_of
from collector.storage.records import NOTHING, Usage


class MemoryCredentials:
    """Records and usage of one deployment.

    ``failure``, if set, is raised by every method; ``refusal`` by those that write.
    """

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.refusal: Exception | None = None
        self.stored: dict[bytes, bytes] = {}
        self.used: dict[tuple[Usage, int, bytes, str], int] = {}
        self.reads = 0

    def records(self) -> dict[bytes, bytes]:
        self._fail()
        self.reads += 1
        return dict(self.stored)

    def put(self, digest: bytes, record: str) -> None:
        self._fail(self.refusal)
        self.stored[digest] = record.encode()

    def replace(self, digest: bytes, read: bytes, record: str) -> bool:
        self._fail()
        if self.stored.get(digest) != read:
            return False
        self.stored[digest] = record.encode()
        return True

    def share(
        self, usage: Usage, day: int, process: str = "", used: Mapping[bytes, int] = NOTHING
    ) -> dict[bytes, int]:
        self._fail(self.refusal)
        self.used |= {(usage, day, digest, process): count for digest, count in used.items()}
        sums: dict[bytes, int] = {}
        for (*place, digest, _), count in self.used.items():
            if place == [usage, day]:
                sums[digest] = sums.get(digest, 0) + count
        return sums

    def add(self, secret: str, credential: Credential) -> str:
        """Store what *secret* allows, and return it."""
        self.put(digest_of(secret), credential.to_json())
        return secret

    def _fail(self, refusal: Exception | None = None) -> None:
        for error in (self.failure, refusal):
            if error:
                raise error


class HangingCredentials(MemoryCredentials):
    """A store that stops to answer when it is told to, until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()
        self.answers.set()

    def records(self) -> dict[bytes, bytes]:
        self.answers.wait()
        return super().records()
