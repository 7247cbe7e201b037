"""Mechanisms over strings of an open vocabulary: nobody lists them beforehand."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, NamedTuple

from ..core.errors import InvalidValueError
from .base import Array, Numpy
from .supports import ChannelMechanism

MAX_LENGTH: Final = 128  # bytes of a string
END: Final = 257  # the symbol after the last byte of a string


class Holders(NamedTuple):
    """Unbiased *counts* of holders per cell, shape (levels, rows, columns).

    ``reports`` are those of each level and row, int64, shape (levels, rows).
    """

    counts: Array
    reports: Array


class TextMechanism(ChannelMechanism[bytes]):
    """A mechanism over strings of up to domain_size bytes, of which any may occur.

    Prefixes of growing ``lengths`` are hashed to ``rows`` rows of ``columns`` cells a level, and a
    report tells of one cell.  Debiased are the devices of each cell; which strings they hold is for
    the collector to find out.  A string is read as symbols: its bytes plus 1, then END.  The
    ``channel`` is that of a report's cell, and of another of the same row.
    """

    step: int  # symbols that each further level reads, at most
    rows: int
    columns: int

    @property
    @abstractmethod
    def lengths(self) -> tuple[int, ...]:
        """The symbols of a prefix, by level; the last are those of any string."""

    @property
    def levels(self) -> int:
        """How many prefix lengths there are: the groups that devices are divided into."""
        return len(self.lengths)

    def first_level(self, length: int) -> int:
        """Return the first level that tells of the whole of strings of *length* bytes."""
        return next(level for level, end in enumerate(self.lengths) if end > length)

    @abstractmethod
    def holders(self, tally: Array, n: int, np: Numpy) -> Holders:
        """Return how many devices each cell has, of those that reported on its row.

        Raises: InvalidTallyError: another length, or cells that do not add up to n.
        """

    @abstractmethod
    def extended(self, row: int, prefixes: Array, tails: Array, length: int) -> Array:
        """Return the fingerprints of prefixes with *length* further symbols each.

        Args: prefixes: their fingerprints in *row*, 0 of none.  tails: those of the further symbols
              alone; of shapes that fit each other.  That of a single symbol is the symbol.
        """

    @abstractmethod
    def columns_at(self, level: int, row: int, fingerprints: Array) -> Array:
        """Return the columns of *fingerprints* in a row of a level, int64, of any shape."""

    @property
    @abstractmethod
    def noise(self) -> float:
        """The variance that a report of another cell adds to a cell."""

    @abstractmethod
    def agrees(self, payload: bytes, text: bytes) -> bool:
        """Return whether a valid payload supports the cell that *text* has in it."""

    def require_text(self, value: bytes) -> None:
        """Raise InvalidValueError unless *value* is such a string.  It is never shown."""
        if type(value) is not bytes or len(value) > self.domain_size:
            raise InvalidValueError(self.name, f"must be bytes, at most {self.domain_size}")
