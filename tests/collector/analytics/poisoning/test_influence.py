"""What fakes move, and how many it takes, follows from one equation and is seen to happen."""

from __future__ import annotations

from dataclasses import replace
from math import exp, sqrt
from typing import Any, Final

import numpy as np
import pytest

from benchmarks.accuracy.poisoning import BEST, HONEST, RANDOM, gain, payloads
from client_sdk.mechanisms import FrequencyOracle, KeyValueMechanism, Reach
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.hadamard import Hadamard
from client_sdk.mechanisms.items.olh import OLH
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.items.sue import SUE
from client_sdk.mechanisms.numbers.square_wave import SquareWave
from client_sdk.registry import Registry
from collector.analytics.poisoning.findings import with_influence
from collector.analytics.poisoning.influence import (
    FAKES,
    Side,
    fakes_to_flip,
    moved,
    quantiles_moved,
    weight,
)
from collector.analytics.rows import Row, row_of
from collector.analytics.verb import Slice, VerbQuery, load
from collector.estimation.estimate import Estimate
from tests.support.crowds.asking import answer
from tests.support.device.registries import CATEGORY, KEY_VALUE, NUMBER, SET, file_with
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.known import known

ITEMS: Final = 16
TARGETS: Final = (3, 7, 9, 12)
HONEST_DEVICES, FAKE_DEVICES = 3_800, 200  # a share of 5 % fakes
BETA: Final = FAKE_DEVICES / (HONEST_DEVICES + FAKE_DEVICES)
DEVIATIONS: Final = 5  # standard errors; seeded, so that a pass stays a pass
OUE_REACH = Reach(-0.6, 3.2)


def oracle(name: str, epsilon: str) -> FrequencyOracle:
    """Return one of six oracles; ``blh`` is local hashing to two buckets."""
    if name == "blh":
        return OLH(epsilon, ITEMS, buckets=2)
    kinds: tuple[type[FrequencyOracle], ...] = (GRR, OUE, SUE, OLH, Hadamard)
    return next(kind for kind in kinds if kind.name == name)(epsilon, ITEMS)


def published(name: str, attack: str, epsilon: float, held: float) -> float:
    """Return the gain by the closed forms of Cao, Jia and Gong, for a share of fakes of 1."""
    e, r = exp(epsilon), len(TARGETS)
    if attack == HONEST:
        return 1 - held
    random = {"grr": r / ITEMS, "oue": r, "sue": r / 2}
    best = {
        "grr": 1 + (ITEMS - r) / (e - 1),
        "oue": 2 * r + 2 * r / (e - 1),
        "sue": r * exp(epsilon / 2) / (exp(epsilon / 2) - 1),
    }
    halves = r * (e + 1) / (e - 1)
    gains = random if attack == RANDOM else best
    return gains.get(name, 0 if attack == RANDOM else halves) - held


CELLS = [
    (name, attack, epsilon)
    for name in ("grr", "oue", "sue", "olh", "blh", "hadamard")
    for attack in (RANDOM, HONEST, BEST)
    for epsilon in ("0.5", "2")
]


@pytest.mark.parametrize(("name", "attack", "epsilon"), [c for c in CELLS if c[0] != "olh"])
def test_the_predicted_gain_is_that_of_the_published_closed_forms(
    name: str, attack: str, epsilon: str
) -> None:
    """Law: six protocols, three attacks, one equation.

    OLH is left out: its closed form is of e^ε + 1 buckets, and ours are a whole number.
    """
    found = gain(oracle(name, epsilon), attack, len(TARGETS), 0.25, BETA)

    assert found == pytest.approx(BETA * published(name, attack, float(epsilon), 0.25), abs=1e-6)


@pytest.mark.parametrize(("name", "attack", "epsilon"), CELLS)
def test_simulated_attackers_gain_what_the_formula_says(
    name: str, attack: str, epsilon: str
) -> None:
    """Law: within 5 standard errors of the noise of honest reports and of the attack itself."""
    mechanism = oracle(name, epsilon)

    found, error = simulated_gain(mechanism, attack, f"{name} {attack} {epsilon}")

    assert abs(found - gain(mechanism, attack, len(TARGETS), 0.25, BETA)) <= DEVIATIONS * error


