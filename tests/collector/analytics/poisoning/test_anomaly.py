"""Clean epochs raise no alarm but by the stated chance; attacks that a check is for do.

Crowds are drawn by the law of their tallies, which another test compares with real reports.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, Final

import numpy as np
import pytest

from benchmarks._poison import BEST, UNPADDED, crowd, fakes_of
from client_sdk.mechanisms import ItemMechanism, Mechanism, load
from client_sdk.mechanisms._mixture import Mixture
from client_sdk.mechanisms.grr import GRR
from client_sdk.mechanisms.hadamard import Hadamard
from client_sdk.mechanisms.oue import OUE
from client_sdk.registry import Registry
from collector.analytics.poisoning.anomaly import (
    CHECKS,
    FALSE_ALARM,
    anomalies,
    change,
    checks_of,
    estimated,
)
from collector.analytics.poisoning.anomaly_checks import SINGLE, shortfall_limit
from tests.support.registries import CATEGORY, NUMBER, file_with
from tests.support.seeded import SeededRandomness

N: Final = 100_000  # reports of an epoch
EPOCHS: Final = 10_000
MOST_ALARMS: Final = 12  # of EPOCHS; more have a chance of 1e-10 at the stated rate
FAKES: Final = N // 20
ATTACKED: Final = 400  # epochs
ITEMS: Final = 64
TARGETS: Final = (50, 53, 57, 60)


def steep(n: int, items: int = ITEMS) -> Any:
    """Return holders by item, each item held by 1/rank of the first."""
    law = 1 / np.arange(1, items + 1)
    held = np.floor(law / law.sum() * n).astype(int)
    held[0] += n - held.sum()
    return held


def alarms(mechanism: Mechanism[Any], tallies: Any, n: int = N) -> Any:
    """Return which epochs raise an alarm, shape (epochs,)."""
    scores = [check(mechanism, tallies, n, FALSE_ALARM / CHECKS) for check in SINGLE.values()]
    found = [score.found > score.limit for score in scores if score is not None]
    assert found
    return np.any(found, axis=0)


def metric_of(name: str, items: int = ITEMS) -> Any:
    values = ", ".join(f'"{item}"' for item in range(items))
    text = file_with(CATEGORY, values=f"[{values}]", mechanism=f'"{name}"')
    return Registry.from_text(text).metric("m")


@pytest.mark.parametrize(
    "name", ["grr", "oue", "sue", "sampled_item", "hadamard", "pgr", "square_wave"]
)
def test_clean_epochs_raise_an_alarm_as_rarely_as_stated(name: str) -> None:
    """Law: at most one epoch in 10,000, whatever the devices hold; here all hold a few items."""
    items = 16 if name in ("hadamard", "pgr", "square_wave") else ITEMS
    mechanism, draw = load(name)("1", items), np.random.default_rng(20261121)
    held = np.zeros(items, dtype=int)
    held[:3] = N // 2, N // 4, N // 4

    found = alarms(mechanism, crowd(mechanism, held, EPOCHS, draw))

    assert found.shape == (EPOCHS,)
    assert found.sum() <= MOST_ALARMS


def test_clean_epochs_rarely_seem_to_have_changed() -> None:
    """Law: the same for ``change``, if the truth stays as it was; of 3,000 epochs."""
    metric, draw = metric_of("grr", 8), np.random.default_rng(20261122)
    held = steep(N, 8)
    tallies = crowd(metric.mechanism, held, EPOCHS * 3 // 10, draw)
    past = [estimated(metric.mechanism, tally, N) for tally in tallies]

    scores = [
        change(metric, tally, N, past[i - 3 : i], FALSE_ALARM / CHECKS)
        for i, tally in enumerate(tallies)
        if i >= 3
    ]

    found = [score for score in scores if score is not None and (score.found > score.limit).any()]
    assert len(scores) == len(tallies) - 3
    assert len(found) <= MOST_ALARMS // 2


@pytest.mark.parametrize(
    ("name", "attack"),
    [
        ("grr", BEST),
        ("oue", UNPADDED),
        ("sue", UNPADDED),
        ("hadamard", BEST),
        ("sampled_item", BEST),
        ("pgr", BEST),
        ("square_wave", BEST),
    ],
)
def test_five_percent_of_fakes_that_promote_four_items_are_found(name: str, attack: str) -> None:
    """Law: in 95 % of epochs of 100,000 reports at least; here in all of 400 (0.95^400 is 1e-9).

    The rest of what devices hold falls off as 1/rank, so that many items are rare.
    """
    mechanism, draw = load(name)("1", ITEMS), np.random.default_rng(20261123)
    held = steep(N - FAKES)
    fakes = fakes_of(mechanism, attack, TARGETS, FAKES, SeededRandomness(b"fakes"))

    found = alarms(mechanism, crowd(mechanism, held, ATTACKED, draw) + fakes)

    assert found.all()


@pytest.mark.parametrize("name", ["oue", "grr", "hadamard"])
def test_fakes_that_begin_suddenly_are_a_change(name: str) -> None:
    """Law: also where a single epoch shows nothing, as of padded reports for one target."""
    metric, draw = metric_of(name), np.random.default_rng(20261124)
    chance = SeededRandomness(b"one")
    fakes = fakes_of(metric.mechanism, BEST, (50,), FAKES, chance)
    earlier = [(tally, N) for tally in crowd(metric.mechanism, steep(N), 3, draw)]
    attacked = crowd(metric.mechanism, steep(N - FAKES), 1, draw)[0] + fakes

    found = anomalies(metric, attacked, N, earlier)

    assert "'50' changed by" in " ".join(one.text for one in found if one.check == "change")


def test_padded_reports_for_one_target_look_honest() -> None:
    """Law: what is not found is known: one epoch in 100 shows them at most."""
    draw, chance = np.random.default_rng(20261125), SeededRandomness(b"padded")
    oracles: list[ItemMechanism] = [OUE("1", ITEMS), Hadamard("1", ITEMS)]

    for oracle in oracles:
        fakes = fakes_of(oracle, BEST, (50,), FAKES, chance)
        attacked = crowd(oracle, steep(N - FAKES), ATTACKED, draw) + fakes
        assert alarms(oracle, attacked).mean() <= 0.01


@pytest.mark.parametrize("name", ["grr", "oue", "hadamard", "pgr"])
def test_the_crowds_follow_the_law_of_real_reports(name: str) -> None:
    """Law: every cell of the real tally lies within 6 standard errors of those of crowds."""
    mechanism, n = load(name)("1", 8), 4_000
    held, chance = steep(n, 8), SeededRandomness(name.encode())
    column = b"".join(
        mechanism.randomize(item, chance) for item in range(8) for _ in range(held[item])
    )

    drawn = crowd(mechanism, held, 2_000, np.random.default_rng(1))

    off = np.abs(mechanism.tally(column, np) - drawn.mean(axis=0))
    assert np.all(off <= 6 * drawn.std(axis=0))


def test_a_sum_of_shortfalls_stays_below_its_limit() -> None:
    """Law: Chernoff's limit is above the quantile that 200,000 draws show, and not by half."""
    squares = np.minimum(np.random.default_rng(2).standard_normal((200_000, 16)), 0) ** 2

    seen = float(np.quantile(squares.sum(axis=1), 0.999))

    assert seen < shortfall_limit(16, 0.001) < 1.5 * seen


