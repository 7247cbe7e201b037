"""What a key may send in a day, by clocks that step, too."""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from flask import Flask
from flask.testing import FlaskClient

from client_sdk.registry import Registry
from client_sdk.wire.reports import Column
from collector.core.cells import MARGIN
from collector.core.config import Config
from collector.core.credentials import WRITE, Credential
from collector.core.steady_clock import LASTING_S
from collector.intake.memory_quota import LEVEL_MEMORY, daily_uploads
from collector.web import create_app
from collector.web.services import services_of
from tests.support.crowds.uploads import (
    GATEWAY_KEY,
    NOON,
    TODAY,
    WRITE_KEY,
    as_json,
    registry,
    upload,
)
from tests.support.device.clock import FakeClock
from tests.support.sites.posting import post
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

THEME = registry().metric("theme")
COLUMN = Column(THEME.digest, (TODAY + 3) // 7, b"\1")
LIMIT = 1 << 11  # bytes
QUIET = "quiet-key-for-tests-0123456789"


class Site:
    """One web process whose store has little memory."""

    def __init__(self, config: Config, storage: MemoryStorage) -> None:
        storage.memory_limit = LIMIT
        self.credentials, self.ran = MemoryCredentials(), FakeClock(0)
        self.credentials.add(QUIET, Credential(WRITE))
        self.app: Flask = create_app(config, storage, lambda: NOON, self.credentials, self.ran)
        self.client = self.app.test_client()
        self.look()

    def look(self) -> None:
        self.ran.advance(seconds=1_000)
        services_of(self.app).pressure.poll()
        services_of(self.app).id_quota.exchange()

    def send(self, uploads: int, key: str = WRITE_KEY) -> list[int]:
        """Return the answers to so many new uploads."""
        answers = []
        for _ in range(uploads):
            self.ran.advance(seconds=1)
            body = as_json(upload([COLUMN], upload_id=secrets.token_bytes(16)))
            answers.append(post(self.client, body, key=key).status_code)
        return answers


@pytest.fixture
def site(config: Config, storage: MemoryStorage) -> Site:
    return Site(config, storage)


def test_a_flood_under_one_key_ends_at_its_daily_share(site: Site) -> None:
    most = daily_uploads(LIMIT)
    assert most is not None

    flood = site.send(most + 5)

    assert flood == [202] * most + [429] * 5
    assert site.send(3, QUIET) == [202] * 3


def test_a_repeat_counts_for_nothing(site: Site) -> None:
    body = as_json(upload([COLUMN]))

    answers = {post(site.client, body).status_code for _ in range(2 * (daily_uploads(LIMIT) or 0))}

    assert answers == {202}


def test_a_store_that_fills_up_refuses_first_the_key_that_fills_it(
    site: Site, storage: MemoryStorage
) -> None:
    assert set(site.send(6) + site.send(2, QUIET)) == {202}
    storage.memory_share = LEVEL_MEMORY
    site.look()

    assert (site.send(2), site.send(2, QUIET)) == ([429] * 2, [202] * 2)


ITEMS: Final = 1_000
REPORTS: Final = 500  # of one upload: a gateway may send more
METRIC: Final = """
[metrics.{name}]
title = "Which of many"
question = "Which one?"
type = "category"
values = {values}
every = "1d"
longitudinal = "fresh"
epsilon = "1"
expected_devices = 1000
mechanism = "{mechanism}"
owner = "tests@example.org"
expires = 2999-12-31
"""
TEXT: Final = 'schema = 1\napp = "test"\n' + "".join(
    METRIC.format(name=name, mechanism=name, values=[f"v{i}" for i in range(ITEMS)])
    for name in ("grr", "olh")
)
RATE: Final = 10  # uploads a second, so that a bucket holds 20


@pytest.fixture
def client(config: Config, storage: MemoryStorage) -> FlaskClient:
    """A collector whose clock stands still: a bucket is never filled up."""
    Path(config.registry_paths[0]).write_text(TEXT, encoding="utf-8")
    slow = replace(config, key_rate=RATE)
    return create_app(slow, storage, lambda: NOON, MemoryCredentials(), lambda: 0.0).test_client()


def taken(client: FlaskClient, name: str, reports: int) -> int:
    """Return how many uploads of *reports* of the metric *name* are taken one after another."""
    metric = Registry.from_text(TEXT).metric(name)
    column = Column(metric.digest, TODAY, bytes(metric.mechanism.payload_size * reports))
    for number in range(100):
        body = as_json(upload([column], upload_id=os.urandom(16)))
        answer = post(client, body, key=GATEWAY_KEY)
        if answer.status_code == 429:
            return number
        assert answer.status_code == 202
        assert answer.get_json()["accepted"] == reports
    raise AssertionError("no limit")


@pytest.mark.parametrize(
    ("name", "reports", "uploads"),
    [
        ("grr", 1, 2 * RATE),
        ("grr", REPORTS, 2 * RATE),
        ("olh", 1, 2 * RATE),
        ("olh", REPORTS, 2),  # 500,000 steps each: 1 + 15
    ],
)
def test_a_key_pays_for_the_fold_of_its_reports(
    client: FlaskClient, name: str, reports: int, uploads: int
) -> None:
    assert taken(client, name, reports) == uploads


STEP_COLUMN = Column(THEME.digest, (TODAY + 3) // 7, b"\0\1\1")


class Machine:
    """A machine that serves: its clock may be set, its monotonic clock may not."""

    def __init__(self, config: Config, storage: MemoryStorage) -> None:
        self.wall, self.ran, self.storage = FakeClock(NOON), FakeClock(0), storage
        self.app: Flask = create_app(config, storage, self.wall, MemoryCredentials(), self.ran)
        self.poll()

    def poll(self) -> None:
        services_of(self.app).pressure.poll()

    def wait(self, seconds: float) -> None:
        """Let true time pass, with polls."""
        for _ in range(2):
            self.wall.advance(seconds=seconds / 2)
            self.ran.advance(seconds=seconds / 2)
            self.poll()

    def send(self, sealed: int = TODAY) -> int:
        return post(
            self.app.test_client(), as_json(upload([STEP_COLUMN], sealed=sealed))
        ).status_code


@pytest.fixture
def machine(config: Config, storage: MemoryStorage) -> Machine:
    return Machine(config, storage)


@pytest.mark.parametrize("days", [20, -2, 400, -400])
def test_a_step_of_the_clock_refuses_nothing_for_good(machine: Machine, days: int) -> None:
    """Neither before the next poll nor, where the store's clock was set with it, after that."""
    before = machine.send()
    machine.wall.advance(days=days)
    at_once = machine.send()
    machine.storage.times = (machine.wall(),)
    machine.poll()
    polled = [machine.send()]
    machine.wait(LASTING_S * 0.9)
    polled.append(machine.send())
    machine.wall.advance(days=-days)
    machine.storage.times = (machine.wall(),)
    machine.poll()

    assert (before, at_once, polled) == (202, 503, [503, 503])
    assert machine.send() == 202


def test_a_clock_that_was_corrected_is_believed_after_a_while(machine: Machine) -> None:
    machine.wall.advance(days=-20)
    machine.poll()
    machine.wait(LASTING_S)
    machine.poll()

    assert machine.send(TODAY - 20) == 202
    assert machine.send(TODAY) == 422


def test_a_correction_below_an_hour_stops_nothing(machine: Machine) -> None:
    machine.wall.advance(seconds=MARGIN - 60)

    assert machine.send() == 202
