"""What windows tell together is never stated below what they do, and not far above."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from itertools import product

import pytest

from client_sdk.mechanisms import load
from collector.planning.amplification import profile_of, shuffled
from collector.planning.composition import Profile, composed
from tests.collector.planning.test_amplification import excess, laws_of, shuffle

DELTA = 1e-8


def randomized_response(epsilon: float, steps: int = 32) -> Profile:
    p = 1 / (1 + math.exp(-epsilon))
    epsilons = tuple(epsilon * i / steps for i in range(steps + 1))
    return Profile(epsilons, tuple(max(0.0, p - math.exp(at) * (1 - p)) for at in epsilons))


def exceeds(losses: Sequence[float], bound: float) -> float:
    """Return the divergence of randomized response in all windows, outcome by outcome."""
    law: Mapping[float, float] = {0.0: 1.0}
    for size in sorted(set(losses)):
        k, p = losses.count(size), 1 / (1 + math.exp(-size))
        both: Counter[float] = Counter()
        for (loss, mass), i in product(law.items(), range(k + 1)):
            chance = math.comb(k, i) * p**i * (1 - p) ** (k - i)
            both[loss + (2 * i - k) * size] += mass * chance  # type: ignore[assignment]
        law = dict(both)
    assert math.isclose(sum(law.values()), 1)
    return sum(mass * max(0.0, 1 - math.exp(bound - loss)) for loss, mass in law.items())


@pytest.mark.parametrize(
    "losses", [[0.1] * 52, [0.1] * 200, [0.05] * 300 + [0.8] * 3, [0.02, 0.3] * 20]
)
@pytest.mark.parametrize("delta", [1e-3, DELTA])
def test_no_windows_tell_more_together_than_is_said(losses: list[float], delta: float) -> None:
    """The control: a twentieth less would not do."""
    epsilon = composed([randomized_response(loss) for loss in losses], delta)

    assert exceeds(losses, epsilon) <= delta
    assert exceeds(losses, 0.95 * epsilon) > delta


def test_a_bound_that_others_imply_to_be_too_high_adds_nothing() -> None:
    """What windows tell is convex in e^ε, so a bound above the line of two others is none."""
    straight = Profile((0.0, 1.0), (0.4, 0.0))
    bent = Profile((0.0, 0.5, 1.0), (0.4, 0.3, 0.0))  # the line has 0.249

    assert composed([bent] * 3, 0.05) == pytest.approx(composed([straight] * 3, 0.05))


@pytest.mark.parametrize("delta", [0.001, 0.02, 0.1])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_of_shuffled_reports_no_two_windows_tell_more_by_enumeration(
    epsilon: str, delta: float
) -> None:
    """In each, one of four devices changes its item, which GRR of three perturbs."""
    mechanism = load("grr")(epsilon, 3)
    spent = float(mechanism.spent)
    own, other, third = laws_of(mechanism, range(3))
    one, two = shuffle([own, *[third] * 3]), shuffle([other, *[third] * 3])

    profile = profile_of(spent, 4, mechanism.variation(None))
    both = min(composed([profile, profile], delta), 2 * spent)

    assert excess(_side_by_side(one, one), _side_by_side(two, two), both) <= delta
    mixed = _side_by_side(one, two), _side_by_side(two, one)  # it may change back
    assert excess(*mixed, both) <= delta


def _side_by_side(
    one: Mapping[Hashable, Fraction], two: Mapping[Hashable, Fraction]
) -> dict[Hashable, Fraction]:
    return {(a, b): one[a] * two[b] for a, b in product(one, two)}


def test_windows_add_up_to_more_than_one_and_to_less_than_their_sum() -> None:
    window, profile = shuffled(1.0, 10_000, DELTA), profile_of(1.0, 10_000)

    several = [composed([profile] * k, DELTA) for k in (1, 4, 52, 365)]

    assert several == sorted(several)
    assert window.epsilon <= several[0] < 1.05 * window.epsilon
    assert 1.9 < several[1] / window.epsilon < 2.3
    assert 7 < several[2] / window.epsilon < 9


@pytest.mark.parametrize(
    ("windows", "theirs"), [(1, 0.18861), (4, 0.38897), (13, 0.72154), (52, 1.5000)]
)
def test_they_add_up_as_another_library_adds_them(windows: int, theirs: float) -> None:
    """Source: Google's dp-accounting 0.6.0, of the law of both clones of any mechanism of ε 1 among
    1,000 devices (53,397 outcomes), rounded up to steps of 5e-5; δ is 10^-8.

    Ours knows the divergence at 25 ε only, so that it is up to 1 % more, and never less.
    """
    ours = composed([profile_of(1.0, 1_000)] * windows, DELTA)

    assert 0.9995 * theirs < ours < 1.01 * theirs


def test_a_small_window_counts_beside_large_ones() -> None:
    small, large = profile_of(1.0, 100), profile_of(1.0, 50_000)

    both = composed([large] * 12 + [small], DELTA)

    assert both > composed([small], DELTA)
    assert both > composed([large] * 12, DELTA)


def test_where_so_many_windows_end_that_delta_is_used_up_nothing_is_said() -> None:
    profile = Profile((0.0, 0.1), (0.05, 1e-6))

    assert composed([profile] * 100, 1e-5) == math.inf
