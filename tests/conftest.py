"""Fixtures for every test: the store, on fakeredis and on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from collector.embedded import EmbeddedStore
from collector.storage.connect import open_connection
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.support.cluster import Node, cluster, url_of
from tests.support.nginx import NONE as NO_NGINX
from tests.support.servers import CLUSTER, REAL, fake_connection, own_keys, profile_of, real_server


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say loudly that nothing was proved about the proxy."""
    skipped = [
        one for one in terminalreporter.stats.get("skipped", ()) if NO_NGINX in str(one.longrepr)
    ]
    if skipped:
        terminalreporter.write_sep("!", "THE PROXY WAS NOT TESTED", red=True, bold=True)
        terminalreporter.write_line(f"{NO_NGINX}; {len(skipped)} tests of it were skipped.")
        terminalreporter.write_line("Debian: apt install nginx. On a bare machine .ci/run does.")


@pytest.fixture(scope="session")
def real_store() -> Iterator[EmbeddedStore]:
    """A real server that all tests of the session share."""
    with real_server() as embedded:
        yield embedded


@pytest.fixture(scope="session")
def cluster_nodes() -> Iterator[list[Node]]:
    """A cluster of three servers that all tests of the session share."""
    with cluster() as nodes:
        yield nodes


@pytest.fixture(params=["fake", REAL, CLUSTER])
def server_kind(request: pytest.FixtureRequest) -> str:
    """The kinds of server on which every law of the store must hold."""
    return str(request.param)


@pytest.fixture
def server(server_kind: str, request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A connection for commands that the storage does not have."""
    if server_kind == "fake":
        connection = fake_connection()
    elif server_kind == "cluster":
        connection = open_connection(url_of(request.getfixturevalue("cluster_nodes")))
    else:
        connection = Connection.open(request.getfixturevalue("real_store").url)
    yield connection
    connection.close()


@pytest.fixture
def keys() -> Keys:
    """Names of keys that no other test uses."""
    return own_keys()


@pytest.fixture
def store(server: Connection, keys: Keys, server_kind: str) -> Iterator[RedisStorage]:
    """A prepared, empty storage on each kind of server."""
    storage = RedisStorage(server, keys, profile_of(server_kind))
    storage.prepare()
    yield storage
    storage.destroy()
