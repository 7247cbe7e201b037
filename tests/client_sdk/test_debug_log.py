"""The debug log: what a developer is told of failures, and what nobody is."""

from __future__ import annotations

import logging

import pytest

from client_sdk.debug_log import LOGGER, note
from client_sdk.errors import StoreError
from client_sdk.stats import Reason, Stats
from client_sdk.transport import Answer
from tests.support.device import CANARY, changed, make_client


class Telling:
    """A transport whose error says what it must not."""

    def send(self, body: bytes, timeout: float) -> Answer:
        raise RuntimeError(CANARY)


class Failing(logging.Handler):
    """A handler of an application that fails, and that records what it is given."""

    def emit(self, record: logging.LogRecord) -> None:
        raise RuntimeError("broken")


def test_the_first_failure_of_each_reason_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Law: one line a reason, which says what kind of error came from where."""
    caplog.set_level(logging.DEBUG, LOGGER)
    with make_client(transport=Telling()) as client:
        for _ in range(3):
            client.record("theme", CANARY + "!")
            client.record(CANARY, 1)
        client.record("dark_mode", True)
        client.flush()

    assert [record.name for record in caplog.records] == [LOGGER] * 3
    told = [message.rpartition(":")[0] for message in caplog.messages]  # without the line number
    assert told[0].startswith("invalid_value: InvalidValueError at client_sdk.")
    assert told[1].startswith("unknown_metric: UnknownMetricError at client_sdk.")
    assert told[2] == "internal: RuntimeError at tests.client_sdk.test_debug_log"


def test_no_text_of_an_error_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Law: what was recorded, or called a metric by mistake, is in no log."""
    caplog.set_level(logging.DEBUG)
    with make_client(transport=Telling()) as client:
        client.record("theme", CANARY + "!")
        client.record(CANARY, 1)
        client.record("theme", CANARY)
        client.flush()

    assert changed(client) == {
        "invalid_value": 1,
        "unknown_metric": 1,
        "recorded": 1,
        "internal": 1,
    }
    assert CANARY not in caplog.text


def test_whoever_listens_later_is_told_too(caplog: pytest.LogCaptureFixture) -> None:
    """Law: a failure that nobody could hear does not count as told."""
    stats = Stats()
    caplog.set_level(logging.INFO, LOGGER)
    stats.fail(StoreError("full"))
    caplog.set_level(logging.DEBUG, LOGGER)

    stats.fail(StoreError("full"))
    stats.fail(StoreError("full"))

    assert caplog.messages == ["store: StoreError at an unknown place"]
    assert stats.counts()["store"] == 3


def test_the_cause_is_named_by_its_number(caplog: pytest.LogCaptureFixture) -> None:
    """Law: a full disk can be told from a missing right, without any path."""
    caplog.set_level(logging.DEBUG, LOGGER)
    error = StoreError(CANARY)
    error.__cause__ = PermissionError(13, CANARY, CANARY)

    note("store", error)

    assert caplog.messages == ["store: StoreError from PermissionError 13 at an unknown place"]


def test_a_handler_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Law: recording never raises, whatever an application does with its logs."""
    caplog.set_level(logging.DEBUG, LOGGER)
    handler = Failing()
    logging.getLogger(LOGGER).addHandler(handler)
    try:
        with make_client() as client:
            client.record("unregistered", 1)
    finally:
        logging.getLogger(LOGGER).removeHandler(handler)

    assert changed(client) == {Reason.UNKNOWN_METRIC: 1}
