"""Laws of networks: what of an address is used, for how long, and who may name it."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from collector.relay.networks import PERIOD_S, UNKNOWN, Rates, mark_of, network_of, new_salt

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
