"""The variance of a sum of shares is that of the shipped mechanism, found by enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs

from client_sdk.mechanisms import ItemMechanism
from client_sdk.mechanisms.deployed.dbitflip import DBitFlip
from client_sdk.mechanisms.items.block_design import BlockDesign
from client_sdk.mechanisms.items.exponential import Exponential
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.hadamard import Hadamard
from client_sdk.mechanisms.items.olh import OLH
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.items.pgr import PGR
from client_sdk.mechanisms.items.subset_selection import SubsetSelection
from client_sdk.mechanisms.items.sue import SUE
from client_sdk.mechanisms.mixture import Mixture
from collector.analytics.sums import Shares
from collector.analytics.verb import Slice
from collector.core.remarks import Code, remark
from collector.estimation.estimate import shares
from tests.support.crowds.asking import ask
from tests.support.enumeration.coverage import fits_rate
from tests.support.enumeration.enumeration import distribution
from tests.support.enumeration.populations import category

N = 1_000_000_000  # reports of the expected tally; its rounding to integers is below 1e-8
ALPHA = 0.05
HELD = (0.1, 0.4, 0.0, 0.3, 0.2)  # by item; also of the first items of fewer
WEIGHTS = np.array([[1, 1, 0, 0, 0], [1, 1, 0, 1, 0], [1, -0.5, 0, 2, 0], [1, 1, 1, 1, 1.0]])
MECHANISMS: list[ItemMechanism] = [
    GRR("1", 5),
    OUE("1", 5, precision=12),
    SUE("1", 5, precision=12),
    SubsetSelection("1", 5, subset_size=2, precision=12),
    SubsetSelection("1", 5, subset_size=4, precision=12),
    Hadamard("1", 5, precision=12),
    PGR("1", 5, order=2, precision=12),
    PGR("1", 5, order=3, precision=12),
    Exponential("1", 5, precision=12),
    BlockDesign("1", 5, block_size=2, precision=12),
    BlockDesign("1", 5, block_size=3, prime=7, precision=12),
    OLH("1", 5, buckets=3, prime=7, precision=12),
    Mixture(GRR("2", 5), "1"),
    Mixture(SubsetSelection("2", 5, subset_size=2, precision=12), "1"),
    Mixture(BlockDesign("2", 5, block_size=3, prime=7, precision=12), "1"),
    Mixture(PGR("2", 5, order=3, precision=12), "1"),
    Mixture(OLH("2", 5, buckets=3, prime=7, precision=12), "1"),
]


def name(mechanism: ItemMechanism) -> str:
    parts = (f"{key}={value}" for key, value in mechanism.parameters.items() if value < 1_000)
    return " ".join([mechanism.name, *parts])


def laws(mechanism: ItemMechanism) -> tuple[Any, Any]:
    """Return the chance of each payload by item, and the shares that one report stands for."""
    found = [
        distribution(lambda rnd, v=v: mechanism.randomize(v, rnd)).pmf  # type: ignore[misc]
        for v in range(mechanism.domain_size)
    ]
    payloads = sorted({bytes(payload) for law in found for payload in law})  # type: ignore[call-overload]
    chances = np.array([[float(law.get(payload, 0)) for payload in payloads] for law in found])
    tallies = [mechanism.tally(payload, np) for payload in payloads]
    stands = np.array([mechanism.debias(tally, 1, np).totals for tally in tallies])
    counts = np.rint(N * (np.array(HELD) @ chances)).astype(np.int64)
    tally = (counts[:, None] * np.array(tallies)).sum(axis=0)
    return (chances, stands), (tally, int(counts.sum()))


def exact(mechanism: ItemMechanism, weights: Any) -> tuple[Any, Any, Any]:
    """Return the exact variance of one report's sums, with the expected tally and its reports."""
    (chances, stands), (tally, n) = laws(mechanism)
    sums = stands @ weights.T
    scatter = chances @ sums**2 - (chances @ sums) ** 2
    return np.array(HELD) @ scatter, tally, n


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=name)
def test_the_variance_of_a_weighted_sum_is_that_of_the_enumerated_reports(
    mechanism: ItemMechanism,
) -> None:
    """Groups, contrasts and the whole, for a population that holds items unevenly."""
    scatter, tally, n = exact(mechanism, WEIGHTS)

    found = Shares.of(mechanism, tally, n)

    base = mechanism.base if isinstance(mechanism, Mixture) else mechanism
    sampled = 0.05 if isinstance(base, OLH) else 1e-4  # the laws of hashes are averaged
    assert n * found.variances(WEIGHTS) == pytest.approx(scatter, rel=sampled, abs=1e-3)
    assert found.notes == ()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=name)
