"""What shuffled reports of two values tell: the sum of two binomials, and the worst crowd."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.mechanisms import load
from collector.planning.amplification import Crossing, divergence, profile_of, reached, shuffled
from collector.planning.shuffling import crossing_of, shuffled_of
from collector.planning.two_reports import SPARE, TwoReports
from tests.collector.planning.test_amplification import excess, laws_of, log_choose, shuffle
from tests.support.device.registries import BOOLEAN, NUMBER
from tests.support.enumeration.populations import metric_of

ODDS: Final = 3  # e^ε of a report, so that every chance is a fraction
BOUNDS: Final = (Fraction(1), Fraction(11, 10), Fraction(2), Fraction(29, 10))


def number_law(same: int, opposite: int) -> list[Fraction]:
    """Return the chances of every number of second reports among others."""
    law = [Fraction(1)]
    for chance in [Fraction(ODDS, ODDS + 1)] * same + [Fraction(1, ODDS + 1)] * opposite:
        stays, rises = [*law, Fraction(0)], [Fraction(0), *law]
        law = [a * (1 - chance) + b * chance for a, b in zip(stays, rises, strict=True)]
    return law


def exactly(same: int, opposite: int, bound: Fraction) -> float:
    """Return what one law exceeds *bound* times the other by, as the definition has it."""
    p, q = Fraction(ODDS, ODDS + 1), Fraction(1, ODDS + 1)
    law = number_law(same, opposite)
    below, at = [Fraction(0), *law], [*law, Fraction(0)]
    return float(
        sum(
            max(Fraction(0), (p * a + q * b) - bound * (q * a + p * b))
            for a, b in zip(below, at, strict=True)
        )
    )


@pytest.mark.parametrize("devices", [1, 2, 5, 17])
@pytest.mark.parametrize("bound", BOUNDS)
def test_of_every_crowd_it_is_the_divergence_by_its_definition(
    devices: int, bound: Fraction
) -> None:
    """Law: to nine digits; of all crowds the bound is above the largest, by SPARE at most."""
    others = devices - 1
    exact = [exactly(same, others - same, bound) for same in range(devices)]
    two = TwoReports(math.log(ODDS), devices, math.log(bound))

    stated = [two.of(same, others - same) for same in range(devices)]
    assert stated == pytest.approx(exact, rel=1e-9, abs=1e-300)
    assert max(exact) <= two.most() <= max(exact) * (1 + SPARE) * (1 + 1e-9)


@pytest.mark.parametrize("devices", [2_000, 1_000_000])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_of_many_devices_it_is_the_sum_of_masses(devices: int, epsilon: float) -> None:
    """Another way: masses by Stirling's series, in 19 digits."""
    odds = math.exp(epsilon)
    p, q, others = odds / (odds + 1), 1 / (odds + 1), devices - 1
    counts = np.arange(1, others)
    nats = counts.astype(np.longdouble) * np.log(np.longdouble(p))
    nats += (others - counts) * np.log(np.longdouble(q))
    law = np.exp((log_choose(others, counts) + nats).astype(float))

    for deviations in (0.0, 1.0, 5.5):
        at = deviations * (p - q) / math.sqrt(devices * p * q)
        bound = math.exp(at)
        parts = (p - bound * q) * law[:-1] - (bound * p - q) * law[1:]
        mass = float(np.maximum(parts, 0).sum())
        assert TwoReports(epsilon, devices, at).alike() == pytest.approx(mass, rel=1e-5)


@pytest.mark.parametrize(
    ("devices", "delta", "epsilon", "any_mechanism", "exact"),
    [(10_000, 1e-6, 1.0, 0.0433, 0.0357), (10_000, 1e-6, 4.0, 0.411, 0.315),
     (1_000, 1e-6, 1.0, 0.149, 0.1267), (1_000_000, 1e-8, 4.0, 0.0451, 0.0320)],
)  # fmt: skip
def test_two_reports_tell_less_than_any_mechanism_of_their_epsilon(
    devices: int, delta: float, epsilon: float, any_mechanism: float, exact: float
) -> None:
    """Law: within 1 % of what an attack reaches if all others hold the value of the device."""
    p = 1 / (1 + math.exp(-epsilon))

    bound = shuffled(epsilon, devices, delta, two=True).epsilon
    attack = reached(Crossing(p, 1 - p, 0.5), devices, delta)

    assert shuffled(epsilon, devices, delta).epsilon == pytest.approx(any_mechanism, rel=5e-3)
    assert bound == pytest.approx(exact, rel=8e-3)
    assert attack < bound < 1.01 * attack


@pytest.mark.parametrize("devices", [1, 2, 3, 40, 120])
@pytest.mark.parametrize("delta", [1e-2, 1e-8])
def test_no_crowd_is_told_apart_by_more_than_is_said(devices: int, delta: float) -> None:
    """The planted bug is a crowd of which each half holds one value: it is not the worst."""
    bound = shuffled(math.log(ODDS), devices, delta, two=True).epsilon
    others = devices - 1

    odds = Fraction(math.exp(bound)) if bound < math.log(ODDS) else Fraction(ODDS)
    crowds = range(devices) if devices <= 40 else (0, 60, 117, 118, 119)
    assert all(exactly(same, others - same, odds) <= delta for same in crowds)
    if devices == 120:
        half = TwoReports(math.log(ODDS), devices, 0.97 * bound)
        assert half.of(others // 2, others - others // 2) < delta < half.alike()


@pytest.mark.parametrize(
    ("name", "size", "values"),
    [("grr", 2, (0, 1)), ("duchi", 5, (0, 1, Fraction(5, 2), 4)), ("one_bit_mean", 3, (0, 1, 2))],
)
def test_no_mechanism_of_two_reports_tells_more(name: str, size: int, values: Any) -> None:
    """By enumeration, of four devices; values between the ends are mixtures of them."""
    mechanism = load(name)("1", size)
    laws, told = laws_of(mechanism, values), float(mechanism.spent)

    for others in ((0, 0, 0), (0, 1, -1), (-1, -1, -1)):
        rest = [laws[place] for place in others]
        neighbours = [shuffle([own, *rest]) for own in laws]
        for least in (0.0, 0.2 * told, 0.7 * told):
            bound = divergence(least, told, 4, two=True)
            for one, other in product(neighbours, repeat=2):
                assert excess(one, other, least) <= bound + 1e-9


def test_metrics_of_two_reports_have_the_smaller_bound_and_others_keep_theirs() -> None:
    boolean, numbers = metric_of(BOOLEAN), metric_of(NUMBER, mechanism='"duchi"')
    more = metric_of(NUMBER, mechanism='"minimax"')

    for metric in (boolean, numbers):
        bound, crossing = shuffled_of(metric, 20_000).epsilon, crossing_of(metric)
        assert bound < 0.9 * shuffled(1.0, 20_000, 1e-8).epsilon
        assert crossing is None or 0.99 * bound < reached(crossing, 20_000, 1e-8) < bound
    assert shuffled_of(more, 20_000).epsilon > shuffled_of(numbers, 20_000).epsilon


def test_a_profile_of_two_reports_is_above_the_divergence_by_an_eighth_at_most() -> None:
    profile = profile_of(1.0, 5_000, two=True)

    assert profile.epsilons[0] == 0
    assert profile.deltas[-1] < 2e-12
    for at, delta in zip(profile.epsilons[::6], profile.deltas[::6], strict=True):
        alike = TwoReports(1.0, 5_000, at).alike()
        assert alike < delta < 1.13 * max(alike, TwoReports(1.0, 5_000, at).most() / (1 + SPARE))
