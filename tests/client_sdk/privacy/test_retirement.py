"""Retired metrics: a signed list stops them on devices, and can do nothing else."""

from __future__ import annotations

import json
import socketserver
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk.client import Client
from client_sdk.core.errors import RegistryError, TransportError
from client_sdk.privacy.retirement import MAX_LIST, MAX_RETIRED, Retirement, parsed, read
from client_sdk.registry import Registry
from client_sdk.upload.transport import Answer, RequestsTransport
from client_sdk.wire.ed25519 import public_of
from tests.support.device.clock import FakeClock
from tests.support.device.device import changed, make_client, metric_text, rows
from tests.support.device.device_transport import ScriptedTransport
from tests.support.device.loopback import LoopbackServer, running

SEED: Final = bytes(range(32))
KEY: Final = public_of(SEED)
ISSUED: Final = 1_700_000_000
SUM: Final = (
    'type = "count"\nmin = 0\nmax = 10\nstep = 1\nunit = "x"\naggregate = "sum"\notherwise = 0'
)
HEAD: Final = f'schema = 1\napp = {{ name = "demo", retire_key = "{KEY.hex()}" }}\n'
REGISTRY: Final = Registry.from_text(
    HEAD + metric_text("asked") + metric_text("other") + metric_text("added", SUM, every="7d")
)


def a_list(*names: str, issued: int = ISSUED, seed: bytes = SEED) -> bytes:
    """Return a list that retires metrics of REGISTRY."""
    return Retirement(issued, frozenset(REGISTRY.metric(name).digest for name in names)).text(seed)


class ListTransport(ScriptedTransport):
    """Accepts uploads and answers every fetch with *text*; keeps what was asked, in order."""

    def __init__(self, text: bytes | Exception, status: int = 200) -> None:
        super().__init__()
        self.text, self.status = text, status
        self.order: list[str] = []

    def send(self, body: bytes, timeout: float) -> Answer:
        self.order.append("send")
        return super().send(body, timeout)

    def fetch(self, path: str, timeout: float) -> Answer:
        self.order.append(path)
        if isinstance(self.text, Exception):
            raise self.text
        return Answer(self.status, None, self.text)


def client_with(transport: ListTransport, clock: FakeClock, folder: Path | None = None) -> Client:
    """Return a client of REGISTRY that uploads by *transport*."""
    return make_client(folder, registry=REGISTRY, transport=transport, clock=clock)


def test_a_list_is_read_under_its_key_alone() -> None:
    text = a_list("asked", "other")
    retirement = read(text, KEY)

    assert retirement is not None
    assert retirement.issued == ISSUED
    assert retirement.digests == {REGISTRY.metric(name).digest for name in ("asked", "other")}
    assert read(text, public_of(b"\1" * 32)) is None
    assert read(a_list("asked", seed=b"\1" * 32), KEY) is None


def forms() -> dict[str, bytes]:
    """Return lists that are none, by what is wrong of them."""
    form = json.loads(a_list("asked"))

    def but(**changes: Any) -> bytes:
        return json.dumps(form | changes).encode()

    return {
        "no JSON": b"{",
        "too deep": b"[" * 50_000,
        "no object": b"[]",
        "a key more": but(more=1),
        "a key less": json.dumps({"version": 1}).encode(),
        "another version": but(version=2),
        "a version that is true": but(version=True),
        "a date that is none": but(issued="now"),
        "a date before all": but(issued=-1),
        "a date after all": but(issued=1 << 60),
        "no list": but(retired={}),
        "a digest that is none": but(retired=["zz"]),
        "a digest in capitals": but(retired=["ABCDEF012345"]),
        "too many": but(retired=["0" * 12] * (MAX_RETIRED + 1)),
        "no signature": but(signature=None),
        "a digest more": but(retired=[*form["retired"], "0" * 12]),
        "a digest less": but(retired=[]),
        "another date": but(issued=ISSUED + 1),
        "too long": a_list("asked") + b" " * MAX_LIST,
        "no text": b"\xff\xfe",
        "nothing": b"",
    }


