"""Distribution mechanisms: numbers whose whole distribution can be recovered from their reports.

A report is a symbol.  Its law is known exactly for every grid position (``channel_law``), and so is
the matrix that turns a distribution of positions into one of symbols.  Undoing that matrix is the
collector's work; here is only what device and collector must agree on.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

from ..core.errors import InvalidValueError
from ..core.randomness import Randomness
from ._base import Array, NoiseLaw, Numpy, Reach
from ._exact import spent_by
from ._mean import Scatter
from ._numbers import CountedReports


class DistributionMechanism(CountedReports[Fraction]):
    """A mechanism over positions in [0, domain_size - 1], rounded at random to one of ``bins``.

    Bin i stands for the position i * top / (bins - 1).  The tally is how often each of ``symbols``
    symbols was reported.
    """

    automatic = False  # a mean costs less error; the distribution is asked for by name

    bins: int  # input bins, evenly spaced from position 0 to the last

    @property
    def top(self) -> int:
        """The last grid position."""
        return self.domain_size - 1

    @property
    @abstractmethod
    def symbols(self) -> int:
        """How many different reports there are."""

    @abstractmethod
    def channel_law(self, position: int) -> Sequence[Fraction]:
        """Return the exact probability of every symbol for a value in bin *position*."""

    @property
    @abstractmethod
    def likelihood_ratio(self) -> Fraction:
        """The largest Pr[symbol | i] / Pr[symbol | j] over all symbols and bins: e^spent."""

    @cached_property
    def spent(self) -> Fraction:
        """The logarithm of the likelihood ratio, rounded up; never above epsilon."""
        return spent_by(self.likelihood_ratio, self.epsilon)

    @abstractmethod
    def scatter(self, tally: Array, n: int, np: Numpy) -> Scatter:
        """Return how much *n* > 0 unbiased reports differ, of devices drawn at random.

        Raises: InvalidTallyError: the tally cannot have come from n reports.
        """

    def channel_matrix(self, np: Numpy) -> Array:
        """Return Pr[symbol | bin] as floats, shape (symbols, bins); columns sum to 1."""
        matrix = self.__dict__.get("_matrix")
        if matrix is None:  # kept, as to divide so many fractions takes milliseconds
            laws = map(self.channel_law, range(self.bins))
            matrix = np.array([[float(p) for p in law] for law in laws]).T
            matrix.setflags(write=False)
            self.__dict__["_matrix"] = matrix
        return matrix

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """No symbol is likelier than under its likeliest bin."""
        return NoiseLaw(highest=self.channel_matrix(np).max(axis=1))

    def position_reach(self, np: Numpy) -> Reach:
        """Return the extremes of what the estimator makes of a report of each symbol."""
        single = np.eye(self.symbols, dtype=np.int64)
        stands = [float(self.debias(tally, 1, np).totals[0]) for tally in single]
        return Reach(min(stands), max(stands))

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
        if type(value) not in (Fraction, int) or not 0 <= value <= self.top:
            rule = f"must be a Fraction or int, a position from 0 to {self.top}"
            raise InvalidValueError(self.name, rule)
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