def simulated_gain(mechanism: FrequencyOracle, attack: str, seed: str) -> tuple[float, float]:
    """Return what fakes add to the shares of the targets, and its standard error.

    A quarter of the devices hold a target.
    """
    chance = SeededRandomness(seed.encode())
    honest = b"".join(mechanism.randomize(i % ITEMS, chance) for i in range(HONEST_DEVICES))
    fakes = payloads(mechanism, attack, TARGETS, FAKE_DEVICES, chance)
    own, made_up = (supported(mechanism, column) for column in (honest, fakes))
    n = HONEST_DEVICES + FAKE_DEVICES
    tally = mechanism.tally(honest + fakes, np)
    attacked = mechanism.debias(tally, n, np).totals[list(TARGETS)].sum() / n
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    noise = HONEST_DEVICES * own.var() + FAKE_DEVICES * made_up.var()
    return float(attacked - len(TARGETS) / ITEMS), sqrt(noise) / (p - q) / n


def supported(mechanism: FrequencyOracle, column: bytes) -> Any:
    """Return how many targets each report of *column* supports."""
    reports = mechanism.split(column)
    return np.array([len(set(mechanism.supports(one)) & set(TARGETS)) for one in reports])


def test_a_formula_with_p_and_q_swapped_does_not_fit_the_simulation() -> None:
    """A planted bug: the comparison above can fail."""
    mechanism = oracle("oue", "2")
    found, error = simulated_gain(mechanism, BEST, "planted")

    wrong = BETA * (len(TARGETS) * (1 - 0.5) / (0.5 - float(mechanism.channel.q)) - 0.25)

    assert abs(found - wrong) > DEVIATIONS * error


@pytest.mark.parametrize("crowd", [1.0, 8.0])
def test_an_estimate_is_moved_by_the_mean_of_honest_and_made_up_reports(crowd: float) -> None:
    """Law: n/k honest ones at v and m fakes at the limit average to v and what is moved."""
    reach, n = Reach(-0.6, 3.2, crowd), 9_900
    m = n // 99

    after = (n / crowd * 0.3 + m * 3.2) / (n / crowd + m)

    assert moved(reach, 0.3) == pytest.approx(after - 0.3)
    assert weight(reach, 0.0) == 0.0


def flipped(winner: Side, loser: Side, down: int, up: int) -> bool:
    """Return whether fakes against the winner and for the loser turn their difference."""
    first = (winner.n * winner.value + down * winner.reach.low) / (winner.n + down)
    second = (loser.n * loser.value + up * loser.reach.high) / (loser.n + up)
    return second > first


@pytest.mark.parametrize(("n1", "n2"), [(5_000, 5_000), (20_000, 1_000), (1_000, 20_000)])
def test_the_fakes_that_flip_a_comparison_are_the_fewest_over_all_splits(n1: int, n2: int) -> None:
    """Law: some split of them flips it, no split of one fewer does."""
    winner, loser = Side(0.42, OUE_REACH, n1), Side(0.38, OUE_REACH, n2)

    found = known(fakes_to_flip(loser, winner))

    assert any(flipped(winner, loser, down, found - down) for down in range(found + 1))
    assert not any(flipped(winner, loser, down, found - 1 - down) for down in range(found))


@pytest.mark.parametrize("symbol", [0, 70, 143])
def test_fakes_move_no_quantile_further_than_its_bound(symbol: int) -> None:
    """Law: whichever symbol the fakes send, the quantiles stay within the stated distance."""
    mechanism, levels = SquareWave("2", 100), (0.1, 0.5, 0.9)
    symbol = symbol * (mechanism.symbols - 1) // 143
    draw = np.random.default_rng(7)
    law = mechanism.spread(np.full(mechanism.bins, 1 / mechanism.bins), np)
    n, m = 9_900, 100
    clean = draw.multinomial(n, law / law.sum())
    fakes = m * np.eye(mechanism.symbols, dtype=np.int64)[symbol]

    before, after = (
        values(mechanism, tally * scale, levels)
        for tally, scale in ((clean, 1), (clean + fakes, 1))
    )
    bound = quantiles_moved(mechanism, clean, n, levels)

    assert np.all(np.abs(after - before) <= np.array(bound) + 1e-9)


def values(mechanism: SquareWave, tally: Any, levels: tuple[float, ...]) -> Any:
    """Return the quantiles of a tally in grid steps."""
    from collector.analytics.quantiles import quantiles

    return np.array([e.value for e in quantiles(mechanism, tally, int(tally.sum()), levels, 0.05)])


