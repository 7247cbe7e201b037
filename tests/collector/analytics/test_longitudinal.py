"""Metrics that are asked again, from device to answer: the collector decodes by the policy."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from client_sdk.core.dataclass import replace
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.consent import Consent, ConsentSwitch
from client_sdk.recording.inbox import ReportView
from client_sdk.recording.recorder import Recorder
from client_sdk.registry import Registry
from client_sdk.storage.ledger import Ledger
from client_sdk.storage.outbox import Outbox
from client_sdk.storage.store import Store
from client_sdk.wire.reports import GATEWAY
from collector.planning.registry_report import (
    compare_mechanisms,
    describe_metrics,
    pinned,
    warnings,
)
from tests.support.crowds.asking import answer, holds
from tests.support.crowds.truths import label_truth
from tests.support.device.clock import NOON, FakeClock
from tests.support.device.device import collecting
from tests.support.device.registries import CATEGORY, TWO_LAYER, file_with
from tests.support.enumeration.populations import metric_of
from tests.support.enumeration.seeded import SeededRandomness

HELD: dict[object, int] = {"free": 1_200, "pro": 600, "team": 200}
EARLIER = 2  # reports that each device made before the one that is counted
PERMANENT = {**CATEGORY, "longitudinal": '"permanent"', "mechanism": '"auto"'}


def registry_with(fields: dict[str, str], **changes: str) -> Registry:
    return Registry.from_text(file_with(fields, **changes))


def payloads_of(registry: Registry) -> list[bytes]:
    """Return what each device reports of its value after EARLIER reports of it."""
    seen: list[ReportView] = []
    maker = Recorder(
        *(registry, Store(None), Ledger(Caps(week="9999")), Outbox({}, GATEWAY)),
        *(SeededRandomness(b"devices"), ConsentSwitch(Consent.GRANTED), FakeClock().uptime),
        collecting(seen),
    )
    values = [value for value, devices in HELD.items() for _ in range(devices)]
    for epoch in range(EARLIER + 1):
        seen.clear()
        maker.commit(
            [
                replace(maker.prepare("m", value, NOON), device=i.to_bytes(16, "big"), epoch=epoch)
                for i, value in enumerate(values)
            ]
        )
    return [view.payload for view in seen]


@pytest.mark.parametrize(
    "fields", [PERMANENT, TWO_LAYER, {**TWO_LAYER, "mechanism": '"sue"'}], ids=["p", "t", "t-sue"]
)
def test_an_answer_to_repeated_reports_has_intervals_that_hold_the_shares(
    fields: dict[str, str],
) -> None:
    """Law: a device's third report of a value counts like a first one; intervals at 1 - 1e-9."""
    registry = registry_with(fields, epsilon='"2"')
    metric, payloads = registry.metric("m"), payloads_of(registry)

    found = answer(metric, metric.mechanism.tally(b"".join(payloads), np), len(payloads), 1e-9)

    truth = label_truth(metric, HELD)
    assert all(holds(row, truth[row.item]) for row in found)
    assert all((row.ci_high or 0) - (row.ci_low or 0) < 0.5 for row in found)


def test_decoding_by_the_oracle_inside_would_be_noticed() -> None:
    """The planted bug: a collector that forgets the second layer finds every share too even."""
    registry = registry_with(TWO_LAYER, epsilon='"0.7"', epsilon_permanent='"3.5"')
    metric, payloads = registry.metric("m"), payloads_of(registry)
    assert metric.policy is not None
    wrong = replace(metric, mechanism=metric.policy.oracle)

    found = answer(wrong, wrong.mechanism.tally(b"".join(payloads), np), len(payloads), 1e-9)

    truth = label_truth(metric, HELD)
    assert not all(holds(row, truth[row.item]) for row in found)


def test_the_plan_prints_epsilon_of_a_report_a_value_and_a_life() -> None:
    layered, permanent = (
        list(describe_metrics(registry_with(fields)))[1] for fields in (TWO_LAYER, PERMANENT)
    )

    assert "ε 1 a report, ε 3 per value, charged at most ε 9 for life" in layered
    assert "ε 1 a report, ε 1 per value, charged at most ε 3 for life" in permanent


def test_the_plan_compares_by_the_error_of_what_the_policy_sends() -> None:
    metric = metric_of(TWO_LAYER)

    head, leak, in_use, *rows = compare_mechanisms(metric, 8)

    assert head.endswith("ε 3 per value, charged at most ε 9 for life")
    assert leak.startswith("  two_layer: Noise hides a single change")
    assert in_use.startswith(f"  in use: {pinned(metric)}; ")
    (taken,) = [row for row in rows if "auto takes it" in row]
    assert taken.startswith(f"  {metric.mechanism_name}: error ")
    (refused,) = [row for row in rows if row.startswith("  rappor: ")]
    assert "has no pure channel" in refused


def test_a_pinned_two_layer_metric_means_the_same() -> None:
    """The chance to send the permanent payload follows from both epsilons; nobody sets it."""
    auto = metric_of(TWO_LAYER)
    named = metric_of(TWO_LAYER, mechanism=f'"{auto.mechanism_name}"')

    assert "kept" not in pinned(auto)
    assert named.digest == auto.digest


def test_both_epsilons_are_in_the_meaning() -> None:
    metric = metric_of(TWO_LAYER)

    assert '"epsilon":"1"' in metric.meaning
    assert '"epsilon_permanent":"3"' in metric.meaning
    digests = {
        metric_of(TWO_LAYER, **changes).digest
        for changes in ({}, {"epsilon": '"0.9"'}, {"epsilon_permanent": '"2.9"'})
    } | {metric_of(PERMANENT).digest, metric_of(CATEGORY, mechanism='"auto"').digest}
    assert len(digests) == 5


def test_a_second_report_that_no_default_cap_allows_is_warned_of() -> None:
    registry = registry_with(TWO_LAYER, epsilon_permanent='"6"')

    found = list(warnings(registry, date(2026, 3, 4)))

    assert any("the second report of a value costs ε 5, above the default cap" in w for w in found)
