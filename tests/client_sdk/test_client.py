"""A client: what is recorded is charged, counted and sent once, and caps hold."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from client_sdk.client import Client
from client_sdk.core.base64url import from_base64url
from client_sdk.core.errors import InvalidParameterError, RegistryError
from client_sdk.core.stats import Reason
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.consent import Consent
from client_sdk.registry import Registry
from tests.support.device.clock import FakeClock
from tests.support.device.device import (
    CANARY,
    ENDPOINT,
    KEY,
    REGISTRY,
    bytes_on_disk,
    changed,
    make_client,
    many_metrics,
    rows,
)
from tests.support.device.device_transport import ScriptedTransport
from tests.support.enumeration.enumeration import Untouchable


def test_a_recorded_value_is_charged_uploaded_and_acknowledged() -> None:
    transport = ScriptedTransport()
    with make_client(transport=transport) as client:
        client.record("dark_mode", True)

        client.flush()

    upload = json.loads(transport.sent[0])
    metric = REGISTRY.metric("dark_mode")
    (column,) = upload["columns"]
    assert from_base64url(column["metric"]) == metric.digest
    assert (column["epoch"], upload["sealed"]) == (20_000, 20_000)
    assert metric.mechanism.reason(from_base64url(column["payloads"])) is None
    assert changed(client) == {"recorded": 1, "uploaded": 1}


def test_the_ledger_is_charged_what_the_channel_spends(tmp_path: Path) -> None:
    with make_client(tmp_path) as client:
        for name, value in (("dark_mode", True), ("theme", "plain"), ("files", 7)):
            client.record(name, value)

    charged = dict(rows(tmp_path, "SELECT digest, nano FROM totals"))
    expected = [REGISTRY.metric(name) for name in ("dark_mode", "theme", "files")]
    assert charged == {metric.digest: metric.mechanism.spent_nano for metric in expected}


def test_a_metric_has_one_report_an_epoch_and_a_second_value_draws_nothing(tmp_path: Path) -> None:
    clock = FakeClock()
    with make_client(tmp_path, clock=clock) as client:
        client.record("dark_mode", True)

    again = make_client(tmp_path, clock=clock, randomness=Untouchable())
    again.record("dark_mode", False)

    assert changed(again) == {"already_reported": 1}
    again.close()


def test_a_metric_records_on_its_last_day_and_not_after() -> None:
    last = (date(2020, 12, 31) - date(1970, 1, 1)).days
    clock = FakeClock(last * 86_400 + 86_399)
    with make_client(clock=clock) as client:
        client.record("bygone", True)
        clock.advance(seconds=1)

        client.record("bygone", True)

    assert changed(client) == {"recorded": 1, "expired": 1, "uploaded": 1}


def test_a_value_is_nowhere_on_disk_in_the_counts_or_in_a_repr(tmp_path: Path) -> None:
    transport = ScriptedTransport([503])
    client = make_client(tmp_path, transport=transport)
    client.record("theme", CANARY)
    client.record("theme", f"{CANARY}-misspelt")
    client.flush()

    traces = bytes_on_disk(tmp_path) + transport.sent[0] + repr((client, client.stats())).encode()

    client.close()
    assert client.stats()["recorded"] == 1
    assert CANARY.encode() not in traces


def test_stats_name_every_reason_and_nothing_else() -> None:
    with make_client() as client:
        client.record("theme", CANARY)

    assert list(client.stats()) == list(Reason)


def test_every_recorded_report_is_counted_to_its_end() -> None:
    ends = ("uploaded", "rejected", "outbox_full", "too_old", "revoked")
    clock, registry = FakeClock(), many_metrics(520)
    transport = ScriptedTransport([202, 400, 503, 401, ValueError("broken")])
    client = make_client(registry=registry, clock=clock, transport=transport)

    for i in range(510):
        client.record(f"m{i}", True)
    for _ in range(3):  # each of what keeps an upload is met once
        client.flush()
        clock.advance(days=1)
    clock.advance(days=12)
    client.flush()
    client.record("m0", True)
    client.set_consent(Consent.DENIED)

    counts = client.stats()
    client.close()
    assert [counts[end] for end in ends] == [200, 200, 10, 100, 1]
    assert counts["recorded"] == sum(counts[end] for end in ends)
    assert (counts["postponed"], counts["refused"], counts["internal"]) == (1, 1, 1)


def test_a_constructor_refuses_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="consent=yes"):
        make_client(consent="yes")
    with pytest.raises(RegistryError, match=r"segment\.platform"):
        make_client(segment={"platform": "amiga"})
    with pytest.raises(RegistryError, match="cannot be read"):
        Client(ENDPOINT, KEY, tmp_path / "none.toml", consent="granted", data_dir=None)
    with pytest.raises(InvalidParameterError, match="endpoint="):
        Client("http://collector.example", KEY, REGISTRY, consent="granted", data_dir=None)


class Hostile:
    """A value that fails at every touch."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("touched")

    def __hash__(self) -> int:
        raise RuntimeError("touched")

    def __repr__(self) -> str:
        raise RuntimeError("touched")


