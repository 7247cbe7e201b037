"""What benchmarks draw at once is what devices send one by one."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from benchmarks.lib.learned import FastCodebook
from benchmarks.lib.tallies import Bits, Points, law_of
from client_sdk.mechanisms import UNIT, FrequencyOracle
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.items.pgr import PGR
from client_sdk.mechanisms.items.subset_selection import SubsetSelection
from client_sdk.mechanisms.numbers.codebook import Codebook
from tests.support.enumeration.enumeration import distribution
from tests.support.enumeration.seeded import SeededRandomness

ORACLES = [
    GRR("1", 4),
    OUE("1", 4),
    SubsetSelection("1", 6, subset_size=2),
    SubsetSelection("2", 5, subset_size=1),
    PGR("1", 6, order=2),
    PGR("1", 4, order=3),
]


def moments_of_code(oracle: FrequencyOracle, item: int) -> tuple[Any, Any]:
    """Return mean and second moments of the tally of one report, along every path of the code."""
    law = distribution(lambda randomness: oracle.randomize(item, randomness)).pmf
    tallies = np.array([oracle.tally(cast("bytes", payload), np) for payload in law])
    chances = np.array([float(mass) for mass in law.values()])
    return chances @ tallies, (tallies * chances[:, None]).T @ tallies


def moments_of_law(oracle: FrequencyOracle, item: int) -> tuple[Any, Any]:
    """Return the same of the law that benchmarks draw from."""
    law = law_of(oracle)
    if isinstance(law, Bits):
        mean = np.full(oracle.domain_size, law.q)
        mean[item] = law.p
        return mean, np.outer(mean, mean) + np.diag(mean - mean**2)
    if isinstance(law, Points):
        own, others = law.own[item], law.others[item]
        mean = np.zeros(own.size + others.size)
        mean[own], mean[others] = law.p / own.size, (1 - law.p) / others.size
        return mean, np.diag(mean)
    cells = np.eye(law.chances.shape[1]) if law.cells is None else law.cells
    return law.chances[item] @ cells, (cells * law.chances[item][:, None]).T @ cells


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_a_law_has_the_moments_of_the_code(oracle: FrequencyOracle) -> None:
    """Of every item: the mean of its tally, and how the cells of a tally go together."""
    for item in range(oracle.domain_size):
        for found, expected in zip(
            moments_of_law(oracle, item), moments_of_code(oracle, item), strict=True
        ):
            assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_as_many_reports_are_drawn_as_there_are_devices(oracle: FrequencyOracle) -> None:
    """Debiasing refuses tallies that no such reports can give, and is unbiased.

    A mean of 500 estimates is beyond 6.5 standard errors with a chance below 1e-10.
    """
    held = np.arange(1, oracle.domain_size + 1) * 100
    n = int(held.sum())

    tallies = law_of(oracle).drawn(held, 500, np.random.default_rng(1))

    found = np.array([oracle.debias(tally, n, np).totals for tally in tallies])
    errors = found.std(axis=0) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - held) < 6.5 * errors).all()


@pytest.mark.parametrize("epsilon", ["1", "4"])
def test_products_by_numpy_give_the_payloads_of_the_shipped_mechanism(epsilon: str) -> None:
    """Same draws, same bytes; also of vectors whose words have equal products."""
    fast, shipped = FastCodebook(epsilon, 5), Codebook(epsilon, 5)
    values = [(UNIT // 3, -UNIT // 2, 7, 0, -1), (UNIT, 0, 0, 0, 0), (0, 0, 0, 0, 0)]

    for value in values:
        ours, theirs = SeededRandomness(b"same"), SeededRandomness(b"same")
        for _ in range(15):
            assert fast.randomize(value, ours) == shipped.randomize(value, theirs)
