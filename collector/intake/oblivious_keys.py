"""The file of the keys that open capsules: made by an operator, read when a web process starts.

The newest key stands first.  Two are good at a time, so that applications with either can report
while the older one goes out of use.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from client_sdk.core.base64url import base64url, from_base64url
from client_sdk.wire.oblivious import KEY_SIZE, KeyConfiguration, encode_configurations

from ..core.errors import FAULTS, ConfigError, MissingPackageError

SETTING: Final = "HEARSAY_OBLIVIOUS_KEYS"
MAX_KEYS: Final = 2  # that are good at a time
_IDS: Final = 256  # identifiers of keys; a byte
_MODE: Final = 0o600  # its readers can open every capsule
_OTHERS: Final = stat.S_IROTH | stat.S_IWOTH
_MAX_FILE: Final = 4_096  # bytes
_FORM: Final = "must be a file that hearsay oblivious-key new has made"


@dataclass(frozen=True)
class ObliviousKey:
    """A key that opens capsules."""

    key_id: int
    secret: bytes = field(repr=False)
    public: bytes
    since: str  # the day, as in a date

    @property
    def configuration(self) -> KeyConfiguration:
        """The public key, as applications hold it."""
        return KeyConfiguration(self.key_id, self.public)


def relay_key(keys: Sequence[ObliviousKey]) -> str:
    """Return the ``relay_key`` of applications: the newest of *keys* alone.

    Older keys stay valid for applications that have them; no other application needs them.
    """
    return base64url(encode_configurations([keys[0].configuration]))


def read_keys(path: str) -> list[ObliviousKey]:
    """Return the keys in the file *path*, the newest first.

    Raises: ConfigError: there is none, everybody can read it, or it is not of this form; what
            stands in it is not shown.
    """
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_mode & _OTHERS:
                raise ConfigError(SETTING, path, "must not be open to everybody: chmod 600")
            text = file.read(_MAX_FILE + 1)
    except OSError as error:
        raise ConfigError(SETTING, path, f"cannot be read: {error.strerror}") from error
    try:
        rows = json.loads(text)["keys"]
        keys = [_key(row) for row in rows]
    except FAULTS:
        raise ConfigError(SETTING, path, _FORM) from None
    if not 1 <= len(keys) <= MAX_KEYS or len({key.key_id for key in keys}) < len(keys):
        raise ConfigError(SETTING, path, _FORM)
    return keys


def add_key(
    path: str,
    today: date,
    drop: int | None = None,
    entropy: Callable[[int], bytes] = os.urandom,
) -> list[ObliviousKey]:
    """Write a new key before the others in the file *path*, which is made if there is none.

    Args:   drop: which key goes, of two that there are.
    Raises: ConfigError: there are two, and *drop* is none of them; or as of :func:`read_keys`.
    """
    keys = read_keys(path) if os.path.lexists(path) else []
    if drop is not None and drop not in (key.key_id for key in keys):
        held = ", ".join(str(key.key_id) for key in keys) or "no key"
        raise ConfigError("--drop", drop, f"must be in the file, which holds {held}")
    keys = [key for key in keys if key.key_id != drop]
    if len(keys) >= MAX_KEYS:
        rule = (
            f"holds {MAX_KEYS} keys already; give --drop {keys[-1].key_id} once no application"
            " that people still run was built with that key"
        )
        raise ConfigError(SETTING, path, rule)
    used = {key.key_id for key in keys} | ({drop} if drop is not None else set())
    after = keys[0].key_id if keys else entropy(1)[0]
    key_id = next(i % _IDS for i in range(after + 1, after + 1 + _IDS) if i % _IDS not in used)
    keys = [_with_secret(key_id, entropy(KEY_SIZE), today.isoformat()), *keys]
    _write(path, keys)
    return keys


def _write(path: str, keys: Sequence[ObliviousKey]) -> None:
    """Replace the file *path*.  Raises ConfigError."""
    rows = [{"id": key.key_id, "secret": base64url(key.secret), "since": key.since} for key in keys]
    part = f"{path}.new"
    try:
        with suppress(FileNotFoundError):  # of a run that was killed
            os.remove(part)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(json.dumps({"schema": 1, "keys": rows}, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(folder)  # or a power cut could bring the old keys back
        finally:
            os.close(folder)
    except OSError as error:
        raise ConfigError(SETTING, path, f"cannot be written: {error.strerror}") from error


def _key(row: Any) -> ObliviousKey:
    """Return the key of a *row* of the file.  Raises ValueError, TypeError, KeyError."""
    key_id, secret, since = row["id"], from_base64url(row["secret"]), row["since"]
    if type(key_id) is not int or not 0 <= key_id < _IDS or len(secret) != KEY_SIZE:
        raise ValueError("keys: must have an identifier of a byte and a whole secret")
    return _with_secret(key_id, secret, date.fromisoformat(since).isoformat())


def _with_secret(key_id: int, secret: bytes, since: str) -> ObliviousKey:
    """Return the key with *secret*.  Raises MissingPackageError."""
    try:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    except ImportError as error:
        text = "keys of capsules need pip install hearsay-collector"
        raise MissingPackageError(text) from error
    public = X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
    return ObliviousKey(key_id=key_id, secret=secret, public=public, since=since)
