"""What a relay leaves of ε: never below what shuffled reports tell, by enumeration of both."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, Final

import pytest

from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms import Mechanism, load
from collector.planning.amplification import (
    Crossing,
    closed_form,
    divergence,
    profile_of,
    reached,
    shuffled,
)
from tests.support.enumeration.enumeration import distribution

DELTA: Final = 1e-8
EPSILONS: Final = (0.1, 0.7, 2.0, 5.0)
Law = Mapping[Hashable, Fraction]


def summed(epsilon_shuffled: float, epsilon: float, devices: int, beta: float) -> float:
    """Return the mean positive part over every number of each kind, by the definition."""
    odds, bound = math.exp(epsilon), math.exp(epsilon_shuffled)
    alpha = beta / (odds - 1)
    third = max(0.0, 1 - alpha * (odds + 1)) / odds
    total = 0.0
    for a, b in product(range(devices + 1), repeat=2):
        for c in range(devices + 1 - a - b):
            ways = math.comb(devices, a) * math.comb(devices - a, b) * math.comb(devices - a - b, c)
            rest = max(0.0, 1 - 2 * alpha - third) ** (devices - a - b - c)
            added = a * (odds - bound) + b * (1 - bound * odds) + c * odds * (1 - bound)
            total += float(ways * alpha ** (a + b) * third**c * rest) * max(0.0, added)
    return total / devices


def shuffle(laws: Sequence[Law]) -> dict[Hashable, Fraction]:
    """Return the law of the reports of all devices whose order is lost, by enumeration."""
    reached: Counter[Hashable] = Counter()
    for reports in product(*(law.items() for law in laws)):
        order = tuple(sorted(repr(payload) for payload, _ in reports))
        reached[order] += math.prod((mass for _, mass in reports), start=Fraction(1))  # type: ignore[assignment]
    return dict(reached)  # type: ignore[arg-type]


def excess(one: Law, other: Law, epsilon: float) -> float:
    """Return the largest Pr[S | one] - e^epsilon Pr[S | other] over sets S."""
    bound = math.exp(epsilon)
    return sum(max(0.0, float(mass) - bound * float(other.get(at, 0))) for at, mass in one.items())


def laws_of(mechanism: Mechanism[Any], values: Sequence[Any]) -> list[Law]:
    def reports(value: Any) -> Law:
        return distribution(lambda randomness: mechanism.randomize(value, randomness)).pmf

    return [reports(value) for value in values]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("devices", [1, 2, 3, 24])
@pytest.mark.parametrize("part", [1.0, 0.4, 0.01])
def test_the_divergence_is_that_of_all_counts_and_no_less(
    epsilon: float, devices: int, part: float
) -> None:
    beta = part * math.tanh(epsilon / 2)

    for least in (0.0, 0.03 * epsilon, 0.5 * epsilon, 0.95 * epsilon):
        exact = summed(least, epsilon, devices, beta)
        stated = divergence(least, epsilon, devices, beta)
        assert exact * (1 - 1e-9) - 1e-15 <= stated
        assert stated == pytest.approx(exact, 1e-6, 1e-9) if part == 1.0 else stated < exact + 0.02


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
@pytest.mark.parametrize(
    ("name", "size"),
    [("grr", 2), ("grr", 4), ("sue", 3), ("oue", 3), ("subset_selection", 4), ("hadamard", 3),
     ("exponential", 4), ("hierarchy", 4)],
)  # fmt: skip
def test_no_neighbours_are_told_apart_by_more_than_is_said(
    name: str, size: int, epsilon: str
) -> None:
    """Of four devices any one changes its item to any other, whatever the rest hold."""
    import numpy as np

    mechanism = load(name)(epsilon, size)
    laws = laws_of(mechanism, range(size))
    told, beta = float(mechanism.spent), mechanism.variation(np)

    for others in ((0, 0, 0), (0, 1, size - 1), (size - 1,) * 3):
        rest = [laws[item] for item in others]
        neighbours = [shuffle([own, *rest]) for own in (laws[0], laws[1], laws[size - 1])]
        for least in (0.0, 0.2 * told, 0.7 * told):
            bound = divergence(least, told, 4, beta)
            for one, other in product(neighbours, repeat=2):
                assert excess(one, other, least) <= bound + 1e-9


def test_of_grr_little_less_would_do() -> None:
    """The bound is near what is seen where all others hold a third item; a smaller is passed."""
    mechanism = load("grr")("1", 4)
    own, other, third, _ = laws_of(mechanism, range(4))
    told, beta = float(mechanism.spent), mechanism.variation(None)
    one, two = shuffle([own, *[third] * 4]), shuffle([other, *[third] * 4])

    for least in (0.0, 0.1, 0.5):
        exact = excess(one, two, least)
        assert exact - 1e-12 <= divergence(least, told, 5, beta) < exact + 0.02
    assert divergence(0.0, told, 5, 0.9 * beta) < excess(one, two, 0.0)


def test_a_mean_in_the_place_of_the_third_would_be_too_little() -> None:
    """The control of the above: what is published as the reduction of GRR is passed by GRR."""
    mechanism = load("grr")("1", 4)
    own, other, third, _ = laws_of(mechanism, range(4))
    exact = excess(shuffle([own, *[third] * 4]), shuffle([other, *[third] * 4]), 0.5)

    assert 0.03241 < 0.0325 < exact < divergence(0.5, 1.0, 5, mechanism.variation(None))


def test_it_stays_below_the_closed_form_and_less_variation_helps() -> None:
    for epsilon, devices in product((0.5, 1.0, 4.0), (100, 3_000)):
        bound = shuffled(epsilon, devices, DELTA).epsilon
        assert 0 < bound <= min(epsilon, closed_form(epsilon, devices, DELTA))
        beta = math.expm1(epsilon) / (math.exp(epsilon) + 15)
        less = shuffled(epsilon, devices, DELTA, beta).epsilon
        assert less < bound or bound > 0.99 * epsilon


@pytest.mark.parametrize(
    ("devices", "delta", "epsilon", "any_mechanism", "grr_of_16"),
    [(1_000, 1e-6, 1, 0.149, 0.065), (1_000, 1e-6, 2, 0.398, 0.231), (1_000, 1e-6, 4, 1.85, 1.38),
     (10_000, 1e-6, 1, 0.0435, 0.0190), (10_000, 1e-6, 2, 0.115, 0.068),
     (10_000, 1e-6, 4, 0.412, 0.363), (100_000, 1e-8, 1, 0.0171, 0.0078),
     (100_000, 1e-8, 2, 0.0439, 0.0264), (100_000, 1e-8, 4, 0.152, 0.135)],
)  # fmt: skip
def test_it_is_as_others_compute_it(
    devices: int, delta: float, epsilon: int, any_mechanism: float, grr_of_16: float
) -> None:
    """Source: the numbers of wangsw/PrivacyAmplification.

    Its second column puts a mean in the place of a number that varies, so that ours is larger.
    """
    beta = math.expm1(epsilon) / (math.exp(epsilon) + 15)

    assert shuffled(epsilon, devices, delta).epsilon == pytest.approx(any_mechanism, rel=0.015)
    ours = shuffled(epsilon, devices, delta, beta).epsilon
    assert 0.945 * grr_of_16 <= ours <= 1.25 * grr_of_16


@pytest.mark.parametrize(("epsilon", "theirs"), [(1, 0.0054), (2, 0.0137), (4, 0.0469)])
def test_of_a_million_devices_it_is_the_sum_itself_and_less_than_theirs(
    epsilon: int, theirs: float
) -> None:
    """Their search ends 4 to 8 % too high; two clones, summed count by count, decide."""
    ours = shuffled(epsilon, 1_000_000, DELTA).epsilon

    assert clones(ours, epsilon, 1_000_000) <= DELTA < clones(ours * 0.999, epsilon, 1_000_000)
    assert 0.92 * theirs < ours < theirs


def clones(epsilon_shuffled: float, epsilon: float, devices: int) -> float:
    """Return the divergence by another way: of the numbers of two clones, tails as sums of masses.

    Source: Feldman, McMillan, Talwar, SODA 2023: each other device sends what the first would
    with chance 1/(E+1), and what the second would with the same.
    """
    import numpy as np

    odds, bound = math.exp(epsilon), math.exp(epsilon_shuffled)
    alpha, others = 1 / (odds + 1), devices - 1
    mean, deviation = others * 2 * alpha, math.sqrt(others * 2 * alpha * (1 - 2 * alpha))
    total = 0.0
    step = max(1, int(deviation / 40))  # of counts that share a law: it is smooth in them
    for count in range(int(mean - 8 * deviation), int(mean + 8 * deviation), step):
        least = math.floor((count + 1) * (bound * odds - 1) / ((odds - 1) * (1 + bound))) + 1
        firsts = np.arange(least - 1, least + 8 * int(math.sqrt(count) + 1))
        law = np.exp(log_choose(count, firsts) - count * math.log(2))
        first, second = law.sum(), law[1:].sum()
        mass = math.exp(
            log_choose(others, count)
            + count * math.log(2 * alpha)
            + (others - count) * math.log1p(-2 * alpha)
        )
        told = odds * alpha * first + alpha * second
        total += step * mass * (told - bound * (alpha * first + odds * alpha * second))
    return total


def log_choose(size: int, count: Any) -> Any:
    """Return the logarithm of a binomial coefficient, by Stirling's series."""
    import numpy as np

    def log_factorial(n: Any) -> Any:
        n = np.asarray(n, dtype=np.longdouble) + 1
        return (n - 0.5) * np.log(n) - n + 0.5 * math.log(2 * math.pi) + 1 / (12 * n)

    return (log_factorial(size) - log_factorial(count) - log_factorial(size - count)).astype(float)


