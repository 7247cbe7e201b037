"""Families of mechanisms: reports of one number, means, sets of items, distributions, strings.

A report of one number is big-endian, in as few whole bytes as hold the largest.  A mean mechanism
turns a position on a public grid into an unbiased noisy position.  A set mechanism says which items
a device holds, however many.

The reports of a distribution mechanism are symbols.  The law of a symbol is known exactly for every
grid position (``channel_law``), and so is the matrix that turns a distribution of positions into
one of symbols.  Undoing that matrix is the collector's work; here is only what device and collector
must agree on.

Strings are of an open vocabulary: nobody lists them beforehand.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from math import gcd

from ..core.errors import InvalidTallyError, InvalidValueError
from ..core.randomness import Randomness
from ..core.typing import ClassVar, Final, NamedTuple
from .base import (
    Array,
    Mechanism,
    NoiseLaw,
    Numpy,
    RatioMechanism,
    Reach,
    Value,
    column,
    width_of,
)
from .supports import ChannelMechanism, SupportReports

MAX_LENGTH: Final = 128  # bytes of a string
END: Final = 257  # the symbol after the last byte of a string
_DECODABLE: Final = 2  # bytes of a payload, all of which are decoded in a tenth of a second


class Scatter(NamedTuple):
    """How much *reports* differ, and at most the *positions* they are of: in grid steps squared.

    Reports hold both, the noise and the differences of positions.
    """

    reports: float
    positions: float


class NumberReports(Mechanism[Value]):
    """A mechanism whose payload is a number below ``payload_count``."""

    beyond: ClassVar[str] = "number_out_of_range"  # the reason to refuse a larger one

    @property
    @abstractmethod
    def payload_count(self) -> int:
        """How many different payloads there are."""

    @cached_property
    def payload_size(self) -> int:
        """1, 2, 4 or 8 bytes, the fewest that hold every report."""
        return width_of(self.payload_count)

    def reason(self, payload: bytes) -> str | None:
        """Refuse a number that no value gives."""
        return None if int.from_bytes(payload, "big") < self.payload_count else self.beyond

    def faults(self, payloads: bytes, np: Numpy) -> dict[str, Array]:
        """Compare the whole column with the number of reports."""
        return {self.beyond: column(payloads, self.payload_size, np) >= self.payload_count}

    def report_counts(self, payloads: bytes, np: Numpy) -> Array:
        """Return how often each report occurs in the column, int64, shape (payload_count,)."""
        return np.bincount(column(payloads, self.payload_size, np), minlength=self.payload_count)


class CountedReports(NumberReports[Value]):
    """A mechanism whose tally is how often each report occurs."""

    @property
    def tally_size(self) -> int:
        """One cell a report."""
        return self.payload_count

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Count the reports of the whole column."""
        return self.report_counts(payloads, np)

    def require_sum(self, tally: Array, n: int) -> None:
        """Raise InvalidTallyError unless *tally* has n reports, each counted in one cell."""
        if tally.min() < 0 or tally.max() > n or int(tally.sum()) != n:
            raise InvalidTallyError(f"tally: entries must be at least 0 and add up to n={n}")

    def require_whole(self, tally: Array, n: int, np: Numpy) -> None:
        """Debiasing may not need the reports to add up, but they must."""
        self.debias(tally, n, np)
        self.require_sum(tally, n)


class PositionMechanism(Mechanism[Fraction]):
    """A mechanism over positions in [0, domain_size - 1], which numbers are mapped to."""

    @property
    def top(self) -> int:
        """The last grid position, M: the sensitivity of a position."""
        return self.domain_size - 1

    def require_value(self, value: Fraction) -> None:
        """Raise InvalidValueError unless *value* is a position.  The error does not show it."""
        if type(value) not in (Fraction, int) or not 0 <= value <= self.top:
            rule = f"must be a Fraction or int, a position from 0 to {self.top}"
            raise InvalidValueError(self.name, rule)


