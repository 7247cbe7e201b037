"""Clean epochs raise no alarm but by the stated chance; attacks that a check is for do.

Crowds are drawn by the law of their tallies, which another test compares with real reports.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import pytest

from benchmarks.accuracy.poisoning import BEST, UNPADDED, crowd, fakes_of
from client_sdk.mechanisms import ItemMechanism, Mechanism, load
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.hadamard import Hadamard
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.mixture import Mixture
from client_sdk.registry import Registry
from collector.analytics.poisoning.anomaly import (
    CHECKS,
    FALSE_ALARM,
    anomalies,
)
from collector.analytics.poisoning.checks import (
    SINGLE,
    Score,
    change,
    epoch_estimates,
    shortfall_limit,
)
from collector.analytics.poisoning.findings import suspicions
from collector.analytics.rows import TIME
from collector.analytics.verb import Slice
from collector.core.remarks import Code
from collector.estimation.estimate import normal_quantile
from collector.estimation.significance import both_tails, student_quantile
from tests.support.crowds.boolean_slices import is_at_most
from tests.support.device.registries import CATEGORY, NUMBER, file_with
from tests.support.enumeration.seeded import SeededRandomness

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
    found = [score.statistic > score.limit for score in scores if score is not None]
    assert found
    return np.any(found, axis=0)


def applying(mechanism: Mechanism[Any], n: int) -> tuple[str, ...]:
    """Return the checks of one epoch that apply to *n* reports."""
    nothing = np.zeros(mechanism.tally_size, dtype=np.int64)
    return tuple(name for name, check in SINGLE.items() if check(mechanism, nothing, n, 0.5))


@cache
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


ALPHA: Final = 0.05  # of ``change`` in tests of its level: FALSE_ALARM is too rare to be counted
ROUNDS: Final = 1_000
POPULATIONS: Final = ("same", "drawn", "drifting")


def series(population: str, epochs: int, draw: np.random.Generator) -> list[tuple[Any, int]]:
    """Return tallies of GRR over 8 items whose truth stays, or drifts by a point an epoch."""
    mechanism = metric_of("grr", 8).mechanism
    if population == "same":
        return [(tally, N) for tally in crowd(mechanism, steep(N, 8), epochs, draw)]
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    found = []
    for _ in range(epochs):
        shares = steep(N, 8) / N
        if population == "drifting":
            shares[:2] += np.array([1, -1]) * draw.normal(0, 0.01)
        found.append((draw.multinomial(N, q + shares * (p - q)), N))
    return found


def scores_of(population: str, earlier: int) -> list[Score]:
    """Return what ``change`` finds in ROUNDS epochs, each after so many *earlier* ones."""
    metric, draw = metric_of("grr", 8), np.random.default_rng(20261122)
    found = []
    for _ in range(ROUNDS):
        *past, now = series(population, earlier + 1, draw)
        known = [epoch_estimates(metric.mechanism, *epoch) for epoch in past]
        score = change(metric, *now, known, ALPHA)
        assert score is not None
        found.append(score)
    return found


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("earlier", [3, 4, 14])
def test_clean_epochs_rarely_seem_to_have_changed(population: str, earlier: int) -> None:
    """Law: as rarely as stated if the truth stays, devices are drawn anew, or the truth drifts."""
    scores = scores_of(population, earlier)

    alarms = sum(bool((score.statistic > score.limit).any()) for score in scores)
    assert is_at_most(alarms, ROUNDS, ALPHA)


@pytest.mark.parametrize(
    ("freedom", "alpha", "quantile"),
    [
        (1, 0.05, 12.7062), (2, 0.05, 4.30265), (3, 0.001, 12.9240), (10, 0.05, 2.22814),
        (30, 0.001, 3.64596),
    ],
)  # fmt: skip
def test_quantiles_of_students_law_are_those_of_the_tables(
    freedom: int, alpha: float, quantile: float
) -> None:
    """Law: to the digits printed; far out, v = 2 has the closed form 1 - t / sqrt(2 + t^2)."""
    assert student_quantile(alpha, freedom) == pytest.approx(quantile, rel=1e-5)
    assert both_tails(1e5, 2) == pytest.approx(1e-10, rel=1e-6)
    assert both_tails(1e5, 2_001) == 0  # below the least number; there is no sum to wait for
    assert both_tails(3.0, 10**7) == pytest.approx(2 * (1 - NormalDist().cdf(3.0)), rel=1e-5)
    assert student_quantile(1e-9, 59) > normal_quantile(1e-9)


def test_a_change_is_told_without_a_chance_and_a_broken_law_with_one() -> None:
    """Law: that honest devices do not send it is said of what they cannot send only."""
    metric, draw = metric_of("grr", 8), np.random.default_rng(20261127)
    held = steep(N, 8)
    moved = held + np.array([-1, 0, 0, 0, 0, 1, 0, 0]) * N // 10
    tallies = [*crowd(metric.mechanism, held, 20, draw), *crowd(metric.mechanism, moved, 1, draw)]
    tallies.append(held)  # reports that never lie
    days = [Slice(metric, {TIME: f"day {i:02}"}, N, tally, (i,)) for i, tally in enumerate(tallies)]

    found = list(suspicions(days))
    texts = {remark.code: str(remark) for remark in reversed(found)}

    changed, broken = texts[Code.CHANGED_SUDDENLY], texts[Code.NOT_HONEST]
    assert changed.startswith("m (day 20): changed suddenly: '0' changed by ")
    assert changed.endswith("; the truth may have, or fakes began")
    assert [each.group for each in found if each.code == Code.NOT_HONEST] == ["day 21"]
    assert broken.endswith("; by chance once in 10,000 epochs")
    assert "by chance" not in changed


def test_a_share_far_outside_of_the_possible_is_told_and_noise_is_not() -> None:
    """Law: of 200 honest epochs no share is called impossible, each with 3e-7 at most."""
    metric, draw = metric_of("grr", 8), np.random.default_rng(20261128)
    held = np.array([N, 0, 0, 0, 0, 0, 0, 0])
    honest = crowd(metric.mechanism, held, 200, draw)
    pushed = honest[0].copy()
    pushed[1] -= N // 20  # fakes that never name it
    pushed[0] += N // 20

    def told(tally: Any) -> list[str]:
        found = suspicions([Slice(metric, {"os": "a"}, N, tally, (0,))])
        return [str(each) for each in found if each.code == Code.IMPOSSIBLE]

    assert not any(told(tally) for tally in honest)
    above, below = told(pushed)
    assert above.startswith("m (a): impossible for honest devices: ")
    assert "the share of '0' is" in above
    assert above.endswith("standard errors above 1; see poisoning")
    assert "the share of '1' is" in below
    assert below.endswith("standard errors below 0; see poisoning")


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
    earlier = [(tally, N) for tally in crowd(metric.mechanism, steep(N), 30, draw)]
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
    assert applying(GRR("1", ITEMS), 1_000) == ()
    assert applying(GRR("1", ITEMS), N) == ("floor",)


@pytest.mark.parametrize("name", ["cms", "rappor", "dbitflip", "padding_sampling", "olh"])
def test_honest_reports_of_every_other_mechanism_pass(name: str) -> None:
    """Law: 2,000 real reports of one value, by the device's own code, raise nothing."""
    mechanism, chance = load(name)("2", 8), SeededRandomness(name.encode())
    value: Any = frozenset({1}) if name == "padding_sampling" else 1
    tally = mechanism.tally(b"".join(mechanism.randomize(value, chance) for _ in range(2_000)), np)

    assert applying(mechanism, 2_000) or name == "olh"
    for check in SINGLE.values():
        score = check(mechanism, tally, 2_000, FALSE_ALARM / CHECKS)
        assert score is None or score.statistic <= score.limit


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

    assert applying(mechanism, n) == ("total", "floor")
    assert not alarms(mechanism, tallies, n).any()


