"""What a question costs, and how many large ones are answered at once.

Reading is what a store pays for questions: what waits to be sent counts as its memory, and a full
store takes no uploads.  So a question is priced before it reads, in counters of eight bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Final

from ..core.cells import Cell
from ..core.errors import BusyError, QueryError
from ..storage.protocols import TallyStore
from ..storage.values import Index

MOST_READ: Final = 64_000_000  # counters that one question reads: 512 MB in all, a page at a time
MOST_HELD: Final = 4_500_000  # counters of all groups of one question; each takes some 90 bytes
MOST_INDEXES: Final = 300_000  # index sets that one question reads, about a second of a store
LARGE: Final = 1_000_000  # counters from which a question is a large one: 8 MB
AT_ONCE: Final = 2  # large questions that a process answers at once
QUEUE: Final = 4  # that wait for these
_PATIENCE: Final = 10.0  # seconds that one waits


def require_affordable(tallies: int, groups: int, width: int) -> None:
    """Raise QueryError if so many tallies of *width* counters are too much for one question."""
    if tallies * width > MOST_READ:
        rule = f"would read {tallies * width} counters, must be at most {MOST_READ}"
        raise QueryError(f"date_range: {rule}; take a shorter window")
    if groups * width > MOST_HELD:
        rule = f"would give {groups} groups of {width} counters, must be {MOST_HELD // width}"
        raise QueryError(f"dimensions: {rule} at most; take fewer, or a longer stretch of time")


def require_few_indexes(epochs: int, shards: int) -> None:
    """Raise QueryError if so many epochs on so many shards are too many to look at."""
    if epochs * shards > MOST_INDEXES:
        rule = f"leaves {epochs} epochs, must be at most {MOST_INDEXES // shards} in this store"
        raise QueryError(f"date_range: {rule}; take a shorter window")


class _Question(ExitStack):
    """What is given back at the end of a question."""

    has_place = False


_question: Final[ContextVar[_Question | None]] = ContextVar("question", default=None)


@contextmanager
def one_question() -> Iterator[None]:
    """Keep a place that is taken within for as long: an answer costs more than its reading."""
    with _Question() as held:
        token = _question.set(held)
        try:
            yield
        finally:
            _question.reset(token)


class Gate:
    """Tallies of which a few large questions at once may be read; some others wait a little."""

    def __init__(self, storage: TallyStore) -> None:
        """Read from *storage*."""
        self._storage = storage
        self._free = threading.Condition()
        self.reading, self.waiting = 0, 0  # large questions

    @property
    def shards(self) -> int:
        """Number of shards."""
        return self._storage.shards

    def pruned(self, metrics: Sequence[bytes]) -> Mapping[bytes, int]:
        """Return what the store does."""
        return self._storage.pruned(metrics)

    def index(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Index:
        """Return what the store does."""
        return self._storage.index(metric, epochs, latest)

    def vectors(self, index: Index, width: int) -> Generator[tuple[Cell, bytes], None, None]:
        """Yield what the store does, of a large index once there is a place.

        Raises: BusyError: too many others wait for one, or it took too long.
        """
        if index.tallies * width < LARGE:
            yield from self._storage.vectors(index, width)
            return
        with _Question() as alone:
            question = _question.get() or alone
            if not question.has_place:
                self._take_place()
                question.callback(self._give_back)
                question.has_place = True
            yield from self._storage.vectors(index, width)

    def _give_back(self) -> None:
        with self._free:
            self.reading -= 1
            self._free.notify()

    def _take_place(self) -> None:
        with self._free:
            if self.reading >= AT_ONCE and self.waiting >= QUEUE:
                raise BusyError("questions: too many large ones wait; ask again later, or for less")
            self.waiting += 1
            try:
                if not self._free.wait_for(lambda: self.reading < AT_ONCE, _PATIENCE):
                    raise BusyError("questions: large ones are being answered; ask again later")
                self.reading += 1
            finally:
                self.waiting -= 1
