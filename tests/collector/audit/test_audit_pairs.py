"""Which pairs an audit looks at, and what it says where it can see nothing."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from math import log
from typing import Any

import pytest

from client_sdk.core.randomness import Randomness, system_randomness
from client_sdk.mechanisms import Mechanism, load
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.numbers.discrete_gaussian import DiscreteGaussian
from collector.audit.audit import (
    ALPHA,
    FAILS,
    HOLDS,
    NOTHING,
    Audit,
    Trial,
    audit,
    cases_of,
    lower_bound,
)
from collector.estimation.significance import lower_limit, upper_limit
from tests.support.enumeration.seeded import SeededRandomness

DRAWS = 8_000  # a side, for four pairs
RUNS = 8  # seeded; each looks at 8 of 16 items


class _FiveInTheClear(GRR):
    """Planted fault: one item, and no other, is always told."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        return b"\5" if value == 5 else super().randomize(value, randomness)


class _AlwaysTheTruth(GRR):
    """Planted fault: no noise at all."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        return bytes([value])


class _AlwaysThree(GRR):
    """Planted fault: the value is never looked at."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        return b"\3"


class _EveryBit(OUE):
    """Planted fault: the value is never looked at, and all items are supported."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        return self.pack((1 << self.domain_size) - 1)


class _TooNarrow(DiscreteGaussian):
    """Planted fault: the noise of 16 ε."""

    @cached_property
    def narrow(self) -> DiscreteGaussian:
        return DiscreteGaussian(16 * self.epsilon, self.domain_size)

    def randomize(self, value: Fraction, randomness: Randomness) -> bytes:
        position = int(self.narrow.decode(self.narrow.randomize(value, randomness)))
        return (position + self.margin).to_bytes(self.payload_size, "big")


def touches(found: Audit, item: int) -> bool:
    """Whether a pair of the audit holds *item*."""
    return any(str(item) in trial.pair.split(">") for trial in found.trials)


def test_an_item_in_the_clear_is_found_by_every_run_that_draws_it() -> None:
    """No item is out of reach, whether it is the likely value or the other."""
    runs = [
        audit(_FiveInTheClear("1", 16), SeededRandomness(bytes([run])), DRAWS)
        for run in range(RUNS)
    ]

    assert any(touches(run, 5) for run in runs)
    assert [run.verdict == FAILS for run in runs] == [touches(run, 5) for run in runs]


def test_an_honest_mechanism_fails_in_none_of_these_runs() -> None:
    """The same seeds, without the fault."""
    runs = [audit(GRR("1", 16), SeededRandomness(bytes([run])), DRAWS) for run in range(RUNS)]

    assert all(run.passed for run in runs)


@pytest.mark.parametrize("name", ["grr", "sampled_item", "pckv_ue", "duchi", "square_wave"])
def test_every_pair_and_direction_is_drawn_sooner_or_later(name: str) -> None:
    """Of items each may be likely; of numbers both ends."""
    mechanism = load(name)("1", 3)
    randomness = SeededRandomness(b"pairs")

    drawn = {cases_of(mechanism, randomness, 1)[0].pair for _ in range(200)}

    items = {f"{a}>{b}" for a in range(3) for b in range(3) if a != b}
    keys = {f"{key}:{ends}" for key in range(3) for ends in ("max>min", "min>max")}
    assert drawn == {"pckv_ue": keys, "duchi": {"2>0", "0>2"}, "square_wave": {"2>0", "0>2"}}.get(
        name, items
    )


def test_no_item_is_in_two_pairs_of_a_run() -> None:
    """So that four pairs look at eight items."""
    cases = cases_of(GRR("1", 9), system_randomness(), 4)

    assert len({value for case in cases for value in (case.likely, case.unlikely)}) == 8


def test_a_small_domain_has_fewer_pairs_than_asked_for() -> None:
    """Two items make one pair, which gets all draws."""
    assert len(audit(GRR("1", 2), system_randomness(), 1_000, 4).trials) == 1
    assert len(audit(GRR("1", 5), system_randomness(), 1_000, 4).trials) == 2


@pytest.mark.parametrize(
    "blind",
    [lambda: _AlwaysThree("1", 16), lambda: _AlwaysThree("1", 4), lambda: _EveryBit("1", 16)],
)
def test_a_constant_payload_does_not_hold_but_shows_nothing(
    blind: Callable[[], Mechanism[Any]],
) -> None:
    """An event that comes as often, or as seldom, under both values is no evidence."""
    found = audit(blind(), system_randomness(), DRAWS)

    assert found.verdict == NOTHING
    assert found.passed


def test_the_truth_at_an_epsilon_beyond_the_draws_shows_nothing() -> None:
    """What so many draws can show at most lies below the claim: no verdict on it is possible."""
    truthful = _AlwaysTheTruth("16", 16)

    assert audit(truthful, system_randomness(), DRAWS).verdict == NOTHING
    assert audit(_AlwaysTheTruth("4", 16), system_randomness(), DRAWS).verdict == FAILS


def test_a_delta_is_taken_off_before_a_claim_is_refuted() -> None:
    """Reports that only delta allows refute nothing."""
    assert lower_bound(1_000, 0, 100_000, ALPHA, 0.01) == 0
    assert lower_bound(1_000, 0, 100_000) > 1
    least, most = lower_limit(9_000, 10_000, ALPHA / 2), upper_limit(500, 10_000, ALPHA / 2)
    assert lower_bound(9_000, 500, 10_000, ALPHA, 0.1) == log((least - 0.1) / most)


def test_gaussian_noise_that_is_far_too_narrow_is_found_beside_its_delta() -> None:
    """The claim is (ε, δ), and the noise of 16 ε is far beyond both."""
    assert audit(_TooNarrow("1", 9), system_randomness(), 5_000).verdict == FAILS


def test_more_pairs_share_the_chance_of_a_false_alarm() -> None:
    """Bonferroni: the bound of one pair of four is that of a quarter of ALPHA, on its draws."""
    found = audit(GRR("1", 16), SeededRandomness(b"share"), 4_000, 4)
    alone = audit(GRR("1", 2), SeededRandomness(b"share"), 1_000, 1)

    assert len(found.trials) == 4
    assert len(alone.trials) == 1
    assert lower_bound(900, 100, 1_000, ALPHA / 4) < lower_bound(900, 100, 1_000, ALPHA)


def test_one_failed_pair_outweighs_all_others() -> None:
    """A run passes only if none of its pairs refutes the claim."""
    held = Trial("0>1", 0.9, 0.9, HOLDS)

    assert Audit("m", 1.0, 1_000, (held, Trial("2>3", 1.1, 0.9, FAILS), held)).verdict == FAILS
    assert Audit("m", 1.0, 1_000, (held, Trial("2>3", 0.0, 0.0, NOTHING))).verdict == NOTHING
