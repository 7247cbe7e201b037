"""What middleware records of requests, whatever framework it is of."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from client_sdk.core.errors import InvalidParameterError
from client_sdk.integrations.uwsgi import after_fork
from client_sdk.integrations.web import IDLE, LATENCIES, METRICS, RequestMetrics, label_of
from client_sdk.privacy.budget import NANO, most
from client_sdk.privacy.caps import DEFAULT_CAPS
from client_sdk.registry import Registry
from client_sdk.testing import MemoryClient

HEAD = 'schema = 1\napp = "shop"\n'
NUMBERS = """
[metrics."{name}"]
title = "A number"
question = "What do we decide by it?"
type = "{type}"
aggregate = "{aggregate}"
min = 0
max = 60000
step = 1
unit = "{unit}"
epsilon = "1"
every = "7d"
longitudinal = "fresh"
owner = "tests"
expected_devices = 1000
expires = 2099-12-31
"""


@contextmanager
def client(text: str = METRICS) -> Iterator[MemoryClient]:
    device = MemoryClient(Registry.from_text(HEAD + text))
    yield device
    device.close()


def test_the_ready_metrics_are_a_registry_within_the_default_caps() -> None:
    """Law: three metrics, all of which report even of a week in which nobody came."""
    registry = Registry.from_text(HEAD + METRICS)

    assert [metric.name for metric in registry] == ["http.requests", "http.errors", "http.latency"]
    assert all(metric.otherwise is not None for metric in registry)
    assert most(registry, DEFAULT_CAPS).week == 6 * NANO  # two weeks can touch seven dates


def test_a_request_is_one_a_failure_and_a_time() -> None:
    with client() as device:
        metrics = RequestMetrics(device)
        metrics.observe(0.02, 200)
        metrics.observe(0.2, 404)
        metrics.observe(9.0, 500)
        metrics.observe(0.0, None)

        assert [value for name, value in device.recorded if name == "http.requests"] == [1] * 4
        errors = [value for name, value in device.recorded if name == "http.errors"]
        assert errors == [False, False, True, True]
        times = [value for name, value in device.recorded if name == "http.latency"]
        assert times == ["30 ms", "300 ms", "more", "10 ms"]


def test_labels_cover_every_time_and_none_is_the_one_of_silence() -> None:
    assert [label_of(end) for end in (0, 0.01, 0.03, 0.1, 0.3, 1, 3)] == [
        *("10 ms", "10 ms", "30 ms", "100 ms", "300 ms", "1 s", "3 s")
    ]
    assert {label_of(0.003 * 1.5**i) for i in range(30)} == set(LATENCIES) - {IDLE}


def test_a_week_is_one_report_of_each_metric() -> None:
    """Law: however many requests, an installation sends three reports a week."""
    with client() as device:
        metrics = RequestMetrics(device)
        for _ in range(500):
            metrics.observe(0.05, 200)
        device.clock.advance(days=7)
        delivery = device.flush()

        assert (device.stats()["recorded"], device.stats()["uploaded"]) == (3, 3)
        assert delivery.complete


def test_numbers_take_the_unit_of_the_registry() -> None:
    text = NUMBERS.format(name="api.latency", type="duration", aggregate="max", unit="ms")
    text += NUMBERS.format(name="api.errors", type="count", aggregate="sum", unit="errors")
    with client(text) as device:
        RequestMetrics(device, prefix="api").observe(0.25, 503)

        assert device.recorded == [("api.errors", 1), ("api.latency", 250.0)]


def test_a_route_that_is_left_out_is_not_counted() -> None:
    with client() as device:
        metrics = RequestMetrics(device, leave_out=["/healthz"])
        metrics.observe(0.1, 200, "/healthz")
        assert device.recorded == []

        metrics.observe(0.1, 200, "/items/<int:number>")
        metrics.observe(0.1, 200, None)
        assert len(device.recorded) == 6


@pytest.mark.parametrize(
    ("text", "prefix", "message"),
    [
        (METRICS, "web", r"prefix=web: must begin a metric of the registry, such as web\.requests"),
        (METRICS.replace("10 ms", "9 ms"), "http", r"metrics\.http\.latency=category: must be a"),
        (
            NUMBERS.format(name="http.latency", type="duration", aggregate="max", unit="hours"),
            "http",
            "a duration in ms or s, or a category of no request, 10 ms",
        ),
        (
            METRICS.replace('type = "boolean"\naggregate = "any"\notherwise = false\n', "")
            .replace('metrics."http.errors"]', 'metrics."http.errors"]\ntype = "set"')
            .replace('type = "set"', 'type = "set"\nvalues = ["a", "b"]'),
            "http",
            r"metrics\.http\.errors=set: must be a boolean or a count",
        ),
        (
            METRICS.replace("http.requests", "other").replace("http.latency", "http.requests"),
            "http",
            r"metrics\.http\.requests=category: must be a count",
        ),
    ],
)
def test_a_registry_that_does_not_fit_is_refused_when_the_application_starts(
    text: str, prefix: str, message: str
) -> None:
    """Law: no request ever fails by it."""
    with client(text) as device, pytest.raises(InvalidParameterError, match=message):
        RequestMetrics(device, prefix=prefix)


@pytest.mark.parametrize("name", ["web", "flask", "django", "asgi", "celery", "uwsgi"])
def test_no_framework_is_imported_until_it_is_used(name: str) -> None:
    """Law: who imports one module loads no host, neither its own nor another one's."""
    program = (
        f"import sys, client_sdk.integrations.{name}\n"
        "hosts = ('flask', 'django', 'asgiref', 'starlette', 'celery', 'uwsgi', 'asyncio')\n"
        "print([host for host in hosts if host in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stdout == "[]\n", done.stderr


def test_outside_of_uwsgi_there_is_nothing_to_do_after_a_fork() -> None:
    assert "uwsgi" not in sys.modules
    with client() as device:
        assert after_fork(device) is False
