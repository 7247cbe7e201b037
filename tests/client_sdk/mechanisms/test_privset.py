"""PrivSet: every set of a size has one law, and none that is not cut is counted wrong."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest

from benchmarks.accuracy.set_errors import SETTINGS, error, fixed_size
from client_sdk.core.errors import InvalidParameterError
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms.composite.privset import MAX_PAD, PrivSet, best_width
from client_sdk.mechanisms.families import SetMechanism
from client_sdk.registry.keys import AUTO
from client_sdk.registry.selection import MAX_SET_PAYLOAD, choose
from tests.support.enumeration.enumeration import Law, distribution, exp_below
from tests.support.enumeration.seeded import SeededRandomness

SMALL = [
    PrivSet(epsilon, items, pad=pad, prime=prime, width=width)
    for epsilon in ("0.1", "1", "4")
    for items, pad, prime, width in ((2, 1, 3, 1), (2, 2, 5, 1), (2, 2, 5, 3), (3, 2, 5, 2))
]
every_small = pytest.mark.parametrize(
    "small", SMALL, ids=lambda m: f"{float(m.epsilon):g}-{m.domain_size}-{m.pad}-{m.width}"
)


def sets_of(items: int) -> list[frozenset[int]]:
    """Return every set of the items, the empty one first."""
    return [frozenset(s) for held in range(items + 1) for s in combinations(range(items), held)]


@cache
def law_of(mechanism: PrivSet, value: frozenset[int]) -> Law:
    """Return the law of the payload for *value*."""
    return distribution(lambda randomness: mechanism.randomize(value, randomness))


@every_small
def test_no_report_is_more_than_e_to_the_spent_likelier_under_another_set(small: PrivSet) -> None:
    pmfs = [law_of(small, value).pmf for value in sets_of(small.domain_size)]
    ratios = {a[report] / b[report] for a, b in product(pmfs, pmfs) for report in a}

    assert all(len(pmf) == small.prime ** (small.pad + 1) for pmf in pmfs)
    assert max(ratios) == small.likelihood_ratio <= exp_below(small.epsilon)


@every_small
def test_every_item_is_supported_as_the_channel_says_of_every_set(small: PrivSet) -> None:
    """Of a larger set, each item as often as it is left when the set is cut."""
    p, q = small.channel.p, small.channel.q
    for value in sets_of(small.domain_size):
        law, left = law_of(small, value), Fraction(small.pad, max(len(value), small.pad))
        for item in range(small.domain_size):
            chance = Fraction(0)
            for report, mass in law.pmf.items():
                if item in small.supports(bytes(report)):  # type: ignore[call-overload]
                    chance += mass
            assert chance == (q + (p - q) * left if item in value else q)


@pytest.mark.parametrize("reports", [5, 64, 65, 400])
@pytest.mark.parametrize(("items", "pad"), [(2, 1), (40, 8), (300, 32), (70_000, 3)])
def test_few_and_many_reports_are_tallied_as_their_supports(
    items: int, pad: int, reports: int
) -> None:
    mechanism, randomness = PrivSet("1", items, pad=pad), SeededRandomness(b"polynomials")
    rows = [mechanism.randomize(frozenset({i % items}), randomness) for i in range(reports)]

    tally = mechanism.tally(b"".join(rows), np)

    assert tally.dtype == np.int64
    assert [int(cells) for cells in tally] == _supported(mechanism, rows)


def _supported(mechanism: PrivSet, rows: list[bytes]) -> list[int]:
    """Return the supports, of many items only where the tally is compared in full elsewhere."""
    if mechanism.domain_size < 1_000:
        counts = Counter(item for row in rows for item in mechanism.supports(row))
        return [counts[item] for item in range(mechanism.domain_size)]
    halves = (mechanism.tally(b"".join(rows[at : at + 7]), np) for at in range(0, len(rows), 7))
    return [int(cells) for cells in sum(halves)]


@pytest.mark.parametrize(("epsilon", "pad"), [("0.5", 1), ("1", 6), ("4", 6), ("2", 32), ("16", 3)])
def test_the_width_is_the_one_of_the_least_variance(epsilon: str, pad: int) -> None:
    def variance(width: int) -> Fraction:
        p, q = PrivSet(epsilon, 40, pad=pad, prime=251, width=width).channel.p, Fraction(width, 251)
        return q * (1 - q) / (p - q) ** 2

    best = min(range(1, 120), key=variance)

    assert best_width(Fraction(epsilon), pad, 251) == best


def test_the_measured_error_is_the_predicted_one() -> None:
    """Shares of 40 items that 300 devices hold by fives, 300 times.

    The mean of the squared errors over the predicted ones has a standard error of at most 1.4 %,
    as each is a mean of 40 squares that hardly depend on each other: 10 % are seven of them.
    """
    mechanism, randomness = PrivSet("1", 40, pad=5), system_randomness()
    held = [frozenset((5 * i + j) % 40 for j in range(5)) for i in range(300)]
    truth = Counter(item for value in held for item in value)
    squares = []
    for _ in range(300):
        column = b"".join(mechanism.randomize(value, randomness) for value in held)
        totals = mechanism.debias(mechanism.tally(column, np), 300, np).totals
        squares.append(np.mean([(totals[item] - truth[item]) ** 2 for item in range(40)]))

    assert np.mean(squares) / 300**2 == pytest.approx(mechanism.predict(300) ** 2, rel=0.1)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "4"])
@pytest.mark.parametrize(("items", "held"), [(1_000, 4), (3_340, 6), (5_000, 16)])
def test_auto_takes_it_where_a_registry_says_how_many_items_a_device_has(
    epsilon: str, items: int, held: int
) -> None:
    name, mechanism = choose(AUTO, SetMechanism, epsilon, items, fixed={"pad": held})
    without = choose(AUTO, SetMechanism, epsilon, items)[0]

    assert (name, mechanism.parameters["pad"]) == ("privset", held)
    assert without == "sampled_item"
    assert 8 * mechanism.payload_size <= MAX_SET_PAYLOAD


@pytest.mark.parametrize(("items", "held"), [(5, 4), (3_340, 3_000)])
def test_auto_takes_another_of_few_items_or_very_large_sets(items: int, held: int) -> None:
    assert choose(AUTO, SetMechanism, "1", items, fixed={"pad": held})[0] != "privset"


def test_auto_cuts_no_set_unless_the_registry_says_how_many_items_are_expected() -> None:
    with pytest.raises(InvalidParameterError, match=r"^pad=none: must be given: expected_size"):
        PrivSet.fit("1", 100, 256)


@pytest.mark.parametrize("epsilon", ["1", "4"])
def test_the_errors_of_a_large_vocabulary_are_those_of_the_published_mechanism(
    epsilon: str,
) -> None:
    """Subsets of one size, as published, of 3,340 items and six slots: the best of all sizes."""
    published, _ = fixed_size(epsilon, SETTINGS[0])

    assert error("privset", epsilon) == pytest.approx(published, rel=0.03)


def test_the_most_slots_keep_a_report_of_many_items_short() -> None:
    assert PrivSet("1", 1 << 24, pad=MAX_PAD).payload_size < 128
