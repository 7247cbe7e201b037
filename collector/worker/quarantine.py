"""What is set aside: list it, queue it again, or drop it.  Each step is counted in the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..core.errors import RequestError
from ..storage.protocols import Inspection
from ..storage.values import StreamEntry

ALL: Final = "all"


def name_of(entry: StreamEntry) -> str:
    """Return how people name an entry that is set aside."""
    return f"{entry.shard}/{entry.id}"


def listed(inspection: Inspection) -> Iterator[StreamEntry]:
    """Yield what is set aside, shard by shard, oldest first."""
    for shard in range(len(inspection.counters())):
        yield from inspection.set_aside(shard)


def retry(inspection: Inspection, names: Sequence[str]) -> int:
    """Queue the entries *names*, or ``all`` that are there now, again; return how many.

    Raises: RequestError: a name is none.
    """
    return sum(inspection.requeue(*place) for place in _places(inspection, names))


def drop(inspection: Inspection, names: Sequence[str]) -> int:
    """Delete the entries *names*, or ``all`` that are there now; return how many.

    Raises: RequestError: a name is none.
    """
    return sum(inspection.drop(*place) for place in _places(inspection, names))


def _places(inspection: Inspection, names: Sequence[str]) -> list[tuple[int, str]]:
    if list(names) == [ALL]:
        return [(entry.shard, entry.id) for entry in listed(inspection)]
    return [_place(name, len(inspection.counters())) for name in names]


def _place(name: str, shards: int) -> tuple[int, str]:
    shard, _, entry_id = name.partition("/")
    parts = entry_id.split("-")
    numbers = (shard, *parts)
    if len(parts) != 2 or not all(number.isascii() and number.isdigit() for number in numbers):
        raise RequestError("entry: must be named as hearsay quarantine list does, such as 0/1-7")
    if int(shard) >= shards:
        raise RequestError(f"entry: its shard must be below {shards}")
    return int(shard), entry_id
