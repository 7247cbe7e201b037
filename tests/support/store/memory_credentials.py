"""Keys and tokens in memory, which can fail."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from collector.core.credentials import Credential, digest_of
from collector.storage.hashes import MemoryHashes
from collector.storage.records import NOTHING, CredentialStore, Usage


class MemoryCredentials(CredentialStore):
    """Records and usage of one deployment.

    ``failure``, if set, is raised by every method; ``refusal`` by those that write.
    """

    def __init__(self) -> None:
        super().__init__(MemoryHashes())
        self.failure: Exception | None = None
        self.refusal: Exception | None = None
        self.reads = 0

    @property
    def stored(self) -> dict[bytes, bytes]:
        return super().records()

    def records(self) -> dict[bytes, bytes]:
        self._fail()
        self.reads += 1
        return super().records()

    def put(self, digest: bytes, record: str) -> None:
        self._fail(self.refusal)
        super().put(digest, record)

    def replace(self, digest: bytes, read: bytes, record: str) -> bool:
        self._fail()
        return super().replace(digest, read, record)

    def share(
        self, usage: Usage, day: int, process: str = "", used: Mapping[bytes, int] = NOTHING
    ) -> dict[bytes, int]:
        self._fail(self.refusal)
        return super().share(usage, day, process, used)

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
