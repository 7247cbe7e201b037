"""/metrics over HTTP: what is sent is counted, who may not ask learns nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families

from client_sdk.registry import Registry
from client_sdk.wire.reports import Column
from collector.core.credentials import ADMIN, OPERATOR, READ, Credential
from collector.core.errors import StorageUnavailableError
from tests.support.crowds.uploads import (
    GATEWAY_KEY,
    TODAY,
    as_json,
    bearer,
    epoch_today,
    registry_text,
    upload,
)
from tests.support.sites.posting import post
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

METRICS = Registry.from_text(registry_text()).metrics
PAGE = METRICS["page"]
SECRET, OPERATORS = "admin-of-the-store-0123456789", "operator-of-the-store-0123456789"
CANARY = "canary-that-a-sender-chose"


@pytest.fixture
def scrape(client: FlaskClient, credentials: MemoryCredentials) -> Callable[[], dict[str, float]]:
    """Return a function that asks for /metrics and returns the samples."""
    credentials.add(SECRET, Credential(ADMIN, expires=TODAY + 30))

    def ask() -> dict[str, float]:
        response = client.get("/metrics", headers=bearer(SECRET))
        assert response.status_code == 200
        assert response.content_type.startswith("text/plain; version=")
        return {
            sample.name + "".join(f"{{{k}={v}}}" for k, v in sample.labels.items()): sample.value
            for family in text_string_to_metric_families(response.text)
            for sample in family.samples
        }

    return ask


def body(*payloads: bytes, upload_id: bytes = bytes(16), **segment: str) -> bytes:
    columns = [Column(PAGE.digest, epoch_today(PAGE), payload) for payload in payloads]
    return as_json(upload(columns, upload_id=upload_id, segment=segment or {"platform": "mac"}))


def test_what_becomes_of_uploads_is_counted(
    client: FlaskClient, scrape: Callable[[], dict[str, float]]
) -> None:
    """Accepted, rejected by reason, duplicates, refused by problem."""
    post(client, body(b"\0\1"), key=GATEWAY_KEY)
    post(client, body(b"\0\1"), key=GATEWAY_KEY)  # the same id
    post(client, body(b"\0\xff", upload_id=bytes([1] * 16)), key=GATEWAY_KEY)  # one is no item
    post(client, body(b"\0\1", upload_id=bytes([2] * 16)))  # which no device sends
    post(client, b"{")
    post(client, body(b"\0"), key="nobody-knows-this-one")
    client.get("/nowhere")

    told = scrape()

    assert told["hearsay_accepted_uploads_total"] == 2
    assert told["hearsay_accepted_reports_total"] == 3
    assert told["hearsay_pending_uploads"] == told["hearsay_backlog_uploads"] == 2
    assert told["hearsay_duplicate_uploads_total"] == 1
    assert told["hearsay_rejected_reports_total{reason=item_out_of_range}"] == 1
    assert told["hearsay_rejected_reports_total{reason=several_reports}"] == 2
    assert told["hearsay_refused_requests_total{problem=malformed-upload}"] == 1
    assert told["hearsay_refused_requests_total{problem=unauthorized}"] == 1
    assert told["hearsay_refused_requests_total{problem=not-found}"] == 1
    assert told["hearsay_next_token_expiry_timestamp_seconds"] == (TODAY + 30) * 86_400


def test_no_word_of_a_sender_is_told(client: FlaskClient, credentials: MemoryCredentials) -> None:
    """Not of a path, a key, a segment, a header or a body."""
    credentials.add(SECRET, Credential(ADMIN, expires=TODAY + 30))
    post(client, body(b"\0", platform=CANARY))
    post(client, CANARY.encode(), key=CANARY)
    client.get(f"/{CANARY}", headers={"User-Agent": CANARY, "X-Forwarded-For": "203.0.113.77"})

    text = client.get("/metrics", headers=bearer(SECRET)).text

    assert "unknown_segment" in text
    assert CANARY not in text
    assert "203.0.113.77" not in text


def test_a_store_that_is_away_is_told_with_status_200(
    client: FlaskClient, storage: MemoryStorage, scrape: Callable[[], dict[str, float]]
) -> None:
    """A scrape that fails could have any cause; this one names it."""
    storage.failure = StorageUnavailableError("store: away")

    told = scrape()

    assert told["hearsay_store_up"] == 0
    assert "hearsay_accepted_uploads_total" not in told


def test_an_operator_may_ask(client: FlaskClient, credentials: MemoryCredentials) -> None:
    """A read token of that role sees the state, as an admin does."""
    credentials.add(OPERATORS, Credential(READ, role=OPERATOR, expires=TODAY + 30))

    response = client.get("/metrics", headers=bearer(OPERATORS))

    assert response.status_code == 200
    assert "hearsay_store_up 1.0" in response.text