def test_more_devices_hide_more_and_one_hides_nothing() -> None:
    bounds = [shuffled(1.0, 10**k, DELTA).epsilon for k in range(5)]

    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == pytest.approx(1.0, abs=1e-6)
    assert shuffled(1.0, 1_000, 1e-6).epsilon < shuffled(1.0, 1_000, 1e-9).epsilon
    assert shuffled(0.5, 1_000, 1e-6).epsilon < shuffled(1.0, 1_000, 1e-6).epsilon


@pytest.mark.parametrize(("own", "other", "crowd"), [(0.5, 0.1, 0.1), (0.4, 0.2, 0.3)])
def test_what_an_attack_reaches_is_the_divergence_of_what_it_sees(
    own: float, other: float, crowd: float
) -> None:
    laws: list[Law] = [
        {"first": Fraction(a), "second": Fraction(b), "rest": 1 - Fraction(a) - Fraction(b)}
        for a, b in ((own, other), (other, own), (crowd, crowd))
    ]
    one, two = shuffle([laws[0], *[laws[2]] * 5]), shuffle([laws[1], *[laws[2]] * 5])

    for delta in (1e-2, 5e-2):
        epsilon = reached(Crossing(own, other, crowd), 6, delta)
        assert excess(one, two, epsilon) >= delta * (1 - 1e-9)
        assert excess(one, two, epsilon * 1.001) < delta


