"""Differences of means between devices that were drawn by chance: as wide as they must be."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import numpy as np
import pytest

from benchmarks.lib.tallies import law_of
from client_sdk.mechanisms import MeanMechanism, load
from client_sdk.mechanisms.families import largest_spread
from client_sdk.registry.metric import Metric
from collector.analytics.rows import Row
from collector.analytics.verb import Slice
from tests.support.crowds.asking import ask
from tests.support.device.registries import NUMBER
from tests.support.enumeration.coverage import fits_rate
from tests.support.enumeration.populations import metric_of
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.known import known

ALPHA: Final = 0.05
TIMES: Final = 1_500
DEVICES: Final = 4_000  # an arm
KINDS: Final = ("hybrid", "piecewise", "duchi", "one_bit_mean", "square_wave")
LIFT: Final = {"dimension": "arm", "control": "old"}


def number_metric(mechanism: str, epsilon: str) -> Metric:
    """Return a metric of money from 0 to 40."""
    changes = {"mechanism": f'"{mechanism}"', "epsilon": f'"{epsilon}"', "max": "40", "step": "1"}
    return metric_of(NUMBER, **changes)


def long_tail(metric: Metric) -> Any:
    """Return the shares of the grid points where a few people spend most."""
    weights = np.exp(-np.arange(metric.mechanism.domain_size) / 7)
    return weights / weights.sum()


def experiments(metric: Metric, seed: int) -> list[Row]:
    """Return what *lift* says of the difference where there is none, TIMES times."""
    chance = np.random.default_rng(seed)
    held = chance.multinomial(DEVICES, long_tail(metric), 2 * TIMES)
    tallies = law_of(metric.mechanism).drawn(held, 2 * TIMES, chance).reshape(TIMES, 2, -1)
    answers = (
        ask(
            "lift",
            [
                Slice(metric, {"arm": arm}, DEVICES, tally, (0,))
                for arm, tally in zip(("old", "new"), pair, strict=True)
            ],
            ALPHA,
            options=LIFT,
        )
        for pair in tallies
    )
    return [answer.rows[0] for answer in answers]


@pytest.mark.parametrize("epsilon", ["1", "4"])
@pytest.mark.parametrize("mechanism", KINDS)
def test_a_difference_of_means_holds_as_often_as_it_says(mechanism: str, epsilon: str) -> None:
    """No more often either: intervals from the range and the mean alone would always hold."""
    metric = number_metric(mechanism, epsilon)
    rows = experiments(metric, 20261122)

    held = sum(covers(row) for row in rows)

    assert fits_rate(held, TIMES, 1 - ALPHA)
    if epsilon == "4":  # where the noise does not hide what is too wide
        wide = sum(covers(row, by=bounded(metric) / (row.std_error or 1)) for row in rows)
        assert not fits_rate(wide, TIMES, 1 - ALPHA)


def covers(row: Row, by: float = 1.0) -> bool:
    """Return whether the interval, *by* times as wide, holds the difference 0."""
    return abs(known(row.value)) <= by * (known(row.ci_high) - known(row.value))


def bounded(metric: Metric) -> float:
    """Return the standard error of a difference if the range bounds how much values differ."""
    mean = float(long_tail(metric) @ np.arange(41))
    mechanism = metric.mechanism
    noise = (mechanism.predict(1) * 40) ** 2
    return float((2 * (noise + mean * (40 - mean)) / DEVICES) ** 0.5)


@pytest.mark.parametrize("name", ["discrete_laplace", "hybrid", "duchi"])
def test_reports_differ_by_noise_and_values_and_never_less_than_by_noise(name: str) -> None:
    """Against reports that were randomized one by one, to six standard errors of a variance."""
    mechanism: Any = load(name)("2", 41)
    chance = np.random.default_rng(20261122)
    metric = number_metric(name, "2")
    values = chance.choice(41, 20_000, p=long_tail(metric))
    payloads = b"".join(randomized(mechanism, values.tolist()))

    scatter = mechanism.scatter(mechanism.tally(payloads, np), len(values), np)

    reports = np.array([float(mechanism.decode(one)) for one in mechanism.split(payloads)])
    assert scatter.reports == pytest.approx(float(reports.var()))
    assert 0 < scatter.positions < scatter.reports
    allowed = largest_spread(float(reports.mean()), 40)
    assert scatter.positions <= allowed * (1 + 1e-9) or name == "discrete_laplace"
    assert scatter.positions >= 0.5 * float(values.var())


def randomized(mechanism: MeanMechanism, values: list[int]) -> list[bytes]:
    """Return the reports of *values*."""
    randomness = SeededRandomness(b"differences of means")
    return [mechanism.randomize(Fraction(value), randomness) for value in values]