@pytest.mark.parametrize("wrong", forms())
def test_a_list_that_is_wrong_changes_nothing_and_is_counted(tmp_path: Path, wrong: str) -> None:
    """Law: no byte of the database differs from that of a device that got no list."""
    clock, tables = FakeClock(), []
    for place, status in (("with", 200), ("without", 404)):
        client = client_with(ListTransport(forms()[wrong], status), clock, tmp_path / place)
        client.record("asked", True)
        client.flush()
        client.record("other", True)
        counts = changed(client)
        client.close()
        if status == 200:
            assert counts.pop("list_refused") == 1
        assert counts == {"recorded": 2, "uploaded": 1, "window_opened": 1}
        kept = rows(tmp_path / place, "SELECT key FROM meta WHERE key LIKE 'retired%'")
        tables.append((kept, rows(tmp_path / place, "SELECT digest, epoch FROM charges")))

    assert read(forms()[wrong], KEY) is None
    assert tables[0] == tables[1]
    assert tables[0][0] == []


def test_a_right_list_is_one_so_the_wrong_ones_are_refused_for_what_they_are() -> None:
    """The control of the law above."""
    assert parsed(a_list("asked")) is not None
    assert read(a_list("asked"), KEY) is not None


def test_a_retired_metric_is_recorded_no_more_and_others_are(tmp_path: Path) -> None:
    """Law: it is asked right after an upload, never else, and what it stops it stops for good."""
    clock, transport = FakeClock(), ListTransport(a_list("asked", "added"))
    client = client_with(transport, clock, tmp_path)
    client.record("asked", True)
    assert transport.order == []
    client.flush()
    client.flush()  # nothing waits, so nothing is sent, and nothing asked
    assert transport.order == ["send", "/v1/retired"]
    client.close()

    clock.advance(days=8)
    later = client_with(transport, clock, tmp_path)
    for name in ("asked", "other", "added"):
        later.record(name, 1 if name == "added" else True)
    later.close()

    counts = changed(later)
    assert (counts["retired"], counts["recorded"]) == (2, 1)
    assert "window_opened" not in counts
    asked = REGISTRY.metric("asked").digest.hex()
    charged = [row[0] for row in rows(tmp_path, "SELECT hex(digest) FROM charges")]
    assert charged.count(asked.upper()) == 1


def test_what_waits_of_a_retired_metric_is_deleted_and_stays_charged(tmp_path: Path) -> None:
    """Law: values that add up go, and reports in no upload; the ledger forgets nothing."""
    clock = FakeClock()

    class Late(ListTransport):
        """Another value is recorded while the upload is on its way."""

        def send(self, body: bytes, timeout: float) -> Answer:
            client.record("other", True)
            return super().send(body, timeout)

    client = client_with(Late(a_list("other", "added")), clock, tmp_path)
    uploader = client._engine.uploader
    client.record("asked", True)
    client.record("added", 7)
    uploader.wait(clock())
    clock.advance(seconds=uploader.due() - clock() + 1)

    uploader.run(5.0)

    counts = changed(client)
    client.close()
    assert (counts["recorded"], counts["uploaded"], counts["withdrawn"]) == (2, 1, 1)
    assert (counts["window_opened"], counts["window_dropped"]) == (1, 1)
    for table in ("reports", "windows", "uploads"):
        assert rows(tmp_path, f"SELECT count(*) FROM {table}") == [(0,)]  # noqa: S608 - from above
    digests = {row[0] for row in rows(tmp_path, "SELECT digest FROM costs WHERE nano > 0")}
    assert {REGISTRY.metric(name).digest for name in ("asked", "other")} <= digests


def test_an_older_list_is_refused_and_nothing_is_ever_taken_back(tmp_path: Path) -> None:
    """Law: retired sets only grow, whatever a later list leaves out."""
    clock, transport = FakeClock(), ListTransport(a_list("asked"))
    client = client_with(transport, clock, tmp_path)
    refused = []
    for text in (
        a_list("asked"),
        a_list("other", issued=ISSUED - 1),
        a_list("asked"),
        a_list(issued=ISSUED + 5),
        a_list("asked", issued=ISSUED + 4),
    ):
        transport.text = text
        client.record("other", True)
        client.flush()
        refused.append(client.stats()["list_refused"])
        clock.advance(days=1)

    client.record("asked", True)
    assert refused == [0, 1, 1, 1, 2]
    assert client.stats()["retired"] == 1
    client.close()