@pytest.mark.parametrize(
    "fields", [CATEGORY, SET, NUMBER, KEY_VALUE, {**NUMBER, "mechanism": '"square_wave"'}]
)
def test_every_number_of_an_answer_says_what_one_percent_of_fakes_could_move(
    fields: dict[str, str],
) -> None:
    """Law: every row with a number has an influence above 0, in its unit, and others have none."""
    metric = Registry.from_text(file_with(fields, min_reports="100")).metric("m")
    value: Any = {"number": 3, "key_value": {"video": 12}, "set": ["a"]}.get(metric.type, "free")
    chance = SeededRandomness(b"rows")
    column = b"".join(metric.mechanism.randomize(metric.encode(value), chance) for _ in range(3000))
    tally = metric.mechanism.tally(column, np)

    rows = with_influence(answer(metric, tally, 3000), metric, tally)

    assert all((row.influence or 0) > 0 for row in rows if row.value is not None)
    assert all(row.influence is None for row in rows if row.value is None)
    assert with_influence([replace(rows[0], value=None)], metric)[0].influence is None


def test_the_mean_of_a_key_is_weighed_by_the_holders_of_its_own_slice() -> None:
    """Law: with a ninth of the holders, fakes move the mean of a second window further."""
    metric = Registry.from_text(file_with(KEY_VALUE)).metric("m")
    shares = (("one", 0.9), ("two", 0.1))

    rows = [
        row_of({"time": day, "item": item}, Estimate(value, 0.1, 0, 1), 3000, 0.05, unit)
        for day, share in shares
        for item, value, unit in (("video", share, "share"), ("mean of video", 9.0, "minutes"))
    ]
    _, first, _, second = (row.influence or 0 for row in with_influence(rows, metric))

    assert 0 < first < second / 5


@pytest.mark.parametrize("name", ["pckv_grr", "pckv_ue"])
def test_fakes_of_one_key_and_sign_move_its_mean_as_stated(name: str) -> None:
    """Law: the mean that is answered from honest and made-up reports together is off by as much."""
    text = file_with({**KEY_VALUE, "mechanism": f'"{name}"'}, most="1")
    metric = Registry.from_text(text).metric("m")
    assert isinstance(metric.mechanism, KeyValueMechanism)
    same, opposite, foreign = (float(chance) for chance in metric.mechanism.channel)
    n, share, plus = 1_000_000, 0.5, 0.5  # half of the devices hold a video, in the middle
    cell = n * (share * (plus * same + (1 - plus) * opposite) + (1 - share) * foreign)
    tally = np.rint(np.array([cell, n / 9, n / 9] * 2)).astype(np.int64)
    fakes = n // 99
    attacked = tally + np.array([fakes, 0, 0, 0, 0, 0])

    before = with_influence(epoch_estimates(metric, tally, n), metric)
    after = epoch_estimates(metric, attacked, n + fakes)

    (old,) = [row for row in before if row.item == "mean of video"]
    (new,) = [row for row in after if row.item == "mean of video"]
    assert known(new.value) - known(old.value) == pytest.approx(old.influence, rel=0.01)


def epoch_estimates(metric: Any, tally: Any, n: int) -> tuple[Row, ...]:
    """Return the answer to the metric's own question."""
    return load("estimate").answer([Slice(metric, {}, n, tally, (0,))], VerbQuery(0.05)).rows


def test_a_slice_without_reports_has_rows_without_influence() -> None:
    """Law: a refusal stays a refusal, also of a distribution, which needs its tally."""
    text = file_with({**NUMBER, "mechanism": '"square_wave"'})
    metric = Registry.from_text(text).metric("m")
    nothing = np.zeros(metric.mechanism.tally_size, dtype=np.int64)
    refused = Slice(metric, {}, 0, nothing, (), refusal="not enough reports")

    rows = with_influence(load("estimate").answer([refused], VerbQuery(0.05)).rows, metric, nothing)

    assert rows
    assert all(row.value is None and row.influence is None for row in rows)


def test_one_percent_of_fakes_move_a_mean_by_their_reach_at_most() -> None:
    """Law: by a hundredth of the distance from the mean to what a report can stand for."""
    metric = Registry.from_text(file_with({**NUMBER, "mechanism": '"duchi"'})).metric("m")
    tally = np.array([500, 500])

    (row,) = with_influence(answer(metric, tally, 1000), metric, tally)

    half_range = 5.25
    assert row.influence == pytest.approx(FAKES * half_range * (exp(1) + 1) / (exp(1) - 1))
