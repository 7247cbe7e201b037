"""Common strings without a list: what is found, beside the rule of the published PEM.

Crowds are drawn from counts of first names, whose head is flat, and of words, whose head is steep;
all levels are simulated device by device with the laws of ``randomize``, which a test compares.
Beside it stands PEM as published: the same groups and prefix lengths, optimized local hashing in
each, the k most common prefixes kept a level, and the k most common strings of the last group; of
six letters, with the best of several lengths.

Run: ``python -m benchmarks heavy_hitters``; the numbers are seeded, but for the seconds.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from math import exp
from time import perf_counter
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.lib.page import ROOT, show
from client_sdk.mechanisms.composite.pem import PEM, column_of, fingerprint, symbols
from collector.analytics.text.certainty import sorted_out
from collector.analytics.text.search import Plan, candidates
from collector.analytics.text.sketches import shares_of, sketches_of
from collector.estimation.estimate import Estimate

_CHUNK: Final = 1 << 19  # devices drawn at once


def tally_of(mechanism: PEM, texts: Sequence[bytes], counts: Sequence[int], seed: int) -> Any:
    """Return the tally of a crowd in which as many devices as *counts* hold each of *texts*."""
    dice = np.random.default_rng(seed)
    held = np.repeat(np.arange(len(texts)), counts)
    tally = np.zeros(mechanism.tally_size, dtype=np.int64)
    cells = cells_of(mechanism, texts)
    for start in range(0, len(held), _CHUNK):
        part = held[start : start + _CHUNK]
        groups = dice.integers(mechanism.levels * mechanism.rows, size=len(part))
        told = _told(mechanism, cells[part, groups], dice)
        tally += np.bincount(groups * mechanism.oracle.points + told, minlength=tally.size)
    return tally


def cells_of(mechanism: PEM, texts: Sequence[bytes]) -> Any:
    """Return the cell of each text in each row of each level, shape (texts, levels * rows)."""
    cells = np.empty((len(texts), mechanism.levels, mechanism.rows), dtype=np.int32)
    for place, text in enumerate(texts):
        for level, length in enumerate(mechanism.lengths):
            prefix = symbols(text, length)
            for i in range(mechanism.rows):
                found = fingerprint(i, prefix)
                cells[place, level, i] = column_of(level, i, found, mechanism.columns)
    return cells.reshape(len(texts), -1)


def _told(mechanism: PEM, cells: Any, dice: Any) -> Any:
    """Return a report of each of *cells*: the number of a point."""
    oracle = mechanism.oracle
    r, t, n = oracle.order, oracle.dimension, len(cells)
    vectors = np.array([r**j + tail for j, tail in map(oracle.vector, range(mechanism.columns))])
    places = np.arange(t)
    items = vectors[cells][:, None] // r**places % r
    leading = np.array([oracle.vector(cell)[0] for cell in range(mechanism.columns)])[cells]
    orthogonal = dice.random(n) < float(oracle.channel.p)
    free = np.where(
        orthogonal, 1 + dice.integers(r ** (t - 1) - 1, size=n), dice.integers(r ** (t - 1), size=n)
    )
    product = np.where(orthogonal, 0, 1 + dice.integers(r - 1, size=n))
    lower = r**leading
    high, low = np.divmod(free, lower)
    digits = (high * r * lower + low)[:, None] // r**places % r
    digit = (product - (digits * items).sum(axis=1)) % r
    digits[np.arange(n), leading] = digit
    return _numbers(oracle, digits)


def _numbers(oracle: Any, digits: Any) -> Any:
    """Return the points of vectors of *digits*, the lowest first."""
    r, t = oracle.order, oracle.dimension
    top = t - 1 - (digits[:, ::-1] != 0).argmax(axis=1)
    inverses = np.array([0, *(pow(head, -1, r) for head in range(1, r))])
    scaled = digits * inverses[digits[np.arange(len(digits)), top]][:, None] % r
    firsts = np.array([(r**j - 1) // (r - 1) for j in range(t)])
    whole = (scaled * r ** np.arange(t)).sum(axis=1)
    return firsts[top] + whole - r**top


FOLDER: Final = ROOT / "tests" / "data" / "strings"
ALPHA: Final = 0.05
LOWER: Final = b"abcdefghijklmnopqrstuvwxyz"
LETTERS: Final = LOWER.upper() + LOWER
WORDS: Final = LOWER + b"'-"
TOP: Final = (16, 32, 64)  # the most common strings that are looked for
REPEATS: Final = 3  # crowds a setting


class Setting(NamedTuple):
    """A crowd and its metric."""

    file: str
    alphabet: bytes
    devices: int
    epsilon: str
    own: dict[str, int]  # parameters of the mechanism
    length: int = 15
    lengths: tuple[tuple[int, ...], ...] = ()  # of prefixes: what PEM is tried with; or as ours


SIX: Final = ((2, 3, 5, 7), (3, 5, 7), (4, 7), (3, 4, 5, 6, 7))
SETTINGS: Final = (
    *(Setting("first_names", LETTERS, 3_000_000, epsilon, {}) for epsilon in ("1", "2", "4")),
    Setting("first_names", LETTERS, 3_000_000, "2", {"step": 1}),
    Setting("first_names", LETTERS, 3_000_000, "4", {"rows": 12}),
    Setting("first_names", LETTERS, 3_000_000, "4", {"step": 1}),
    Setting("first_names", LETTERS, 300_000, "4", {}),
    *(Setting("words", WORDS, 3_000_000, epsilon, {}) for epsilon in ("1", "2", "4")),
    Setting("words", WORDS, 3_000_000, "4", {"step": 1}),
    Setting("words", WORDS, 3_000_000, "4", {"step": 3}),
    Setting("words", WORDS, 100_000, "2", {}),
    Setting("words", WORDS, 100_000, "4", {}),
    *(
        Setting("six letters", LOWER, 657_000, epsilon, {"step": step}, 6, SIX)
        for epsilon in ("2", "4")
        for step in (2, 3)
    ),
)


class Found(NamedTuple):
    """Of one crowd."""

    detectable: float
    common: int  # strings with a detectable share
    common_found: int
    found: int
    wrong: int  # of those found, strings that nobody has
    covered: int  # of those found, whose interval holds the truth
    likely: int
    likely_wrong: int
    likely_covered: int
    top_sure: tuple[int, ...]  # of the TOP most common, those that are sure
    top_shown: tuple[int, ...]  # or likely
    ours: tuple[int, ...]  # those among our TOP by the estimate, however unsure
    theirs: tuple[int, ...]
    seconds: float  # to search


def crowd_of(setting: Setting, seed: int) -> Counter[bytes]:
    """Return how many of the devices hold each string."""
    rows = six_letters() if setting.lengths else _counted(setting)
    weights = np.array([count for _, count in rows], dtype=float)
    drawn = np.random.default_rng(seed).multinomial(setting.devices, weights / weights.sum())
    crowd: Counter[bytes] = Counter()
    for (text, _), count in zip(rows, drawn.tolist(), strict=True):
        crowd[text] += count
    return crowd


def _counted(setting: Setting) -> list[tuple[bytes, float]]:
    with (FOLDER / f"{setting.file}.csv").open(encoding="utf-8", newline="") as lines:
        return [(text.encode()[: setting.length], int(count)) for text, count in csv.reader(lines)]


def six_letters() -> list[tuple[bytes, float]]:
    """Return names of six letters or more, cut to six, with shares that fall as a root of the rank.

    Only the last level tells of any: what is hardest to find.
    """
    names = _counted(Setting("first_names", LETTERS, 0, "1", {}, 6))
    whole = dict.fromkeys(text.lower() for text, _ in names if len(text) == 6)
    return [(text, rank**-0.5) for rank, text in enumerate(whole, start=1)]


def measure(setting: Setting, seed: int) -> Found:
    """Return what is found in one crowd."""
    crowd, n = crowd_of(setting, seed), setting.devices
    mechanism = PEM(setting.epsilon, setting.length, **setting.own)
    tally = tally_of(mechanism, list(crowd), list(crowd.values()), seed)
    plan = Plan(mechanism, setting.alphabet, ALPHA)
    start = perf_counter()
    levels = sketches_of(mechanism, tally, n)
    search = candidates(levels, plan)
    sure, likely = sorted_out(levels, plan, search)
    seconds = perf_counter() - start
    shares = shares_of(levels, search.texts, plan.z)
    found = dict(zip(search.texts, shares, strict=True))
    ranked = sorted(found, key=lambda text: -found[text].value)
    true = [text for text, _ in crowd.most_common()]
    common = [text for text in true if crowd[text] / n >= plan.detectable(n)]
    return Found(
        plan.detectable(n),
        len(common),
        sum(text in sure for text in common),
        len(sure),
        sum(not crowd[text] for text in sure),
        _holding(sure, crowd, n),
        len(likely),
        sum(not crowd[text] for text in likely),
        _holding(likely, crowd, n),
        tuple(len(set(true[:k]) & set(sure)) for k in TOP),
        tuple(len(set(true[:k]) & set(sure | likely)) for k in TOP),
        tuple(len(set(true[:k]) & set(ranked[:k])) for k in TOP),
        tuple(
            max(
                len(set(true[:k]) & set(published(setting, lengths, crowd, k, seed)))
                for lengths in setting.lengths or (mechanism.lengths,)
            )
            for k in TOP
        ),
        seconds,
    )


def _holding(shares: dict[bytes, Estimate], crowd: Counter[bytes], n: int) -> int:
    """Return how many intervals hold the truth."""
    return sum(one.ci_low <= crowd[text] / n <= one.ci_high for text, one in shares.items())


def published(
    setting: Setting, lengths: Sequence[int], crowd: Counter[bytes], k: int, seed: int
) -> list[bytes]:
    """Return the k strings that PEM as published finds, its supports drawn as binomials.

    A string that ended is marked by a byte 0, and stays as it is.
    """
    dice = np.random.default_rng([seed, k])
    odds = exp(float(setting.epsilon))
    buckets = max(2, round(odds) + 1)
    p, q = odds / (odds + buckets - 1), 1 / buckets
    texts, left = [text + b"\0" for text in crowd], np.array(list(crowd.values()))
    kept = [b""]
    for level, length in enumerate(lengths):
        group = dice.binomial(left, 1 / (len(lengths) - level))
        left = left - group
        holders: Counter[bytes] = Counter()
        for text, count in zip(texts, group.tolist(), strict=True):
            holders[text[:length]] += count
        tried = [text for prefix in kept for text in _extensions(prefix, length, setting.alphabet)]
        held = np.array([holders[text] for text in tried])
        seen = dice.binomial(held, p) + dice.binomial(int(group.sum()) - held, q)
        kept = [tried[i] for i in np.argsort(-seen, kind="stable")[:k].tolist()]
    return [text.rstrip(b"\0") for text in kept]


def _extensions(prefix: bytes, length: int, alphabet: bytes) -> list[bytes]:
    """Return all texts of *length* bytes that begin with *prefix*, or end before."""
    todo, done = [prefix], []
    while todo:
        text = todo.pop()
        if len(text) == length or text.endswith(b"\0"):
            done.append(text)
        else:
            todo += [text + bytes([byte]) for byte in (0, *alphabet)]
    return done


def row_of(setting: Setting, ones: list[Found]) -> tuple[str, ...]:
    """Return the measurements of a setting as a row; sums over its crowds."""

    def total(name: str) -> int:
        return sum(getattr(one, name) for one in ones)

    def hits(name: str) -> str:
        parts = (
            f"{sum(getattr(one, name)[place] for one in ones) / len(ones):.0f}/{k}"
            for place, k in enumerate(TOP)
        )
        return ", ".join(parts)

    own = "".join(f", {name} {number}" for name, number in setting.own.items())
    return (
        f"{setting.file}, ε {setting.epsilon}, {setting.devices:,}{own}",
        f"{100 * ones[0].detectable:.2f} %",
        f"{total('common_found')} of {total('common')}",
        f"{total('found')}",
        f"{total('wrong')}",
        f"{total('covered')}",
        f"{total('likely')}",
        f"{total('likely_wrong')}",
        f"{total('likely_covered')}",
        hits("top_sure"),
        hits("top_shown"),
        hits("ours"),
        hits("theirs"),
        f"{total('seconds') / len(ones):.1f}",
    )


def main() -> None:
    """Print the table, line by line."""
    heads = ("crowd", "detectable share", "at least that common, and found", "sure",
             "held by nobody", "intervals that hold", "likely", "held by nobody",
             "intervals that hold", "sure of the top", "sure or likely", "ours by estimate",
             "PEM as published", "seconds")  # fmt: skip
    crowds = ((one, [measure(one, seed) for seed in range(REPEATS)]) for one in SETTINGS)
    show(heads, (row_of(*crowd) for crowd in crowds))