@pytest.mark.parametrize("devices", [200, 5_000])
def test_a_profile_is_of_the_divergence_at_each_epsilon(devices: int) -> None:
    """It ends where next to nothing is left; for few devices it is the least of two bounds.

    What is left out of a law moves the values to which it is spread, so that digits differ.
    """
    beta = math.expm1(1.0) / (math.e + 15)

    profile = profile_of(1.0, devices, beta)

    assert profile.epsilons[0] == 0
    assert profile.deltas[-1] < 2e-12
    for epsilon, delta in zip(profile.epsilons[::6], profile.deltas[::6], strict=True):
        bounds = [divergence(epsilon, 1.0, devices, b) for b in (beta, math.tanh(0.5))]
        least = min(bounds) if devices <= 1_000 else bounds[0]
        assert delta == pytest.approx(least, rel=1e-2, abs=1e-17)


@pytest.mark.parametrize("size", [3, 16])
@pytest.mark.parametrize("devices", [1_000, 50_000])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_an_attack_reaches_nearly_what_is_said_and_never_more(
    epsilon: float, devices: int, size: int
) -> None:
    """Of GRR there are a few per cent between both, so no bound can be much below ours."""
    rest = math.exp(epsilon) + size - 1
    grr = Crossing(math.exp(epsilon) / rest, 1 / rest, 1 / rest)

    bound = shuffled(epsilon, devices, DELTA, math.expm1(epsilon) / rest).epsilon
    attack = reached(grr, devices, DELTA)

    assert attack <= bound
    assert attack > (0.97 if devices > 1_000 else 0.7) * bound
    assert attack > shuffled(epsilon, devices, DELTA, 0.7 * math.expm1(epsilon) / rest).epsilon


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("epsilon", (0.0, 10, 1e-6)),
        ("epsilon", (65.0, 10, 1e-6)),
        ("devices", (1.0, 0, 1e-6)),
        ("delta", (1.0, 10, 1.0)),
        ("delta", (1.0, 10, 0.0)),
        ("variation", (1.0, 10, 1e-6, 0.0)),
    ],
)
def test_a_number_that_means_nothing_is_refused(name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidParameterError, match=name):
        shuffled(*arguments)