class HostileNumber(float):
    """A number that fails when it is read."""

    def as_integer_ratio(self) -> tuple[int, int]:
        raise RuntimeError("read")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("dark_mode", 1, "invalid_value"),
        ("dark_mode", None, "invalid_value"),
        ("dark_mode", Hostile(), "invalid_value"),
        ("theme", "unregistered", "invalid_value"),
        ("theme", ["plain"], "invalid_value"),
        ("files", math.nan, "invalid_value"),
        ("files", -math.inf, "invalid_value"),
        ("files", Decimal("sNaN"), "invalid_value"),
        ("files", "7", "invalid_value"),
        ("files", True, "invalid_value"),
        ("files", HostileNumber(1), "internal"),
        ("no_such_metric", True, "unknown_metric"),
        (None, True, "unknown_metric"),
        ([], True, "unknown_metric"),
        (Hostile(), True, "unknown_metric"),
    ],
)
def test_a_wrong_name_or_value_is_counted_and_never_raised(
    name: Any, value: object, reason: str
) -> None:
    with make_client() as client:
        client.record(name, value)

    assert changed(client) == {reason: 1}


def test_an_exhausted_budget_draws_nothing() -> None:
    client = make_client(caps=Caps(week="0.5"), randomness=Untouchable())
    client.record("dark_mode", True)

    assert changed(client) == {"budget": 1}
    client.close()


def _record_all(folder: Path, registry: Registry, caps: Caps, first: int) -> None:
    client = make_client(folder, registry=registry, caps=caps)
    count = len(registry.metrics)
    for i in range(count):
        client.record(f"m{(first + i) % count}", True)
    client._engine.close_store()  # without the upload that close() makes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(
    ("processes", "metrics", "week", "succeed"),
    [(4, 24, "0.128", 16), pytest.param(16, 1_000, "4", 500, marks=pytest.mark.slow)],
)
def test_of_the_attempts_of_processes_that_share_a_file_exactly_the_cap_succeeds(
    tmp_path: Path, processes: int, metrics: int, week: str, succeed: int
) -> None:
    """Law: each process records all metrics, from another one on, and never is a cap passed."""
    caps, registry = Caps(week=week), many_metrics(metrics, epsilon="0.008")
    context = multiprocessing.get_context("fork")
    children = [
        context.Process(
            target=_record_all, args=(tmp_path, registry, caps, i * metrics // processes)
        )
        for i in range(processes)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
    ((spent,),) = rows(tmp_path, "SELECT sum(nano) FROM totals")
    assert rows(tmp_path, "SELECT count(*) FROM charges") == [(succeed,)]
    assert rows(tmp_path, "SELECT count(*) FROM reports") == [(succeed,)]
    assert spent <= caps.week
