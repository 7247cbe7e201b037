"""Facts about longitudinal local hashing: what many reports of a device give away, exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias, cast

import pytest

from client_sdk.core.errors import InvalidValueError
from client_sdk.core.randomness import Randomness
from client_sdk.mechanisms.deployed.loloha import LOLOHA
from client_sdk.mechanisms.deployed.rappor import RAPPOR
from client_sdk.mechanisms.items.olh import OLH
from client_sdk.registry.longitudinal import permanent_randomness
from tests.support.enumeration.enumeration import (
    Untouchable,
    distribution,
    exp_below,
    largest_ratio,
)
from tests.support.enumeration.replay import Replay
from tests.support.enumeration.seeded import SeededRandomness

Pmf: TypeAlias = dict[tuple[bytes, ...], Fraction]

SMALL = [LOLOHA(e, 3, buckets=g, prime=3) for e in ("0.1", "1", "4") for g in (2, 3)]
every_small = pytest.mark.parametrize("small", SMALL, ids=lambda m: f"{m.epsilon}-{m.buckets}")


class Memo:
    """Permanent randomness of one device, by key, drawn when first asked for."""

    def __init__(self, randomness: Randomness) -> None:
        self._randomness = randomness
        self._kept: dict[bytes, Replay] = {}

    def __call__(self, key: bytes) -> Replay:
        replay = self._kept.setdefault(key, Replay(self._randomness))
        replay.rewind()
        return replay


def joint(mechanism: LOLOHA, values: Sequence[int]) -> Pmf:
    """Return the exact law of the reports of a device that has *values* in turn."""

    def sample(randomness: Randomness) -> tuple[bytes, ...]:
        memo = Memo(randomness)
        return tuple(mechanism.respond(value, memo, randomness) for value in values)

    return cast("Pmf", distribution(sample).pmf)


@every_small
def test_the_first_report_of_a_device_is_the_report_of_randomize(small: LOLOHA) -> None:
    for value in range(3):
        single = distribution(lambda rnd, v=value: small.randomize(v, rnd)).pmf  # type: ignore[misc]  # bound now

        assert {outcome[0]: mass for outcome, mass in joint(small, [value]).items()} == single


@every_small
@pytest.mark.parametrize("reports", [2, 3])
def test_all_reports_of_one_value_cost_at_most_the_permanent_epsilon(
    small: LOLOHA, reports: int
) -> None:
    ratio = largest_ratio([joint(small, [value] * reports) for value in range(3)])

    assert exp_below(small.spent) < ratio <= exp_below(small.spent_bucket)
    assert small.spent_bucket <= small.permanent_epsilon == 2 * small.epsilon


@every_small
def test_two_values_cost_at_most_the_lifetime_epsilon_whatever_they_hash_to(small: LOLOHA) -> None:
    laws = [joint(small, history) for history in ([0, 1], [1, 0], [0, 2], [2, 1])]

    assert largest_ratio(laws) <= exp_below(small.spent_lifetime)
    assert small.spent_lifetime == small.buckets * small.spent_bucket


@pytest.mark.parametrize("percent", [101, 150, 200, 400])
@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "4", "16"])
def test_one_report_has_the_channel_of_olh(epsilon: str, percent: int) -> None:
    mechanism = LOLOHA(epsilon, 64, permanent_percent=percent)
    olh = OLH(epsilon, 64, buckets=mechanism.buckets)

    assert abs(mechanism.channel.p - olh.channel.p) < Fraction(1, 1 << 120)
    assert 0 <= mechanism.epsilon - mechanism.spent < Fraction(1, 1 << 40)


def test_the_variance_is_that_of_the_two_round_formula() -> None:
    mechanism = LOLOHA("1", 1000, buckets=4)
    g, n = mechanism.buckets, 10_000
    p1, p2 = float(mechanism.first_truth), float(mechanism.second_truth)
    q2 = (1 - p2) / (g - 1)
    gamma = (p2 - q2) / g + q2
    formula = gamma * (1 - gamma) / ((p1 - 1 / g) ** 2 * (p2 - q2) ** 2)

    p, q = float(mechanism.channel.p), float(mechanism.channel.q)

    assert q * (1 - q) / (p - q) ** 2 == pytest.approx(formula, rel=1e-6)
    assert mechanism.predict(n) == pytest.approx(math.sqrt(formula / n), rel=2e-3)


def test_fewer_buckets_make_a_cheaper_life() -> None:
    lives = [LOLOHA("1", 1000, buckets=g).spent_lifetime for g in (2, 4, 8)]

    assert lives == sorted(lives)
    assert LOLOHA("1", 3, buckets=8).spent_lifetime == 3 * LOLOHA("1", 3, buckets=8).spent_bucket


def test_a_device_keeps_its_seed_and_its_noisy_bucket() -> None:
    mechanism = LOLOHA("4", 50, permanent_percent=400)
    fresh = SeededRandomness(b"fresh")

    reports = [
        int.from_bytes(
            mechanism.respond(
                7, lambda key: permanent_randomness(bytes(32), b"metric", key), fresh
            ),
            "big",
        )
        for _ in range(300)
    ]

    seeds = {report // mechanism.buckets for report in reports}
    counts = [
        sum(report % mechanism.buckets == b for report in reports) for b in range(mechanism.buckets)
    ]
    assert len(seeds) == 1
    assert max(counts) > 120  # p₂ is about 1/2, any other bucket below 1/100


@pytest.mark.parametrize("kind", [LOLOHA, RAPPOR])
def test_a_value_outside_the_domain_is_refused_before_any_draw(
    kind: type[LOLOHA | RAPPOR],
) -> None:
    def untouched(key: bytes) -> Randomness:
        raise AssertionError

    with pytest.raises(InvalidValueError):
        kind("1", 4).respond(4, untouched, Untouchable())
