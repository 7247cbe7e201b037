"""What a family answers of any of its mechanisms is what the sharper ones say of themselves."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from client_sdk.mechanisms import FrequencyOracle, ItemMechanism, MeanMechanism, Mixture, load
from client_sdk.mechanisms.enumeration import enumerate_items
from client_sdk.mechanisms.frequency import PairLaw
from client_sdk.mechanisms.items.exponential import Exponential
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.hadamard import Hadamard
from client_sdk.mechanisms.items.hierarchy import Hierarchy
from client_sdk.mechanisms.items.olh import OLH
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.items.pgr import PGR
from client_sdk.mechanisms.items.subset_selection import SubsetSelection
from client_sdk.mechanisms.items.sue import SUE
from tests.support.enumeration.enumeration import distribution

WEIGHTS: Final = np.array([[1, 1, 0, 0, 0], [1, -0.5, 0, 2, 0], [1, 1, 1, 1, 1.0]])
PAIRED: Final[list[FrequencyOracle]] = [
    GRR("1", 5),
    OUE("1", 5),
    SUE("1", 5),
    Hadamard("1", 5),
    SubsetSelection("1", 5, subset_size=2),
    SubsetSelection("1", 5, subset_size=4),
    Mixture(GRR("2", 5), "1"),
    Mixture(SubsetSelection("2", 5, subset_size=2), "1"),
]


def name(mechanism: Any) -> str:
    return " ".join([mechanism.name, *(f"{k}={v}" for k, v in mechanism.parameters.items())])[:40]


def by_enumeration(oracle: FrequencyOracle, weights: Any) -> tuple[Any, Any]:
    """Return the moments of sums by the family's own enumeration."""
    law = oracle.enumerated(np)
    assert law is not None
    return oracle._enumerated_moments(law, weights, np)


@pytest.mark.parametrize("mechanism", [*PAIRED, Exponential("1", 4), Hierarchy("1", 4)], ids=name)
def test_enumeration_finds_the_law_that_the_tests_enumerate(mechanism: ItemMechanism) -> None:
    """Law: two replays of the same code, written apart, agree on every payload and item."""
    law = enumerate_items(mechanism, np)
    assert law is not None

    for item, row in enumerate(law.chances):
        known = distribution(lambda rnd, v=item: mechanism.randomize(v, rnd)).pmf  # type: ignore[misc]
        assert row == pytest.approx([float(known.get(payload, 0)) for payload in law.payloads])


@pytest.mark.parametrize("oracle", PAIRED, ids=name)
def test_the_moments_by_the_law_of_pairs_are_those_by_enumeration(oracle: FrequencyOracle) -> None:
    moments = oracle.sum_moments(WEIGHTS, np)

    assert moments is not None
    for moment, known in zip(moments, by_enumeration(oracle, WEIGHTS), strict=True):
        assert moment == pytest.approx(known)


@pytest.mark.parametrize("oracle", PAIRED, ids=name)
def test_a_law_of_pairs_says_how_often_two_items_are_supported(oracle: FrequencyOracle) -> None:
    """Law: own and another item, and two others, of a holder of item 0."""
    pair, law = oracle.pair_law(), oracle.enumerated(np)
    assert pair is not None
    assert law is not None
    held = [set(oracle.supports(payload)) for payload in law.payloads]

    own, others = (
        sum(chance for chance, items in zip(law.chances[0], held, strict=True) if both <= items)
        for both in ({0, 1}, {1, 2})
    )

    assert pair == pytest.approx((own, others))


def test_a_wrong_law_of_pairs_would_be_seen() -> None:
    """The planted bug: bits that are said to exclude each other."""

    class Excluding(OUE):
        def pair_law(self) -> PairLaw:
            return PairLaw(0.0, 0.0)

    oracle = Excluding("1", 5)
    moments = oracle.sum_moments(WEIGHTS, np)

    assert moments is not None
    assert moments[1] != pytest.approx(by_enumeration(oracle, WEIGHTS)[1])


@pytest.mark.parametrize("oracle", [GRR("1", 5), PGR("1", 5, order=3)], ids=name)
def test_the_stated_chances_of_cells_are_those_by_enumeration(oracle: FrequencyOracle) -> None:
    tally = np.zeros(oracle.tally_size, dtype=np.int64)

    stated, found = oracle.noise_law(tally, np), ItemMechanism.noise_law(oracle, tally, np)

    assert found.lowest is not None
    assert found.highest is not None
    if stated.lowest is not None:
        assert found.lowest == pytest.approx(stated.lowest)
    if stated.highest is not None:
        assert found.highest == pytest.approx(stated.highest)


@pytest.mark.parametrize("mechanism", [Exponential("1", 5), GRR("1", 5), OUE("1", 4)], ids=name)
def test_the_reach_that_a_mechanism_states_is_that_by_enumeration(mechanism: ItemMechanism) -> None:
    for item in range(4):
        stated, found = (
            mechanism.share_reach(item, np),
            ItemMechanism.share_reach(mechanism, item, np),
        )

        assert stated is not None
        assert found == pytest.approx(stated)


def test_an_estimate_that_is_no_mean_of_reports_has_no_reach() -> None:
    """Law: a least squares estimate weights levels by their reports; nothing is stated."""
    hierarchy = Hierarchy("1", 4, fanout=2)

    assert hierarchy.enumerated(np) is not None
    assert hierarchy.share_reach(0, np) is None


@pytest.mark.parametrize("kind", ["duchi", "one_bit_mean", "piecewise", "hybrid"])
def test_the_extreme_reports_of_a_mean_are_found_by_decoding_all(kind: str) -> None:
    mechanism = load(kind)("1", 11)
    assert isinstance(mechanism, MeanMechanism)

    assert MeanMechanism.position_reach(mechanism, np) == mechanism.position_reach(np)


def test_what_is_too_large_is_not_enumerated_and_has_a_bound_only() -> None:
    """Law: a seed of 56 bits is given up at once; many items are, too."""
    assert enumerate_items(OLH("1", 5), np) is None
    assert enumerate_items(GRR("1", 1_000), np) is None
