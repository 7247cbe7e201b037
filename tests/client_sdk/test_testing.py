"""The tools for tests of applications do what they say, and production cannot reach them."""

from __future__ import annotations

import ast
import inspect
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import client_sdk
from client_sdk.privacy.consent import Consent
from client_sdk.pytest_fixture import clients_of_a_test
from client_sdk.testing import FrozenClock, MemoryClient, MemoryTransport
from tests.support.device.device import CANARY, REGISTRY
from tests.typing.notes_metrics import Metrics

PACKAGE = Path(client_sdk.__file__).parent
NOTES = Path(__file__).parents[1] / "typing" / "notes.toml"


def test_a_memory_client_tells_what_was_recorded() -> None:
    """Names and values in order, as the application gave them."""
    client = MemoryClient(NOTES)
    m = Metrics(client)

    m.ui.theme.record("dark")
    m.formats.record({"pdf"})
    m.ui.theme.record("light")  # the second of its week

    assert client.recorded == [("ui.theme", "dark"), ("formats", {"pdf"})]
    assert client.stats()["already_reported"] == 1
    assert client.mistakes == {}


def test_a_memory_client_counts_what_the_application_does_wrong() -> None:
    """A typing error fails a test, while in production it is only counted."""
    client = MemoryClient(REGISTRY)

    client.record("no_such_metric", True)
    client.record("theme", "no such theme")
    client.record("bygone", True)

    assert client.mistakes == {"unknown_metric": 1, "invalid_value": 1, "expired": 1}
    unknown, invalid, expired = client.refused
    assert unknown.startswith("no_such_metric=True: the registry has no metric of that name;")
    assert invalid.startswith("theme='no such theme': theme: takes one of its ")
    assert expired.startswith("bygone=True: metrics.bygone.expires=")
    assert all("recorded at tests.client_sdk.test_testing:" in line for line in client.refused)
    assert client.recorded == []


def test_a_memory_client_is_not_switched_off_by_an_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests of an application give the same answer on a machine that says DO_NOT_TRACK."""
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    client = MemoryClient(REGISTRY)

    client.record("dark_mode", True)

    assert client.recorded == [("dark_mode", True)]


@pytest.mark.parametrize("consent", [Consent.DENIED, Consent.UNKNOWN])
def test_a_memory_client_obeys_consent(consent: Consent) -> None:
    """An application can test that it respects a no."""
    client = MemoryClient(REGISTRY, consent=consent)

    client.record("dark_mode", True)

    assert client.recorded == []
    assert client.stats()["consent"] == 1


def test_a_new_day_lets_a_daily_metric_report_again() -> None:
    """The clock moves only by hand."""
    client = MemoryClient(REGISTRY)

    client.record("dark_mode", True)
    client.clock.advance(days=1)
    client.record("dark_mode", False)

    assert client.recorded == [("dark_mode", True), ("dark_mode", False)]


@pytest.mark.parametrize(
    ("names", "days", "times", "recorded"),
    [(("weekly",), 7, 20, 20), (("dark_mode", "files"), 1, 6, 8)],
)
def test_the_budget_of_a_week_is_that_of_production_by_the_frozen_clock(
    names: Sequence[str], days: int, times: int, recorded: int
) -> None:
    """What a test sees of the caps, at 1 a report of 8 a week, is what users will see."""
    client = MemoryClient(REGISTRY)

    for _ in range(times):
        for name in names:
            client.record(name, 3 if name == "files" else True)
        client.clock.advance(days=days)

    assert client.stats()["recorded"] == recorded
    assert client.stats()["budget"] == times * len(names) - recorded


def test_a_memory_client_uploads_into_memory() -> None:
    """What would have been sent can be counted, and has the digest of its metric."""
    transport = MemoryTransport(503)
    client = MemoryClient(REGISTRY, transport=transport)
    client.record("dark_mode", True)

    client.flush()
    client.clock.advance(days=1)
    client.flush()

    assert [len(transport.uploads), client.stats()["uploaded"]] == [2, 1]
    assert transport.uploads[0] == transport.uploads[1]
    assert {report.metric for report in transport.reports()} == {
        REGISTRY.metric("dark_mode").digest
    }


def test_a_memory_client_shows_no_value_in_its_repr() -> None:
    """A failing assertion of another test must not print what was recorded."""
    client = MemoryClient(REGISTRY)

    client.record("theme", CANARY)

    assert client.recorded == [("theme", CANARY)]
    assert CANARY not in repr(client)


def test_a_frozen_clock_moves_both_ways() -> None:
    """Days and seconds add up, from a noon on."""
    clock = FrozenClock(100)

    clock.advance(days=1, seconds=-400)
    clock.advance(seconds=-50)

    assert clock() == 100 + 86_400 - 400 - 50
    assert clock.uptime().seconds == 86_400 - 400
    assert FrozenClock()() % 86_400 == 43_200


def test_the_fixture_fails_a_test_whose_application_records_a_mistake() -> None:
    """The body of the test may have passed: what was refused is found when it ends."""
    fixture = clients_of_a_test()
    next(fixture)(NOTES).record("ui.theme", "drak")

    with pytest.raises(pytest.fail.Exception, match="record was refused:\n") as failed:
        next(fixture)
    assert "ui.theme='drak': ui.theme: takes one of its 2 registered values" in str(failed.value)
    assert "recorded at tests.client_sdk.test_testing:" in str(failed.value)


def test_the_fixture_lets_a_test_without_mistakes_pass_and_closes_its_clients() -> None:
    """A refusal by the ledger is no mistake of the application."""
    fixture = clients_of_a_test()
    client = next(fixture)(NOTES)
    client.record("ui.theme", "dark")
    client.record("ui.theme", "light")

    assert next(fixture, None) is None
    client.record("ui.panel.open", True)
    assert client.stats()["closed"] == 1


def users_of(wanted: Callable[[ast.AST], bool]) -> set[str]:
    """Return the files of the SDK with a syntax node that is *wanted*."""
    return {name for name, tree in trees().items() if any(map(wanted, ast.walk(tree)))}


@cache
def trees() -> dict[str, ast.Module]:
    """Return every file of the SDK as it is parsed."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8"))
        for path in PACKAGE.rglob("*.py")
    }


def reads_environment(node: Any) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv")


def imports_testing(node: Any) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").endswith("testing")


def skips_opt_outs(node: Any) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "NoOptOuts"


def test_no_environment_variable_reaches_more_than_an_opt_out() -> None:
    """Nothing can make a device talk, log or lose its noise: the environment can only say no.

    A yes in it says that somebody is there, who must agree as everywhere; ``detached.py`` passes it
    on to a child, and the others ask it as ``consent.py`` does.
    """
    asking = {"cli.py", "command.py", "privacy/consent.py"}
    assert users_of(reads_environment) == asking | {"recording/detached.py"}


def test_nothing_in_production_uses_the_tools_for_tests() -> None:
    """They are for tests that import them."""
    assert users_of(imports_testing) == {"pytest_fixture.py"}


def test_a_memory_client_has_no_thread_and_takes_no_seed() -> None:
    """Its reports are as private as any."""
    client = MemoryClient(REGISTRY)

    client.record("dark_mode", True)

    assert not [thread for thread in threading.enumerate() if "hearsay" in thread.name]
    assert "randomness" not in inspect.signature(MemoryClient).parameters
