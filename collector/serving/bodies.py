"""Bodies of requests, read within a size and a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final, Protocol

from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined]  # its stub leaves it out

from ..core.errors import BodyTooLargeError, SlowBodyError


class Fields(Protocol):
    """The headers of a request, by name in small letters."""

    def get(self, name: str, /) -> str | None:
        """Return the first field called *name*."""

    def get_all(self, name: str, /) -> list[str]:
        """Return all fields called *name*."""

    def __iter__(self) -> Iterator[str]:
        """Return the names."""


class Scope(Protocol):
    """The head of a request, as the server hands it over."""

    http_version: str
    server: str
    client: str
    scheme: str
    method: str
    path: str
    query_string: str
    authority: str | None

    @property
    def headers(self) -> Fields:
        """The headers."""


class Channel(Protocol):
    """The body of a request, whole or in parts, and the way of its answer."""

    async def __call__(self) -> bytes:
        """Return the whole body."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Return the parts of the body."""

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes, /) -> None:
        """Answer."""


SWEEP_S: Final = 0.5  # seconds between two looks for bodies that are late


def require_size(size: int, limit: int) -> None:
    """Raise BodyTooLargeError if *size* bytes are more than *limit*."""
    if size > limit:
        raise BodyTooLargeError(f"the body may have at most {limit} bytes here")


def length_of(fields: Fields) -> int | None:
    """Return how many bytes of body the headers *fields* announce; None if they say nothing."""
    length = fields.get("content-length")
    return None if length is None else int(length)  # digits: the server has checked it


class Bodies:
    """The bodies that are on their way to one process."""

    def __init__(self) -> None:
        self._until: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()

    async def read(
        self,
        protocol: Channel,
        length: int | None,
        limit: int,
        patience: float,
        claim: Callable[[int], None] | None = None,
    ) -> bytes:
        """Return the body.

        Without a *length* a body that is cut off ends as a whole one does: it must be of a form
        that no part of it has.

        Args:   length: bytes that were announced, if any were.  limit: bytes that it may have.
                patience: seconds in which it must come.
                claim: called with the size of each part as it comes; may refuse it.
        Raises: SlowBodyError, BodyTooLargeError, ProtocolClosed: less than *length* came.
        """
        require_size(length or 0, limit)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # for the type checker: the server makes a task
        self._until[task] = asyncio.get_running_loop().time() + patience
        try:
            if length is not None and claim is None:
                return await protocol()
            parts, size = [], 0
            async for part in protocol:
                size += len(part)
                require_size(size, limit)
                if claim is not None:
                    claim(len(part))
                parts.append(part)
        except asyncio.CancelledError:
            if task not in self._late:
                raise
            task.uncancel()
            raise SlowBodyError(f"the body must arrive within {patience:.0f} s") from None
        finally:
            del self._until[task]
            self._late.discard(task)
        if size < (length or 0):
            raise ProtocolClosed
        return b"".join(parts)

    def give_up(self, now: float) -> None:
        """End the reading of what should have come before *now*, by the clock of the loop."""
        for task in [task for task, until in self._until.items() if until < now]:
            self._late.add(task)
            task.cancel()
