"""Redis at the border: raw replies to our values, and its errors to ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from redis import exceptions

from ..errors import (
    CollectorError,
    NotPreparedError,
    RefusedByStoreError,
    StorageFullError,
    StorageUnavailableError,
    TallyOverflowError,
)

FIELD: Final = b"e"  # the field of a stream entry that holds its bytes
_NAMES: Final[Mapping[type[Exception], str]] = {  # redis-py takes the code off these answers
    exceptions.OutOfMemoryError: "OOM",
    exceptions.NoPermissionError: "NOPERM",
    exceptions.ReadOnlyError: "READONLY",
}
_TEXTS: Final[Mapping[str, tuple[type[CollectorError], str]]] = {
    "OOM": (StorageFullError, "is out of memory"),
    "MISCONF": (StorageFullError, "cannot write its log to disk"),
    "NOGROUP": (NotPreparedError, "lacks its consumer groups; run hearsay init"),
    "HEARSAYOVERFLOW": (TallyOverflowError, "a counter would leave its range"),
}


@contextmanager
def translated() -> Iterator[None]:
    """Raise what redis-py raises as an error of ours."""
    try:
        yield
    except exceptions.ResponseError as error:
        raise _translate(error) from error
    except (exceptions.RedisError, OSError) as error:
        raise StorageUnavailableError(f"store: {error}") from error


def _translate(error: exceptions.ResponseError) -> CollectorError:
    if "unction not found" in str(error):
        return NotPreparedError("store: lacks the function library; run hearsay init")
    code = _NAMES.get(type(error), str(error).split(" ", 1)[0])
    if code in _TEXTS:
        kind, text = _TEXTS[code]
        return kind(f"store: {text}")
    return RefusedByStoreError(code if code.isupper() else "ERR")


def parse_entries(reply: Sequence[Any] | None) -> list[tuple[str, bytes]]:
    """Return (id, entry) of a list of stream entries; a foreign entry has no bytes of ours."""
    return [(entry_id.decode(), _field(fields)) for entry_id, fields in reply or ()]


def _field(fields: Sequence[bytes]) -> bytes:
    return dict(zip(fields[::2], fields[1::2], strict=False)).get(FIELD, b"")


def parse_info(reply: bytes) -> dict[str, str]:
    """Return the fields of INFO as text."""
    lines = (line.partition(":") for line in reply.decode().splitlines())
    return {name: value for name, colon, value in lines if colon and not name.startswith("#")}
