"""Sets: what the channel says is what the code does, for every set, and large sets are cut."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import cast

import numpy as np
import pytest

from client_sdk.core.randomness import Randomness
from client_sdk.mechanisms import Channel
from client_sdk.mechanisms.composite.padding_sampling import PaddingSampling
from client_sdk.mechanisms.exact import respond
from tests.support.enumeration.enumeration import Law, distribution, exp_below
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.enumeration.vectors import EPSILONS

ROUNDING = 1e-9  # relative; double precision from debias on

SIZES = [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 2), (4, 3)]  # items, slots
SMALL = [
    PaddingSampling(epsilon, items, pad=pad, unary=unary)
    for epsilon in EPSILONS
    for items, pad in SIZES
    for unary in (0, 1)
]

every_small = pytest.mark.parametrize(
    "small", SMALL, ids=lambda m: f"{float(m.epsilon):g}-{m.domain_size}-{m.pad}-{m.unary}"
)


def sets_of(items: int) -> list[frozenset[int]]:
    """Return every set of the items, the empty one first."""
    return [frozenset(s) for held in range(items + 1) for s in combinations(range(items), held)]


@cache
def law_of(mechanism: PaddingSampling, value: frozenset[int]) -> Law:
    """Return the law of the payload for *value*."""
    return distribution(lambda randomness: mechanism.randomize(value, randomness))


def support_probabilities(mechanism: PaddingSampling, law: Law) -> list[Fraction]:
    """Return the probability that a report following *law* supports each item."""
    found = [Fraction(0)] * mechanism.domain_size
    for payload, mass in law.pmf.items():
        for item in mechanism.supports(cast("bytes", payload)):
            found[item] += mass
    return found


def largest_ratio(mechanism: PaddingSampling) -> Fraction:
    """Return the largest ratio of the probabilities of one payload under two sets."""
    laws = [law_of(mechanism, value).pmf for value in sets_of(mechanism.domain_size)]
    return max(max(law[r] for law in laws) / min(law[r] for law in laws) for r in laws[0])


@every_small
def test_the_likelihood_ratio_is_reached_exactly_by_two_sets(small: PaddingSampling) -> None:
    found = largest_ratio(small)

    assert found == small.likelihood_ratio
    assert found <= exp_below(small.spent)


@every_small
def test_an_item_is_supported_as_the_channel_says_and_less_by_a_set_that_is_cut(
    small: PaddingSampling,
) -> None:
    p, q = small.channel.p, small.channel.q

    for value in sets_of(small.domain_size):
        counted = Fraction(small.pad, max(small.pad, len(value)))
        found = support_probabilities(small, law_of(small, value))
        wanted = [counted * (item in value) for item in range(small.domain_size)]
        assert [(s - q) / (p - q) for s in found] == wanted


@pytest.mark.parametrize("unary", [0, 1])
def test_a_column_that_follows_the_law_exactly_is_debiased_to_the_truth(unary: int) -> None:
    mechanism = PaddingSampling("2", 3, pad=2, unary=unary, precision=5)
    law = law_of(mechanism, frozenset({0, 2}))
    n = math.lcm(*(mass.denominator for mass in law.pmf.values()))
    column = b"".join(cast("bytes", payload) * int(m * n) for payload, m in law.pmf.items())

    totals, variances = mechanism.debias(mechanism.tally(column, np), n, np)

    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    spread = [p * (1 - p), q * (1 - q), p * (1 - p)]
    assert totals == pytest.approx([n, 0, n], abs=n * ROUNDING)
    assert variances == pytest.approx([n * s / (p - q) ** 2 for s in spread], rel=ROUNDING)


@every_small
def test_predict_is_the_root_mean_square_of_the_errors_of_full_sets(small: PaddingSampling) -> None:
    full = frozenset(range(small.pad))
    p, q = small.channel.p, small.channel.q
    probabilities = support_probabilities(small, law_of(small, full))
    square = sum(s * (1 - s) for s in probabilities) / (p - q) ** 2 / small.domain_size

    predicted = small.predict(400)

    assert predicted == pytest.approx(math.sqrt(square / 400), rel=ROUNDING)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "4"])
@pytest.mark.parametrize("pad", [1, 2, 5, 50])
@pytest.mark.parametrize("items", [50, 1_000])
def test_the_default_encoding_errs_least(epsilon: str, pad: int, items: int) -> None:
    both = [PaddingSampling(epsilon, items, pad=pad, unary=unary) for unary in (0, 1)]
    small = [m.channel.q * (1 - m.channel.q) / (m.channel.p - m.channel.q) ** 2 for m in both]

    chosen = PaddingSampling(epsilon, items, pad=pad).unary

    assert small[chosen] == min(small)


@pytest.mark.parametrize("unary", [0, 1])
@pytest.mark.parametrize("items", [5, 300])
def test_the_tally_by_numpy_equals_the_sum_of_supports(items: int, unary: int) -> None:
    mechanism = PaddingSampling("1", items, pad=3, unary=unary)
    randomness = SeededRandomness(b"sets")
    values = [frozenset(range(i % 6 % items)) for i in range(300)]
    rows = [mechanism.randomize(value, randomness) for value in values]

    tally = mechanism.tally(b"".join(rows), np)

    supported = [item for row in rows for item in mechanism.supports(row)]
    assert tally.tolist() == np.bincount(supported, minlength=items).tolist()


def test_by_default_there_is_a_slot_for_every_item_so_that_nothing_is_cut() -> None:
    assert [PaddingSampling("1", items).most for items in (2, 7, 500)] == [2, 7, 500]


class _NothingDrawn(PaddingSampling):
    """Planted fault: no slot is drawn, so that nothing pays for the larger odds."""

    def randomize(self, value: frozenset[int], randomness: Randomness) -> bytes:
        symbol = min(value, default=self.domain_size)
        report = respond(symbol, self.symbols, self.symbol_channel.p, randomness)
        return report.to_bytes(self.payload_size, "big")


class _AlmostTold(PaddingSampling):
    """Planted fault: the drawn symbol is told 2^-100 too often, and nobody refuses it."""

    def validate(self) -> None:
        return None

    @property
    def symbol_channel(self) -> Channel:
        p = super().symbol_channel.p + Fraction(1, 1 << 100)
        return Channel(p, (1 - p) / (self.symbols - 1))


@pytest.mark.parametrize("planted", [_NothingDrawn, _AlmostTold])
def test_a_planted_fault_breaks_the_likelihood_bound(planted: type[PaddingSampling]) -> None:
    faulty = planted("1", 3, pad=2, unary=0)

    assert largest_ratio(faulty) > exp_below(PaddingSampling("1", 3, pad=2, unary=0).spent)
