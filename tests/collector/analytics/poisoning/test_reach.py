"""What one report can stand for is what the estimator makes of one report."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from client_sdk.mechanisms import (
    DistributionMechanism,
    ItemMechanism,
    KeyValueMechanism,
    MeanMechanism,
    Mechanism,
    Reach,
    SetMechanism,
    load,
    names,
)
from client_sdk.mechanisms.composite.sampled_item import SampledItem
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.hadamard import Hadamard
from client_sdk.mechanisms.items.olh import OLH
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.items.sue import SUE
from client_sdk.registry.types.numbers import NumberDomain
from collector.analytics.poisoning.influence import key_mean_reach, mean_reach
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.known import known

GRID = NumberDomain(Fraction(0), Fraction(100), Fraction(1), "ms")
ITEM = 3
PUBLISHED = {  # honest users that one fake is worth, by epsilon: OUE, SUE, Hadamard, GRR by items
    "0.5": ("5.08", "4.52", "4.08", "5.6", "24.1", "98.1", "1578"),
    "1": ("3.16", "2.54", "2.16", "2.7", "9.7", "37.7", "596"),
    "2": ("2.31", "1.58", "1.31", "1.5", "3.3", "10.9", "161"),
    "4": ("2.04", "1.16", "1.04", "1.1", "1.3", "2.2", "20"),
}
FAMILIES = (ItemMechanism, SetMechanism, KeyValueMechanism, MeanMechanism, DistributionMechanism)
TABLE = [(epsilon, column) for epsilon in PUBLISHED for column in range(7)]


def of_column(column: int, epsilon: str) -> Mechanism[Any]:
    kinds: tuple[type[ItemMechanism], ...] = (OUE, SUE, Hadamard)
    if column < len(kinds):
        return kinds[column](epsilon, 16)
    return GRR(epsilon, (4, 16, 64, 1024)[column - len(kinds)])


@pytest.mark.parametrize(("epsilon", "column"), TABLE)
def test_a_fake_is_worth_as_many_honest_users_as_the_table_of_influence_says(
    epsilon: str, column: int
) -> None:
    """Law: the most that a report stands for is (1-q)/(p-q), to the digits that are printed."""
    stated = Decimal(PUBLISHED[epsilon][column])

    reach = known(of_column(column, epsilon).share_reach(ITEM, np))

    unit = Decimal(1).scaleb(int(stated.as_tuple().exponent))
    assert abs(Decimal(reach.high) - stated) <= unit / 2


UNKNOWN = {"rappor", "hierarchy"}  # whose estimates are not a mean of what reports stand for
KNOWN = [n for n in names() if n not in UNKNOWN and issubclass(load(n), FAMILIES)]


def test_the_mechanisms_with_a_known_reach_are_nearly_all() -> None:
    assert len(KNOWN) >= 23


@pytest.mark.parametrize("name", KNOWN)
def test_no_honest_report_stands_for_more_than_the_reach_of_its_mechanism(name: str) -> None:
    """Law: the tally of one report debiases to something within the reach, for every item."""
    kind, chance = load(name), SeededRandomness(name.encode())
    mechanism = kind("1", 8)
    value: Any = ITEM if issubclass(kind, ItemMechanism) else Fraction(ITEM)
    if issubclass(kind, SetMechanism):
        value = frozenset({ITEM})
    if isinstance(mechanism, KeyValueMechanism):
        value = {ITEM: Fraction(1)}
    columns = [mechanism.randomize(value, chance) for _ in range(60)]
    stands = [mechanism.debias(mechanism.tally(one, np), 1, np).totals for one in columns]

    reaches = reaches_of(mechanism)

    for item, reach in reaches.items():
        found = [float(totals[item]) for totals in stands]
        assert reach.low - 1e-9 <= min(found)
        assert max(found) <= reach.high + 1e-9


def reaches_of(mechanism: Mechanism[Any]) -> dict[int, Reach]:
    """Return the reach of every estimate, in items or grid steps."""
    shares = {item: mechanism.share_reach(item, np) for item in range(8)}
    whole = NumberDomain(Fraction(0), Fraction(7), Fraction(1), "steps")
    found = {0: mean_reach(mechanism, whole)} if shares[0] is None else shares
    known = {item: reach for item, reach in found.items() if reach is not None}
    assert known
    return known


def test_a_regression_has_no_known_reach() -> None:
    """Law: where nothing is proved, nothing is stated."""
    assert load("rappor")("1", 8).share_reach(ITEM, np) is None


def test_a_report_of_sampled_items_weighs_as_much_as_a_domain_of_honest_ones() -> None:
    """Law: all fakes bear upon the attacked item, of the honest ones one in d does."""
    reach = known(SampledItem("1", 8).share_reach(ITEM, np))

    assert reach.crowd == 8


@pytest.mark.parametrize(("name", "most"), [("duchi", 1.582), ("discrete_laplace", 41.0)])
def test_the_reach_of_a_mean_is_that_of_its_clamped_reports(name: str, most: float) -> None:
    """Law: one bit stands for (1 + (e+1)/(e-1))/2 ranges; clamped noise for 40 scales beyond."""
    reach = known(mean_reach(load(name)("1", GRID.size), GRID))

    assert reach.high / 100 == pytest.approx(most, abs=0.001)
    assert reach.low / 100 == pytest.approx(1 - most, abs=0.001)


def test_a_rarer_key_is_reached_by_fewer_fakes() -> None:
    """Law: the fewer hold a key, the more honest reports one fake weighs as much as."""
    mechanism = load("pckv_grr")("1", 8)
    assert isinstance(mechanism, KeyValueMechanism)

    common, rare = (key_mean_reach(mechanism, GRID, share) for share in (0.5, 0.05))

    assert common is not None
    assert rare is not None
    assert rare.crowd == pytest.approx(10 * common.crowd)
    assert key_mean_reach(mechanism, GRID, 0.0) is None


@pytest.mark.parametrize(
    ("mechanism", "supported"), [(GRR("1", 16), 1), (OUE("1", 16), 4), (OLH("1", 16), 4)]
)
def test_the_reach_of_a_group_counts_what_one_report_can_support(
    mechanism: GRR | OUE | OLH, supported: int
) -> None:
    """Law: (s - r q)/(p - q), s being 1 for a report that names an item and r for one of bits."""
    p, q = mechanism.channel.p, mechanism.channel.q

    reach = known(mechanism.group_reach(4))

    assert reach.high == pytest.approx(float((supported - 4 * q) / (p - q)))
