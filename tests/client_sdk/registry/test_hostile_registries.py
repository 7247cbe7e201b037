"""Hostile registries: whatever a file asks for, no cap of the application is passed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import pytest

from client_sdk.client import Client
from client_sdk.core.errors import RegistryError
from client_sdk.privacy.caps import Caps
from client_sdk.registry import Registry
from tests.support.device.clock import FakeClock
from tests.support.device.device import changed, make_client, rows
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    FUNNEL,
    HEAD,
    LOCATION,
    NUMBER,
    PAIR,
    RETENTION,
    SET,
    TWO_LAYER,
    table,
)

CAPS: Final = Caps(report="1", metric_week="2", week="4", lifetime="6", delta="0.000001")
NANO: Final = 10**9
DAYS: Final = 12

_GREEDY: Final = ("0.01", "0.5", "0.999999999", "1", "1.000000001", "2", "4", "16")
_SENSELESS: Final = ("100", "1e309", "nan", "-1", "∞", "0", "١", "1_0", "", "16.1", "0.0000000001")
_KINDS: Final = (
    *(BOOLEAN, CATEGORY, NUMBER, SET, TWO_LAYER),
    *(LOCATION, PAIR, FUNNEL, RETENTION),
)
_ODD: Final = {
    "every": ('"1h"', '"1d"', '"7d"', '"once"', '"1s"', "1"),
    "longitudinal": ('"fresh"', '"permanent"', '"two_layer"', '"never"'),
    "mechanism": ('"auto"', '"grr"', '"discrete_gaussian"', '"rappor"', '"none"', "[]"),
    "epsilon_permanent": ('"2"', '"16"', '"0.1"', '"nan"', None),
    "values": ('["a"]', "[]", '["a", "b"]', '["free", "pro", "team"]', "4294967296", None),
    "cells": ("[64, 64]", "[2, 1]", "[1_000_000, 1_000_000]", "[]"),
    "parts": ('{ a = ["free", "a"], b = ["a", "x"] }', "{}", "[[], []]"),
    "periods": ('["a", "free"]', '["a"]', "8"),
    "max": ("[1e309, 1]", "[180, 90]", "1e309", "nan", "2", "-1", "2147483648"),
    "step": ("0", "-1", "0.5", "1e-400"),
    "expires": ("2099-12-31", "0001-01-01", '"soon"'),
}
VALUES: Final = (True, "free", 1, ["a"], {"a": 1}, "a", (8, 47), {"a": "a", "b": "x"}, None)


def hostile(chance: random.Random) -> str:
    """Return a registry of up to five metrics, each with some keys replaced by odd ones."""
    text = HEAD
    for i in range(chance.randint(1, 4)):
        changes: dict[str, str | None] = {"mechanism": '"auto"', "every": '"1d"'}
        for key in chance.sample(sorted(_ODD), chance.choice((0, 0, 0, 1, 3))):
            changes[key] = chance.choice(_ODD[key])
        changes["epsilon"] = f'"{chance.choice(_GREEDY if chance.random() < 0.9 else _SENSELESS)}"'
        text += table(f"m{i}", chance.choice(_KINDS), **changes)
    return text


def record_for_days(client: Client, clock: FakeClock, names: list[str]) -> None:
    for _ in range(DAYS):
        for name in names:
            for value in VALUES:
                client.record(name, value)
        clock.advance(days=1)


def require_within_caps(folder: Path) -> None:
    """Raise AssertionError if any cap was passed by the charges in *folder*."""
    charges = rows(folder, "SELECT digest, nano, delta, last FROM costs")
    assert sum(nano for _, nano, _, _ in charges) <= CAPS.lifetime
    assert sum(delta for _, _, delta, _ in charges) <= CAPS.delta
    for last in {day for *_, day in charges}:
        week = [(digest, nano) for digest, nano, _, day in charges if last - 7 < day <= last]
        assert sum(nano for _, nano in week) <= CAPS.week
        for metric in {digest for digest, _ in week}:
            assert sum(nano for digest, nano in week if digest == metric) <= CAPS.metric_week


@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=pytest.mark.slow)])
def test_hostile_registries_are_refused_or_stay_within_every_cap(
    tmp_path: Path, count: int
) -> None:
    """Law: one device meets them all in turn, and new names and meanings give no new budget."""
    chance, clock, accepted = random.Random(12), FakeClock(), 0
    for _ in range(count):
        try:
            registry = Registry.from_text(hostile(chance))
        except RegistryError:
            continue
        accepted += 1
        if accepted % 5:  # some are recorded; of the others it is enough that they can be read
            continue
        client = make_client(tmp_path, registry=registry, clock=clock, caps=CAPS)
        record_for_days(client, clock, list(registry.metrics))
        client.close()
        assert "internal" not in changed(client)

    assert accepted > count // 10
    require_within_caps(tmp_path)
    ((spent,),) = rows(tmp_path, "SELECT sum(nano) FROM totals")
    assert spent > CAPS.lifetime - CAPS.report  # the caps were met


def test_five_hundred_metrics_at_once_spend_no_more_than_one_week(tmp_path: Path) -> None:
    text = HEAD + "".join(
        table(f"m{i}", BOOLEAN, epsilon='"0.5"', every='"1d"') for i in range(500)
    )
    client = make_client(tmp_path, registry=Registry.from_text(text), caps=CAPS)

    for i in range(500):
        client.record(f"m{i}", True)

    client.close()
    assert client.stats()["recorded"] == 8
    require_within_caps(tmp_path)
