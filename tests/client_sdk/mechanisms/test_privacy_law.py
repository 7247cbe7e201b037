"""The privacy claim, checked exactly: shipped code is replayed along every path of its choices."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any, cast

import numpy as np
import pytest

from client_sdk.core.randomness import Randomness
from client_sdk.mechanisms import DistributionMechanism, FrequencyOracle
from client_sdk.mechanisms.base import RatioMechanism
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.numbers.discrete_gaussian import DiscreteGaussian
from tests.support.enumeration.enumeration import Law, exp_below, largest_ratio
from tests.support.enumeration.vectors import (
    Small,
    every_of,
    every_small,
    grid,
    laws,
    smalls,
)

UNSPENT = Fraction(1, 1 << 40)  # nats; what rounding towards privacy may cost

every_pure = every_of(smalls, lambda mechanism: not mechanism("1", 4).delta)
every_loose = every_of(smalls, lambda mechanism: bool(mechanism("1", 4).delta))
everywhere = every_of(grid)


def whole_of(laws: Sequence[Law]) -> int:
    """Return a number of which every mass and rest of *laws* is a whole part."""
    masses = (mass for law in laws for mass in (law.rest, *law.pmf.values()))
    return math.lcm(*{mass.denominator for mass in masses})


def masses_of(law: Law, whole: int) -> dict[Hashable, int]:
    """Return the mass of every payload, exactly, in parts of *whole*: integers compare fastest."""
    return {
        payload: mass.numerator * (whole // mass.denominator) for payload, mass in law.pmf.items()
    }


def likelihood_bound_holds(laws: Sequence[Law], bound: Fraction) -> bool:
    """Whether no payload is more than *bound* times likelier under one value than another.

    Mass that was not reached may belong to any payload, so it counts for the other value.
    """
    whole = whole_of(laws)
    masses = [masses_of(law, whole) for law in laws]
    rests = [int(law.rest * whole) for law in laws]
    return all(
        bound.denominator * max(pmf.get(payload, 0) for pmf in masses)
        <= bound.numerator
        * min(pmf.get(payload, 0) + rest for pmf, rest in zip(masses, rests, strict=True))
        for payload in {payload for law in laws for payload in law.pmf}
    )


def excess(one: Law, other: Law, bound: Fraction) -> Fraction:
    """Return a lower bound of the largest Pr[S | one] - bound * Pr[S | other] over sets S.

    Mass that was not reached may belong to any set, so it counts for the other value.
    """
    whole = whole_of((one, other))
    masses, others = masses_of(one, whole), masses_of(other, whole)
    above, below = bound.numerator, bound.denominator
    beyond = (below * mass - above * others.get(payload, 0) for payload, mass in masses.items())
    return Fraction(sum(max(0, b) for b in beyond), below * whole) - bound * other.rest


def delta_bound_holds(small: Small) -> bool:
    """Whether the payloads keep to (spent, delta), taken over all pairs of values."""
    bound = exp_below(small.mechanism.spent)
    pairs = permutations(laws(small), 2)
    return all(excess(one, other, bound) <= small.mechanism.delta for one, other in pairs)


@every_pure
def test_no_payload_is_more_than_e_to_the_spent_likelier_under_another_value(small: Small) -> None:
    bound = exp_below(small.mechanism.spent)

    assert small.mechanism.delta == 0
    assert likelihood_bound_holds(laws(small), bound)


@every_loose
def test_no_set_of_payloads_exceeds_e_to_the_spent_by_more_than_delta(small: Small) -> None:
    assert delta_bound_holds(small)


@every_loose
def test_a_delta_above_zero_is_nearly_used_and_some_payload_needs_it(small: Small) -> None:
    bound = exp_below(small.mechanism.spent)
    first, *_, last = laws(small)

    assert not likelihood_bound_holds((first, last), bound)
    assert excess(first, last, bound) >= Fraction(9, 10) * small.mechanism.delta


@every_small(RatioMechanism)
def test_the_likelihood_ratio_is_reached_exactly(small: Small) -> None:
    """By bits of keys that are cut to several slots it is nearly reached."""
    mechanism = cast("RatioMechanism[Any]", small.mechanism)

    ratio = largest_ratio([law.pmf for law in laws(small)])

    if mechanism.name == "pckv_ue" and mechanism.parameters["pad"] > 1:
        assert exp_below(mechanism.epsilon - UNSPENT) < ratio <= mechanism.likelihood_ratio
    else:
        assert ratio == mechanism.likelihood_ratio


@everywhere
def test_spent_is_at_most_epsilon_and_within_2_to_the_minus_40_of_it(small: Small) -> None:
    left = small.mechanism.epsilon - small.mechanism.spent

    assert 0 <= left <= UNSPENT


@everywhere
def test_the_charge_is_spent_rounded_up_to_whole_nano_nats(small: Small) -> None:
    charge = Fraction(small.mechanism.spent_nano, 10**9)

    assert 0 <= charge - small.mechanism.spent < Fraction(1, 10**9)


@every_small()
def test_an_unbounded_loop_leaves_little_that_is_not_enumerated(small: Small) -> None:
    for law in laws(small):
        assert law.rest <= 1000 * small.least_mass


@every_small()
def test_every_payload_that_can_occur_is_valid_and_of_the_stated_size(small: Small) -> None:
    payloads = {payload for law in laws(small) for payload in law.pmf}

    assert {len(payload) for payload in payloads} == {small.mechanism.payload_size}  # type: ignore[arg-type]  # outcomes are bytes
    assert {small.mechanism.reason(payload) for payload in payloads} == {None}  # type: ignore[arg-type]  # outcomes are bytes


class _AsIfOneFewer(GRR):
    """Planted fault: k - 2 for k - 1, the coin of a domain with one item fewer."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        other = randomness.uniform(self.domain_size - 1)
        kept = randomness.bernoulli(GRR(self.epsilon, self.domain_size - 1).channel.p)
        return bytes([value if kept else other + (other >= value)])


