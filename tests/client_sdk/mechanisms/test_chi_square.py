"""Reports drawn as a device draws them follow the enumerated law: a likelihood-ratio chi-square.

Enumeration replays a mechanism's choices; here nothing is replaced, and entropy is the operating
system's.  The number of reports is fixed before any is drawn, and the critical value holds for any
number of reports, not only in the limit.

Source: Agrawal, *Finite-Sample Concentration of the Multinomial in Relative Entropy*, IEEE
    Transactions on Information Theory 2020: with b bins, the moment generating function of half
    the statistic is at most that of a gamma distribution with shape b - 1.
    Boucheron, Lugosi, Massart, *Concentration Inequalities*, 2013, section 2.4: its tail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import cache
from math import log, sqrt
from typing import Any, Final

import pytest

from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import Mechanism, names
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.items.sue import SUE
from client_sdk.mechanisms.numbers.discrete_laplace import DiscreteLaplace
from tests.support.enumeration import mutants
from tests.support.enumeration.vectors import Small, label, laws, smalls

REPORTS: Final = 20_000  # a value
FALSE_ALARM: Final = 1e-9  # of a whole run: all mechanisms, all values
LEAST_EXPECTED: Final = 5  # reports a bin; what is rarer shares one bin
MOST_ITEMS: Final = 5  # or grid points; more payloads would leave each too few reports
NEGLIGIBLE: Final = Fraction(1, 20)  # reports expected from paths that enumeration left

Bins = list[tuple[Fraction, list[Hashable]]]  # the probability of a bin, and its payloads


@cache
def chosen() -> tuple[Small, ...]:
    """Return of every mechanism the enumerated one of epsilon next to 1 and up to MOST_ITEMS."""

    def preference(small: Small) -> tuple[bool, float, int]:
        size = small.mechanism.domain_size
        return size > MOST_ITEMS, abs(log(small.mechanism.epsilon)), -size

    return tuple(min(smalls(name), key=preference) for name in names())


def ends(small: Small) -> list[int]:
    """Return the places of the first and the last value."""
    return [0, len(small.values) - 1]


def bins_of(pmf: dict[Hashable, Fraction]) -> Bins:
    """Return one bin a payload, and the payloads that are rarer than LEAST_EXPECTED in one."""
    wide = [(mass, [payload]) for payload, mass in pmf.items() if mass * REPORTS >= LEAST_EXPECTED]
    known = {payload for _, payloads in wide for payload in payloads}
    rare = [payload for payload in pmf if payload not in known]
    return [*wide, (1 - sum((mass for mass, _ in wide), Fraction(0)), rare)]


def statistic(counts: Counter[Hashable], bins: Bins) -> float:
    """Return 2 Σ observed ln(observed / expected), infinite for a payload that cannot occur."""
    seen = [sum(counts[payload] for payload in payloads) for _, payloads in bins]
    if sum(seen) < counts.total():
        return float("inf")
    return 2 * sum(
        count * log(count / float(mass * REPORTS))
        for count, (mass, _) in zip(seen, bins, strict=True)
        if count
    )


def critical(bins: int, false_alarm: float) -> float:
    """Return what the statistic of an honest mechanism exceeds with *false_alarm* at most."""
    degrees, t = 2 * (bins - 1), -log(false_alarm)  # twice those of the limit: the price of exact
    return degrees + 2 * sqrt(degrees * t) + 2 * t


def excess(mechanism: Mechanism[Any], value: Any, pmf: dict[Hashable, Fraction]) -> float:
    """Draw REPORTS reports of *value*; return the statistic over its critical value."""
    tests = sum(len(ends(small)) for small in chosen())
    randomness, bins = system_randomness(), bins_of(pmf)
    counts: Counter[Hashable] = Counter(
        mechanism.randomize(value, randomness) for _ in range(REPORTS)
    )
    return statistic(counts, bins) / critical(len(bins), FALSE_ALARM / tests)


@pytest.mark.parametrize("small", chosen(), ids=label)
def test_reports_from_the_systems_entropy_follow_the_enumerated_law(small: Small) -> None:
    found = [laws(small)[place] for place in ends(small)]

    ratios = [
        excess(small.mechanism, small.values[place], law.pmf)
        for place, law in zip(ends(small), found, strict=True)
    ]

    assert max(law.rest for law in found) * REPORTS <= NEGLIGIBLE
    assert max(ratios) <= 1


def test_every_mechanism_is_drawn() -> None:
    assert [small.name for small in chosen()] == list(names())


PLANTED: Final[Sequence[tuple[Mechanism[Any], type[Mechanism[Any]]]]] = (
    (mutants.DoubledEpsilon("1", 3), GRR),
    (mutants.OffByOne("1", 3), GRR),
    (mutants.OverAll("1", 3), GRR),
    (mutants.DoubleFlip("1", 3), SUE),
    (mutants.ReusedNoise("1", 4), OUE),
    (mutants.HalfTheScale("1", 2), DiscreteLaplace),
)


@pytest.mark.parametrize(
    ("planted", "kind"), PLANTED, ids=[type(planted).__name__ for planted, _ in PLANTED]
)
def test_a_planted_bug_is_found_in_its_reports(
    planted: Mechanism[Any], kind: type[Mechanism[Any]]
) -> None:
    honest = Small(planted.name, kind(planted.epsilon, planted.domain_size), Fraction(1, 10**9))

    assert excess(planted, 0, laws(honest)[0].pmf) > 1


def test_the_critical_value_is_the_closed_form() -> None:
    assert critical(3, 1e-9) == pytest.approx(4 + 2 * sqrt(4 * 20.7233) + 2 * 20.7233, rel=1e-5)


def test_a_payload_that_the_law_excludes_is_never_excused() -> None:
    bins = bins_of({b"0": Fraction(1, 2), b"1": Fraction(1, 2)})

    assert statistic(Counter({b"0": REPORTS // 2, b"2": REPORTS // 2}), bins) == float("inf")


def test_reports_just_as_expected_show_nothing() -> None:
    law: dict[Hashable, Fraction] = {b"0": Fraction(1, 4), b"1": Fraction(3, 4)}
    counts: Counter[Hashable] = Counter({b"0": REPORTS // 4, b"1": 3 * REPORTS // 4})

    assert statistic(counts, bins_of(law)) == 0


def test_rare_payloads_share_one_bin() -> None:
    few = Fraction(LEAST_EXPECTED - 1, REPORTS)

    bins = bins_of({b"0": 1 - 2 * few, b"1": few, b"2": few})

    assert [payloads for _, payloads in bins] == [[b"0"], [b"1", b"2"]]
