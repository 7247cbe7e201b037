"""Numbers that papers and deployments publish follow from the channels as built.

Closed forms hold to the digits printed.  A simulation is at tally level: supports of an item that
nobody holds are Binomial(n, q), and the shipped estimator turns them into shares.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import reduce
from math import comb, exp
from typing import Final

import pytest

from client_sdk.mechanisms import FrequencyOracle, ItemMechanism
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.olh import OLH
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.items.sue import SUE
from client_sdk.registry.selection import candidates

EPSILONS: Final = ("0.5", "1", "2", "4")  # nats per report
REPORTS, ITEMS = 10_000, 1_024


def rare_variance(oracle: FrequencyOracle) -> float:
    """Return n Var of the share of an item that nobody holds: q(1-q)/(p-q)^2."""
    p, q = oracle.channel.p, oracle.channel.q
    return float(q * (1 - q) / (p - q) ** 2)


# Wang, Blocki, Li, Jha, USENIX Security 2017: the variances of frequency oracles.


@pytest.mark.parametrize(
    ("kind", "domain_size", "stated"),
    [
        pytest.param(OUE, 16, (15.671, 3.6827, 0.72406, 0.076022), id="OUE"),
        pytest.param(SUE, 16, (15.916, 3.9177, 0.92067, 0.18102), id="SUE"),
        pytest.param(GRR, 16, (37.185, 5.6624, 0.52398, 0.023879), id="GRR-16"),
        pytest.param(GRR, 128, (303.32, 43.596, 3.2677, 0.062866), id="GRR-128"),
    ],
)
def test_the_variance_of_a_rare_share_is_the_published_formula(
    kind: type[FrequencyOracle], domain_size: int, stated: tuple[float, ...]
) -> None:
    found = [rare_variance(kind(epsilon, domain_size)) for epsilon in EPSILONS]

    assert found == pytest.approx(stated, rel=1e-4)


def test_local_hashing_to_two_buckets_has_the_variance_of_binary_local_hashing() -> None:
    found = [rare_variance(OLH(epsilon, 16, buckets=2)) for epsilon in EPSILONS]

    assert found == pytest.approx([16.671, 4.6827, 1.7241, 1.0760], rel=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "buckets", "unary", "direct"),
    [
        ("0.5", 3, 1.567e-3, 0.243),
        ("1", 4, 3.683e-4, 3.47e-2),
        ("2", 8, 7.24e-5, 2.52e-3),
        ("4", 56, 7.60e-6, 3.75e-5),
    ],
)
def test_the_errors_for_1024_items_and_10000_reports_are_the_published_ones(
    epsilon: str, buckets: int, unary: float, direct: float
) -> None:
    oue, olh, grr = OUE(epsilon, ITEMS), OLH(epsilon, ITEMS), GRR(epsilon, ITEMS)

    assert olh.buckets == buckets
    assert rare_variance(oue) / REPORTS == pytest.approx(unary, rel=1e-3)
    assert rare_variance(olh) / REPORTS == pytest.approx(unary, rel=0.03)
    assert rare_variance(grr) / REPORTS == pytest.approx(direct, rel=5e-3)


@pytest.mark.parametrize("kind", [OUE, OLH, GRR])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_counting_the_whole_domain_adds_the_published_term(
    kind: type[FrequencyOracle], epsilon: str
) -> None:
    oracle = kind(epsilon, ITEMS)
    p, q = float(oracle.channel.p), float(oracle.channel.q)

    added = (1 - p - q) / (ITEMS * (p - q))

    assert oracle.predict(1) ** 2 == pytest.approx(rare_variance(oracle) + added)


@pytest.mark.parametrize(("epsilon", "last"), [("0.5", 6), ("1", 10), ("2", 24), ("4", 165)])
def test_randomized_response_beats_unary_encoding_up_to_the_published_size(
    epsilon: str, last: int
) -> None:
    sizes = range(2, 2 * last)

    better = [k for k in sizes if rare_variance(GRR(epsilon, k)) < rare_variance(OUE(epsilon, k))]

    assert better == list(range(2, last + 1))
    assert last < 3 * exp(float(epsilon)) + 2 < last + 1


@pytest.mark.parametrize(("epsilon", "last"), [("0.5", 6), ("1", 9), ("2", 20), ("4", 134)])
def test_auto_counts_the_whole_domain_so_it_would_change_to_unary_encoding_no_later(
    epsilon: str, last: int
) -> None:
    def better(size: int) -> str:
        return next(
            c.name for c in candidates(ItemMechanism, epsilon, size) if c.name in ("grr", "oue")
        )

    assert (better(last), better(last + 1)) == ("grr", "oue")
    assert last < 3 * exp(float(epsilon)) + 2  # the size for items that nobody holds, above


# Attribution Reporting API, event-level: a report is noise with probability k / (k + e^ε - 1).


@pytest.mark.parametrize(
    ("outputs", "published", "computed"),
    [(2_925, "0.24", 0.24263), (3, "0.00025", 0.00024946)],
)
def test_the_share_of_noisy_outputs_is_the_published_one(
    outputs: int, published: str, computed: float
) -> None:
    percent = 100 * float(outputs * GRR("14", outputs).channel.q)  # noise may be true by chance

    assert f"{percent:.2g}" == published
    assert percent == pytest.approx(computed, rel=5e-5)


# Cobalt: one bit, flipped with probability 1 %, 10 % or 25 %.


def coin(flip: str) -> GRR:
    """Return randomized response of one bit that lies with probability *flip*."""
    p = Decimal(flip)
    return GRR(((1 - p) / p).ln(), 2)


@pytest.mark.parametrize(
    ("flip", "epsilon", "variance"),
    [("0.01", 4.595, 0.0103), ("0.1", 2.197, 0.1406), ("0.25", 1.099, 0.75)],
)
def test_a_flipped_bit_has_the_published_epsilon_and_variance(
    flip: str, epsilon: float, variance: float
) -> None:
    oracle = coin(flip)

    assert float(oracle.channel.q) == pytest.approx(float(flip))
    assert float(oracle.spent) == pytest.approx(epsilon, abs=5e-4)
    assert rare_variance(oracle) == pytest.approx(variance, abs=5e-5)


# A constant bit, reported afresh T times: the majority of the reports tells it.


def majority(truth: Fraction, reports: int) -> Fraction:
    """Return the chance that most of *reports* are true; a tie is broken evenly."""
    chances = [
        comb(reports, hits) * truth**hits * (1 - truth) ** (reports - hits)
        for hits in range(reports + 1)
    ]
    wins = [
        chance * Fraction(1 + (2 * hits > reports) - (2 * hits < reports), 2)
        for hits, chance in enumerate(chances)
    ]
    return reduce(Fraction.__add__, wins)


@pytest.mark.parametrize(
    ("flip", "stated"), [("0.25", (0.750, 0.929, 0.998)), ("0.1", (0.900, 0.997, 1.000))]
)
def test_fresh_reports_of_a_constant_bit_give_it_away_as_published(
    flip: str, stated: tuple[float, ...]
) -> None:
    truth = coin(flip).channel.p

    found = [float(majority(truth, reports)) for reports in (1, 7, 30)]

    assert found == pytest.approx(stated, abs=5e-4)
