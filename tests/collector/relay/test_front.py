"""The relay before its batches: who it answers, what it carries, and which networks count."""

from __future__ import annotations

import asyncio
import logging
import socketserver
import time
from collections.abc import Sequence
from ipaddress import ip_network
from random import SystemRandom

import pytest

from client_sdk.wire.oblivious import REQUEST_TYPE
from collector.core.errors import ConfigError
from collector.relay.batches import Batches
from collector.relay.carrier import Carrier
from collector.relay.front import ANSWER_SIZE, Front, padding
from collector.relay.networks import PERIOD_S, UNKNOWN, Rates, mark_of, network_of, new_salt
from tests.support.device.loopback import LoopbackServer, running
from tests.support.faults.proxy import read_message
from tests.support.patience import PATIENCE
from tests.support.sites.relayed import OpaqueGateway
from tests.support.sites.rsgi import Protocol, Request
from tests.support.sites.trickler import ENDLESS, Trickler

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


class Closing(LoopbackServer):
    """Reads each request and hangs up."""

    def __init__(self) -> None:
        self.came = 0
        super().__init__(_Handler)


class _Handler(socketserver.BaseRequestHandler):
    server: Closing

    def handle(self) -> None:
        read_message(self.request)
        self.server.came += 1


def test_messages_share_a_connection_and_each_gets_its_answer() -> None:
    with running(OpaqueGateway()) as gateway:
        carrier = Carrier(f"http://127.0.0.1:{gateway.port}/other/path")
        answers = carrier.carry([b"a", b"b", b"c"], time.monotonic() + PATIENCE)

    assert answers == [b"sealed answer"] * 3
    assert gateway.messages == [b"a", b"b", b"c"]
    assert all(request.startswith(b"POST /other/path HTTP/1.1") for request in gateway.came)


def test_a_message_that_may_have_arrived_is_not_sent_again() -> None:
    """RFC 9458, section 6.5: its device has it sealed anew."""
    with running(Closing()) as gateway:
        carrier = Carrier(f"http://127.0.0.1:{gateway.port}")
        answers = carrier.carry([b"a", b"b"], time.monotonic() + PATIENCE)

    assert answers == [None, None]
    assert gateway.came == 2


@pytest.mark.parametrize(("left", "most"), [(-1.0, 0), (0.2, 1)])
def test_a_gateway_costs_no_more_than_the_time_there_is(left: float, most: int) -> None:
    """What is late already is not sent at all."""
    with running(OpaqueGateway()) as gateway:
        gateway.delay = 0.5
        carrier = Carrier(f"http://127.0.0.1:{gateway.port}")
        answers = carrier.carry([b"a", b"b"], time.monotonic() + left)

    assert answers == [None, None]
    assert len(gateway.came) <= most


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_answer_that_never_ends_is_left_when_its_time_is_over(kind: str) -> None:
    """The patience for a byte begins anew with each: eight such answers would hold a relay."""
    with running(Trickler(*ENDLESS[kind])) as gateway:
        carrier = Carrier(f"http://127.0.0.1:{gateway.port}")
        answers = carrier.carry([b"a", b"b"], time.monotonic() + 0.2)

        assert answers == [None, None]
        assert gateway.left.wait(PATIENCE)


@pytest.mark.parametrize(
    ("to", "plain"),
    [
        ("https://t.example.org", False),
        ("http://127.0.0.1:8000", False),
        ("http://localhost:8000", False),
        ("http://[::1]:8000", False),
        ("http://web:8000", True),
        ("http://t.example.org/gateway", True),
    ],
)
def test_plain_http_that_leaves_the_machine_is_known(to: str, plain: bool) -> None:
    assert Carrier(to).is_plain is plain


