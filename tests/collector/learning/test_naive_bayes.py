"""Naive Bayes from tallies: weights, intervals, calibration, and when nothing is learned."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
import pytest

from benchmarks.accuracy.learn_bayes import area_of, crowd, read_plainly
from benchmarks.accuracy.learn_bayes import metric_of as metric_of_crowd
from client_sdk.core.dataclass import replace
from client_sdk.learning.naive_bayes import NaiveBayes
from client_sdk.registry.metric import Metric
from collector.analytics.verb import Slice
from collector.core.errors import QueryError
from collector.learning.naive_bayes import LIMIT, NOISY, learn, least_reports, summary
from tests.support.device.registries import CATEGORY, RECORD
from tests.support.enumeration.populations import metric_of
from tests.support.enumeration.seeded import SeededRandomness

LABELS: Final = ("stayed", "left")
PLANS: Final = ("free", "pro", "team")
AGES: Final = (20, 40, 60)
N: Final = 6_000


def of_records(epsilon: str = "2", **changes: str | None) -> Metric:
    return metric_of(RECORD, epsilon=f'"{epsilon}"', min_reports="100", **changes)


def people(n: int = N, seed: int = 1, told: bool = True) -> list[dict[str, Any]]:
    """Return records whose label goes with the plan, if *told*, and not with the age."""
    chance, rows = random.Random(seed), []
    for _ in range(n):
        plan, age = chance.choice(PLANS), chance.choice(AGES)
        likely = {"free": 0.6, "pro": 0.2, "team": 0.1}[plan] if told else 0.3
        rows.append({"plan": plan, "age": age, "label": LABELS[chance.random() < likely]})
    return rows


def reported(metric: Metric, rows: Sequence[Mapping[str, Any]], seed: str = "0") -> Slice:
    randomness, mechanism = SeededRandomness(seed.encode()), metric.mechanism
    column = b"".join(mechanism.randomize(metric.encode(row), randomness) for row in rows)
    return Slice(metric, {}, len(rows), mechanism.tally(column, np), (0,))


@pytest.fixture(scope="module")
def learned() -> Any:
    return learn(reported(of_records(), people()))


def entry(model: Any, name: str) -> dict[str, Any]:
    (found,) = [each for each in model.parts["attributes"] if each["name"] == name]
    return dict(found)


def test_a_model_tells_reports_epsilon_label_and_a_weight_for_every_value(learned: Any) -> None:
    parts = learned.parts

    assert (learned.reports, learned.epsilon, parts["label"]) == (N, "2", "left")
    assert entry(learned, "plan")["values"] == list(PLANS)
    assert entry(learned, "age")["edges"] == [30, 50.5]
    assert all(len(each["weights"]) == 3 for each in parts["attributes"])
    assert parts["p_value"] < 1e-9
    assert NaiveBayes.of(learned).slope <= 1


def test_the_intervals_hold_the_log_odds_of_the_population(learned: Any) -> None:
    """Seeded; all of them at once."""
    share = 0.3
    truth = {"plan": (0.6, 0.2, 0.1), "age": (share, share, share)}

    for name, chances in truth.items():
        each = entry(learned, name)
        for chance, low, high in zip(chances, each["low"], each["high"], strict=True):
            log_odds = np.log(chance / (1 - chance)) - np.log(share / (1 - share))
            assert low is None or low < log_odds
            assert high is None or log_odds < high
    assert entry(learned, "plan")["low"][0] > 0


def test_weights_follow_the_label_and_chances_rank_as_the_truth_does(learned: Any) -> None:
    of = NaiveBayes.of(learned)
    chances = [of.probability({"plan": plan}) for plan in PLANS]

    assert chances == sorted(chances, reverse=True)
    assert chances[0] > 0.4 > 0.25 > chances[1]
    assert of.probability({}) == pytest.approx(learned.parts["prior"])


def test_a_value_below_its_noise_is_shrunk_and_the_model_says_by_how_much() -> None:
    """Nobody is on the plan "team", and at ε = 1 its cells are noise."""
    rows = [row for row in people(2 * N) if row["plan"] != "team"]
    each = entry(learn(reported(of_records("1"), rows)), "plan")

    assert each["kept"][2] < 0.5 < min(each["kept"][:2])
    assert abs(each["weights"][2]) < LIMIT
    assert each["low"][2] is None


def test_noise_never_makes_a_rare_label_impossible_and_ranks_better_than_plain_reading() -> None:
    """Seeded, 27,000 devices, 61 values, ε = 1; by a normal law of chances some weights were -3."""
    task = crowd(0, (27_000, 4_000))
    metric, testing = metric_of_crowd(task, "1"), task.testing()
    gains = []
    for seed in "ab":
        part = reported(metric, task.training, seed)
        model = learn(part)
        of = NaiveBayes.of(model)
        gains.append(area_of(of, testing) - area_of(read_plainly(part, of), testing))
        noisy = [
            abs(weight)
            for each in model.parts["attributes"]
            for weight, kept in zip(each["weights"], each["kept"], strict=True)
            if kept < NOISY
        ]

        assert len(noisy) > 20
        assert max(noisy) < 2.5
    assert sum(gains) / 2 > 0.02


def test_a_label_that_goes_with_nothing_gives_chances_near_its_share() -> None:
    """Seeded: either nothing is learned, or it says how likely so much is by chance."""
    for seed in range(3):
        with suppress(QueryError):
            model = learn(reported(of_records(), people(seed=seed, told=False), str(seed)))
            assert model.parts["p_value"] > 1e-4
            of = NaiveBayes.of(model)
            assert all(
                0.15 < of.probability({"plan": p, "age": a}) < 0.5 for p in PLANS for a in AGES
            )


def test_chance_alone_gives_small_p_values_as_often_as_they_say() -> None:
    """100 crowds whose label goes with nothing: below 0.05 at most 21, where 5 are expected.

    And below 0.5 at least 21, where 50 are.  Tallies are drawn by numpy here, as reports take long;
    of 100 at 5 %, 22 or more have the chance 2e-9, and of 100 at 50 %, 20 or fewer 6e-10.
    """
    metric, dice = of_records(), np.random.default_rng(3)
    shares = np.concatenate([np.outer([1 / 3] * 3, [0.7, 0.3]).ravel()] * 2)
    small = usual = refused = 0
    for _ in range(100):
        tally = _drawn(metric, shares, dice)
        try:
            model = learn(Slice(metric, {}, N, tally, (0,)))
        except QueryError:
            refused += 1
            continue
        small += model.parts["p_value"] < 0.05
        usual += model.parts["p_value"] < 0.5

    assert small <= 21 <= usual
    assert refused < 100


def _drawn(metric: Metric, shares: Any, dice: Any) -> Any:
    """Return a tally of N reports of devices with these shares, drawn by numpy."""
    mechanism: Any = metric.mechanism
    counts = dice.multinomial(N, [1 / len(mechanism.attributes)] * len(mechanism.attributes))
    cells = []
    for m, attribute in zip(counts, mechanism.attributes, strict=True):
        selection = attribute.mechanism
        assert selection.parameters["subset_size"] == 1
        p, q = selection.chances
        cells.append(dice.multinomial(m, shares[attribute.first : attribute.end] * (p - q) + q))
    return np.concatenate(cells)


def test_a_weight_is_limited_and_counted() -> None:
    """At ε = 16 there is no noise, and everybody on the plan "pro" left."""
    rows = [{**row, "label": LABELS[row["plan"] == "pro"]} for row in people(N)]
    model = learn(reported(of_records("16"), rows))

    assert max(map(abs, entry(model, "plan")["weights"])) == pytest.approx(LIMIT)
    assert model.parts["limited"] >= 1


def test_chances_are_as_often_right_as_they_say_though_attributes_repeat_each_other() -> None:
    """Three attributes that are one: without a slope a chance of 0.9 would be right 7 times in 10.

    Seeded, 12,000 devices at ε = 4; the mean miss of six groups is below a tenth.
    """
    text = '{ a = ["x", "y"], b = ["x", "y"], c = ["x", "y"] }'
    metric = of_records("4", attributes=text)
    chance, rows = random.Random(5), []
    for _ in range(2 * N):
        value = chance.choice("xy")
        label = LABELS[chance.random() < (0.7 if value == "x" else 0.3)]
        rows.append({"a": value, "b": value, "c": value, "label": label})
    of = NaiveBayes.of(learn(reported(metric, rows)))

    told = [of.probability({"a": v, "b": v, "c": v}) for v in "xy"]

    assert of.slope < 1
    assert 0.7 < told[0] < 0.95
    assert told[1] == pytest.approx(1 - told[0], abs=0.05)


def test_two_labels_are_told_by_opposite_weights() -> None:
    part = reported(of_records(), people())

    left, stayed = (entry(learn(part, label), "plan")["weights"] for label in reversed(LABELS))

    assert left == pytest.approx([-weight for weight in stayed], abs=1e-6)


def test_too_few_reports_are_refused_by_a_number_that_is_told() -> None:
    metric = of_records("0.5")
    least = least_reports(metric)
    part = reported(metric, people(300))

    with pytest.raises(QueryError, match=f"has 300 reports, and needs {least:,}"):
        learn(part)
    assert metric.mechanism.predict(least) <= 0.05 < metric.mechanism.predict(least - 1)


def test_what_cannot_be_learned_from_is_refused() -> None:
    part = reported(of_records(), people(300))
    other = metric_of(CATEGORY)

    with pytest.raises(QueryError, match="label: must be one of the 2 labels"):
        learn(part, "moved")
    with pytest.raises(QueryError, match="has no records; declare type record"):
        learn(Slice(other, {}, 10, np.zeros(other.mechanism.tally_size, dtype=np.int64), (0,)))
    everybody = [{**row, "label": "left"} for row in people(N)]
    with pytest.raises(QueryError, match="whether anybody has the label, or has not"):
        learn(reported(of_records(), everybody))


def test_the_summary_tells_each_association_with_its_interval_and_counts_all(learned: Any) -> None:
    lines = list(summary(learned))

    assert lines[0] == "the chance of 'left', from 6,000 reports at ε 2"
    plan, age = (entry(learned, name)["association"] for name in ("plan", "age"))
    assert 0 < plan["low"] < 0.45 < plan["high"]
    assert age["low"] == 0
    assert plan["p_value"] < 1e-4 < age["p_value"]
    ends = f"({plan['low']:.2f} to {plan['high']:.2f}), where 1 is fully (Cramér's V)"
    assert lines[1] == f"plan and the label: {plan['cramers_v']:.2f} {ends}; p below 0.0001"
    assert lines[2].startswith("age and the label: 0.")
    at_once = "counts all 2 attributes (Holm), and the intervals hold at once"
    assert lines[3] == f"p, the chance of as much by noise, {at_once}"
    assert lines[4].startswith("surely more or less likely with ")
    assert "of 6 values: plan: free" in lines[4]
    assert len(lines) == 6


def test_the_summary_says_what_is_not_to_be_believed() -> None:
    """Nobody on the plan "team" is seen at ε = 1; a label of three is one test of three."""
    rows = [{**row, "plan": "free"} for row in people(3 * N, told=False)]
    metric = of_records("1", label='["stayed", "left", "moved"]')
    model = learn(reported(metric, rows), "left")
    doubtful = replace(model, parts={**model.parts, "p_value": 0.02})

    lines = list(summary(doubtful))

    assert lines[1].startswith("plan and the label: not enough reports: fewer than two rows")
    assert "of too few devices, so shrunk to little: plan: pro; plan: team" in lines
    assert "do not use this model: above 0.01 it may be noise; wait for more reports" in lines
    assert lines[-1] == "that counts this label alone: if you learn all 3, multiply it by 3"
