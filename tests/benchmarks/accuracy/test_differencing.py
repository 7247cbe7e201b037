"""The differencing attack finds everything in exact means, and one deniable report in ours."""

from __future__ import annotations

import math
import re
from random import SystemRandom
from typing import Any, Final

import numpy as np
import pytest

from benchmarks.accuracy.differencing import (
    EPSILONS,
    WEEKLY,
    Differencing,
    central,
    exact,
    guessed,
    lines_of,
    locally,
    repeated,
)
from benchmarks.lib.slips import (
    impossible_share,
    slips,
    told_after_resets,
    told_by_density,
    told_by_row,
    told_by_scale,
)
from client_sdk.core.randomness import Randomness, system_randomness
from client_sdk.mechanisms import load
from collector.estimation.isolation import (
    NEWCOMER,
    RANGE,
    TIMES,
    of_answers,
    of_newcomer,
    of_server,
)
from tests.docs.pages import commands

ATTACKS: Final = 100_000
SURE: Final = 6.2  # standard errors: a false alarm in 10^9 runs, on both sides
CHANCE: Final = SystemRandom()


def error_of(share: float, attacks: int) -> float:
    return math.sqrt(share * (1 - share) / attacks)


@pytest.mark.parametrize(("epsilon", "share"), [(1.0, 0.731), (0.5, 0.622)])
def test_the_best_guess_is_right_as_often_as_epsilon_says_and_no_more(
    epsilon: float, share: float
) -> None:
    guesses = guessed(epsilon, ATTACKS, system_randomness())

    assert guesses.most == pytest.approx(share, abs=1e-3)
    off = abs(guesses.right / ATTACKS - guesses.most)
    assert off < SURE * error_of(guesses.most, ATTACKS)


def test_noise_that_is_drawn_anew_for_a_retry_would_be_noticed() -> None:
    """The planted bug: three uploads of one answer, each perturbed again."""

    def redrawn(mechanism: Any, item: int, randomness: Randomness) -> list[bytes]:
        return [mechanism.randomize(item, randomness) for _ in range(3)]

    guesses = guessed(0.5, 20_000, system_randomness(), redrawn)

    assert guesses.right / 20_000 > guesses.most + SURE * error_of(guesses.most, 20_000)


def test_a_report_that_is_sent_again_tells_nothing_more() -> None:
    def sent_again(mechanism: Any, item: int, randomness: Randomness) -> list[bytes]:
        return [mechanism.randomize(item, randomness)] * 3

    guesses = guessed(1.0, 20_000, system_randomness(), sent_again)

    assert guesses.right / 20_000 < guesses.most + SURE * error_of(guesses.most, 20_000)


def test_of_exact_means_nothing_is_left_to_chance() -> None:
    assert exact().estimate == NEWCOMER
    assert exact().off == 0


def test_noise_of_a_server_without_a_budget_is_averaged_away() -> None:
    few, many = central(1, CHANCE), central(10_000, CHANCE)

    assert few.half_width > RANGE > NEWCOMER > 10 * many.half_width
    assert many.off < SURE / 1.96 * many.half_width
    assert many.epsilon == 10_000


def test_both_answers_of_hearsay_hide_the_newcomer_and_the_report_itself_is_deniable() -> None:
    """The errors are 1.036 ranges of a report, and the root of 201 times it of two answers."""
    both, alone = locally()

    assert both.half_width / 1.96 / RANGE == pytest.approx(1.036 * math.sqrt(201), rel=0.05)
    assert alone.half_width / 1.96 / RANGE == pytest.approx(1.036, rel=0.05)
    assert both.off < SURE / 1.96 * both.half_width
    assert alone.half_width > RANGE


def test_what_can_be_stated_beforehand_is_the_interval_of_what_is_drawn() -> None:
    """The page of the attack shows the former, the command the latter."""
    both, alone = locally()

    assert of_answers().half_width == pytest.approx(both.half_width, rel=1e-3)
    assert of_newcomer().half_width == pytest.approx(alone.half_width, rel=1e-3)
    assert (of_answers().epsilon, of_newcomer().queries) == (both.epsilon, alone.queries)
    assert of_server(100).ends() == pytest.approx((0.118, 0.902), abs=1e-3)
    assert of_newcomer().ends() == (0.0, 1.0)


def test_a_difference_of_two_tallies_is_what_was_perturbed_on_the_device_and_no_more() -> None:
    mechanism, randomness = load("grr")("1", 4), system_randomness()
    before = [mechanism.randomize(0, randomness) for _ in range(100)]
    own = mechanism.randomize(3, randomness)

    first, second = (mechanism.tally(b"".join(sent), np) for sent in (before, [*before, own]))

    assert (second - first == mechanism.tally(own, np)).all()


def test_who_asks_again_gets_the_same_bytes_and_a_cap_ends_new_ones() -> None:
    told = repeated()

    assert (told.retries, told.different) == (3, 1)
    assert told.charged <= 2 * float(WEEKLY)
    assert 3 <= told.reports < told.days


def test_each_slip_tells_more_than_it_claims_and_nothing_without_it() -> None:
    most = 1 / (1 + math.exp(-1))

    assert told_by_scale(CHANCE) > 0.85
    assert told_by_scale(CHANCE, is_declared=True) < most + SURE * error_of(most, 2_000)
    assert told_by_density() < 1
    assert 0.5 < impossible_share(CHANCE) < 0.9
    assert told_by_row(system_randomness()) > most
    assert told_after_resets(CHANCE) < NEWCOMER / 3


def test_the_page_shows_what_the_command_prints_but_for_the_numbers_drawn() -> None:
    ((_, shown),) = commands("docs/evidence/differencing.md")
    result = Differencing(
        [exact(), *(central(times, CHANCE) for times in TIMES), *locally()],
        [guessed(epsilon, 1_000, system_randomness()) for epsilon in EPSILONS],
        repeated(),
        list(slips(CHANCE, system_randomness())),
    )

    printed = [_shape(line) for line in lines_of(result)]

    assert [_shape(line) for line in shown.splitlines()] == printed


def _shape(line: str) -> list[str]:
    """Return the words of a line without its numbers."""
    return re.sub(r"[-+]?[0-9][0-9.,e-]*", "#", line).split()