@pytest.mark.parametrize(
    ("text", "status", "counted"),
    [
        (TransportError("no answer"), 200, {"network": 1}),
        (RuntimeError("broken"), 200, {"internal": 1}),
        (b"", 404, {}),
        (b"<html>", 302, {}),
        (b"<html>", 200, {"list_refused": 1}),
    ],
)
def test_whatever_answers_an_upload_that_arrived_has_arrived(
    text: bytes | Exception, status: int, counted: dict[str, int]
) -> None:
    """Law: a list that does not come postpones nothing and loses nothing."""
    transport = ListTransport(text, status)
    client = client_with(transport, FakeClock())
    client.record("asked", True)

    delivery = client.flush()

    assert (delivery.complete, delivery.wait) == (True, 0.0)
    assert changed(client) == {"recorded": 1, "uploaded": 1, "window_opened": 1, **counted}
    client.close()


def test_without_a_key_nothing_is_asked() -> None:
    """Law: an application that declares none makes the requests that it made before."""
    registry = Registry.from_text('schema = 1\napp = "demo"\n' + metric_text("asked"))
    transport = ListTransport(a_list("asked"))
    client = make_client(registry=registry, transport=transport)
    client.record("asked", True)
    client.flush()

    assert transport.order == ["send"]
    client.close()


@pytest.mark.parametrize("key", ["0" * 63, "G" * 64, "A" * 64, 7, True])
def test_a_key_that_is_none_is_refused(key: object) -> None:
    head = f'schema = 1\napp = {{ name = "demo", retire_key = {json.dumps(key)} }}\n'

    with pytest.raises(
        RegistryError, match=r"app\.retire_key: must be 64 small hexadecimal digits"
    ):
        Registry.from_text(head + metric_text("asked"))


class Recorder(socketserver.StreamRequestHandler):
    """Keeps the head of each request, and answers like a collector that sets a cookie."""

    heads: Final[list[bytes]] = []

    def handle(self) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.rfile.readline()
        self.heads.append(head)
        body = b'{"accepted": 1, "duplicate": false, "rejected": []}'
        status = b"202 Accepted"
        if head.startswith(b"GET"):
            status, body = b"200 OK", a_list("asked")
        else:
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r")[0])
            self.rfile.read(length)
        self.wfile.write(
            b'HTTP/1.1 %s\r\nContent-Length: %d\r\nSet-Cookie: id=7\r\nETag: "you"\r\n'
            b"Connection: close\r\n\r\n%s" % (status, len(body), body)
        )


def test_the_request_for_the_list_says_nothing_of_the_device() -> None:
    """Law: no key, cookie, query or tag of an earlier answer; each time the same bytes."""
    Recorder.heads.clear()
    with running(LoopbackServer(Recorder)) as server:
        transport = RequestsTransport(f"http://127.0.0.1:{server.port}", "the-key-of-a-test")
        clock = FakeClock()
        client = make_client(registry=REGISTRY, transport=transport, clock=clock)
        for _ in range(2):
            client.record("other", True)
            client.flush()
            clock.advance(days=1)
        client.record("asked", True)
        assert client.stats()["retired"] == 1
        client.close()

    gets = [head for head in Recorder.heads if head.startswith(b"GET ")]
    assert len(gets) == 2
    assert gets[0] == gets[1]
    assert gets[0].startswith(b"GET /v1/retired HTTP/1.1\r\n")
    names = {line.partition(b":")[0].lower() for line in gets[0].splitlines()[1:] if line}
    assert names == {b"host", b"user-agent", b"accept", b"accept-encoding", b"connection"}


def test_an_upload_that_is_sealed_waits_as_it_is_while_the_list_arrives(tmp_path: Path) -> None:
    """Law: its bytes may have arrived, so every retry sends the same; nothing new joins them."""
    clock = FakeClock()

    class Lost(ListTransport):
        """The answer to the first upload is lost."""

        def send(self, body: bytes, timeout: float) -> Answer:
            answer = super().send(body, timeout)
            if len(self.sent) == 1:
                raise TransportError("the answer was lost")
            return answer

    transport = Lost(a_list("asked"))
    client = client_with(transport, clock, tmp_path)
    client.record("asked", True)
    client.flush()
    clock.advance(days=1)
    client.record("other", True)
    client.flush()
    assert transport.order == ["send", "send", "/v1/retired"]
    waits = rows(tmp_path, "SELECT body FROM uploads")
    assert waits == [(transport.sent[0],)]

    clock.advance(days=1)
    client.flush()

    counts = changed(client)
    client.close()
    assert transport.sent[2] == transport.sent[0] != transport.sent[1]
    assert (counts["recorded"], counts["uploaded"], counts["network"]) == (2, 2, 1)
    assert "withdrawn" not in counts
    assert rows(tmp_path, "SELECT count(*) FROM uploads") == [(0,)]