def test_reports_that_always_tell_the_truth_are_found() -> None:
    """A planted bug: a client whose randomized response never lies."""
    metric = metric_of("grr")

    found = anomalies(metric, steep(N), N)

    assert [one.check for one in found] == ["floor"]
    assert "noise gives" in found[0].text


def test_a_check_says_nothing_of_too_few_reports() -> None:
    """Law: below 25 expected reports a cell, counts are not near a normal law."""
    assert checks_of(GRR("1", ITEMS), 1_000) == ()
    assert checks_of(GRR("1", ITEMS), N) == ("floor",)


@pytest.mark.parametrize("name", ["cms", "rappor", "dbitflip", "padding_sampling", "olh"])
def test_honest_reports_of_every_other_mechanism_pass(name: str) -> None:
    """Law: 2,000 real reports of one value, by the device's own code, raise nothing."""
    mechanism, chance = load(name)("2", 8), SeededRandomness(name.encode())
    value: Any = frozenset({1}) if name == "padding_sampling" else 1
    tally = mechanism.tally(b"".join(mechanism.randomize(value, chance) for _ in range(2_000)), np)

    assert checks_of(mechanism, 2_000) or name == "olh"
    for check in SINGLE.values():
        score = check(mechanism, tally, 2_000, FALSE_ALARM / CHECKS)
        assert score is None or score.found <= score.limit


def test_two_layers_are_checked_by_the_bits_of_their_oracle() -> None:
    """Law: a report of a chance item has as many ones as any other."""
    base = OUE("3", ITEMS)
    mechanism = Mixture(base, "1")
    draw, n = np.random.default_rng(3), 50_000
    kept = draw.binomial(steep(n), float(mechanism.kept), (200, ITEMS))
    blurred = draw.multinomial(n - kept.sum(axis=1), np.full(ITEMS, 1 / ITEMS))
    p, q = (float(chance) for chance in (base.channel.p, base.channel.q))
    holders = kept + blurred

    tallies = draw.binomial(holders, p) + draw.binomial(n - holders, q)

    assert checks_of(mechanism, n) == ("total", "floor")
    assert not alarms(mechanism, tallies, n).any()


def test_a_mean_that_jumps_is_a_change_and_one_that_drifts_is_not() -> None:
    """Law: what earlier epochs differ beyond their noise is taken into account."""
    metric = Registry.from_text(file_with({**NUMBER, "mechanism": '"duchi"'})).metric("m")
    n, step = 10_000, 400

    def bits(high: int) -> tuple[Any, int]:
        return np.array([n - high, high]), n

    steady = [bits(5_000 + off) for off in (-30, 10, 20)]
    drifting = [bits(5_000 + off) for off in (-step, 0, step)]

    (jump,) = anomalies(metric, *bits(5_000 + step), steady)

    assert jump.check == "change"
    assert "the mean changed" in jump.text
    assert jump.found > 4 > step / sqrt(n * 0.25) / 2.5
    assert anomalies(metric, *bits(5_000 + step), drifting) == ()
    assert anomalies(metric, *bits(5_000 + step), steady[:2]) == ()
