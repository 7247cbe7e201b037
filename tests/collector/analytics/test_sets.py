"""Sets from registry to answer: one row an item, the share of devices that hold it."""

from __future__ import annotations

import numpy as np
import pytest

from client_sdk.mechanisms import SetMechanism
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.analytics.answer import label_truth
from collector.planning.registry_report import compare_mechanisms
from tests.support.crowds.asking import answer
from tests.support.device.registries import SET, file_with
from tests.support.enumeration.seeded import SeededRandomness

HELD: dict[object, int] = {("a", "b"): 600, ("b",): 300, (): 100}  # devices by what they hold
PINNED = {"mechanism": '"padding_sampling"', "parameters": "{ pad = 2 }"}


def metric(**changes: str) -> Metric:
    """Return the metric of sets with *changes*."""
    return next(iter(Registry.from_text(file_with(SET, **changes))))


def test_auto_takes_a_mechanism_of_sets_that_cuts_none() -> None:
    found = metric()

    assert isinstance(found.mechanism, SetMechanism)
    assert found.mechanism_name == "sampled_item"
    assert found.mechanism.most == found.domain.size == 3


def test_the_parameters_of_a_set_are_in_its_meaning() -> None:
    assert '"mechanism":{"name":"padding_sampling","pad":2,"unary":0}' in metric(**PINNED).meaning


def test_the_true_answer_counts_every_item_of_every_set() -> None:
    assert label_truth(metric(), HELD) == {"a": 0.6, "b": 0.9, "c": 0.0}


@pytest.mark.parametrize("changes", [{}, PINNED])
def test_an_answer_has_a_row_per_item_and_intervals_that_hold_the_shares(
    changes: dict[str, str],
) -> None:
    sets = metric(epsilon='"4"', **changes)
    randomness = SeededRandomness(b"sets")
    payloads = [
        sets.mechanism.randomize(sets.encode(held), randomness)
        for held, devices in HELD.items()
        for _ in range(devices)
    ]

    found = answer(sets, sets.mechanism.tally(b"".join(payloads), np), len(payloads), alpha=1e-6)

    truth = label_truth(sets, HELD)
    assert found[0].unit == "share"
    assert [row.item for row in found] == ["a", "b", "c"]
    for row in found:
        assert row.ci_low is not None
        assert row.ci_high is not None
        assert row.ci_low < truth[row.item] < row.ci_high < row.ci_low + 0.6


def test_the_plan_of_a_set_compares_mechanisms_of_sets_only() -> None:
    lines = list(compare_mechanisms(metric(), payload_bytes=8))

    assert [line for line in lines if "sampled_item: error" in line and "auto takes it" in line]
    assert not [line for line in lines if "grr" in line or "duchi" in line]
