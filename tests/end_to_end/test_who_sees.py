"""The table of *Who sees what*, cell by cell, by the bytes and sockets of running processes."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from client_sdk.core.base64url import base64url
from client_sdk.registry import Registry
from client_sdk.wire.oblivious import KeyConfiguration
from client_sdk.wire.reports import Column
from collector.intake.capsules import Opener
from collector.intake.oblivious_keys import add_key, read_keys
from tests.support.crowds.uploads import WRITE_KEY, as_json, registry_text, upload
from tests.support.device.loopback import running
from tests.support.faults.capsules import capsule_of
from tests.support.faults.proxy import read_message
from tests.support.patience import PATIENCE
from tests.support.sites.attacked_site import AttackedSite, attacked_site, today
from tests.support.sites.relayed import request_of, running_relay
from tests.support.sites.watching import Peers, Tap, has, needs_strace, traced
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real, needs_strace]

PAGE: Final = Path(__file__).parents[2] / "docs" / "design" / "who-sees-what.md"
SEGMENT: Final = "canary-segment"
ADDRESSES: Final = ("127.0.5.77", "127.0.6.77", "127.0.7.77")
DIRECT: Final = "127.0.8.77"
JSON: Final = "application/json"
BROWSER: Final = ("User-Agent: canary-agent", "Accept-Language: canary-language")
REGISTRY: Final = registry_text(expires="2999-12-31").replace('"mac"', f'"{SEGMENT}"')
METRIC: Final = Registry.from_text(REGISTRY).metric("page")


class Seen(NamedTuple):
    """What reached each party, by the columns of the page; and who stood at the other ends."""

    parties: Mapping[str, bytes]
    relay: Peers
    collector: Peers
    ids: list[bytes]


def body_of(upload_id: bytes) -> bytes:
    column = Column(METRIC.digest, today(), b"\1")
    segment = {"platform": SEGMENT}
    return as_json(upload([column], upload_id=upload_id, sealed=today(), segment=segment))


def messages_in(requests: bytes) -> Iterator[bytes]:
    """Yield the bodies of *requests*, as they came over one connection."""
    while requests:
        head, _, rest = requests.partition(b"\r\n\r\n")
        [length] = re.findall(rb"Content-Length: (\d+)", head)
        yield rest[: int(length)]
        requests = rest[int(length) :]


def from_address(port: int, address: str, request: bytes) -> bytes:
    """Return the answer to *request*, sent from *address*."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE, (address, 0)) as device:
        device.sendall(request)
        return read_message(device)


def by_relay(
    site: AttackedSite, folder: Path, configuration: KeyConfiguration, ids: list[bytes]
) -> tuple[bytes, Tap, Peers]:
    """Send an upload from each address; return requests and answers, and what passed onward."""
    with (
        running(Tap(site.port)) as tap,
        running_relay(folder, f"http://127.0.0.1:{tap.port}", batch=3) as relay,
        traced(relay.process.pid, folder) as peers,
        ThreadPoolExecutor(len(ids)) as devices,
    ):
        capsules = [capsule_of(configuration, body_of(upload_id)) for upload_id in ids]
        requests = [request_of(capsule.message, *BROWSER) for capsule in capsules]
        answers = list(
            devices.map(
                from_address, [relay.port] * len(ids), ADDRESSES, requests, timeout=PATIENCE
            )
        )
    opened = [
        capsule.open_answer(answer.partition(b"\r\n\r\n")[2])
        for capsule, answer in zip(capsules, answers, strict=True)
    ]
    assert all(b'"accepted":1' in answer for answer in opened)
    return b"".join((*requests, *answers)), tap, peers


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder, elsewhere = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("elsewhere")
    keys = elsewhere / "oblivious"
    configuration = add_key(str(keys), date(2026, 1, 1))[0].configuration
    ids = [os.urandom(16) for _ in ADDRESSES]
    settings = {"HEARSAY_OBLIVIOUS_KEYS": str(keys)}
    with attacked_site(folder, REGISTRY, settings=settings) as site:
        with traced(site.serve, elsewhere) as collector:
            wire, tap, relay = by_relay(site, elsewhere, configuration, ids)
            site.close()
        kept = site.kept()
        with traced(site.serve, elsewhere) as direct:
            lines = f"Authorization: Bearer {WRITE_KEY}", *BROWSER
            head = request_of(body_of(os.urandom(16)), *lines, kind=JSON)
            answer = from_address(site.port, DIRECT, head.replace(b" / ", b" /v1/reports ", 1))
    assert b" 202 " in answer
    opener = Opener(read_keys(str(keys)))
    messages = [message for way in tap.inward for message in messages_in(bytes(way))]
    assert len(messages) == len(ids)
    opened = b"".join(opener.open(message).request for message in messages)
    parties = {
        "network": wire + told(relay.accepted),
        "relay": wire + b"".join(tap.outward) + told(relay.accepted),
        "collector": b"".join(tap.inward) + opened + told(collector.accepted),
        "store": kept,
        "collector without a relay": head + told(direct.accepted),
    }
    return Seen(parties, relay, collector, ids)


def told(addresses: set[str]) -> bytes:
    return " ".join(addresses).encode()


def facts(seen: Seen) -> Mapping[str, list[bytes]]:
    """Return what to look for, by the rows of the page."""
    addresses = [address.encode() for address in (*ADDRESSES, DIRECT)]
    return {
        "the device's address": addresses,
        "user agent and languages of a browser, from a page": [
            line.partition(": ")[2].encode() for line in BROWSER
        ],
        "which application (its write key)": [WRITE_KEY.encode()],
        "the upload's id, until it is forgotten": [
            *seen.ids,
            *(base64url(upload_id).encode() for upload_id in seen.ids),
            b'"id": "',  # of the upload without a relay, which has another
        ],
        "which metric and epoch, and the report": [
            METRIC.digest,
            base64url(METRIC.digest).encode(),
        ],
        "the segment": [SEGMENT.encode()],
    }


def table() -> dict[str, dict[str, str]]:
    """Return the cells of the page's first table, by row and column."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text("utf-8").splitlines()
        if line.startswith("|")
    ]
    columns = rows[0][1:]
    end = next(i for i, row in enumerate(rows) if row[0] == "together")
    return {row[0]: dict(zip(columns, row[1:], strict=True)) for row in rows[2:end]}


def test_each_party_sees_what_the_page_says_and_nothing_more(seen: Seen) -> None:
    """Plain and in hexadecimal, in all that reached it and all that its keys open."""
    found = {
        fact: {
            party: "yes" if has(reached, canaries) else "no"
            for party, reached in seen.parties.items()
        }
        for fact, canaries in facts(seen).items()
    }

    assert found == table()


def test_the_sockets_of_relay_and_collector_end_where_the_page_says(seen: Seen) -> None:
    """Devices at the relay, the relay at the collector: no other address on any socket."""
    assert seen.relay.accepted - {"127.0.0.1"} == set(ADDRESSES)
    assert seen.relay.connected == {"127.0.0.1"}
    assert seen.collector.accepted == {"127.0.0.1"}


def test_an_address_that_is_kept_would_be_found(seen: Seen) -> None:
    """The control: one line of an access log would do, and so would its hexadecimal."""
    for planted in (f"{ADDRESSES[0]} POST /".encode(), ADDRESSES[1].encode().hex().encode()):
        assert has(seen.parties["store"] + planted, facts(seen)["the device's address"])
