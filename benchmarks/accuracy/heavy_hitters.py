"""Common strings without a list: what is found, beside the rule of the published PEM.

Crowds are drawn from counts of first names, whose head is flat, and of words, whose head is steep;
all levels are simulated device by device with the laws of ``randomize``, which a test compares.
Beside it stands PEM as published: the same groups and prefix lengths, optimized local hashing in
each, the k most common prefixes kept a level, and the k most common strings of the last group.

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
from collector.analytics.text.search import Plan, candidates
from collector.analytics.text.sketches import shares_of, sketches_of

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
TOP: Final = (16, 64)  # the most common strings that are looked for
REPEATS: Final = 3  # crowds a setting


class Setting(NamedTuple):
    """A crowd and its metric."""

    file: str
    alphabet: bytes
    devices: int
    epsilon: str
    own: dict[str, int]  # parameters of the mechanism
    length: int = 15


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
)


class Found(NamedTuple):
    """Of one crowd."""

    detectable: float
    common: int  # strings with a detectable share
    common_found: int
    found: int
    wrong: int  # of those found, strings that nobody has
    covered: int  # of those found, whose interval holds the truth
    ours: tuple[int, ...]  # of the TOP most common, those among our TOP
    theirs: tuple[int, ...]
    seconds: float  # to search


def crowd_of(setting: Setting, seed: int) -> Counter[bytes]:
    """Return how many of the devices hold each string."""
    with (FOLDER / f"{setting.file}.csv").open(encoding="utf-8", newline="") as lines:
        rows = [(text.encode()[: setting.length], int(count)) for text, count in csv.reader(lines)]
    weights = np.array([count for _, count in rows], dtype=float)
    drawn = np.random.default_rng(seed).multinomial(setting.devices, weights / weights.sum())
    crowd: Counter[bytes] = Counter()
    for (text, _), count in zip(rows, drawn.tolist(), strict=True):
        crowd[text] += count
    return crowd


def measure(setting: Setting, seed: int) -> Found:
    """Return what is found in one crowd."""
    crowd, n = crowd_of(setting, seed), setting.devices
    mechanism = PEM(setting.epsilon, setting.length, **setting.own)
    tally = tally_of(mechanism, list(crowd), list(crowd.values()), seed)
    plan = Plan(mechanism, setting.alphabet, ALPHA)
    start = perf_counter()
    levels = sketches_of(mechanism, tally, n)
    texts = candidates(levels, plan)
    found = dict(zip(texts, shares_of(levels, texts, plan.z), strict=True))
    seconds = perf_counter() - start
    sure = {text: one for text, one in found.items() if one.ci_low > 0}
    ranked = sorted(found, key=lambda text: -found[text].value)
    true = [text for text, _ in crowd.most_common()]
    common = [text for text in true if crowd[text] / n >= plan.detectable(n)]
    return Found(
        plan.detectable(n),
        len(common),
        sum(text in sure for text in common),
        len(sure),
        sum(not crowd[text] for text in sure),
        sum(one.ci_low <= crowd[text] / n <= one.ci_high for text, one in sure.items()),
        tuple(len(set(true[:k]) & set(ranked[:k])) for k in TOP),
        tuple(
            len(set(true[:k]) & set(published(mechanism, setting.alphabet, crowd, k, seed)))
            for k in TOP
        ),
        seconds,
    )


def published(
    mechanism: PEM, alphabet: bytes, crowd: Counter[bytes], k: int, seed: int
) -> list[bytes]:
    """Return the k strings that PEM as published finds, its supports drawn as binomials.

    A string that ended is marked by a byte 0, and stays as it is.
    """
    dice = np.random.default_rng([seed, k])
    odds = exp(float(mechanism.epsilon))
    buckets = max(2, round(odds) + 1)
    p, q = odds / (odds + buckets - 1), 1 / buckets
    texts, left = [text + b"\0" for text in crowd], np.array(list(crowd.values()))
    kept = [b""]
    for level, length in enumerate(mechanism.lengths):
        group = dice.binomial(left, 1 / (mechanism.levels - level))
        left = left - group
        holders: Counter[bytes] = Counter()
        for text, count in zip(texts, group.tolist(), strict=True):
            holders[text[:length]] += count
        tried = [text for prefix in kept for text in _extensions(prefix, length, alphabet)]
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
        hits("ours"),
        hits("theirs"),
        f"{total('seconds') / len(ones):.1f}",
    )


def main() -> None:
    """Print the table, line by line."""
    heads = ("crowd", "detectable share", "at least that common, and found", "found",
             "of these held by nobody", "intervals that hold", "ours among the top",
             "PEM as published", "seconds")  # fmt: skip
    crowds = ((one, [measure(one, seed) for seed in range(REPEATS)]) for one in SETTINGS)
    show(heads, (row_of(*crowd) for crowd in crowds))
