"""How far fakes can move a number, by its rows and by its mechanism."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import exp, sqrt
from typing import Any, Final

import numpy as np
import pytest
from msgspec.structs import replace

from benchmarks.accuracy.poisoning import BEST, HONEST, RANDOM, gain, payloads
from client_sdk.mechanisms import (
    DistributionMechanism,
    FrequencyOracle,
    ItemMechanism,
    KeyValueMechanism,
    MeanMechanism,
    Mechanism,
    Reach,
    SetMechanism,
    names,
)
from client_sdk.mechanisms import (
    load as kind_of,
)
from client_sdk.mechanisms.composite.sampled_item import SampledItem
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.hadamard import Hadamard
from client_sdk.mechanisms.items.olh import OLH
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.items.sue import SUE
from client_sdk.mechanisms.numbers.square_wave import SquareWave
from client_sdk.registry import Registry
from client_sdk.registry.types.numbers import NumberDomain
from collector.analytics.poisoning.findings import with_influence
from collector.analytics.poisoning.influence import (
    FAKES,
    Side,
    fakes_to_flip,
    key_mean_reach,
    mean_reach,
    moved,
    quantiles_moved,
    weight,
)
from collector.analytics.rows import Row, row_of
from collector.analytics.verb import Slice, VerbQuery, load
from collector.core.remarks import Code, remark
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
    refused = Slice(metric, {}, 0, nothing, (), refusal=remark(Code.BOUNDS))

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
KNOWN = [n for n in names() if n not in UNKNOWN and issubclass(kind_of(n), FAMILIES)]


def test_the_mechanisms_with_a_known_reach_are_nearly_all() -> None:
    assert len(KNOWN) >= 23


@pytest.mark.parametrize("name", KNOWN)
def test_no_honest_report_stands_for_more_than_the_reach_of_its_mechanism(name: str) -> None:
    """Law: the tally of one report debiases to something within the reach, for every item."""
    kind, chance = kind_of(name), SeededRandomness(name.encode())
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
    assert kind_of("rappor")("1", 8).share_reach(ITEM, np) is None


def test_a_report_of_sampled_items_weighs_as_much_as_a_domain_of_honest_ones() -> None:
    """Law: all fakes bear upon the attacked item, of the honest ones one in d does."""
    reach = known(SampledItem("1", 8).share_reach(ITEM, np))

    assert reach.crowd == 8


@pytest.mark.parametrize(("name", "most"), [("duchi", 1.582), ("discrete_laplace", 41.0)])
def test_the_reach_of_a_mean_is_that_of_its_clamped_reports(name: str, most: float) -> None:
    """Law: one bit stands for (1 + (e+1)/(e-1))/2 ranges; clamped noise for 40 scales beyond."""
    reach = known(mean_reach(kind_of(name)("1", GRID.size), GRID))

    assert reach.high / 100 == pytest.approx(most, abs=0.001)
    assert reach.low / 100 == pytest.approx(1 - most, abs=0.001)


def test_a_rarer_key_is_reached_by_fewer_fakes() -> None:
    """Law: the fewer hold a key, the more honest reports one fake weighs as much as."""
    mechanism = kind_of("pckv_grr")("1", 8)
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
