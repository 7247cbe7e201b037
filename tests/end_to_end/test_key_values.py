"""A metric of keys with numbers on its whole way: a mapping, bytes, intake, fold, query, page.

The web process runs without a network, over a store in memory.  Reports are drawn from a seed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from flask.testing import FlaskClient

from client_sdk.registry import Registry
from client_sdk.wire.reports import Column
from collector.core.catalog import Catalog
from collector.core.config import Config
from collector.web import create_app
from collector.worker.worker import Worker
from tests.support.crowds.uploads import (
    GATEWAY_KEY,
    NOON,
    READ_TOKEN,
    TODAY,
    as_json,
    bearer,
    upload,
)
from tests.support.device.registries import KEY_VALUE, file_with
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

TEXT: Final = file_with(KEY_VALUE, epsilon='"4"', every='"1d"', most="3")
REGISTRY: Final = Registry.from_text(TEXT)
METRIC: Final = REGISTRY.metric("m")
HELD: Final[list[tuple[dict[str, float], int]]] = [  # what devices hold, and how many hold it
    ({"video": 20.5, "music": 30}, 1_500),
    ({"video": -10}, 500),
    ({}, 1_000),
]
TRUTH: Final = {
    "video": 2 / 3,
    "music": 0.5,
    "chess": 0.0,
    "mean of video": (1_500 * 20.5 - 500 * 10) / 2_000,
    "mean of music": 30.0,
}


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def client(storage: MemoryStorage, tmp_path: Path) -> FlaskClient:
    path = tmp_path / "metrics.toml"
    path.write_text(TEXT, encoding="utf-8")
    settings = {
        "HEARSAY_REGISTRY": str(path),
        "HEARSAY_GATEWAY_KEY": GATEWAY_KEY,
        "HEARSAY_READ_TOKEN": READ_TOKEN,
    }
    return create_app(
        Config.from_env(settings), storage, lambda: NOON, MemoryCredentials()
    ).test_client()


def send(client: FlaskClient, payloads: bytes) -> Any:
    """Upload *payloads* of today, and return the answer."""
    body = as_json(upload([Column(METRIC.digest, TODAY, payloads)]))
    return client.post(
        "/v1/reports", data=body, content_type="application/json", headers=bearer(GATEWAY_KEY)
    ).get_json()


def send_all(client: FlaskClient, storage: MemoryStorage) -> None:
    """Upload the reports of all devices, and fold them."""
    randomness = SeededRandomness(b"from device to page")
    payloads = [
        METRIC.mechanism.randomize(METRIC.encode(held), randomness)
        for held, devices in HELD
        for _ in range(devices)
    ]
    assert send(client, b"".join(payloads))["accepted"] == len(payloads)
    known = Catalog([REGISTRY]).by_digest
    Worker(
        storage,
        {digest: one.mechanism for digest, one in known.items()},
        {digest: one.every for digest, one in known.items()},
    ).step()


def test_what_devices_hold_comes_back_as_shares_and_means(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    """Every interval holds its truth, and the mean of a key that nobody holds has a reason."""
    send_all(client, storage)

    path = "/v1/metrics/m/estimate?alpha=0.000001"
    answer = client.get(path, headers=bearer(READ_TOKEN)).get_json()

    rows = {row["dimensions"]["item"]: row for row in answer["rows"]}
    assert answer["meta"]["n"] == 3_000
    assert list(rows) == [*TRUTH, "mean of chess"]
    assert [row["unit"] for row in rows.values()] == ["share"] * 3 + ["minutes"] * 3
    for item, truth in TRUTH.items():
        assert rows[item]["ci_low"] <= truth <= rows[item]["ci_high"]
    assert rows["mean of chess"]["value"] is None
    assert rows["mean of chess"]["reason"]["code"] == "no_holders"


def test_bytes_that_no_mapping_gives_are_rejected_and_counted(client: FlaskClient) -> None:
    """Three keys and three slots have nine symbols; the tenth is nobody's report."""
    answer = send(client, b"\x00\x08\x09\xff")

    assert answer["accepted"] == 2
    assert answer["rejected"] == [{"column": 0, "reason": "symbol_out_of_range", "count": 2}]


def test_the_metric_is_listed_with_keys_range_and_the_largest_mapping(client: FlaskClient) -> None:
    """An analyst sees the domain as the registry has it; there is no step."""
    (listed,) = client.get("/v1/metrics", headers=bearer(READ_TOKEN)).get_json()["metrics"]

    domain = {"values": ["video", "music", "chess"], "min": -10, "max": 30, "unit": "minutes"}
    assert listed | domain | {"type": "key_value", "most": 3} == listed
    assert "step" not in listed


def test_the_page_draws_shares_and_means_each_on_its_own_scale(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    """Bars of percent, and dots of minutes: they share no axis."""
    send_all(client, storage)

    page = client.get("/metric/m", headers=bearer(READ_TOKEN)).text

    assert "Bar chart of 3 rows" in page  # of shares
    assert "Dots with intervals of 3 rows" in page  # of means, beside it
    assert "mean of chess: not enough reports" in page
