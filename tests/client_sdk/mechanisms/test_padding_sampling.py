"""Sets, padded and sampled: which encoding errs least, and what a drawn item says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import cast

import numpy as np
import pytest

from client_sdk.core.randomness import Randomness
from client_sdk.mechanisms import Channel, SetMechanism
from client_sdk.mechanisms.composite.padding_sampling import PaddingSampling
from client_sdk.mechanisms.composite.sampled_item import SampledItem
from client_sdk.mechanisms.exact import respond
from client_sdk.registry.keys import AUTO
from client_sdk.registry.selection import choose
from tests.client_sdk.mechanisms.test_privacy_law import likelihood_bound_holds
from tests.support.enumeration.enumeration import distribution, exp_below
from tests.support.enumeration.vectors import Small, every_small, laws

ROUNDING = 1e-9  # relative; double precision from debias on


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "4"])
@pytest.mark.parametrize("pad", [1, 2, 5, 50])
@pytest.mark.parametrize("items", [50, 1_000])
def test_the_default_encoding_errs_least(epsilon: str, pad: int, items: int) -> None:
    both = [PaddingSampling(epsilon, items, pad=pad, unary=unary) for unary in (0, 1)]
    small = [m.channel.q * (1 - m.channel.q) / (m.channel.p - m.channel.q) ** 2 for m in both]

    chosen = PaddingSampling(epsilon, items, pad=pad).unary

    assert small[chosen] == min(small)


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


CROWD = (frozenset({0}), frozenset({0, 1}), frozenset[int]())  # three devices


def crowds(mechanism: SampledItem) -> Iterator[tuple[bytes, float]]:
    """Yield every column that CROWD can send, with its probability."""
    of_each = [distribution(partial(mechanism.randomize, value)).pmf.items() for value in CROWD]
    for reports in product(*of_each):
        column = b"".join(cast("bytes", payload) for payload, _ in reports)
        yield column, float(math.prod(mass for _, mass in reports))


@every_small(SampledItem)
def test_an_item_is_drawn_alike_for_every_set_and_told_as_the_channel_says(small: Small) -> None:
    """The drawn item says nothing of the set; a yes about it follows the channel."""
    mechanism = cast("SampledItem", small.mechanism)
    for value, law in zip(small.values, laws(small), strict=True):
        for item in range(mechanism.domain_size):
            no, yes = (law.pmf[bytes([2 * item + answer])] for answer in (0, 1))
            assert no + yes == Fraction(1, mechanism.domain_size)
            assert yes == (mechanism.channel.p if item in value else mechanism.channel.q)


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_counts_are_unbiased_and_errors_as_stated_given_how_many_were_asked(epsilon: str) -> None:
    """Over all columns of three devices: the mean, and the variance at the true share."""
    mechanism = SampledItem(epsilon, 2)
    mass, first, second = (np.zeros((4, 2)) for _ in range(3))
    levels = np.zeros((4, 2, 2))
    for column, chance in crowds(mechanism):
        tally = mechanism.tally(column, np)
        totals, _ = mechanism.debias(tally, 3, np)
        asked = tally[::2] + tally[1::2]
        for item in range(2):
            at = asked[item], item
            mass[at] += chance
            first[at] += chance * totals[item]
            second[at] += chance * totals[item] ** 2
            levels[at] = [part[item] for part in mechanism.share_variance(tally, 3, np)]

    means = first[1:] / mass[1:]
    shares = np.array([2, 1]) / 3
    # f(1-f) is that of one device drawn; without replacement the pool has n/(n-1) of it.
    spread = levels[1:, :, 0] + levels[1:, :, 1] * shares * (1 - shares) * 3 / 2

    assert means == pytest.approx(np.tile([2.0, 1.0], (3, 1)), rel=ROUNDING)
    assert second[1:] / mass[1:] - means**2 == pytest.approx(9 * spread, rel=ROUNDING)


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "4", "8"])
@pytest.mark.parametrize("items", [2, 3, 16, 128, 1_000])
def test_it_errs_less_than_padding_for_rare_items_and_full_sets(epsilon: str, items: int) -> None:
    """At the default pad, which cuts no set either; so ``auto`` takes it."""
    ours, theirs = SampledItem(epsilon, items), PaddingSampling(epsilon, items)
    p, q = float(theirs.channel.p), float(theirs.channel.q)
    tally = np.full(2 * items, 50, dtype=np.int64)  # 100 reports about every item
    level, _ = ours.share_variance(tally, 100 * items, np)
    per_report = 100 * items * level[0]  # of a share of 0, or of 1

    chosen, _ = choose(AUTO, SetMechanism, epsilon, items)

    assert per_report < q * (1 - q) / (p - q) ** 2
    assert per_report < p * (1 - p) / (p - q) ** 2
    assert ours.predict(1) < theirs.predict(1)
    assert chosen == "sampled_item"


class _DrawnFromTheSet(SampledItem):
    """Planted fault: the item is one that the set holds, if it holds any."""

    def randomize(self, value: frozenset[int], randomness: Randomness) -> bytes:
        pool = sorted(value) or list(range(self.domain_size))
        item = pool[randomness.uniform(len(pool))]
        yes = (item in value) != randomness.bernoulli(self.flip)
        return bytes([2 * item + yes])


class _FlippedTooSeldom(SampledItem):
    """Planted fault: the answer is flipped 2^-100 too seldom."""

    def randomize(self, value: frozenset[int], randomness: Randomness) -> bytes:
        item = randomness.uniform(self.domain_size)
        yes = (item in value) != randomness.bernoulli(self.flip - Fraction(1, 1 << 100))
        return bytes([2 * item + yes])


PLANTED = [
    *(kind("1", 3, pad=2, unary=0) for kind in (_NothingDrawn, _AlmostTold)),
    *(kind("1", 3) for kind in (_DrawnFromTheSet, _FlippedTooSeldom)),
]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: type(planted).__name__)
def test_a_planted_fault_breaks_the_likelihood_bound(
    planted: PaddingSampling | SampledItem,
) -> None:
    """Each reads the set where it must not, or tells too much of it."""
    found = laws(Small("planted", planted, Fraction(0)))

    assert not likelihood_bound_holds(found, exp_below(planted.epsilon))
