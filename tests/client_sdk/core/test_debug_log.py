"""The debug log: what a developer is told of failures, and what nobody is."""

from __future__ import annotations

import logging
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Final

import pytest

from client_sdk.core.epoch import DAY
from client_sdk.core.errors import (
    ExpiredMetricError,
    InvalidValueError,
    StoreError,
    UnknownMetricError,
)
from client_sdk.core.stats import LOGGER, Reason, Stats, log_failure
from client_sdk.privacy.caps import Caps
from client_sdk.registry import Registry
from client_sdk.storage.schema import FILE_NAME, SCHEMA_VERSION
from client_sdk.upload.transport import Answer
from tests.support.device.clock import FakeClock
from tests.support.device.device import (
    CANARY,
    alter,
    changed,
    make_client,
    metric_text,
    registry_of,
)
from tests.support.device.device_transport import ScriptedTransport
from tests.support.device.loopback import LoopbackServer, running
from tests.support.patience import PATIENCE


class Telling:
    """A transport whose error says what it must not."""

    def send(self, body: bytes, timeout: float) -> Answer:
        raise RuntimeError(CANARY)


class Failing(logging.Handler):
    """A handler of an application that fails, and that records what it is given."""

    def emit(self, record: logging.LogRecord) -> None:
        raise RuntimeError("broken")


def test_the_first_failure_of_each_reason_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Law: one line a reason and metric; of a mistake it has the rule and the caller's line."""
    caplog.set_level(logging.DEBUG, LOGGER)
    with make_client(transport=Telling()) as client:
        for _ in range(3):
            client.record("theme", CANARY + "!")
            client.record("dark_mode", CANARY)
            client.record(CANARY, 1)
        client.record("dark_mode", True)
        client.flush()

    assert [record.name for record in caplog.records] == [LOGGER] * 4
    messages = [message.rpartition(":")[0] for message in caplog.messages]  # no line number
    here = "recorded at tests.client_sdk.core.test_debug_log"
    assert messages[0].startswith("invalid_value: theme: takes one of its ")
    assert messages[0].endswith(here)
    assert messages[1] == f"invalid_value: dark_mode: takes True or False; {here}"
    assert messages[2] == f"unknown_metric: the registry has no metric of that name; {here}"
    assert messages[3] == "internal: RuntimeError at tests.client_sdk.core.test_debug_log"
    assert CANARY not in caplog.text


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

    log_failure("store", error)

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


def test_a_key_that_is_turned_away_is_a_warning_once(caplog: pytest.LogCaptureFixture) -> None:
    """Reports are kept; but nothing of what is recorded arrives until a developer looks."""
    clock = FakeClock()
    client = make_client(transport=ScriptedTransport([401, 401]), clock=clock)
    client.record("dark_mode", True)

    for _ in range(2):
        client.flush()
        clock.advance(days=1)

    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert record.name == LOGGER
    assert "status 401: check write_key" in record.message


def test_a_metric_that_no_cap_ever_allows_is_a_warning_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It would never be reported, on any device, and nobody would know why."""
    client = make_client(caps=Caps(report="0.001"))

    for _ in range(2):
        client.record("dark_mode", True)
        client.record("theme", CANARY)

    assert client.stats()["budget"] == 4
    messages = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert messages == [
        f"metrics.{name}: costs more than caps.report allows, so that it is never reported"
        for name in ("dark_mode", "theme")
    ]


def test_a_budget_that_is_used_up_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Another week it is reported again, since others leave it enough."""
    two = registry_of(metric_text("often"), metric_text("weekly", every="7d"))
    clock = FakeClock()
    client = make_client(registry=two, clock=clock, caps=Caps(week="3"))

    for _ in range(5):
        client.record("often", True)
        clock.advance(days=1)

    assert client.stats()["budget"] == 2
    assert caplog.messages == []