@pytest.mark.parametrize("to", ["t.example.org", "ftp://t", "https://u:p@t", "https://t:99999", ""])
def test_what_is_no_address_is_refused_and_no_password_is_shown(to: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        Carrier(to)

    assert "u:p" not in str(refusal.value)


PROXIES = (ip_network("10.0.0.0/30"),)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("client", "forwarded", "network"),
    [
        ("203.0.113.77:5000", [], bytes([4, 203, 0, 113])),
        ("[2001:db8:1:2233::5]:5000", [], bytes.fromhex("06 20010db80001")),
        ("[::ffff:203.0.113.77]:5000", [], bytes([4, 203, 0, 113])),
        ("203.0.113.77:5000", ["198.51.100.1"], bytes([4, 203, 0, 113])),
        ("10.0.0.1:5000", ["6.6.6.6, 198.51.100.1"], bytes([4, 198, 51, 100])),
        ("10.0.0.1:5000", ["6.6.6.6", "198.51.100.1"], bytes([4, 198, 51, 100])),
        ("10.0.0.1:5000", ["6.6.6.6, 198.51.100.1:51234"], bytes([4, 198, 51, 100])),
        ("10.0.0.1:5000", ["[2001:db8:1::1]:443"], bytes.fromhex("06 20010db80001")),
        ("10.0.0.1:5000", ["[2001:db8:1::1]"], bytes.fromhex("06 20010db80001")),
        ("10.0.0.1:5000", ["2001:db8:1::1"], bytes.fromhex("06 20010db80001")),
        ("10.0.0.1:5000", ["6.6.6.6, nonsense"], bytes([4, 10, 0, 0])),
        ("10.0.0.1:5000", ["6.6.6.6, 198.51.100.1:x"], bytes([4, 10, 0, 0])),
        ("10.0.0.1:5000", [], bytes([4, 10, 0, 0])),
        ("", [], UNKNOWN),
    ],
)
def test_a_network_is_that_of_the_socket_or_the_last_word_of_a_named_proxy(
    client: str, forwarded: list[str], network: bytes
) -> None:
    """What a sender writes into the header itself is believed by nobody."""
    assert network_of(client, forwarded, PROXIES) == network


def test_a_network_may_send_so_many_messages_a_minute_and_others_as_many() -> None:
    clock = Clock()
    rates = Rates(3, clock)

    first = [rates.admit(b"a") for _ in range(5)]
    other = rates.admit(b"b")
    clock.now += PERIOD_S

    assert first == [True] * 3 + [False] * 2
    assert other
    assert rates.admit(b"a")


def test_what_is_counted_holds_no_network_and_is_forgotten_after_a_minute() -> None:
    """Under the next salt the same network has another mark."""
    clock, network = Clock(), bytes([4, 203, 0, 113])
    rates = Rates(3, clock)
    rates.admit(network)
    [before] = rates._counts
    clock.now += PERIOD_S
    rates.admit(network)
    [after] = rates._counts

    assert network not in before
    assert before != after


def test_a_mark_says_nothing_without_its_salt() -> None:
    salt = new_salt()

    assert mark_of(b"a", salt) == mark_of(b"a", salt)
    assert len({mark_of(b"a", new_salt()) for _ in range(100)}) == 100


def test_more_networks_than_are_counted_share_one_count() -> None:
    """A flood from a whole prefix of IPv6 costs a bounded table, and keeps out only the new."""
    rates = Rates(2, Clock(), networks=2)

    admitted = [rates.admit(bytes([6, number])) for number in range(10)]

    assert admitted == [True] * 4 + [False] * 6
    assert rates.admit(bytes([6, 0]))
    assert len(rates._counts) == 3


def test_one_site_of_ipv6_is_one_network() -> None:
    """A site is given up to 65,536 subnets, which would fill a batch by themselves."""
    subnets = {network_of(f"[2001:db8:1:{subnet:x}::1]:9", [], ()) for subnet in range(65_536)}

    assert len(subnets) == 1
    assert subnets != {network_of("[2001:db8:2::1]:9", [], ())}
