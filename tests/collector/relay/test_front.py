"""Laws of the relay's front: what a proxy that names nobody costs, and whose bytes are counted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from ipaddress import ip_network
from random import SystemRandom

import pytest

from client_sdk.wire.oblivious import REQUEST_TYPE
from collector.relay.batches import Batches
from collector.relay.front import ANSWER_SIZE, Front, padding
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
    batches = Batches(echo, 1, 3_600.0, SystemRandom().shuffle, most_bytes=most_bytes, shares=1)
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


def test_a_browser_asks_first_for_pages_of_named_sites_only() -> None:
    batches = Batches(echo, 1, 3_600.0, SystemRandom().shuffle)
    front = Front(batches, Rates(100, lambda: 0.0), BEHIND, ("https://named.example",))
    sent = request((b"m",))
    asked = [
        each._replace(headers=each.headers | {"origin": f"https://{site}.example"})
        for site in ("named", "other")
        for each in (sent, sent._replace(method="OPTIONS", parts=()))
    ]

    assert asyncio.run(statuses(front, *asked)) == [200, 200, 200, 405]


@pytest.mark.parametrize("status", ["200 OK", "413 Payload Too Large", "503 Service Unavailable"])
@pytest.mark.parametrize("size", [0, 9, 2_048])
def test_an_answer_has_a_multiple_of_so_many_bytes_on_the_wire(status: str, size: int) -> None:
    """With the head as the server writes it, which the end-to-end tests hold against the server."""
    body, kind = b"x" * size, "text/plain"
    filled = padding(int(status[:3]), kind, body, [("connection", "close")])
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncache-control: no-store\r\n"
        f"connection: close\r\npadding: {filled}\r\nserver: granian\r\n"
        f"content-length: {size}\r\ndate: Mon, 23 Nov 2026 05:02:21 GMT\r\n\r\n"
    )

    assert (len(head) + size) % ANSWER_SIZE == 0
    assert set(filled) == {"0"}


def test_bytes_count_while_a_message_still_comes() -> None:
    """Else as many slow senders as there are connections fill the memory."""
    front, batches = front_of(most_bytes=1_000)

    async def act() -> tuple[int, bool, int]:
        loop = asyncio.get_running_loop()
        front.__rsgi_init__(loop)
        try:
            slow = Protocol((b"x" * 900,), stalls=True)
            task = loop.create_task(front.__rsgi__(request(slow._parts).scope, slow))
            while batches.claim(900):  # until its part has come
                batches.release(900)
                await asyncio.sleep(0)
            other = Protocol((b"y" * 200,))
            await front.__rsgi__(request(other._parts).scope, other)
            assert other.response is not None
            task.cancel()
            await asyncio.wait([task])
            return other.response.status, batches.claim(1_000), batches.counts.refused
        finally:
            front.__rsgi_del__(loop)

    status, fits, refused = asyncio.run(act())

    assert status == 503
    assert fits  # the sender that has gone gave its room back
    assert refused == 2  # the other's, and the question of this test
