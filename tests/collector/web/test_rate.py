"""What a key may send a second counts what its uploads cost, and not only how many they are."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from flask.testing import FlaskClient

from client_sdk.core.wire import Column
from client_sdk.registry import Registry
from collector.core.config import Config
from collector.web import create_app
from tests.support.crowds.uploads import GATEWAY_KEY, NOON, TODAY, as_json, bearer, upload
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

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
        headers = {**bearer(GATEWAY_KEY), "Content-Type": "application/json"}
        answer = client.post("/v1/reports", data=body, headers=headers)
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
