"""Keys and tokens in the store: one hash of records, and one a day of what keys have used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Protocol

from client_sdk.core.epoch import DAY

from ..core.config import Config
from .connect import open_connection
from .connection import Connection, Part
from .keys import Keys

_USAGE_DAYS: Final = 2  # days after which a day's usage is forgotten
_UPLOADS_DAYS: Final = 20  # likewise; ids are remembered for 16
_DIGEST: Final = re.compile(rb"[0-9a-f]{64}")


class CredentialStore(Protocol):
    """Records by digest, and the use that several processes make of them.

    Raises, all methods: StorageUnavailableError, StorageFullError.  Each may be repeated.
    """

    def records(self) -> dict[bytes, bytes]:
        """Return every stored record by the digest of its secret."""

    def put(self, digest: bytes, record: str) -> None:
        """Store the *record* of one credential, in place of an older one."""

    def replace(self, digest: bytes, read: bytes, record: str) -> bool:
        """Store *record* in place of the one that was *read*; a full store does so, too.

        Returns whether it was still there: read again if it was not.
        Raises: NotPreparedError.
        """

    def share_usage(self, day: int, process: str, used: Mapping[bytes, int]) -> dict[bytes, int]:
        """Say what *process* counted of each digest on epoch *day*; return the sums of all."""

    def share_uploads(self, day: int, process: str, used: Mapping[bytes, int]) -> dict[bytes, int]:
        """Do the same with uploads, which are known for as long as their ids are."""


class RedisCredentials:
    """The CredentialStore protocol on Redis or Valkey."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        """Use *connection* for the credentials under *prefix*.  Raises ConfigError."""
        self._connection, self._prefix = connection, Keys(prefix, 1).prefix

    @property
    def _credentials(self) -> str:
        return f"{self._prefix}:credentials"

    def records(self) -> dict[bytes, bytes]:
        """Read the whole hash: credentials are made by people, so there are few."""
        found = _pairs(self._connection.call("HGETALL", self._credentials))
        return {bytes.fromhex(n.decode()): r for n, r in found.items() if _DIGEST.fullmatch(n)}

    def put(self, digest: bytes, record: str) -> None:
        """Write one field of the hash."""
        self._connection.call("HSET", self._credentials, digest.hex(), record)

    def replace(self, digest: bytes, read: bytes, record: str) -> bool:
        """Write one field of the hash by a function that compares it, and needs no room."""
        function = "FCALL", "hearsay_replace_checked", 1, self._credentials
        return bool(self._connection.call(*function, digest.hex(), read, record))

    def share_usage(self, day: int, process: str, used: Mapping[bytes, int]) -> dict[bytes, int]:
        """Count reports, of a key with a quota."""
        return self._share("usage", day, _USAGE_DAYS, process, used)

    def share_uploads(self, day: int, process: str, used: Mapping[bytes, int]) -> dict[bytes, int]:
        """Count uploads, of any key."""
        return self._share("uploads", day, _UPLOADS_DAYS, process, used)

    def _share(
        self, what: str, day: int, days: int, process: str, used: Mapping[bytes, int]
    ) -> dict[bytes, int]:
        """Write our own sums, which a repeated command cannot add twice, and read all."""
        key = f"{self._prefix}:{what}:{day}"
        if used:
            pairs: list[Part] = []
            for digest, count in used.items():
                pairs += f"{digest.hex()}:{process}", count
            forgotten = (day + days) * DAY
            self._connection.call_many([("HSET", key, *pairs), ("EXPIREAT", key, forgotten)])
        sums: dict[bytes, int] = {}
        for name, text in _pairs(self._connection.call("HGETALL", key)).items():
            digest = bytes.fromhex(name.partition(b":")[0].decode())
            sums[digest] = sums.get(digest, 0) + int(text)
        return sums


def open_credentials(config: Config) -> RedisCredentials:
    """Return the credentials of *config*'s store.  Nothing is sent before their first use."""
    return RedisCredentials(open_connection(config.redis_url), config.prefix)


def _pairs(reply: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(reply[::2], reply[1::2], strict=True))
