"""Laws of the relay's front: what a proxy that names nobody costs, and whose bytes are counted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from ipaddress import ip_network
from random import SystemRandom

import pytest

from client_sdk.core.oblivious import REQUEST_TYPE
from collector.relay.batches import Batches
from collector.relay.front import Front
from collector.relay.networks import Rates
from tests.support.sites.rsgi import Protocol, Request

BEHIND = (ip_network("10.0.0.0/30"),)


def echo(messages: Sequence[bytes], until: float) -> list[bytes | None]:
    return list(messages)


def request(parts: tuple[bytes, ...], forwarded: str = "198.51.100.1") -> Request:
    headers = {"content-type": REQUEST_TYPE, "x-forwarded-for": forwarded}
    return Request("/", headers=headers, parts=parts, client="10.0.0.1:5000")


async def statuses(front: Front, *requests: Request) -> list[int]:
    loop = asyncio.get_running_loop()
    front.__rsgi_init__(loop)
    found = []
    try:
        for asked in requests:
            protocol = Protocol(asked.parts)
            await front.__rsgi__(asked.scope, protocol)
            assert protocol.response is not None
            found.append(protocol.response.status)
    finally:
        front.__rsgi_del__(loop)
    return found


def front_of(most_bytes: int = 1_000) -> tuple[Front, Batches]:
    batches = Batches(echo, 1, 3_600.0, SystemRandom().shuffle, most_bytes=most_bytes)
    return Front(batches, Rates(100, lambda: 0.0), BEHIND), batches


def test_a_proxy_that_names_no_address_is_told_of_once_without_what_it_wrote(
    caplog: pytest.LogCaptureFixture,
) -> None:
    front, _ = front_of()

    with caplog.at_level(logging.WARNING, "hearsay.relay"):
        asked = (request((b"m",), "canary"), request((b"m",), "canary"), request((b"m",)))
        assert asyncio.run(statuses(front, *asked)) == [200, 200, 200]

    [warning] = caplog.messages
    assert "--behind" in warning
    assert "canary" not in warning
