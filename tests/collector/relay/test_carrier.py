"""Laws of the way to the gateway: where it leads, and that nothing goes twice."""

from __future__ import annotations

import socketserver
import time

import pytest

from collector.core.errors import ConfigError
from collector.relay.carrier import Carrier
from tests.support.device.loopback import LoopbackServer, running
from tests.support.faults.proxy import read_message
from tests.support.patience import PATIENCE
from tests.support.sites.relayed import OpaqueGateway
from tests.support.sites.trickler import ENDLESS, Trickler


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


def test_what_is_late_is_not_sent_at_all() -> None:
    with running(OpaqueGateway()) as gateway:
        carrier = Carrier(f"http://127.0.0.1:{gateway.port}")
        answers = carrier.carry([b"a", b"b"], time.monotonic() - 1.0)

    assert answers == [None, None]
    assert gateway.came == []


def test_a_gateway_that_answers_too_late_costs_no_more_than_the_time_there_is() -> None:
    with running(OpaqueGateway()) as gateway:
        gateway.delay = 0.5
        carrier = Carrier(f"http://127.0.0.1:{gateway.port}")
        answers = carrier.carry([b"a", b"b"], time.monotonic() + 0.2)

    assert answers == [None, None]
    assert len(gateway.came) <= 1


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
