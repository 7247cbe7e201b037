"""Caps: over all metrics together, across restarts, processes and clocks set back."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from client_sdk.core.epoch import DAY, HOUR
from client_sdk.privacy.caps import Caps
from client_sdk.registry import Registry
from tests.support.device.clock import FakeClock
from tests.support.device.device import (
    changed,
    make_client,
    many_metrics,
    rows,
)
from tests.support.enumeration.enumeration import Untouchable


@pytest.mark.parametrize(
    ("caps", "recorded"), [(Caps(report="0.9"), 0), (Caps(week="2"), 2), (Caps(lifetime="1"), 1)]
)
def test_caps_hold_over_all_metrics_together_and_a_refusal_draws_nothing(
    caps: Caps, recorded: int
) -> None:
    registry = many_metrics(3, epsilon="1.0")
    with make_client(registry=registry, caps=caps) as client:
        for i in range(3):
            client.record(f"m{i}", True)

    counts = client.stats()
    assert (counts["recorded"], counts["budget"]) == (recorded, 3 - recorded)


def test_an_exhausted_budget_draws_nothing() -> None:
    client = make_client(caps=Caps(week="0.5"), randomness=Untouchable())
    client.record("dark_mode", True)

    assert changed(client) == {"budget": 1}
    client.close()


def test_caps_hold_across_restarts_and_clocks_set_back(tmp_path: Path) -> None:
    registry, clock, recorded = many_metrics(1, epsilon="1.0"), FakeClock(), 0

    for days in (1, 1, -30, 1, -400, 3):
        with make_client(tmp_path, registry=registry, clock=clock, caps=Caps(week="3")) as client:
            client.record("m0", True)
        recorded += client.stats()["recorded"]
        clock.advance(days=days)

    assert recorded == 3
    assert rows(tmp_path, "SELECT count(*) FROM charges") == [(3,)]


def test_a_clock_set_forward_refills_nothing_and_a_true_week_does(tmp_path: Path) -> None:
    registry, clock = many_metrics(1, epsilon="1.0"), FakeClock()
    with make_client(tmp_path, registry=registry, clock=clock, caps=Caps(week="1")) as client:
        client.record("m0", True)
        clock.now += 400 * DAY  # set by hand: no time has passed
        client.record("m0", True)
        forward = changed(client)
        clock.advance(days=7)
        client.record("m0", True)

    assert (forward["recorded"], forward["budget"]) == (1, 1)
    assert client.stats()["recorded"] == 2


@pytest.mark.parametrize("mode", ["manual", "background"])
def test_a_computer_that_is_off_at_night_reports_each_week_what_its_cap_allows(
    tmp_path: Path, mode: str
) -> None:
    """Of weekdays of eight hours, where something is recorded in the first of these alone."""
    registry, clock, caps = many_metrics(1, epsilon="1.0"), FakeClock(), Caps(week="1")
    recorded = []
    for _ in range(5):
        for _ in range(5):
            clock.advance(seconds=HOUR)
            with make_client(tmp_path, registry=registry, clock=clock, caps=caps, mode=mode) as c:
                c.record("m0", True)
                c.flush()
                clock.advance(seconds=7 * HOUR)
            clock.turn_off(seconds=16 * HOUR)
            recorded.append(c.stats()["recorded"])
        clock.turn_off(days=2)

    assert sum(recorded) == 5


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