def test_a_metric_for_which_others_leave_nothing_is_a_warning_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The order of a program decides that it is never reported; a panel is named, and ends it."""
    texts = [metric_text(name, every="7d") for name in ("first", "second", "third")]
    crowded = registry_of(*texts)
    head = 'schema = 1\napp = "demo"\npanel = { week = "2" }\n'
    shared = Registry.from_text(head + "".join(texts))
    for registry in (crowded, shared):
        client = make_client(registry=registry, caps=Caps(week="2"))
        for name in ("first", "second", "third", "third"):
            client.record(name, True)

    rule = "the others can cost ε 4 in any seven days, and caps.week is ε 2"
    order = "who comes last is never reported; a [panel] draws instead"
    assert caplog.messages == [f"metrics.third: {rule}: {order}"]


@pytest.mark.parametrize(("days", "warnings"), [(31, 0), (30, 1), (0, 1)])
def test_a_metric_that_expires_soon_is_a_warning_once_for_those_who_listen(
    caplog: pytest.LogCaptureFixture, days: int, warnings: int
) -> None:
    """Law: within 30 days, and never on the terminal of people, where no handler is."""
    clock = FakeClock()
    last = date(1970, 1, 1) + timedelta(days=int(clock() // DAY) + days)
    soon = registry_of(metric_text("soon", expires=str(last)), metric_text("later"))
    client = make_client(registry=soon, clock=clock)

    for name in ("soon", "later", "soon"):
        client.record(name, True)

    rule = "is near, and nothing is recorded after it: renew or remove it"
    assert caplog.messages == [f"metrics.soon.expires={last}: {rule}"] * warnings


class Portal(BaseHTTPRequestHandler):
    """A network that asks people to log in before anything else."""

    def do_POST(self) -> None:
        self.send_response(302)
        self.send_header("Location", "/log-in")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


UNHEARD: Final = """
import sys
sys.argv[3:] and __import__("logging")
import client_sdk
client = client_sdk.Client(sys.argv[2], "unused-key-of-a-test", sys.argv[1],
    consent="granted", data_dir=None, mode="manual")
client.record("soon", True)
client.record("bygone", True)
left = client.flush().waiting
print({reason: count for reason, count in client.stats().items() if count}, left)
"""


def test_nothing_is_said_where_nobody_listens(tmp_path: Path) -> None:
    """Law: a tool prints nothing on the terminal of people, with logging loaded or not."""
    last = datetime.now(UTC).date() + timedelta(days=9)
    metrics = tmp_path / "metrics.toml"
    soon, bygone = (
        metric_text("soon", expires=str(last)),
        metric_text("bygone", expires="2020-01-01"),
    )
    metrics.write_text(f'schema = 1\napp = "demo"\n{soon}{bygone}')

    with running(LoopbackServer(Portal)) as portal:
        for extra in ([], ["logging"]):
            run = subprocess.run(
                [sys.executable, "-c", UNHEARD, metrics, f"http://127.0.0.1:{portal.port}", *extra],
                capture_output=True,
                text=True,
                check=True,
                timeout=PATIENCE,
            )
            assert run.stderr == ""
            assert run.stdout == "{'recorded': 1, 'expired': 1, 'refused': 1} 1\n"


def test_a_folder_of_another_version_is_a_warning_once(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Nothing is recorded there, for ever, and the two versions cannot share it."""
    make_client(tmp_path).record("dark_mode", True)
    alter(tmp_path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    client = make_client(tmp_path)

    client.record("dark_mode", True)
    client.record("theme", "plain")

    assert client.stats()["store"] == 2
    what = f"schema {SCHEMA_VERSION + 1} was written by a newer version: update this one"
    assert caplog.messages == [f"{FILE_NAME}: {what}; nothing is recorded"]


def test_an_expired_metric_is_a_warning_once(caplog: pytest.LogCaptureFixture) -> None:
    """It says since when, and in production too: an application may run for years."""
    client = make_client()

    for _ in range(2):
        client.record("bygone", True)

    (message,) = caplog.messages
    assert message.startswith("metrics.bygone.expires=")
    assert message.endswith(": has passed; it is recorded no more: renew or remove it")


@pytest.mark.parametrize("mode", ["manual", "background"])
def test_a_strict_client_raises_what_a_developer_did_wrong_and_nothing_else(
    mode: str, tmp_path: Path
) -> None:
    """At the call, in the thread of the application; and no error shows the value."""
    client = make_client(tmp_path, mode=mode, strict=True, caps=Caps(report="0.001"))
    for name, value, error in (
        ("theme", CANARY + "!", InvalidValueError),
        (CANARY, True, UnknownMetricError),
        ("bygone", True, ExpiredMetricError),
    ):
        with pytest.raises(error) as raised:
            client.record(name, value)
        assert CANARY not in str(raised.value) or error is UnknownMetricError

    client.record("dark_mode", True)  # no cap allows it, which is no mistake in the call
    client.set_consent("denied")
    client.record("dark_mode", True)
    client.close()
    client.record("dark_mode", True)

    counts = client.stats()
    assert (counts["invalid_value"], counts["unknown_metric"], counts["expired"]) == (1, 1, 1)
    assert counts["closed"] == 1
