"""Search for common strings that nobody has listed, prefix by prefix.  Pure.

Level by level the prefixes kept so far are extended by every string of ``step`` characters of an
alphabet, and those whose share is above a cut are kept.  A string that ends on the way is looked up
at once in that level and all later ones, and is a candidate if it may be common.  These levels had
no say in which strings were looked up there (but for which common ones were first taken out of the
earlier levels), so intervals that hold for all of them at once (Bonferroni) hold for whatever is
picked from them.  ``Plan`` says how a search goes about it, and from which share on it finds them.

How many are looked up at a level is decided by earlier ones, too, so each level has its part of
alpha, divided by as many as were looked up in fact.  ``certainty`` has what is said of the others.

Source: Wang, Li, Jha, IEEE TDSC 2021 (PEM).  Cuts, tests and the use of later levels are derived
    here; theirs keeps a fixed number of prefixes and takes the counts of the last level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import ceil, sqrt
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

from client_sdk.mechanisms import END, TextMechanism

from ...estimation.arrays import Bytes, Floats, Ints
from .sketches import LIKELY, Sketch, cleared, law_of

BUDGET: Final = 1 << 22  # prefixes tried a level; a second
MOST_KEPT: Final = 1 << 12  # prefixes a level
_COMMON: Final = 0.1  # of the prefixes tried, at most, noise alone keeps
_MOST_READ: Final = 1 << 15  # prefixes read again once common ones are out of the sketch
_CHUNK: Final = 1 << 15  # prefixes tried at once


class Tails(NamedTuple):
    """All strings of *length* symbols: the last END if *whole*, others of the alphabet."""

    table: Bytes  # the bytes, shape (t, length or, if whole, one less)
    fingerprints: Ints  # the fingerprints, shape (rows, t)
    length: int
    whole: bool


@dataclass(frozen=True)
class Plan:
    """How to search: with which bytes, and how sure."""

    mechanism: TextMechanism
    alphabet: bytes  # each byte that strings may have, once
    alpha: float  # chance that any interval of the answer misses, and that a string is missed
    groups: int = 1  # that one question searches, each by itself
    _tails: dict[tuple[int, bool], Tails] = field(default_factory=dict, compare=False, repr=False)

    @property
    def most_kept(self) -> int:
        """Prefixes kept a level, so that their extensions stay within BUDGET."""
        extensions: int = len(self.alphabet) ** self.mechanism.step
        return max(16, min(MOST_KEPT, BUDGET // extensions))

    @property
    def tried(self) -> int:
        """Prefixes and whole strings tried at one level, at most."""
        ends: int = sum(len(self.alphabet) ** more for more in range(self.mechanism.step + 1))
        return self.most_kept * ends

    @property
    def tests(self) -> int:
        """Strings looked up at one level, at most: by a search of a group, and one of them all."""
        ends: list[int] = [len(self.alphabet) ** more for more in range(self.mechanism.step + 1)]
        return min(self.groups, 2) * max(self.most_kept * sum(ends[:-1]), sum(ends))

    @property
    def z(self) -> float:
        """Standard errors of an interval that holds for all strings looked up at once, at most."""
        return self.z_of(self.tests)

    def z_of(self, looked_up: int) -> float:
        """Return those of which an interval holds for all that were *looked_up* at its level."""
        return _quantile(self.tail_of(looked_up))

    def tail_of(self, looked_up: int) -> float:
        """Return the chance that an interval may miss to one side."""
        return self.alpha / 2 / self.mechanism.levels / max(looked_up, 1)

    def cut(self, error: float, tried: int) -> float:
        """Return the least share of a prefix that is kept, estimated with a standard *error*.

        Of all that are *tried* noise alone gives it to half as many as may be kept, and of G groups
        to G^2 times fewer: what noise keeps is most of what a search pays for.  It stays below what
        a string must have to be sure at one level, so what is detectable is the same.
        """
        return _quantile(min(self.most_kept / 2 / self.groups**2 / tried, _COMMON)) * error

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

    def tails(self, more: int, *, whole: bool) -> Tails:
        """Return all strings of *more* bytes of the alphabet, with their END if *whole*.

        They are kept: every search by this plan tries the same.
        """
        if (more, whole) not in self._tails:
            self._tails[more, whole] = self._enumerated(more, whole)
        return self._tails[more, whole]

    def _enumerated(self, more: int, whole: bool) -> Tails:
        letters = np.frombuffer(self.alphabet, dtype=np.uint8)
        table = np.zeros((1, 0), dtype=np.uint8)
        for _ in range(more):
            before = np.repeat(table, len(letters), axis=0)
            table = np.column_stack([before, np.tile(letters, len(table))])
        symbols = [*(column.astype(np.int64) + 1 for column in table.T), *([END] if whole else [])]
        fingerprints = np.zeros((self.mechanism.rows, len(table)), dtype=np.int64)
        for row, symbol in product(range(self.mechanism.rows), symbols):
            fingerprints[row] = self.mechanism.extended(row, fingerprints[row], symbol, 1)
        return Tails(table, fingerprints, len(symbols), whole)

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


class _Prefixes(NamedTuple):
    """Prefixes of one length: their bytes, shape (k, length), and fingerprints, (rows, k)."""

    table: Bytes
    fingerprints: Ints


class _Candidates(NamedTuple):
    """Candidates: whole strings, and the fingerprints of them with their END."""

    texts: list[bytes]
    fingerprints: Ints


class Search(NamedTuple):
    """What a search comes to."""

    texts: list[bytes]  # candidates: all strings that may be common
    looked_up: tuple[int, ...]  # strings, by the first level that tells of the whole of them

    def beside(self, other: Search) -> Search:
        """Return what both come to; a string that both looked up counts twice."""
        together = zip(self.looked_up, other.looked_up, strict=True)
        return Search(
            list(dict.fromkeys(self.texts + other.texts)), tuple(sum(each) for each in together)
        )


def candidates(
    levels: Sequence[Sketch], plan: Plan, pause: Callable[[], None] = lambda: None
) -> Search:
    """Return the strings that may be common, among them all that are.

    Args: pause: is called before each part of a level, and raises if there is no time for it.
    """
    looked_up = [0] * len(levels)
    rows, n = plan.mechanism.rows, sum(level.n for level in levels)
    prefixes = _Prefixes(np.zeros((1, 0), dtype=np.uint8), np.zeros((rows, 1), dtype=np.int64))
    ended = _Candidates([], np.zeros((rows, 0), dtype=np.int64))
    for sketch, end in zip(levels, plan.mechanism.lengths, strict=True):
        length = prefixes.table.shape[1]
        for more in range(end - length):
            looked_up[sketch.level] += len(prefixes.table) * len(plan.alphabet) ** more
            fresh = _likely(
                levels[sketch.level :], prefixes, plan.tails(more, whole=True), n, pause
            )
            fingerprints = np.concatenate([ended.fingerprints, fresh.fingerprints], axis=1)
            ended = _Candidates(ended.texts + fresh.texts, fingerprints)
        if end > plan.mechanism.domain_size:
            break
        tails = plan.tails(end - length, whole=False)
        tried = len(prefixes.table) * len(tails.table)
        clean = plan.cut(sqrt(law_of([replace(sketch, crowd=0.0)], n).level), tried)
        # without company in its cells a prefix seems rarer, by what all add to the mean cell
        read = _above([sketch], prefixes, tails, clean - 1 / plan.mechanism.columns, pause)
        shares, _, rest = cleared(
            sketch, np.concatenate([ended.fingerprints, read.fingerprints], axis=1), n
        )
        shares = shares[len(ended.texts) :]
        best = np.argsort(-shares, kind="stable")[: plan.most_kept]
        best = best[shares[best] > plan.cut(sqrt(law_of([rest], n).level), tried)]
        prefixes = _Prefixes(read.table[best], read.fingerprints[:, best])
        if not len(best):
            break
    return Search(ended.texts, tuple(looked_up))


def _likely(
    levels: Sequence[Sketch],
    prefixes: _Prefixes,
    tails: Tails,
    n: int,
    pause: Callable[[], None],
) -> _Candidates:
    """Return those of the prefixes with *tails* that may be common as strings of their own."""
    law = law_of([replace(level, crowd=0.0) for level in levels], n)
    least = LIKELY * sqrt(law.level) - 1 / levels[0].mechanism.columns
    strings = _above(levels, prefixes, tails, least, pause)
    return _Candidates([row.tobytes() for row in strings.table], strings.fingerprints)


def _above(
    levels: Sequence[Sketch],
    prefixes: _Prefixes,
    tails: Tails,
    least: float,
    pause: Callable[[], None],
) -> _Prefixes:
    """Return the _MOST_READ prefixes with tails of the largest shares above *least*."""
    parts: list[tuple[Floats, Ints]] = [(np.zeros(0), np.zeros(0, dtype=np.int64))]
    many = len(tails.table)
    size, wide = max(1, _CHUNK // many), min(many, _CHUNK)
    for start, first in product(range(0, len(prefixes.table), size), range(0, many, wide)):
        pause()
        block = tails._replace(fingerprints=tails.fingerprints[:, first : first + wide])
        shares = _shares(levels, prefixes.fingerprints[:, start : start + size], block)
        good = np.flatnonzero(shares > least)
        parents, places = np.divmod(good, shares.shape[1])
        parts.append((shares.ravel()[good], (start + parents) * many + first + places))
    shares, places = (np.concatenate(column) for column in zip(*parts, strict=True))
    places = places[np.argsort(-shares, kind="stable")[:_MOST_READ]]
    parents, own = np.divmod(places, len(tails.table))
    table = np.concatenate([prefixes.table[parents], tails.table[own]], axis=1)
    extended = levels[0].mechanism.extended
    fingerprints = [
        extended(
            row, prefixes.fingerprints[row][parents], tails.fingerprints[row][own], tails.length
        )
        for row in range(len(prefixes.fingerprints))
    ]
    return _Prefixes(table, np.stack(fingerprints))


def _shares(levels: Sequence[Sketch], fingerprints: Ints, tails: Tails) -> Floats:
    """Return the shares of prefixes with tails from all *levels*, shape (prefixes, tails)."""
    reports = sum(max(level.n, 1) for level in levels)
    extended = levels[0].mechanism.extended
    together = [
        extended(row, own[:, None], tails.fingerprints[row], tails.length)
        if own.any()
        else tails.fingerprints[row][None]  # of the empty prefix, which is 0
        for row, own in enumerate(fingerprints)
    ]
    total: Floats = np.zeros(())
    for level in levels:
        columns_at = level.mechanism.columns_at
        cells = (columns_at(level.level, row, own) for row, own in enumerate(together))
        total = total + level.shares(cells) * (level.n / reports)
    return total
