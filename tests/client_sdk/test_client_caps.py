"""Caps: over all metrics together, across restarts, processes and clocks set back."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from client_sdk.ledger import Caps
from client_sdk.registry import Registry
from tests.support.clock import FakeClock
from tests.support.device import (
    changed,
    make_client,
    many_metrics,
    rows,
)
from tests.support.enumeration import Untouchable


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
    with make_client(caps=Caps(week="0.5"), randomness=Untouchable()) as client:
        client.record("dark_mode", True)

    assert changed(client) == {"budget": 1}


def test_caps_hold_across_restarts_and_clocks_set_back(tmp_path: Path) -> None:
    registry, clock, recorded = many_metrics(1, epsilon="1.0"), FakeClock(), 0

    for days in (1, 1, -30, 1, -400, 20, 1):
        with make_client(tmp_path, registry=registry, clock=clock, caps=Caps(week="3")) as client:
            client.record("m0", True)
        recorded += client.stats()["recorded"]
        clock.advance(days=days)

    assert recorded == 3
    assert rows(tmp_path, "SELECT count(*) FROM charges") == [(3,)]


def _record_all(folder: Path, registry: Registry, caps: Caps, first: int) -> None:
    client = make_client(folder, registry=registry, caps=caps)
    count = len(registry.metrics)
    for i in range(count):
        client.record(f"m{(first + i) % count}", True)
    client._store.close()  # without the upload that close() makes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_processes_that_share_a_file_never_pass_a_cap_together(tmp_path: Path) -> None:
    registry, caps = many_metrics(24, epsilon="0.25"), Caps(week="4")
    context = multiprocessing.get_context("fork")
    children = [
        context.Process(target=_record_all, args=(tmp_path, registry, caps, 6 * i))
        for i in range(4)
    ]

    for child in children:
        child.start()
    for child in children:
        child.join()

    ((charges, spent),) = rows(tmp_path, "SELECT count(*), sum(nano) FROM charges")
    assert rows(tmp_path, "SELECT count(*) FROM reports") == [(charges,)]
    assert (charges, spent <= caps.week) == (16, True)
