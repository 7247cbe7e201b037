"""Mechanisms over single items: what the collector may ask of them, answered for any of them.

For a device that holds v, the sum of w_i S_i, S_i telling whether its report supports i, has

    E[(sum)^2 | v] = p w_v^2 + q (Q - w_v^2) + 2 a w_v (W - w_v) + b ((W - w_v)^2 - (Q - w_v^2))

with W = sum of w_i, Q = sum of w_i^2, a = Pr[supports v and i | v], b = Pr[supports i and j | v]
for i, j other than v.  A mechanism for which a and b are the same whatever the items states them
(``pair_law``).  Of any other the moments are found by enumeration, if its reports are few enough;
if not, the sum of standard errors bounds that of a sum, and ``knows_sums`` is false.

Derived here; p, q and the law of one item are those of Wang et al., USENIX Security 2017.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache, wraps

from ..core.errors import InvalidParameterError, InvalidTallyError, InvalidValueError
from ..core.randomness import Randomness
from ..core.typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast
from .base import Array, EpsilonLike, Mechanism, NoiseLaw, Numpy, Reach
from .supports import SupportReports

if TYPE_CHECKING:
    from .enumeration import Enumerated

_CACHED: Final = 16  # matrices of weights: slices of one question share theirs
_MOST_CACHED: Final = 1 << 16  # entries of a matrix

Law = TypeVar("Law", bound=Callable[[Any, Any, Any], Any])


class PairLaw(NamedTuple):
    """The chances that a report supports two items: its *own* and another, or two *others*."""

    own: float
    others: float


class UniformLaw(NamedTuple):
    """The chances that any payload, drawn alike from all, supports a *single* item, or a *pair*."""

    single: Fraction
    pair: Fraction


def cached_by_weights(law: Law) -> Law:
    """Keep the last answers of *law*, a method of an array of weights and numpy."""

    @lru_cache(maxsize=_CACHED)
    def remembered(mechanism: Any, text: bytes, shape: tuple[int, ...], np: Numpy) -> Any:
        return law(mechanism, np.frombuffer(text).reshape(shape), np)

    @wraps(law)
    def cached(mechanism: Any, weights: Array, np: Numpy) -> Any:
        if weights.size > _MOST_CACHED:
            return law(mechanism, weights, np)
        return remembered(mechanism, weights.astype(np.float64).tobytes(), weights.shape, np)

    return cast("Law", cached)


def mean_square_variances(
    stands: Array, counts: Array, np: Numpy, *, weights: Array, shares: Array, n: int
) -> Array:
    """Return variances from the mean square of what reports stand for, less that of the truth.

    Args: stands: of one report of each kind in each sum, shape (sums, kinds).  counts: of reports.
    """
    squares = stands**2 @ counts / n
    held = np.clip(weights**2 @ shares, 0, (weights**2).max(axis=1))
    return np.maximum(squares - held, 0) / n


class ItemMechanism(Mechanism[int]):
    """A mechanism over items 0 … domain_size - 1 that is debiased to a count of every item."""

    def require_value(self, value: int) -> None:
        """Raise InvalidValueError unless *value* is an item.  The error does not show the value."""
        if type(value) is not int or not 0 <= value < self.domain_size:
            rule = f"must be a Python int, an item below {self.domain_size}"
            raise InvalidValueError(self.name, rule)

    def enumerated(self, np: Numpy) -> Enumerated | None:
        """Return the law of all payloads, kept; None if they are too many."""
        if "_enumerated" not in self.__dict__:
            from .enumeration import enumerate_items

            self.__dict__["_enumerated"] = enumerate_items(self, np)
        return cast("Enumerated | None", self.__dict__["_enumerated"])

    def require_whole(self, tally: Array, n: int, np: Numpy) -> None:
        """Compare the sum of the cells, too, with what reports add to it, by enumeration."""
        self.debias(tally, n, np)
        law = self.enumerated(np)
        if law is None:
            return
        added = law.cells.sum(axis=1)
        if not n * int(added.min()) <= int(tally.sum()) <= n * int(added.max()):
            raise InvalidTallyError(f"tally: entries do not add up to what n={n} reports can give")

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """Return the extreme chances of every cell, by enumeration: nothing if it is too large.

        The least are stated if no report adds to two cells: these are negatively associated.
        """
        law = self.enumerated(np)
        if law is None or law.cells.min() < 0 or law.cells.max() > 1:
            return NoiseLaw()
        marginals = law.chances @ law.cells
        apart = law.cells.sum(axis=1).max() <= 1
        return NoiseLaw(
            lowest=marginals.min(axis=0) if apart else None, highest=marginals.max(axis=0)
        )

    def share_reach(self, item: int, np: Numpy) -> Reach | None:
        """Return the extremes of what the estimator makes of one report, by enumeration.

        None if it is too large, or if an estimate is not the mean of what its reports stand for.
        """
        stands = self._stands(np)
        if stands is None:
            return None
        return Reach(float(stands[:, item].min()), float(stands[:, item].max()))

    def _stands(self, np: Numpy) -> Array | None:
        """Return what one report of each payload stands for, shape (payloads, items)."""
        if "_stood" not in self.__dict__:
            self.__dict__["_stood"] = self._find_stands(np)
        return self.__dict__["_stood"]

    def _find_stands(self, np: Numpy) -> Array | None:
        law = self.enumerated(np)
        if law is None:
            return None
        stands = np.array([self.debias(cells, 1, np).totals for cells in law.cells])
        counts = 1 + np.arange(len(law.cells)) % 3  # an uneven mixture of all payloads
        totals = self.debias(counts @ law.cells, int(counts.sum()), np).totals
        return stands if np.allclose(counts @ stands, totals) else None

    def knows_sums(self, np: Numpy) -> bool:
        """Return whether ``sum_variances`` are variances rather than bounds of them."""
        return False

    def sum_variances(
        self, weights: Array, np: Numpy, *, tally: Array, n: int, shares: Array
    ) -> Array:
        """Return the variance of weighted sums of shares, shape (sums,).

        From ``sum_laws``; where they are not known, an upper bound.

        Args: weights: shape (sums, items).  shares: the unbiased shares of *tally*, which has *n*
              independent reports.
        """
        laws = self.sum_laws(weights, np)
        if laws is None:
            marginal = self.debias(tally, n, np).variances
            return (np.abs(weights) @ np.sqrt(marginal) / n) ** 2
        # Unbiased shares may be below 0; no population scatters less than its calmest devices.
        return np.clip(laws @ shares, laws.min(axis=1), laws.max(axis=1)) / n

    def pair_law(self) -> PairLaw | None:
        """Return the chances that a report supports two items; None if it matters which."""
        return None

    def sum_laws(self, weights: Array, np: Numpy) -> Array | None:
        """Return the variance of one report's sums by what its device holds; None: not known.

        Args:    weights: shape (sums, items).
        Returns: shape (sums, items).
        """
        return None


class DesignedMechanism(ItemMechanism):
    """A mechanism over items whose channel is a table of weighted sets of items.

    Two chances, in the ratio e^epsilon, tell how likely a report of a set is from those who hold
    one of its items and from all others.
    """

    @classmethod
    def fit(cls, epsilon: EpsilonLike, domain_size: int, payload_bits: int) -> Mechanism[Any]:
        """Refuse: which table is the best depends on what is asked."""
        rule = "is made for a question; hearsay registry design finds it"
        raise InvalidParameterError("table", "...", rule)

    @classmethod
    @abstractmethod
    def table_of(cls, sets: Iterable[tuple[int, int]], domain_size: int) -> dict[str, int]:
        """Return the parameters of *sets*: weight, the largest 256 to 65,535, and items as bits."""


class FrequencyOracle(SupportReports[int], ItemMechanism):
    """A mechanism whose reports support items."""

    @property
    def least_support(self) -> int:
        """A lower bound of the items that a payload supports if it supports any."""
        return 1

    def uniform_law(self) -> UniformLaw | None:
        """Return the law of ``uniform_payload``; None if there is no such payload.

        There is one if, whatever the item, all payloads that support it are equally likely, all
        others too, and equally many support each item.
        """
        return None

    def uniform_payload(self, randomness: Randomness) -> bytes:
        """Return a payload that says nothing of any item, drawn alike from all payloads."""
        raise InvalidValueError(self.name, "has no payload that says nothing of any item")

    def predict(self, n: int) -> float:
        """Return the root mean square over items of the standard error of a share.

        Derived: the mean over items of Var/n^2 for shares that sum to 1, whatever the data.
        """
        p, q, k = float(self.channel.p), float(self.channel.q), self.domain_size
        per_report = q * (1 - q) / (p - q) ** 2 + (1 - p - q) / (k * (p - q))
        return math.sqrt(per_report / n)

    def variation(self, np: Numpy) -> float:
        """Return p - q of a pure channel.

        Derived: reports that support v and not w are likelier under v, those that support w and not
        v less likely by as much, and all others the same; so p - q is the whole difference.
        """
        return float(self.channel.p - self.channel.q) if self.pure else super().variation(np)

    def share_reach(self, item: int, np: Numpy) -> Reach | None:
        """Return the reach by p and q; by enumeration of a channel that is not pure."""
        return self.support_reach if self.pure else ItemMechanism.share_reach(self, item, np)

    def report_sums(self, weights: Array, np: Numpy) -> Array | None:
        """Return the weights that a report of each cell supports, shape (sums, tally_size).

        None unless the tally counts reports one by one and a mechanism states it.
        """
        return None

    def sum_moments(self, weights: Array, np: Numpy) -> tuple[Array, Array] | None:
        """Return the moments of the sums of weights that a report supports; None: not known.

        Args:    weights: shape (sums, items).
        Returns: E[sum | v] and E[sum^2 | v], both of shape (sums, items).
        """
        pair = self.pair_law()
        if pair is None:
            law = self.enumerated(np)
            return None if law is None else self._enumerated_moments(law, weights, np)
        p, q = self.chances
        total, squares = weights.sum(axis=1)[:, None], (weights**2).sum(axis=1)[:, None]
        rest, others = total - weights, squares - weights**2
        second = p * weights**2 + q * others
        second += 2 * pair.own * weights * rest + pair.others * (rest**2 - others)
        return p * weights + q * rest, second

    def _enumerated_moments(
        self, law: Enumerated, weights: Array, np: Numpy
    ) -> tuple[Array, Array]:
        supported = np.zeros((len(law.payloads), self.domain_size))
        for row, payload in zip(supported, law.payloads, strict=True):
            row[list(self.supports(payload))] = 1
        sums = weights @ supported.T
        return sums @ law.chances.T, sums**2 @ law.chances.T

    def sum_laws(self, weights: Array, np: Numpy) -> Array | None:
        """Return them from ``sum_moments``, for a pure channel."""
        moments = self.sum_moments(weights, np) if self.pure else None
        if moments is None:
            return None
        first, second = moments
        p, q = self.chances
        return np.maximum(second - first**2, 0) / (p - q) ** 2

    def knows_sums(self, np: Numpy) -> bool:
        """Return whether pairs are alike, reports are counted one by one, or can be enumerated."""
        if not self.pure:
            return False
        return self.pair_law() is not None or self.enumerated(np) is not None

    def sum_variances(
        self, weights: Array, np: Numpy, *, tally: Array, n: int, shares: Array
    ) -> Array:
        """Return variances from reports counted one by one, or as for any items."""
        met = self.report_sums(weights, np)
        if met is not None:
            p, q = self.chances
            stands = (met - q * weights.sum(axis=1)[:, None]) / (p - q)
            counts = tally.astype(np.float64)
            return mean_square_variances(stands, counts, np, weights=weights, shares=shares, n=n)
        return super().sum_variances(weights, np, tally=tally, n=n, shares=shares)
