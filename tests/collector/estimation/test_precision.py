"""Devices to half-width and back: each way undoes the other."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.mechanisms import Mechanism, load
from client_sdk.mechanisms.deployed.cms import CMS
from client_sdk.mechanisms.items.grr import GRR
from collector.estimation.precision import (
    detectable,
    devices_to_detect,
    fewest,
    half_width,
    in_words,
    reports_for,
    scale_of,
    still_needed,
    wished,
)
from tests.support.device.registries import BOOLEAN, CATEGORY, NUMBER
from tests.support.enumeration.populations import metric_of
from tests.support.known import known

Z: Final = NormalDist().inv_cdf(0.975)
COIN: Final = GRR("1", 2)


@pytest.mark.parametrize("name", ["grr", "oue", "pgr", "hybrid", "square_wave", "sampled_item"])
@pytest.mark.parametrize("wish", [0.1, 0.01])
def test_as_many_reports_as_said_give_the_wished_half_width_and_one_fewer_does_not(
    name: str, wish: float
) -> None:
    """Law: the number is the least."""
    mechanism = load(name)("1", 32)

    found = known(reports_for(mechanism, wish))

    assert half_width(mechanism, found) <= wish < half_width(mechanism, found - 1)


def test_the_reports_of_a_coin_are_those_of_the_closed_form() -> None:
    """Law: (z / w)^2 e^ε / (e^ε - 1)^2 and the quarter that a share varies, worked out by hand.

    n V = q(1-q)/(p-q)^2 for two items at ε = 1 is 0.92067.
    """
    p = float(COIN.channel.p)

    variance = p * (1 - p) / (2 * p - 1) ** 2

    assert variance == pytest.approx(0.92067, abs=1e-5)
    assert reports_for(COIN, 0.01) == pytest.approx((Z / 0.01) ** 2 * variance, abs=1)


def test_collisions_of_a_sketch_bound_what_any_number_of_reports_gives() -> None:
    """Law: None stands for never, where errors do not vanish."""
    sketch = CMS("1", 1_000, rows=4, columns=16)

    assert reports_for(sketch, 0.5) is not None
    assert reports_for(sketch, 0.0001) is None


@pytest.mark.parametrize("most", [1, 5, 7, 8, 1_000])
def test_the_fewest_is_found_wherever_it_lies(most: int) -> None:
    """Law: every threshold up to the most is found, and none beyond."""
    found = [fewest(lambda n, least=least: n >= least, most) for least in range(1, most + 1)]  # type: ignore[misc]  # a default of a lambda

    assert found == list(range(1, most + 1))
    assert fewest(lambda n: n > most, most) is None


def power_of(mechanism: Mechanism[Any], effect: float, devices: int) -> float:
    """Return how often a difference of two halves is found, by simulating both arms."""
    draw, runs, n = np.random.default_rng(5), 4_000, devices // 2
    p, q = float(COIN.channel.p), float(COIN.channel.q)
    shares = (0.5 - effect / 2, 0.5 + effect / 2)
    first, second = (draw.binomial(n, q + share * (p - q), runs) / n for share in shares)
    apart = (second - first) / (p - q)
    error = sqrt(2 * 0.25 / n) / (p - q)
    return float((apart > Z * error).mean())


def test_an_effect_of_the_planned_size_is_found_with_the_planned_power() -> None:
    """Law: 80 %, of 4,000 pairs of arms of devices that answer a coin at ε = 1.

    A rate of 0.8 lies outside of 0.8 ± 0.04 with a chance of 3e-10.  The coin's variance and that
    of the sample add up to that of its reports, a quarter over (p-q)^2.
    """
    devices = known(devices_to_detect(COIN, 0.05, (0.5, 0.5), 0.05, 0.8))

    assert abs(power_of(COIN, 0.05, devices) - 0.8) < 0.04
    assert power_of(COIN, 0.05, devices // 2) < 0.6  # a plan of half the devices would be seen


def test_what_can_be_detected_and_what_it_takes_agree() -> None:
    """Law: the devices for an effect detect it, and one fewer of them does not."""
    arms = (0.9, 0.1)
    devices = known(devices_to_detect(COIN, 0.03, arms, 0.05, 0.8))

    at, below = (
        detectable(COIN, (int(0.9 * n), int(0.1 * n)), 0.05, 0.8) for n in (devices, devices - 1)
    )

    assert at <= 0.03 < below
    even = known(devices_to_detect(COIN, 0.03, (0.5, 0.5), 0.05, 0.8))
    assert even < devices


def test_a_need_is_in_the_unit_of_the_answers() -> None:
    """Law: a share is its own part, of a number the range is; 5 % where none is declared."""
    share, number = metric_of(BOOLEAN, need="0.02"), metric_of(NUMBER, need="0.5")

    assert wished(share) == pytest.approx(0.02)
    assert wished(number) == pytest.approx(0.5 / 10.5)
    assert scale_of(number) == ("minutes", 10.5)
    assert wished(metric_of(BOOLEAN)) == 0.05
    assert in_words(share, wished(share)) == "±2 points"
    assert in_words(number, wished(number)) == "±0.5 minutes"


def test_what_is_still_needed_falls_to_nothing_with_the_reports_that_come() -> None:
    """Law: needed less n, at least what min_reports asks, and never below 0."""
    metric = metric_of(CATEGORY, need="0.02", min_reports="500")
    needed = known(reports_for(metric.mechanism, 0.02))

    assert still_needed(metric, 0) == needed
    assert still_needed(metric, needed - 1) == 1
    assert still_needed(metric, needed + 1) == 0
    assert still_needed(metric_of(CATEGORY, need="0.5", min_reports="500"), 300) == 200
