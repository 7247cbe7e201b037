"""``expected_size``: about how many items a device has chooses the mechanism, and nothing else."""

from __future__ import annotations

import json

from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.planning.compilation import compiled
from collector.planning.registry_report import compare_mechanisms, pinned
from tests.support.device.registries import SET, file_with

VALUES = json.dumps([f"plugin {i}" for i in range(300)])


def text_with(**changes: str | None) -> str:
    return file_with(SET, **{"values": VALUES, **changes})


def metric_of(**changes: str | None) -> Metric:
    (metric,) = Registry.from_text(text_with(**changes))
    return metric


def test_auto_takes_what_errs_least_with_so_many_items() -> None:
    assert metric_of().mechanism_name == "sampled_item"
    assert metric_of(expected_size="4").mechanism_name == "privset"
    assert metric_of(expected_size="4").mechanism.parameters["pad"] == 4


def test_a_mechanism_that_is_named_takes_it_as_its_slots_or_has_none() -> None:
    padded = metric_of(expected_size="4", mechanism='"padding_sampling"')
    same = metric_of(mechanism='"padding_sampling"', parameters="{ pad = 4 }")

    assert padded.digest == same.digest
    assert metric_of(expected_size="4", mechanism='"sampled_item"').digest == metric_of().digest


def test_the_digest_is_that_of_the_mechanism_as_resolved() -> None:
    resolved = metric_of(expected_size="4")
    parameters = ", ".join(f"{k} = {v}" for k, v in resolved.mechanism.parameters.items())

    named = metric_of(mechanism='"privset"', parameters=f"{{ {parameters} }}")

    assert named.digest == resolved.digest
    assert metric_of(expected_size="5").digest != resolved.digest


def test_the_compiled_registry_is_the_same_metric() -> None:
    (metric,) = Registry.from_text(compiled(Registry.from_text(text_with(expected_size="4"))))

    assert metric.digest == metric_of(expected_size="4").digest
    assert metric.mechanism == metric_of(expected_size="4").mechanism


def test_the_plan_shows_what_is_in_use_as_what_auto_takes() -> None:
    metric = metric_of(expected_size="4")
    lines = list(compare_mechanisms(metric))

    assert lines[1].startswith('  in use: mechanism = "privset"')
    assert lines[2].startswith("  privset: error ")
    assert lines[2].count("; ") == 1
    assert "too long" in "".join(compare_mechanisms(metric, 4))
    assert "pad" not in pinned(metric)
