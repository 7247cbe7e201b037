"""A configuration that is unsafe or unclear ends the start: status 1, and the reason by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from collector.cli import main
from collector.demo.children import free_port
from collector.demo.embedded import EmbeddedStore
from collector.storage.connection import Connection
from tests.collector.cli.test_cli import ENVIRONMENT
from tests.support.crowds.uploads import READ_TOKEN, WRITE_KEY, registry_text
from tests.support.store.servers import needs_real, real_server

CANARY = "canary-secret-0123456789"
ELSEWHERE = "redis://10.0.0.7:6379/0"

# Settings added to good ones, and what the one line of the refusal begins with.
BAD: dict[str, tuple[dict[str, str], str]] = {
    "no registry": ({"HEARSAY_REGISTRY": ""}, "HEARSAY_REGISTRY="),
    "a registry that is not there": ({"HEARSAY_REGISTRY": "nothing.toml"}, "registry=nothing.toml"),
    "a setting that is none": ({"HEARSAY_REGISTRI": CANARY}, "HEARSAY_REGISTRI=***: is no setting"),
    "a CORS setting": ({"HEARSAY_CORS": "*"}, "HEARSAY_CORS=***: is no setting"),
    "the debugger": ({"FLASK_DEBUG": "1"}, "FLASK_DEBUG=1: must not be set"),
    "a profile that is none": ({"HEARSAY_PROFILE": "fast"}, "HEARSAY_PROFILE=fast"),
    "no shard": ({"HEARSAY_SHARDS": "0"}, "HEARSAY_SHARDS=0"),
    "a port that is none": ({"HEARSAY_PORT": "0"}, "HEARSAY_PORT=0"),
    "a host name": ({"HEARSAY_HOST": "example.org"}, "HEARSAY_HOST=example.org"),
    "open pages for the network": (
        {"HEARSAY_HOST": "0.0.0.0", "HEARSAY_OPEN_DASHBOARD": "1"},  # noqa: S104  # refused
        "HEARSAY_OPEN_DASHBOARD=1: needs a loopback",
    ),
    "a short key": ({"HEARSAY_WRITE_KEY": "canary"}, "HEARSAY_WRITE_KEY=***"),
    "one secret for two uses": ({"HEARSAY_ADMIN_TOKEN": READ_TOKEN}, "HEARSAY_WRITE_KEY, "),
    "a key file that is missing": (
        {"HEARSAY_WRITE_KEY_FILE": "/nothing/here"},
        "HEARSAY_WRITE_KEY_FILE=/nothing/here: cannot be read",
    ),
    "a prefix that matches other keys": ({"HEARSAY_PREFIX": "*"}, "prefix=*"),
    "an address of another kind": ({"REDIS_URL": f"http://:{CANARY}@h"}, "REDIS_URL=***"),
    "an address that is none": ({"REDIS_URL": f"redis://{CANARY}@[::1/0"}, "REDIS_URL=***"),
    "a store elsewhere without a password": ({"REDIS_URL": ELSEWHERE}, "REDIS_URL=***: must hold"),
    "a cluster with one open server": (
        {"REDIS_URL": "redis-cluster://127.0.0.1:7000,10.0.0.7:7001"},
        "REDIS_URL=***: must hold",
    ),
    "a reader elsewhere without a password": (
        {"HEARSAY_QUERY_URL": ELSEWHERE},
        "HEARSAY_QUERY_URL=***: must hold",
    ),
    "two addresses": ({"REDIS_URL_FILE": "/run/x"}, "REDIS_URL=***: and REDIS_URL_FILE must not"),
    "no key to report with": ({"HEARSAY_WRITE_KEY": ""}, "HEARSAY_WRITE_KEY=: must be set"),
}
UNSAFE = {
    "a store that evicts": ({}, [("maxmemory-policy", "allkeys-lru")], "maxmemory_policy=allkeys"),
    "a store without a log": ({}, [("appendonly", "no")], "aof_enabled=0"),
    "a store that syncs too rarely": (
        {"HEARSAY_PROFILE": "strict"},
        [("appendfsync", "everysec")],
        "appendfsync=everysec: must be always",
    ),
}
SAFE = {"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "everysec"}


@pytest.fixture(scope="module")
def own_store() -> Iterator[EmbeddedStore]:
    """A server whose settings these tests may spoil."""
    with real_server() as store:
        yield store


@pytest.fixture
def good(own_store: EmbeddedStore, tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(), encoding="utf-8")
    return {
        "HEARSAY_REGISTRY": str(path),
        "HEARSAY_WRITE_KEY": WRITE_KEY,
        "HEARSAY_READ_TOKEN": READ_TOKEN,
        "REDIS_URL": own_store.url,
        "HEARSAY_PORT": str(free_port(0)),  # whatever listens on the default one
    }


def start(settings: dict[str, str]) -> Result:
    return CliRunner().invoke(main, ["serve"], env={**ENVIRONMENT, **settings})


def test_there_are_twenty_bad_configurations() -> None:
    assert len(BAD) + len(UNSAFE) >= 20


@pytest.mark.real
@needs_real
@pytest.mark.parametrize("name", BAD)
def test_a_bad_setting_ends_the_start_with_its_name(name: str, good: dict[str, str]) -> None:
    settings, reason = BAD[name]

    result = start(good | settings)

    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {reason}")
    assert result.stderr.count("\n") == 1
    assert not [secret for secret in (CANARY, WRITE_KEY, READ_TOKEN) if secret in result.stderr]


@pytest.mark.real
@needs_real
@pytest.mark.parametrize("name", UNSAFE)
def test_an_unsafe_store_ends_the_start_with_the_setting_at_fault(
    name: str, good: dict[str, str]
) -> None:
    settings, commands, reason = UNSAFE[name]
    server = Connection.open(good["REDIS_URL"])
    for setting, value in commands:
        server.call("CONFIG", "SET", setting, value)

    try:
        result = start(good | settings)
    finally:
        for setting, _ in commands:
            server.call("CONFIG", "SET", setting, SAFE[setting])
        server.close()

    assert result.exit_code == 1
    assert f"Error: {reason}" in result.stderr
