"""Sets and distributions from registry to answer: their rows, their units, the truth in them."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

from client_sdk.mechanisms import SetMechanism
from client_sdk.mechanisms.numbers.square_wave import SquareWave
from collector.demo.fleet import label_truth
from collector.planning.registry_report import compare_mechanisms
from tests.support.crowds.asking import answer
from tests.support.device.registries import NUMBER, SET
from tests.support.enumeration.populations import metric_of, reported

ALPHA: Final = 1e-6  # at this level every interval holds
WAVE: Final = {**NUMBER, "mechanism": '"square_wave"'}
PADDED: Final = {**SET, "mechanism": '"padding_sampling"', "parameters": "{ pad = 2 }"}
SETS: Final[Counter[object]] = Counter({("a", "b"): 600, ("b",): 300, (): 100})
MINUTES: Final[Counter[object]] = Counter(i % 15 / 2 for i in range(6_000))  # 0 to 7
QUANTILES: Final = ["p10", "p25", "p50", "p75", "p90"]


def test_auto_takes_a_mechanism_that_cuts_no_set_and_none_for_distributions() -> None:
    sets, number = metric_of(SET), metric_of(NUMBER, mechanism='"auto"')

    assert isinstance(sets.mechanism, SetMechanism)
    assert sets.mechanism_name == "sampled_item"
    assert sets.mechanism.most == sets.domain.size == 3
    assert not isinstance(number.mechanism, SquareWave)


def test_the_parameters_of_a_set_are_in_its_meaning() -> None:
    meaning = metric_of(PADDED).meaning

    assert '"mechanism":{"name":"padding_sampling","pad":2,"unary":0}' in meaning


def test_the_true_answer_counts_items_and_is_in_the_unit_of_the_domain() -> None:
    ends = label_truth(metric_of(WAVE), {0.0: 50, 10.0: 50})

    assert label_truth(metric_of(SET), SETS) == {"a": 0.6, "b": 0.9, "c": 0.0}
    assert (ends["p10"], ends["p90"]) == pytest.approx((0, 10), abs=0.25)
    assert ends["mean"] == 5


def test_the_quantiles_of_a_distribution_rise_within_its_range_and_the_mean_is_raw() -> None:
    metric = metric_of(WAVE, epsilon='"4"')

    rows = answer(metric, *reported(metric, MINUTES.elements(), "types"), ALPHA)

    assert [row.item for row in rows] == [*QUANTILES, "mean"]
    assert [row.postprocess for row in rows] == ["monotone"] * 5 + ["raw"]
    assert all((row.ci_low or 0) >= 0 and (row.ci_high or 99) <= 10.5 for row in rows)


def test_the_plan_of_a_set_compares_mechanisms_of_sets_only() -> None:
    lines = list(compare_mechanisms(metric_of(SET), payload_bytes=8))

    assert [line for line in lines if "sampled_item: error" in line and "auto takes it" in line]
    assert not [line for line in lines if "grr" in line or "duchi" in line]
