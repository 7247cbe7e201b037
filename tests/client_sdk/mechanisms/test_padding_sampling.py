"""Sets, padded and sampled: every set has the law of its channel, and none is counted wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import TypeAlias, cast

import numpy as np
import pytest

from client_sdk.core.errors import InvalidTallyError
from client_sdk.core.randomness import Randomness
from client_sdk.mechanisms import Channel, SetMechanism
from client_sdk.mechanisms.composite.padding_sampling import PaddingSampling
from client_sdk.mechanisms.composite.sampled_item import SampledItem
from client_sdk.mechanisms.exact import respond
from client_sdk.registry.keys import AUTO
from client_sdk.registry.selection import choose
from tests.support.enumeration.enumeration import Law, distribution, exp_below
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.enumeration.vectors import EPSILONS
from tests.support.loops import in_turn

ROUNDING = 1e-9  # relative; double precision from debias on

SIZES = [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 2), (4, 3)]  # items, slots
SMALL = [
    PaddingSampling(epsilon, items, pad=pad, unary=unary)
    for epsilon in EPSILONS
    for items, pad in SIZES
    for unary in (0, 1)
]

SAMPLED = [SampledItem(epsilon, items) for epsilon in EPSILONS for items in (2, 3, 4)]
Sets: TypeAlias = PaddingSampling | SampledItem

every_small = in_turn("small", SMALL)
every_sampled = in_turn("small", SAMPLED)


def sets_of(items: int) -> list[frozenset[int]]:
    """Return every set of the items, the empty one first."""
    return [frozenset(s) for held in range(items + 1) for s in combinations(range(items), held)]


@cache
def law_of(mechanism: Sets, value: frozenset[int]) -> Law:
    """Return the law of the payload for *value*."""
    return distribution(lambda randomness: mechanism.randomize(value, randomness))


def support_probabilities(mechanism: PaddingSampling, law: Law) -> list[Fraction]:
    """Return the probability that a report following *law* supports each item."""
    found = [Fraction(0)] * mechanism.domain_size
    for payload, mass in law.pmf.items():
        for item in mechanism.supports(cast("bytes", payload)):
            found[item] += mass
    return found


def largest_ratio(mechanism: Sets) -> Fraction:
    """Return the largest ratio of the probabilities of one payload under two sets."""
    laws = [law_of(mechanism, value).pmf for value in sets_of(mechanism.domain_size)]
    return max(max(law[r] for law in laws) / min(law[r] for law in laws) for r in laws[0])


@in_turn("small", [*SMALL, *SAMPLED])
def test_the_likelihood_ratio_is_reached_exactly_by_two_sets(small: Sets) -> None:
    """Whatever the sets: enumeration of the shipped code over all of them."""
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


CROWD = (frozenset({0}), frozenset({0, 1}), frozenset[int]())  # three devices


def crowds(mechanism: SampledItem) -> Iterator[tuple[bytes, float]]:
    """Yield every column that CROWD can send, with its probability."""
    laws = [law_of(mechanism, value).pmf.items() for value in CROWD]
    for reports in product(*laws):
        column = b"".join(cast("bytes", payload) for payload, _ in reports)
        yield column, float(math.prod(mass for _, mass in reports))


@every_sampled
def test_an_item_is_drawn_alike_for_every_set_and_told_as_the_channel_says(
    small: SampledItem,
) -> None:
    """The drawn item says nothing of the set; a yes about it follows the channel."""
    for value in sets_of(small.domain_size):
        pmf = law_of(small, value).pmf
        for item in range(small.domain_size):
            no, yes = (pmf[bytes([2 * item + answer])] for answer in (0, 1))
            assert no + yes == Fraction(1, small.domain_size)
            assert yes == (small.channel.p if item in value else small.channel.q)


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


def test_an_item_that_no_report_is_about_may_have_any_count() -> None:
    """Two standard errors around it reach below none and beyond all."""
    mechanism = SampledItem("1", 2)
    tally = np.array([4, 6, 0, 0], dtype=np.int64)

    totals, variances = mechanism.debias(tally, 10, np)

    assert totals[1] == 5
    assert 2 * math.sqrt(variances[1]) > 10


def test_a_tally_of_more_or_fewer_reports_is_refused() -> None:
    """Every report is in one cell."""
    mechanism = SampledItem("1", 2)

    for n in (9, 11):
        with pytest.raises(InvalidTallyError, match="add up to n="):
            mechanism.debias(np.array([4, 6, 0, 0], dtype=np.int64), n, np)


@pytest.mark.parametrize("items", [5, 300])
def test_the_tally_counts_the_answers_about_every_item(items: int) -> None:
    """The vectorised fold equals the count of payloads, one by one."""
    mechanism = SampledItem("1", items)
    randomness = SeededRandomness(b"sampled")
    rows = [mechanism.randomize(frozenset({i % items}), randomness) for i in range(300)]

    tally = mechanism.tally(b"".join(rows), np)

    supported = [item for row in rows for item in mechanism.supports(row)]
    assert int(tally.sum()) == len(rows)
    assert tally[1::2].tolist() == np.bincount(supported, minlength=items).tolist()


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


@pytest.mark.parametrize("planted", [_DrawnFromTheSet, _FlippedTooSeldom])
def test_a_planted_fault_in_sampling_breaks_the_likelihood_bound(
    planted: type[SampledItem],
) -> None:
    """Either reads the set where it must not, or flips too seldom."""
    faulty = planted("1", 3)
    laws = [law_of(faulty, value).pmf for value in sets_of(3)]
    zero = Fraction(0)

    bound = exp_below(SampledItem("1", 3).spent)

    assert any(
        max(law.get(r, zero) for law in laws) > bound * min(law.get(r, zero) for law in laws)
        for r in {payload for law in laws for payload in law}
    )