class MeanMechanism(PositionMechanism):
    """A mechanism over positions whose reports average to the position."""

    @abstractmethod
    def decode(self, payload: bytes) -> Fraction:
        """Return the noisy position in a valid payload."""

    @abstractmethod
    def variance_of(self, position: Fraction) -> float:
        """Return the variance of one report of a device at *position*, in grid steps squared."""

    @property
    @abstractmethod
    def worst_variance(self) -> float:
        """A bound of the variance of one report at any position, in grid steps squared."""

    def scatter(self, tally: Array, n: int, np: Numpy) -> Scatter:
        """Return how much *n* > 0 reports differ, of devices drawn at random.

        This is a bound, from the mean alone; a mechanism whose tally tells the squares of its
        reports returns their sample variance.

        Raises: InvalidTallyError: the tally cannot have come from n reports.
        """
        spread = largest_spread(float(self.debias(tally, n, np).totals[0]) / n, self.top)
        return Scatter(self.worst_variance + spread, spread)

    def round_to_steps(self, value: Fraction, steps: int, randomness: Randomness) -> int:
        """Round *value* to one of 0 … *steps*, which span the range, and keep its expectation.

        Raises: InvalidValueError: not a Fraction or int in [0, top]; nothing was drawn.
        """
        self.require_value(value)
        shared = gcd(steps, self.top)
        whole = value.denominator * (self.top // shared)
        below, rest = divmod(value.numerator * (steps // shared), whole)
        if rest and randomness.bernoulli_ratio(rest, whole):
            return below + 1
        return below

    def position_reach(self, np: Numpy) -> Reach | None:
        """Return the positions of the extreme reports, found by decoding all of up to two bytes.

        None of longer ones, unless a mechanism knows which are extreme.
        """
        if self.payload_size > _DECODABLE:
            return None
        numbers = range(1 << 8 * self.payload_size)
        payloads = (number.to_bytes(self.payload_size, "big") for number in numbers)
        return reach_of(
            self.decode(payload) for payload in payloads if self.reason(payload) is None
        )

    def predict(self, n: int) -> float:
        """Return the standard error of the mean as a part of the range; the worst case."""
        return float((self.worst_variance / n) ** 0.5 / self.top)


class SetMechanism(SupportReports[frozenset[int]]):
    """A mechanism over sets of the items 0 … domain_size - 1, debiased to a count of every item.

    Of ``channel``, p is the chance that a report supports an item of a set that is not too large,
    and q the chance that it supports an item that the set lacks.  So the counts are unbiased if no
    set was too large.  The variance holds for sets as for items: a device supports an item by a
    coin of chance p if it holds it and q if not.
    """

    @property
    @abstractmethod
    def most(self) -> int:
        """The largest sets for which the counts are unbiased, in items."""

    def require_value(self, value: frozenset[int]) -> None:
        """Raise InvalidValueError unless *value* is a frozenset of items.  It is never shown."""
        if type(value) is not frozenset or not all(
            type(item) is int and 0 <= item < self.domain_size for item in value
        ):
            raise InvalidValueError(self.name, f"must be a set of items below {self.domain_size}")

    def predict(self, n: int) -> float:
        """Return the root mean square over items of the standard error of a share.

        Derived: the mean over items of Var/n^2 when every set holds ``most`` items, so that the
        shares sum to it.  Smaller sets err less.
        """
        p, q = float(self.channel.p), float(self.channel.q)
        share = self.most / self.domain_size
        per_report = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2
        return math.sqrt(per_report / n)


class DistributionMechanism(CountedReports[Fraction], PositionMechanism, RatioMechanism[Fraction]):
    """A mechanism over positions, rounded at random to one of ``bins``.

    Bin i stands for the position i * top / (bins - 1).  The tally is how often each of ``symbols``
    symbols was reported.
    """

    automatic = False  # a mean costs less error; the distribution is asked for by name

    bins: int  # input bins, evenly spaced from position 0 to the last

    @property
    @abstractmethod
    def symbols(self) -> int:
        """How many different reports there are."""

    @abstractmethod
    def channel_law(self, position: int) -> Sequence[Fraction]:
        """Return the exact probability of every symbol for a value in bin *position*."""

    @abstractmethod
    def scatter(self, tally: Array, n: int, np: Numpy) -> Scatter:
        """Return how much *n* > 0 unbiased reports differ, of devices drawn at random.

        Raises: InvalidTallyError: the tally cannot have come from n reports.
        """

    def channel_matrix(self, np: Numpy) -> Array:
        """Return Pr[symbol | bin] as floats, shape (symbols, bins); columns sum to 1."""
        matrix = self.__dict__.get("_matrix")
        if matrix is None:  # it is kept, as dividing so many fractions takes milliseconds
            laws = map(self.channel_law, range(self.bins))
            matrix = np.array([[float(p) for p in law] for law in laws]).T
            matrix.setflags(write=False)
            self.__dict__["_matrix"] = matrix
        return matrix

    def variation(self, np: Numpy) -> float:
        """Return the largest over all pairs of bins; positions between are mixtures of these."""
        matrix = self.channel_matrix(np)
        return (
            max(
                float(np.abs(matrix - bin_law).sum(axis=0).max())
                for bin_law in matrix.T[:, :, None]
            )
            / 2
        )

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """No symbol is likelier than under its likeliest bin."""
        return NoiseLaw(highest=self.channel_matrix(np).max(axis=1))

    def position_reach(self, np: Numpy) -> Reach:
        """Return the extremes of what the estimator makes of a report of each symbol."""
        single = np.eye(self.symbols, dtype=np.int64)
        return reach_of(self.debias(tally, 1, np).totals[0] for tally in single)

    def spread(self, shares: Array, np: Numpy) -> Array:
        """Return the symbol law of a distribution: *shares*, shape (…, bins), to (…, symbols)."""
        return shares @ self.channel_matrix(np).T

    def gather(self, weights: Array, np: Numpy) -> Array:
        """Return the transpose of ``spread``: *weights*, shape (…, symbols), to (…, bins)."""
        return weights @ self.channel_matrix(np)

    def bin_of(self, value: Fraction, randomness: Randomness) -> int:
        """Round *value* up or down to a bin at random so that its expectation is kept.

        Raises: InvalidValueError: not a Fraction or int in [0, top]; nothing was drawn.
        """
        self.require_value(value)
        scaled = Fraction(value) * (self.bins - 1) / self.top
        below, rest = divmod(scaled.numerator, scaled.denominator)
        if rest and randomness.bernoulli_ratio(rest, scaled.denominator):
            return below + 1
        return below

    @property
    def payload_count(self) -> int:
        """One report a symbol."""
        return self.symbols

    def require_counts(self, tally: Array, n: int, np: Numpy) -> Array:
        """Return *tally* as int64, or raise InvalidTallyError unless it counts n symbols."""
        counts = self.require_tally(tally, n, np)
        self.require_sum(counts, n)
        return counts


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

    def require_value(self, value: bytes) -> None:
        """Raise InvalidValueError unless *value* is such a string.  It is never shown."""
        if type(value) is not bytes or len(value) > self.domain_size:
            raise InvalidValueError(self.name, f"must be bytes, at most {self.domain_size}")


def largest_spread(mean: float, top: int) -> float:
    """Return the largest variance that positions from 0 to *top* of this *mean* can have.

    Source: Bhatia, Davis, American Mathematical Monthly 2000.
    """
    inside = min(max(mean, 0.0), float(top))
    return inside * (top - inside)


def reach_of(positions: Iterable[Fraction | float]) -> Reach:
    """Return the least and the greatest of *positions*."""
    numbers = [float(position) for position in positions]
    return Reach(min(numbers), max(numbers))
