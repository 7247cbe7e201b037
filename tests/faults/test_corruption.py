"""Bits that flip and bodies that end early, on the way and in the store: never counted."""

from __future__ import annotations

import gzip
import http.client
import random
import select
import socket
import socketserver
import ssl
from pathlib import Path
from typing import Final

import pytest

from collector.core.entry import decode, encode
from collector.core.errors import CollectorError, CorruptEntryError
from collector.storage.protocols import Intake
from collector.web.ingest.upload import inflate
from tests.faults.conftest import Tell
from tests.support.crowds.uploads import WRITE_KEY, bearer
from tests.support.device.loopback import LoopbackServer, running
from tests.support.device.tls import CERTIFICATES, TRUSTED
from tests.support.faults.fleet import TIMEOUT, post
from tests.support.faults.folding import sealed_of
from tests.support.faults.proxy import TlsEnd
from tests.support.faults.reports import upload_of
from tests.support.faults.site import fault_site
from tests.support.store.servers import needs_real
from tests.support.store.stored import quarantined

_PART: Final = 65_536  # bytes
_REACH: Final = 1_100  # bytes of a connection of which one is hit: hello, and the upload after it


def flipped(data: bytes, chance: random.Random) -> bytes:
    """Return *data* with one bit of it turned."""
    at = chance.randrange(8 * len(data))
    changed = bytearray(data)
    changed[at // 8] ^= 1 << (at % 8)
    return bytes(changed)


class Flipping(LoopbackServer):
    """Carries connections to *target* and turns one bit of what each client sends."""

    def __init__(self, target: int, chance: random.Random) -> None:
        self.target, self.chance = target, chance
        super().__init__(_Handler)


class _Handler(socketserver.BaseRequestHandler):
    server: Flipping

    def handle(self) -> None:
        left = self.server.chance.randrange(_REACH)  # bytes until the one that is hit
        with socket.create_connection(("127.0.0.1", self.server.target), TIMEOUT) as onward:
            ways = {self.request: onward, onward: self.request}
            while ready := select.select(list(ways), [], [], TIMEOUT)[0]:
                for source in ready:
                    part = source.recv(_PART)
                    if not part:
                        return
                    if source is self.request:
                        if 0 <= left < len(part):
                            hit = flipped(part[left : left + 1], self.server.chance)
                            part = part[:left] + hit + part[left + 1 :]
                        left -= len(part)
                    ways[source].sendall(part)


FLIPS = [
    pytest.param(5_000, id="small"),
    pytest.param(100_000, id="full", marks=pytest.mark.faults),
]
SENT = [pytest.param(60, id="small"), pytest.param(3_000, id="full", marks=pytest.mark.faults)]
ROOM = 1 << 16  # bytes


def bodies_of(seed: int, count: int, first: int = 0) -> dict[bytes, bytes]:
    chance = random.Random(f"{seed} {first}")
    return dict(upload_of(serial, chance) for serial in range(first, first + count))


@pytest.mark.parametrize("flips", FLIPS)
def test_a_flipped_bit_of_an_entry_is_noticed(
    flips: int, seed: int, chance: random.Random, tell: Tell
) -> None:
    """As is an entry cut short, and one that carries the body of another."""
    entries = [sealed_of(body).entry for body in bodies_of(seed, 50).values()]

    for _ in range(flips):
        entry, other = chance.sample(entries, 2)
        swapped = other[:5] + entry[5:]
        for damaged in flipped(entry, chance), entry[: chance.randrange(len(entry))], swapped:
            with pytest.raises(CorruptEntryError):
                decode(damaged)

    tell(f"entries with a flipped bit, cut short, with another's body: {3 * flips:,}, counted 0")


def test_an_entry_without_its_checksum_would_be_taken_with_a_flipped_bit(
    chance: random.Random, seed: int
) -> None:
    """The control: most flips leave an entry that can be read, and says something else."""
    entries = [sealed_of(body).entry for body in bodies_of(seed, 50).values()]
    taken = 0

    for entry in entries:
        columns = decode(entry)
        payload = flipped(columns[0].payloads, chance)
        taken += decode(encode([columns[0]._replace(payloads=payload), *columns[1:]])) != columns

    assert taken == len(entries)


@pytest.mark.parametrize("flips", FLIPS)
def test_a_flipped_bit_of_a_compressed_body_is_noticed_or_changes_nothing(
    flips: int, seed: int, chance: random.Random, tell: Tell
) -> None:
    """Its own checksum tells; only the header has bits that mean nothing."""
    bodies = list(bodies_of(seed, 50).values())
    packed = [(body, gzip.compress(body)) for body in bodies]
    refused = same = 0

    for _ in range(flips):
        body, compressed = chance.choice(packed)
        for damaged in flipped(compressed, chance), compressed[: chance.randrange(len(compressed))]:
            try:
                assert inflate(damaged, ROOM) == body
                same += 1
            except CollectorError:
                refused += 1

    tell(f"compressed bodies damaged: {refused:,} refused, {same:,} unchanged, counted wrongly 0")
    assert refused > flips


@pytest.mark.real
@needs_real
@pytest.mark.parametrize("sent", SENT)
def test_damaged_uploads_are_not_counted_and_their_neighbours_are(
    sent: int, seed: int, chance: random.Random, tmp_path: Path, tell: Tell
) -> None:
    """One bit flipped anywhere below TLS, bodies cut short, and entries damaged in the store.

    The few bits that TLS does not protect change nothing: then the upload is counted as sent.
    """
    honest, below_tls = bodies_of(seed, sent), bodies_of(seed, sent, sent)
    cut, rotten = bodies_of(seed, sent, 2 * sent), bodies_of(seed, 10, 3 * sent)
    context = ssl.create_default_context(cafile=str(TRUSTED))
    counted = dict(honest)
    with fault_site(tmp_path, collectors=1) as site:
        end = TlsEnd(site.ports[0], str(CERTIFICATES / "good.pem"))
        with running(end), running(Flipping(end.port, chance)) as wire:
            for good, bad, short in zip(honest, below_tls, cut, strict=True):
                if send_tls(wire.port, below_tls[bad], context) == 202:
                    counted[bad] = below_tls[bad]  # the bit meant nothing: it came as sent
                send_cut(site.ports[0], cut[short], chance)
                assert post(site.ports[0], honest[good])[0] == 202
        append_damaged(site.storage, rotten, chance)
        found = site.compared(counted)
        aside = quarantined(site.storage)

    tell(
        f"{sent} flips below TLS, {sent} bodies cut short, 10 entries rotten: {found}; "
        f"{end.refused} refused by TLS, {aside} entries set aside"
    )
    assert len(counted) - len(honest) < sent // 10 + 2  # most bits of TLS do mean something
    assert aside == len(rotten)
    assert found.equal, found


def send_tls(port: int, body: bytes, context: ssl.SSLContext) -> int:
    """Send over TLS; return 0 if no answer comes, as when the length of a record flipped."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=2.0, context=context)
    try:
        connection.request("POST", "/v1/reports", body, headers())
        with connection.getresponse() as response:
            return response.status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def send_cut(port: int, body: bytes, chance: random.Random) -> None:
    """Send *body* up to somewhere, and hang up."""
    head = [f"{name}: {value}" for name, value in headers().items()]
    lines = ["POST /v1/reports HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *head]
    with socket.create_connection(("127.0.0.1", port), TIMEOUT) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        connection.sendall(body[: chance.randrange(len(body))])


def headers() -> dict[str, str]:
    return {**bearer(WRITE_KEY), "Content-Type": "application/json"}


def append_damaged(storage: Intake, bodies: dict[bytes, bytes], chance: random.Random) -> None:
    """Append entries whose bits flipped after the intake had looked at them."""
    sealed = [sealed_of(body) for body in bodies.values()]
    storage.append_many([one._replace(entry=flipped(one.entry, chance)) for one in sealed])