def test_adding_variances_as_if_items_were_independent_would_be_seen(
    mechanism: ItemMechanism,
) -> None:
    """The planted bug of most who sum shares; bits and rows alone are independent indeed."""
    scatter, tally, n = exact(mechanism, WEIGHTS)
    marginal = mechanism.debias(tally, n, np).variances / n
    wrong = WEIGHTS**2 @ marginal

    independent = isinstance(mechanism, OUE | SUE | Hadamard)
    off = np.abs(wrong / np.maximum(scatter, 1e-12) - 1).max()
    assert (off < 1e-4) == independent
    assert independent or off > 0.06


@pytest.mark.parametrize("mechanism", MECHANISMS[:6], ids=name)
def test_a_group_of_one_item_has_the_interval_of_the_item(mechanism: ItemMechanism) -> None:
    """One score interval, whichever way it is asked for."""
    _, tally, n = exact(mechanism, WEIGHTS)

    found = Shares.of(mechanism, tally, n).groups(np.eye(5), ALPHA)

    for group, item in zip(found, shares(mechanism, tally, n, ALPHA), strict=True):
        assert structs.asdict(group) == pytest.approx(structs.asdict(item))


@pytest.mark.parametrize("wrong", [1.0, 0.5])
def test_the_interval_of_a_group_covers_at_its_level_and_half_its_variance_would_not(
    wrong: float,
) -> None:
    """Two rare items of many, whose share is near zero: a normal interval would miss more often."""
    mechanism, trials = GRR("1", 20), 3_000
    held = np.zeros(20)
    held[[0, 1, 5]] = 20, 10, 970
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    chance = np.random.default_rng(20261121)
    law = np.full((20, 20), q) + np.eye(20) * (p - q)
    tallies = sum(chance.multinomial(int(h), law[i], trials) for i, h in enumerate(held))
    members = np.eye(20)[:2].sum(axis=0)[None, :]
    hits = 0

    for tally in np.asarray(tallies, dtype=np.int64):
        (group,) = Shares.of(mechanism, tally, 1_000).groups(members, ALPHA)
        middle = (group.ci_low + group.ci_high) / 2
        hits += abs(0.03 - middle) <= (group.ci_high - middle) * wrong**0.5

    assert fits_rate(hits, trials, 1 - ALPHA) == (wrong == 1)


def test_parts_add_up_to_the_whole_exactly() -> None:
    """Sums are linear in one estimate, so nested ranges agree."""
    mechanism = SubsetSelection("1", 5, subset_size=2)
    _, tally, n = exact(MECHANISMS[3], WEIGHTS)
    members = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [1, 1, 1, 1, 1]], dtype=bool)

    low, high, whole = Shares.of(mechanism, tally, n).groups(members, ALPHA)

    assert low.value + high.value == pytest.approx(whole.value, abs=1e-12)


def test_a_mechanism_of_unknown_pairs_gets_a_bound_and_says_so() -> None:
    """The standard error of a sum is at most the sum of the standard errors."""
    mechanism = DBitFlip("1", 4, sampled=4)
    tally = np.array([1000, 1000, 1000, 1000, 400, 450, 500, 600])
    found = Shares.of(mechanism, tally, 1000)

    (group,) = found.groups(np.array([[1, 1, 0, 0]]), ALPHA)

    marginal = np.sqrt(mechanism.debias(tally, 1000, np).variances) / 1000
    assert group.std_error == pytest.approx(marginal[:2].sum())
    assert found.notes == (remark(Code.BOUND),)


def test_reports_that_repeat_their_noise_count_once() -> None:
    """A permanent response of four epochs errs as that of one, by the root of four."""
    metric = category(*"abc", longitudinal='"permanent"')
    fresh = category(*"abc")
    tally = np.array([600, 500, 400])
    members = np.array([[1, 1, 0]])

    (once,), (often,), (new,) = (
        Shares.of_slice(Slice(each, {}, 1_500, tally, epochs)).groups(members, ALPHA)
        for each, epochs in ((metric, (3,)), (metric, (3, 4, 5, 6)), (fresh, (3, 4, 5, 6)))
    )

    assert often.std_error == pytest.approx(2 * once.std_error)
    assert often.ci_high - often.ci_low == pytest.approx(2 * (once.ci_high - once.ci_low), rel=0.01)
    assert new.std_error == pytest.approx(once.std_error)


def test_items_of_repeated_reports_are_widened_as_their_sums_are() -> None:
    """One law for a row and for a group of one."""
    metric = category(*"abc", longitudinal='"permanent"')
    one = Slice(metric, {}, 1_500, np.array([600, 500, 400]), (3, 4, 5, 6))

    rows = ask("frequency", [one]).rows
    groups = Shares.of_slice(one).groups(np.eye(3), ALPHA)

    assert [row.std_error for row in rows] == pytest.approx([group.std_error for group in groups])
    assert [row.ci_low for row in rows] == pytest.approx(
        [group.ci_low for group in groups], abs=0.002
    )
