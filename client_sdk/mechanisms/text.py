"""Mechanisms over strings of an open vocabulary: nobody lists them beforehand."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import Final, NamedTuple

from ..core.errors import InvalidValueError
from .base import Array, Mechanism, Numpy
from .exact import require_ratio, spent_by
from .supports import Channel

MAX_LENGTH: Final = 128  # bytes of a string
END: Final = 257  # the symbol after the last byte of a string


class Holders(NamedTuple):
    """Unbiased *counts* of holders per cell, shape (levels, rows, columns).

    ``reports`` are those of each level and row, int64, shape (levels, rows).
    """

    counts: Array
    reports: Array


class TextMechanism(Mechanism[bytes]):
    """A mechanism over strings of up to domain_size bytes, of which any may occur.

    Prefixes of growing ``lengths`` are hashed to ``rows`` rows of ``columns`` cells a level, and a
    report tells of one cell.  Debiased are the devices of each cell; which strings they hold is for
    the collector to find out.  A string is read as symbols: its bytes plus 1, then END.
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

    @property
    @abstractmethod
    def channel(self) -> Channel:
        """The exact probabilities that a report supports its cell, and another of the same row."""

    @property
    @abstractmethod
    def likelihood_ratio(self) -> Fraction:
        """The largest Pr[payload | v] / Pr[payload | w] over all payloads and strings: e^spent."""

    @abstractmethod
    def agrees(self, payload: bytes, text: bytes) -> bool:
        """Return whether a valid payload supports the cell that *text* has in it."""

    def validate(self) -> None:
        """Refuse a channel without 0 < q < p < 1, or one that spends more than epsilon."""
        channel = self.channel
        if not 0 < channel.q < channel.p < 1:
            raise self.no_channel()
        require_ratio(self.likelihood_ratio, self.epsilon)

    @cached_property
    def spent(self) -> Fraction:
        """The logarithm of the likelihood ratio, rounded up; never above epsilon."""
        return spent_by(self.likelihood_ratio, self.epsilon)

    def require_text(self, value: bytes) -> None:
        """Raise InvalidValueError unless *value* is such a string.  It is never shown."""
        if type(value) is not bytes or len(value) > self.domain_size:
            raise InvalidValueError(self.name, f"must be bytes, at most {self.domain_size}")
