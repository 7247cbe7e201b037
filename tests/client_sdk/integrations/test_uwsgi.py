"""Forks of uWSGI, by a fake of the modules that it gives to Python; tests/hosts has the server."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from client_sdk.integrations.uwsgi import after_fork


@pytest.fixture
def ran() -> list[str]:
    """What has run, in order."""
    return []


@pytest.fixture
def client(ran: list[str]) -> Any:
    return SimpleNamespace(watch=lambda: ran.append("watch"))


@pytest.mark.parametrize(("worker", "at_once"), [(0, []), (1, ["watch"])])
@pytest.mark.parametrize("hooks", [[], ["earlier"]])
def test_a_client_watches_after_each_fork_behind_the_hook_that_was_there(
    monkeypatch: pytest.MonkeyPatch,
    client: Any,
    ran: list[str],
    worker: int,
    at_once: list[str],
    hooks: list[str],
) -> None:
    """And at once where the application is loaded after the fork."""
    server = SimpleNamespace(worker_id=lambda: worker)
    if hooks:
        server.post_fork_hook = lambda: ran.extend(hooks)
    monkeypatch.setitem(sys.modules, "uwsgi", server)

    assert after_fork(client)
    assert ran == at_once
    server.post_fork_hook()
    assert ran == [*at_once, *hooks, "watch"]


def test_a_client_joins_the_hooks_of_decorators(
    monkeypatch: pytest.MonkeyPatch, client: Any, ran: list[str]
) -> None:
    decorators = SimpleNamespace(postfork_chain=[])
    monkeypatch.setitem(sys.modules, "uwsgi", SimpleNamespace(worker_id=lambda: 0))
    monkeypatch.setitem(sys.modules, "uwsgidecorators", decorators)

    assert after_fork(client)
    assert decorators.postfork_chain == [client.watch]


def test_outside_of_uwsgi_there_is_nothing_to_do(client: Any, ran: list[str]) -> None:
    assert not after_fork(client)
    assert ran == []
