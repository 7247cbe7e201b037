"""The fixture ``memory_client`` for pytest, by ``pytest_plugins = ["client_sdk.pytest_fixture"]``.

Only this module imports pytest, and nothing of the SDK imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from .testing import MemoryClient


def clients_of_a_test() -> Iterator[Callable[..., MemoryClient]]:
    """Make clients in memory: takes what ``MemoryClient`` takes, a registry first.

    At the end of the test they are closed, and it fails if the application recorded what the
    registry does not know or allow.
    """
    clients: list[MemoryClient] = []

    def make(*arguments: object, **settings: object) -> MemoryClient:
        client = MemoryClient(*arguments, **settings)  # type: ignore[arg-type]  # it checks them
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()
    refused = [line for client in clients for line in client.refused]
    if refused:
        pytest.fail("\n".join(["record was refused:", *refused]), pytrace=False)


memory_client = pytest.fixture(clients_of_a_test, name="memory_client")
