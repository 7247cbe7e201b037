"""Redis at the border: raw replies to our values, and its errors to ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from redis import exceptions

from ..core.errors import (
    ClassEndedError,
    CollectorError,
    ForgottenUploadError,
    NotPreparedError,
    RefusedByStoreError,
    ReplacedStoreError,
    StorageFullError,
    StorageUnavailableError,
    TallyOverflowError,
)
from .values import ClaimedEntry, Count, Counters

ENTRY: Final = b"e"  # the field of a stream entry that holds its bytes
REPORTS: Final = b"n"  # the one that holds the number of its reports
REASON: Final = b"reason"  # the one that says why it is set aside
_NAMES: Final[Mapping[type[Exception], str]] = {  # redis-py takes the code off these answers
    exceptions.OutOfMemoryError: "OOM",
    exceptions.NoPermissionError: "NOPERM",
    exceptions.ReadOnlyError: "READONLY",
    exceptions.MovedError: "MOVED",
    exceptions.AskError: "ASK",
    exceptions.TryAgainError: "TRYAGAIN",
    exceptions.ClusterDownError: "CLUSTERDOWN",
    exceptions.MasterDownError: "CLUSTERDOWN",
}
_TEXTS: Final[Mapping[str, tuple[type[CollectorError], str]]] = {
    "OOM": (StorageFullError, "is out of memory"),
    "MISCONF": (StorageFullError, "cannot write its log to disk"),
    "NOGROUP": (NotPreparedError, "lacks its consumer groups; run hearsay init"),
    "HEARSAYOVERFLOW": (TallyOverflowError, "a counter would leave its range"),
    "HEARSAYFORGOTTEN": (ForgottenUploadError, "the upload is forgotten already; a clock is wrong"),
    "HEARSAYCLASS": (ClassEndedError, "a class of lateness has ended"),
    **dict.fromkeys(
        ("MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"),
        (StorageUnavailableError, "the cluster is moving slots, or a part of it is down"),
    ),
}


@contextmanager
def translated() -> Iterator[None]:
    """Raise what redis-py raises as an error of ours."""
    try:
        yield
    except CollectorError:
        raise
    except exceptions.ResponseError as error:
        raise _translate(error) from error
    except (exceptions.RedisError, OSError) as error:
        raise StorageUnavailableError(f"store: {error}") from error


def _translate(error: exceptions.ResponseError) -> CollectorError:
    if "unction not found" in str(error):
        return NotPreparedError("store: lacks the function library; run hearsay init")
    if str(error).startswith("HEARSAYREPLACED"):
        return ReplacedStoreError()
    code = _NAMES.get(type(error), str(error).split(" ", 1)[0])
    if code in _TEXTS:
        kind, text = _TEXTS[code]
        return kind(f"store: {text}")
    return RefusedByStoreError(code if code.isupper() else "ERR")


def field(fields: Sequence[bytes], name: bytes) -> bytes:
    """Return a field of a stream entry; a foreign entry has none of ours."""
    return dict(zip(fields[::2], fields[1::2], strict=False)).get(name, b"")


def parse_claimed(reply: Sequence[Any]) -> list[ClaimedEntry]:
    """Return the entries of a claim."""
    return [ClaimedEntry(entry_id.decode(), entry, int(times)) for entry_id, entry, times in reply]


def parse_counters(reply: Sequence[Any]) -> Counters:
    """Return the counts of a shard."""
    stream, aside, flat = reply
    values = {name.decode(): int(value) for name, value in zip(flat[::2], flat[1::2], strict=True)}

    def count(state: str) -> Count:
        return Count(values.get(f"{state}.uploads", 0), values.get(f"{state}.reports", 0))

    return Counters(
        accepted=count("accepted"),
        folded=count("folded"),
        quarantined=count("quarantined"),
        dropped=count("dropped"),
        late_reports=values.get("late.reports", 0),
        stream=int(stream),
        aside=int(aside),
        pruned_reports=values.get("pruned.reports", 0),
        lost_reports=values.get("lost.reports", 0),
    )


def marks_in(reply: Sequence[bytes]) -> dict[bytes, int]:
    """Return of each metric the epoch before which all is pruned."""
    pairs = zip(reply[::2], reply[1::2], strict=True)
    return {bytes.fromhex(metric.decode()): int(epoch) for metric, epoch in pairs}


def parse_info(reply: bytes) -> dict[str, str]:
    """Return the fields of INFO as text."""
    lines = (line.partition(":") for line in reply.decode().splitlines())
    return {name: value for name, colon, value in lines if colon and not name.startswith("#")}