def test_a_mean_that_jumps_is_a_change_and_one_that_drifts_is_not() -> None:
    """Law: what earlier epochs differ beyond their noise is taken into account."""
    metric = Registry.from_text(file_with({**NUMBER, "mechanism": '"duchi"'})).metric("m")
    n, step = 10_000, 400

    def bits(high: int) -> tuple[Any, int]:
        return np.array([n - high, high]), n

    around = (-30, 10, 20, -10, 25, -15, 0, 5, -20, 15, 30, -25)
    steady = [bits(5_000 + off) for off in around]
    drifting = [bits(5_000 + off * step // 30) for off in around]

    (jump,) = anomalies(metric, *bits(5_000 + 2 * step), steady)

    assert jump.check == "change"
    assert "the mean changed" in jump.text
    assert jump.statistic > jump.limit
    assert anomalies(metric, *bits(5_000 + 2 * step), drifting) == ()
    assert anomalies(metric, *bits(5_000 + 2 * step), steady[:2]) == ()


@pytest.mark.parametrize(
    ("name", "tally", "most"),
    [("duchi", [200] * 2, 8), ("square_wave", [31] * 12 + [28], 8), ("grr", [44] * 8 + [48], 1)],
)
def test_devices_drawn_anew_vary_as_much_as_if_all_were_at_both_ends(
    name: str, tally: list[int], most: int
) -> None:
    """No law of the same mean varies more."""
    mechanism: Any = load(name)("1", 9)
    n, counts = sum(tally), np.array(tally)
    _, noise = mechanism.debias(counts, n, np)

    values, variances, _ = epoch_estimates(mechanism, counts, n)

    assert variances == pytest.approx(noise / n**2 + values * (most - values) / n)
