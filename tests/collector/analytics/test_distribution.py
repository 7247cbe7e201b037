"""A number asked for by square wave is answered by quantiles and the mean, in its own unit."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from client_sdk.mechanisms.numbers.square_wave import SquareWave
from client_sdk.registry import Registry
from collector.analytics.answer import label_truth
from tests.support.crowds.asking import answer
from tests.support.device.registries import NUMBER, file_with
from tests.support.enumeration.seeded import SeededRandomness

REGISTRY = file_with(NUMBER, mechanism='"square_wave"', epsilon='"4.0"', min_reports="100")
METRIC = Registry.from_text(REGISTRY).metric("m")
ITEMS = ["p10", "p25", "p50", "p75", "p90", "mean"]
MINUTES = [Fraction(i % 15, 2) for i in range(6000)]  # 0 to 7 of 0 … 10.5 minutes


def test_auto_never_takes_a_mechanism_for_distributions() -> None:
    auto = Registry.from_text(file_with(NUMBER, mechanism='"auto"')).metric("m")

    assert not isinstance(auto.mechanism, SquareWave)
    assert isinstance(METRIC.mechanism, SquareWave)


def test_the_answer_has_a_row_a_quantile_and_the_mean_that_hold_the_truth() -> None:
    mechanism, randomness = METRIC.mechanism, SeededRandomness(b"minutes")
    payloads = [mechanism.randomize(METRIC.encode(value), randomness) for value in MINUTES]
    tally = mechanism.tally(b"".join(payloads), np)

    found = answer(METRIC, tally, len(MINUTES), alpha=1e-4)

    truth = label_truth(METRIC, Counter(map(float, MINUTES)))
    assert [row.item for row in found] == ITEMS == list(truth)
    assert found[0].unit == "minutes"
    assert [row.postprocess for row in found] == ["monotone"] * 5 + ["raw"]
    for row in found:
        assert row.ci_low is not None
        assert row.ci_high is not None
        assert 0 <= row.ci_low <= truth[row.item] <= row.ci_high <= 10.5


def test_too_few_reports_give_every_row_a_reason() -> None:
    empty = np.zeros(METRIC.mechanism.tally_size, dtype=np.int64)

    found = answer(METRIC, empty, 0, alpha=0.05)

    assert [row.item for row in found] == ITEMS
    assert all(row.value is None and row.reason for row in found)


def test_the_true_quantiles_are_in_the_unit_of_the_domain() -> None:
    truth = label_truth(METRIC, {0.0: 50, 10.0: 50})

    assert truth["p10"] == pytest.approx(0, abs=0.25)
    assert truth["p90"] == pytest.approx(10, abs=0.25)
    assert truth["mean"] == 5
