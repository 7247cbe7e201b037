"""How a search for common strings goes about it, and from which share on it finds them.  Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from statistics import NormalDist
from typing import Final

from client_sdk.mechanisms import TextMechanism

BUDGET: Final = 1 << 22  # prefixes tried a level; a second
MOST_KEPT: Final = 1 << 12  # prefixes a level
_COMMON: Final = 0.1  # of the prefixes tried, at most, noise alone keeps


@dataclass(frozen=True)
class Plan:
    """How to search: with which bytes, and how sure."""

    mechanism: TextMechanism
    alphabet: bytes  # each byte that strings may have, once
    alpha: float  # chance that any interval of the answer misses, and that a string is missed

    @property
    def most_kept(self) -> int:
        """Prefixes kept a level, so that their extensions stay within BUDGET."""
        extensions: int = len(self.alphabet) ** self.mechanism.step
        return max(16, min(MOST_KEPT, BUDGET // extensions))

    @property
    def tests(self) -> int:
        """Strings looked up at one level, at most."""
        ends: list[int] = [len(self.alphabet) ** more for more in range(self.mechanism.step + 1)]
        return max(self.most_kept * sum(ends[:-1]), sum(ends))

    @property
    def z(self) -> float:
        """Standard errors of an interval that holds for all strings looked up at once."""
        return _quantile(self.alpha / 2 / self.mechanism.levels / self.tests)

    def cut(self, error: float, tried: int) -> float:
        """Return the least share of a prefix that is kept, estimated with a standard *error*.

        Of all that are *tried* noise alone gives it to half as many as may be kept.
        """
        return _quantile(min(self.most_kept / 2 / tried, _COMMON)) * error

    def detectable(self, n: int) -> float:
        """Return the share from which on a string is found with chance 1 - alpha, given n reports.

        Derived: a string of any length is found if at every level its prefix is kept, and at the
        last one, which alone tells of the longest strings, its interval lies above 0.  The largest
        z is about 8, so it is z √(4EG/n)/(E-1) for G levels, E = e^ε.  Collisions are left out.
        At most most_kept / 2 prefixes truly have a share of 2 / most_kept: they are all kept.
        """
        error = self.mechanism.predict(max(n, 1))
        return max(self._standard_errors * error, self._floor + self._z_sure * error)

    def reports_needed(self, share: float) -> int | None:
        """Return the fewest reports of which *share* is detectable; None: of no number."""
        if share <= self._floor:
            return None
        error = min(share / self._standard_errors, (share - self._floor) / self._z_sure)
        return ceil((self.mechanism.predict(1) / error) ** 2)

    @property
    def _floor(self) -> float:
        return 2 / self.most_kept if self.mechanism.levels > 1 else 0.0

    @property
    def _standard_errors(self) -> float:
        """The standard errors of one level from which on nothing but most_kept is in the way."""
        extensions = len(self.alphabet) ** self.mechanism.step
        return max(self.cut(1.0, self.most_kept * extensions), self.z) + self._z_sure

    @property
    def _z_sure(self) -> float:
        """Standard errors above a cut that a share is missed with alpha at most, at any level."""
        return _quantile(self.alpha / (self.mechanism.levels + 1))


def _quantile(tail: float) -> float:
    """Return z above which a standard normal lies with chance *tail*."""
    return -NormalDist().inv_cdf(tail)