class _LittleNoise(DiscreteGaussian):
    """Planted fault: noise that nobody has held against delta."""

    def validate(self) -> None:
        return None


def test_noise_a_tenth_too_small_breaks_the_delta_bound() -> None:
    own = {"delta_exponent": 2, "steps": 1}
    least = DiscreteGaussian("1", 3, **own).noise

    sound = DiscreteGaussian("1", 3, **own)
    planted = _LittleNoise("1", 3, **own, noise=9 * least // 10)

    assert delta_bound_holds(Small("sound", sound, Fraction(1, 10**9), one_pass=True))
    assert not delta_bound_holds(Small("planted", planted, Fraction(1, 10**9), one_pass=True))


def test_the_coin_of_a_domain_of_one_item_fewer_breaks_the_likelihood_bound() -> None:
    planted = Small("as_if_one_fewer", _AsIfOneFewer("1", 4), Fraction(0))

    assert not likelihood_bound_holds(laws(planted), exp_below(planted.mechanism.spent))


@every_pure
def test_the_variation_is_no_less_than_what_is_enumerated_and_just_that_where_known(
    small: Small,
) -> None:
    stated, exact = small.mechanism.variation(np), largest_variation(small)
    pure = isinstance(small.mechanism, FrequencyOracle) and small.mechanism.pure
    symbols = small.mechanism.name in ("minimax", "hybrid", "piecewise", "duchi", "one_bit_mean")

    assert exact <= stated * (1 + 1e-12)
    if pure or symbols or isinstance(small.mechanism, DistributionMechanism):
        assert stated == pytest.approx(exact, rel=1e-9)


def test_half_of_a_variation_would_be_noticed() -> None:
    small = smalls("grr")[0]

    assert largest_variation(small) > small.mechanism.variation(np) / 2 + 1e-6


def largest_variation(small: Small) -> float:
    """Return the largest total variation of the values that are enumerated."""
    reached = [{at: float(mass) for at, mass in law.pmf.items()} for law in laws(small)]
    return max(
        sum(abs(one.get(at, 0.0) - other.get(at, 0.0)) for at in {*one, *other}) / 2
        for one, other in combinations(reached, 2)
    )
