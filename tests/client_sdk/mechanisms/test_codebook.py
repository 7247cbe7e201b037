"""The codebook: words, near words, estimates and their bias, and privacy whatever is near."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.core.errors import InvalidTallyError
from client_sdk.mechanisms import UNIT, Vector
from client_sdk.mechanisms.numbers.codebook import (
    LARGEST,
    TABLE,
    VARIANCE,
    Codebook,
    best_of,
    best_size,
)
from tests.client_sdk.mechanisms.test_privacy_law import likelihood_bound_holds
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.enumeration.vectors import Small, laws
from tests.support.references import codebook_reference as reference

DEVIATION: Final = math.sqrt(VARIANCE)
SIZES: Final = (108, 88, 55, 31, 17, 8, 4, 2, 1)  # near words of epsilon 0.5 to 16
REPORTS: Final = 600
ERRORS: Final = 6.5  # standard errors; beyond them lies less than 1e-9 of twelve normal numbers


def random(mechanism: Codebook, value: Vector, n: int) -> Any:
    """Return the tally of *n* reports of *value*; the same ones in every run."""
    randomness = SeededRandomness(f"{value}".encode())
    return mechanism.tally(b"".join(mechanism.randomize(value, randomness) for _ in range(n)), np)


def reports_average_to_the_vector(kind: type[Codebook]) -> None:
    """Hold the mean of REPORTS reports against vectors of one number, short and of many."""
    mechanism = kind("4", 4)
    for value in ((UNIT, 0, 0, 0), (0, UNIT // 4, 0, 0), (UNIT // 2,) * 4):
        totals, variances = mechanism.debias(random(mechanism, value, REPORTS), REPORTS, np)
        truth = (np.array(value) / UNIT + 1) / 2
        off = np.abs(totals / REPORTS - truth) - mechanism.bias
        assert (off <= ERRORS * np.sqrt(variances) / REPORTS).all()


def test_reports_average_to_the_vector() -> None:
    reports_average_to_the_vector(Codebook)


def test_the_table_holds_the_means_of_equal_parts_of_the_normal_law() -> None:
    assert reference.entries() == TABLE
    assert [-x for x in TABLE[::-1]] == list(TABLE)


@pytest.mark.parametrize("length", [2, 7, 130])
def test_the_tally_adds_up_the_words_of_the_definition_and_their_squares(length: int) -> None:
    mechanism = Codebook("1", length)
    numbers = [0, 1, 255, 256, 77_777, 77_777, (1 << 24) - 1]
    words = np.array([reference.word(number, length) for number in numbers])

    tally = mechanism.tally(b"".join(number.to_bytes(4, "big") for number in numbers), np)

    assert tally.tolist() == [*words.sum(axis=0).tolist(), *(words**2).sum(axis=0).tolist()]


def test_a_tally_of_more_words_than_a_chunk_is_that_of_all() -> None:
    mechanism, number = Codebook("1", 4_096), (5).to_bytes(4, "big")

    tally = mechanism.tally(number * 300, np)

    assert tally.tolist() == (300 * mechanism.tally(number, np)).tolist()


@pytest.mark.parametrize("length", [2, 33, 400])
def test_words_are_ranked_by_their_product_the_first_of_equal_ones_first(length: int) -> None:
    mechanism, dice = Codebook("1", length), np.random.default_rng(length)
    value = tuple(int(x) for x in dice.integers(-UNIT, UNIT + 1, length))
    words = np.array([reference.word(512 + m, length) for m in range(256)])
    products = [sum(map(int.__mul__, value, word)) for word in words.tolist()]

    ranked = mechanism.ranked(512, value)

    assert ranked == sorted(range(256), key=lambda word: (-products[word], word))
    assert mechanism.ranked(512, (0,) * length) == list(range(256))


def test_the_largest_products_that_can_be_stay_in_their_lanes() -> None:
    mechanism = Codebook("1", 4_096, cube=1)
    value = tuple(UNIT if entry % 3 else -UNIT for entry in range(4_096))
    words = np.array([reference.word(m, 4_096) for m in range(256)])

    products = mechanism.products(0, value)

    apart = np.array(products, dtype=object) - words.astype(object) @ np.array(value, dtype=object)
    assert len(set(apart.tolist())) == 1


class _Wrong(Codebook):
    """Its products are not those of any vector: what a broken platform might compute."""

    def products(self, first: int, value: Vector) -> list[int]:
        strange = [float("nan"), float("inf"), -7.5, 0.0]
        return [strange[(word + sum(value)) % 4] for word in range(self.words)]  # type: ignore[misc]  # meant


def test_privacy_holds_whatever_words_are_near() -> None:
    mechanism = _Wrong("1", 2, words=4, subset_size=2, seeds=2)

    found = laws(Small("wrong", mechanism, Fraction(0)))

    assert not likelihood_bound_holds(found, Fraction(1))
    assert likelihood_bound_holds(found, mechanism.likelihood_ratio)


@pytest.mark.parametrize("words", [4, 16, 256])
def test_the_mean_of_the_largest_is_that_of_order_statistics(words: int) -> None:
    for size in {1, 2, words // 3, words // 2, words - 1}:
        assert best_of(words, size).mean == pytest.approx(
            reference.mean_of_best(words, size), rel=1e-10
        )


@cache
def optimum(epsilon: float) -> float:
    """Return C of PrivUnitG: the least over q of (q (1-q) / (φ(z_q) (P_q - q)))^2."""
    normal, odds = NormalDist(), math.exp(epsilon)
    gains = []
    for step in range(1, 20_000):
        q = step / 20_000
        truth = q * odds / (q * odds + 1 - q)
        gains.append(normal.pdf(normal.inv_cdf(q)) * (truth - q) / (q * (1 - q)))
    return 1 / max(gains) ** 2


@pytest.mark.parametrize(
    ("epsilon", "published"),
    [("0.5", 25.18), ("1", 6.330), ("2", 1.617), ("3", 0.7425), ("4", 0.4353), ("5", 0.2920)],
)
def test_the_error_is_within_3_percent_of_the_optimum(epsilon: str, published: float) -> None:
    assert optimum(float(epsilon)) == pytest.approx(published, rel=1e-3)

    assert 1 < Codebook(epsilon, 1_024).noise / optimum(float(epsilon)) <= 1.03


def test_the_size_is_the_best_but_for_half_a_percent() -> None:
    """The choice is of integers alone, from the table; the errors are those of normal words."""
    for epsilon in ("0.1", "0.5", "1", "2", "3", "4", "5", "8"):
        sizes = range(1, 160)
        errors = [Codebook(epsilon, 9, subset_size=size).noise for size in sizes]
        assert Codebook(epsilon, 9).noise <= 1.005 * min(errors)
    assert [best_size(Fraction(math.exp(e)), 256) for e in (0.5, 1, 2, 3, 4, 5)] == [*SIZES[:6]]


@cache
def coordinate_law() -> tuple[Any, Any]:
    """Return the values of a coordinate of a word, in deviations, and their chances."""
    sums = np.add.outer(TABLE, TABLE).ravel()
    values, counts = np.unique(sums, return_counts=True)
    return values / DEVIATION, counts / counts.sum()


def near_means(products: Any, chances: Any, columns: Sequence[Any], size: int) -> list[float]:
    """Return the mean of each of *columns* over near words; equal products are shared evenly.

    As in ``best_of``: given the chance p that a word is above the next largest, which is a Beta
    number, near words are independent ones of those above it.
    """
    places = (np.arange(8_000) + 0.5) / 8_000
    scale = math.lgamma(257) - math.lgamma(size + 1) - math.lgamma(256 - size)
    weights = np.exp(scale + size * np.log(places) + (255 - size) * np.log1p(-places))
    order = np.argsort(-products, kind="stable")
    above = np.concatenate([[0], np.cumsum(chances[order])])
    means = []
    for column in columns:
        upto = np.concatenate([[0], np.cumsum((column * chances)[order])])
        inside = np.interp(places, above, upto) / places
        means.append(float((weights * inside).sum() / weights.sum()))
    return means


def biases(size: int) -> Iterator[tuple[float, float]]:
    """Yield what vectors of one and of two coordinates are off by, each in parts of the bound."""
    values, chances = coordinate_law()
    mean = best_of(256, size).mean
    (alone,) = near_means(values, chances, [values], size)
    yield alone / mean - 1, 0.0
    few = np.array_split(np.arange(values.size), 500)
    centres = np.array([np.average(values[part], weights=chances[part]) for part in few])
    masses = np.array([chances[part].sum() for part in few])
    first, second = np.repeat(values, 500), np.tile(centres, values.size)
    together = np.repeat(chances, 500) * np.tile(masses, values.size)
    for angle in (1e-7, 0.2, 0.5, math.pi / 4):  # the first: the second only decides between equals
        turned = math.cos(angle) * first + math.sin(angle) * second
        means = near_means(turned, together, [first, second], size)
        yield means[0] / mean - math.cos(angle), means[1] / mean - math.sin(angle)


@pytest.mark.slow
def test_the_bias_of_sparse_vectors_is_within_what_intervals_allow() -> None:
    """By the law of words, without a draw."""
    for size in SIZES:
        stated = 2 * Codebook("1", 2, subset_size=size).bias
        assert max(abs(off) for both in biases(size) for off in both) <= stated
    assert 2 * Codebook("5", 2).bias <= 0.005


@pytest.mark.parametrize("size", SIZES)
def test_the_bias_of_a_single_coordinate_is_within_what_intervals_allow(size: int) -> None:
    values, chances = coordinate_law()

    (alone,) = near_means(values, chances, [values], size)

    off = abs(alone / best_of(256, size).mean - 1)
    assert 1e-5 < off <= 2 * Codebook("1", 2, subset_size=size).bias


def test_words_of_one_byte_a_coordinate_would_be_off_by_more() -> None:
    """Control: a small coordinate beside a large one decides between words that are equal."""
    one = np.array(TABLE) / math.sqrt(sum(x * x for x in TABLE) / 256)
    first, second = np.repeat(one, 256), np.tile(one, 256)

    means = near_means(first + 1e-6 * second, np.full(1 << 16, 2.0**-16), [second], 8)

    assert means[0] / best_of(256, 8).mean > 10 * 2 * Codebook("5", 2).bias / 2


def test_what_a_finite_codebook_adds_is_what_its_seeds_scatter() -> None:
    """Of vectors along one coordinate, the others are 0 in the mean and scatter over seeds."""
    mechanism, value, seeds = Codebook("1", 24), (UNIT,) + 23 * (0,), 40
    others, gain = 256 - mechanism.subset_size, mechanism.gain
    truth, means = float(mechanism.truth), []
    for seed in range(seeds):
        words = np.array([reference.word(256 * seed + m, 24) for m in range(256)])
        near = words[mechanism.ranked(256 * seed, value)[: mechanism.subset_size]].sum(axis=0)
        rest = words.sum(axis=0) - near
        means.append(truth * near / mechanism.subset_size + (1 - truth) * rest / others)

    scatter = np.var(np.array(means)[:, 1:] * mechanism.scale, axis=0, ddof=1).mean()

    assert gain > 0
    # of 23 times 39 squares of normal numbers the mean is within 40 % but for less than 1e-9
    assert scatter / mechanism.seeds == pytest.approx(mechanism.codebook_variance, rel=0.4)


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("entry", [10 * LARGEST + 1, 10 * LARGEST**2 + 1, 1 << 62, -(1 << 63)])
def test_sums_that_words_cannot_have_are_refused_in_any_cell(place: int, entry: int) -> None:
    mechanism = Codebook("1", 2)
    wrong = random(mechanism, (UNIT, 0), 10)
    wrong[place] = entry

    with pytest.raises(InvalidTallyError):
        mechanism.debias(wrong, 10, np)


def test_squares_too_small_for_their_sum_are_refused() -> None:
    mechanism = Codebook("1", 2)
    tally = random(mechanism, (UNIT, 0), 10)
    tally[2] = int(tally[0]) ** 2 // 10 - 100

    with pytest.raises(InvalidTallyError, match="do not fit the sums of squares"):
        mechanism.debias(tally, 10, np)


def test_a_word_reaches_as_far_as_stated_and_no_farther() -> None:
    mechanism = Codebook("1", 2)
    reach = mechanism.share_reach(0, np)
    farthest = np.array([LARGEST, -LARGEST, LARGEST**2, LARGEST**2])

    totals = mechanism.debias(farthest, 1, np).totals

    assert totals.tolist() == pytest.approx([reach.high, reach.low])


def test_a_vector_counts_by_its_length_and_the_bound_of_a_cube_is_its_diagonal() -> None:
    ball, cube = Codebook("1", 4), Codebook("1", 4, cube=1)

    assert (
        ball.length_of((UNIT, 0, 0, 0), 1_000) == ball.length_of((UNIT // 2,) * 4, 1_000) == 1_000
    )
    assert cube.length_of((UNIT, 0, 0, 0), 1_000) == 500
    assert cube.length_of((-UNIT,) * 4, 1_000) == 1_000
