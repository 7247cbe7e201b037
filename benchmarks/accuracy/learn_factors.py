"""Recommendations from one report a device, beside popularity and factors without privacy.

Run: ``HEARSAY_PUBLIC_DATA=folder python -m benchmarks learn_factors``; a bar at ε 2, ``BAR``.  The
first table is computed: how many reports bring the noise of the rule down to an eigenvalue.

The people are all visitors of a news site on one day (MSNBC, 989,818 of them), and what they like
the categories that they visited: 17, the public list.  Nobody is there twice.  A part of them is
the test, the same in every run, and reports nothing; each of the others makes one report.  Of a
visitor of the test with two likes or more one is held out, drawn by chance, and recommendations are
asked for by the others: a hit is the held-out one among the first ``SHOWN``.  Popularity, how many
of the others like an item, is counted without noise; so are the factors without privacy, of the
same rank.

Score, rank and ``SHOWN`` were settled on a part of those who report, before the test was opened.
The second table is of a population that is made up, of 50 items: no public data of that
size that may be copied is at hand (MovieLens may not, and has 943 people).

Reports are those of the mechanism: its words, its near words and its chances, drawn by numpy for
all devices of a seed at once; a test holds them against the mechanism's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import Any, Final

import numpy as np

from benchmarks.lib import page
from benchmarks.lib.public_data import opened
from client_sdk.learning.factors import Factors
from client_sdk.mechanisms import UNIT
from client_sdk.mechanisms.numbers.codebook import TABLE, Codebook, codeword
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.analytics.verb import Slice
from collector.core.errors import QueryError
from collector.learning.factors import Moment, learn

EPSILONS: Final = ("1", "2", "4")
SEEDS: Final = (1, 2, 3)  # each draws its own noise
SPLIT: Final = 20_261_123  # the seed that draws the test, once and for all
TESTED: Final = 200_000  # visitors of the test
NEEDED: Final = (17, 50, 90)  # items of the first table
EIGENVALUES: Final = (0.2, 0.05, 0.02)
SHOWN: Final = 3  # recommendations
LEAST_GAIN: Final = 0.01  # of hits; below it no part of it means anything
BAR: Final = 0.7  # of the gain of factors without privacy over popularity, at ε 2
CATEGORIES: Final = (
    *("frontpage", "news", "tech", "local", "opinion", "on-air", "misc", "weather", "msn-news"),
    *("health", "living", "business", "msn-sports", "sports", "summary", "bbs", "travel"),
)
MADE_UP: Final = (100_000, 1_000_000)  # devices of the second table
_TASTES, _ITEMS = 6, 50  # of the made-up people
_METRIC: Final = """schema = 1
app = "site"
[metrics.liked]
title = "Liked"
question = "What is liked?"
type = "taste"
values = [{values}]
epsilon = "{epsilon}"
every = "once"
longitudinal = "fresh"
expected_devices = 1000000
owner = "team"
expires = 2099-12-31
"""


@dataclass(frozen=True)
class Held:
    """People of the test: the likes that are known, shape (people, items), and the one held out."""

    known: Any
    out: Any

    @classmethod
    def of(cls, likes: Any, dice: np.random.Generator) -> Held:
        """Hold one like out of each who has two or more."""
        known = likes[likes.sum(axis=1) >= 2].copy()
        drawn = np.where(known, dice.random(known.shape), -1).argmax(axis=1)
        known[np.arange(len(known)), drawn] = False
        return cls(known, drawn)

    def hits(self, scores: Any) -> float:
        """Return how often the one held out is among the first SHOWN by *scores*."""
        open_ = np.where(self.known, -np.inf, scores)
        first = np.argsort(-open_, axis=1, kind="stable")[:, :SHOWN]
        return float((first == self.out[:, None]).any(axis=1).mean())


def metric_of(items: tuple[str, ...], epsilon: str) -> Metric:
    """Return the metric of a taste of *items*."""
    values = ", ".join(f'"{item}"' for item in items)
    return Registry.from_text(_METRIC.format(values=values, epsilon=epsilon)).metric("liked")


def visitors() -> Any:
    """Return what every visitor visited, shape (visitors, 17)."""
    with opened("msnbc_sessions.seq") as file:
        lines = [line.split() for line in list(file)[7:]]
    likes = np.zeros((len(lines), len(CATEGORIES)), dtype=bool)
    for row, pages in enumerate(lines):
        likes[row, [int(category) - 1 for category in pages]] = True
    return likes


def made_up(count: int, dice: np.random.Generator) -> Any:
    """Return the likes of *count* people who mix few of some tastes, shape (count, 50)."""
    # the tastes are the same in every run, the people are not
    tastes = np.random.default_rng(5).dirichlet(np.full(_ITEMS, 0.3), _TASTES)
    popular = np.random.default_rng(6).dirichlet(np.full(_ITEMS, 0.5))
    mixed = dice.dirichlet(np.full(_TASTES, 0.05), count) @ (0.95 * tastes + 0.05 * popular)
    sizes = dice.integers(2, 13, count)
    order = np.log(np.maximum(mixed, 1e-12)) + dice.gumbel(size=mixed.shape)
    places = (-order).argsort(axis=1).argsort(axis=1)
    return places < sizes[:, None]


def tally_of(metric: Metric, likes: Any, dice: np.random.Generator) -> Any:
    """Return the tally of one report of each row of *likes*, in the order of their seeds."""
    mechanism = metric.mechanism
    assert isinstance(mechanism, Codebook)
    kinds, of_kind = np.unique(likes, axis=0, return_inverse=True)
    labels = np.array(metric.domain.labels)
    values: list[Any] = [metric.encode(labels[kind].tolist()) for kind in kinds]
    vectors = np.array(values, dtype=float)
    half = 1 << 31
    kept = np.array([half + mechanism.length_of(value, half) for value in values]) / (2 * half)
    seeds = dice.integers(mechanism.seeds, size=len(likes))
    order = np.argsort(seeds, kind="stable")
    ends = np.searchsorted(seeds[order], np.arange(mechanism.seeds + 1))
    cells = np.zeros((2, mechanism.domain_size), dtype=np.int64)
    for seed in np.flatnonzero(np.diff(ends)).tolist():
        people = of_kind.ravel()[order[ends[seed] : ends[seed + 1]]]
        words = words_of(mechanism, seed)
        chosen = words[chosen_words(mechanism, words, vectors[people], kept[people], dice)]
        chosen = chosen.astype(np.int64)
        cells += chosen.sum(axis=0), (chosen * chosen).sum(axis=0)
    return cells.ravel()


@cache
def _pairs() -> Any:
    table = np.array(TABLE)
    return (table[:, None] + table).ravel().astype(float)


def words_of(mechanism: Codebook, seed: int) -> Any:
    """Return the words of *seed*, as floats that are whole, shape (words, domain_size)."""
    first, width = seed * mechanism.words, 2 * mechanism.domain_size
    stream = b"".join(codeword(first + word, width) for word in range(mechanism.words))
    places = np.frombuffer(stream, dtype=">u2").reshape(mechanism.words, -1)
    return _pairs()[places]


def chosen_words(
    mechanism: Codebook, words: Any, vectors: Any, kept: Any, dice: np.random.Generator
) -> Any:
    """Return the word that each of *vectors* reports, drawn as ``randomize`` draws it."""
    turned = vectors * np.where(dice.random(len(vectors)) < kept, 1, -1)[:, None]
    products = turned @ words.T  # sums of whole numbers below 2^53, so exact
    ranked = np.argsort(-products, axis=1, kind="stable")
    near, others = mechanism.subset_size, mechanism.words - mechanism.subset_size
    is_near = dice.random(len(vectors)) < float(mechanism.truth)
    places = np.where(
        is_near,
        dice.integers(near, size=len(vectors)),
        near + dice.integers(others, size=len(vectors)),
    )
    return ranked[np.arange(len(vectors)), places]


def reference(likes: Any, rank: int) -> tuple[Any, Any]:
    """Return the matrix of scores of factors without privacy, and the exact popularity."""
    sizes = np.maximum(likes.sum(axis=1, keepdims=True), 1)
    scaled = likes / np.sqrt(sizes)
    values, vectors = np.linalg.eigh(scaled.T @ scaled / len(likes))
    shown = vectors[:, ::-1][:, :rank]
    return (shown * values[::-1][:rank]) @ shown.T, likes.mean(axis=0)


def compare(
    items: tuple[str, ...], epsilon: str, likes: Any, held: Held, dice: np.random.Generator
) -> Mapping[str, float]:
    """Return hits of popularity, of factors with and without privacy, and the part of the gain."""
    metric = metric_of(items, epsilon)
    tally = tally_of(metric, likes, dice)
    try:
        factors = Factors.of(learn(Slice(metric, {}, len(likes), tally, (0,))))
    except QueryError:
        return {}
    rank = len(factors.eigenvalues)
    rows = np.array(factors.rows)
    ours = (rows * factors.eigenvalues) @ rows.T
    exact, popular = reference(likes, rank)
    hits = {
        "popularity": held.hits(np.broadcast_to(popular, held.known.shape)),
        "private": held.hits(held.known @ ours),
        "exact": held.hits(held.known @ exact),
        "rank": rank,
    }
    gain = hits["exact"] - hits["popularity"]
    return {**hits, "kept": (hits["private"] - hits["popularity"]) / gain}


def of_visitors(likes: Any) -> Iterator[tuple[str, int, Mapping[str, float]]]:
    """Yield what ``compare`` finds on the news site, by ε and seed."""
    drawn = np.random.default_rng(SPLIT).permutation(len(likes))
    held = Held.of(likes[drawn[:TESTED]], np.random.default_rng(SPLIT))
    others = likes[drawn[TESTED:]]
    for place, epsilon in enumerate(EPSILONS):
        for seed in SEEDS:
            dice = np.random.default_rng((seed, place))
            yield epsilon, seed, compare(CATEGORIES, epsilon, others, held, dice)


def of_made_up() -> Iterator[tuple[str, int, Mapping[str, float]]]:
    """Yield what ``compare`` finds on people who are made up, by ε and how many they are."""
    items = tuple(f"item {place}" for place in range(_ITEMS))
    for count in MADE_UP:
        for epsilon in EPSILONS[1:]:
            dice = np.random.default_rng(count)
            likes, held = made_up(count, dice), Held.of(made_up(50_000, dice), dice)
            yield epsilon, count, compare(items, epsilon, likes, held, dice)


def needs() -> str:
    """Return how many reports bring the noise down to an eigenvalue, as rows of Markdown."""
    rows = []
    for count in NEEDED:
        for epsilon in EPSILONS:
            mechanism = Codebook(epsilon, count * (count + 1) // 2)
            error = sqrt(mechanism.noise + 1 / mechanism.domain_size)
            bias = sqrt(2) * 2 * mechanism.bias + count / UNIT
            moment = Moment(np.zeros((count, count)), 1, error, mechanism.stretch, bias)
            reports = [moment.reports_for(eigenvalue) for eigenvalue in EIGENVALUES]
            rows.append(page.row(count, epsilon, *(f"{n:,}" if n else "–" for n in reports)))
    return "\n".join(rows)


def cells(of: Mapping[str, float]) -> tuple[str, ...]:
    """Return the columns of a row; of too few reports, which are refused, none."""
    if not of:
        return ("refused", *("–",) * 4)
    shares = (f"{of[name]:.4f}" for name in ("popularity", "private", "exact"))
    is_gain = of["exact"] - of["popularity"] >= LEAST_GAIN
    return (f"{of['rank']:.0f}", *shares, f"{100 * of['kept']:.0f} %" if is_gain else "–")


def main() -> None:
    """Print both tables, each row as soon as it is measured, and the verdict."""
    print(page.head("items", "ε", *EIGENVALUES), needs(), sep="\n", end="\n\n")
    likes = visitors()
    heads = ("factors", "popularity", "private", "not private", "gain kept")
    print(f"{len(likes) - TESTED:,} visitors report once, {TESTED:,} are tested; hits@{SHOWN}\n")
    kept = []

    def rows() -> Iterator[tuple[object, ...]]:
        for epsilon, seed, found in of_visitors(likes):
            if epsilon == "2":
                kept.append(found.get("kept", 0.0))
            yield epsilon, seed, *cells(found)

    page.show(("ε", "seed", *heads), rows())
    verdict = page.verdict(min(kept) >= BAR)
    print(f"\nat ε 2 at least {BAR:.0%} of the gain, every seed: {verdict}, {min(kept):.0%}\n")
    made = ((epsilon, f"{count:,}", *cells(found)) for epsilon, count, found in of_made_up())
    print(f"People who are made up, {_ITEMS} items of {_TASTES} tastes; hits@{SHOWN}\n")
    page.show(("ε", "devices", *heads), made)
