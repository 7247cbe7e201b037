"""By a relay: what it is sent and can say, and that only the collector settles an upload."""

from __future__ import annotations

import json
import socket
import socketserver
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk import command
from client_sdk.client import Client
from client_sdk.core.errors import InvalidParameterError, TransportError
from client_sdk.core.limits import SIZE_CLASSES
from client_sdk.core.randomness import system_randomness
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.privacy.retirement import Retirement
from client_sdk.recording.handover_protocol import collector_checksum
from client_sdk.registry import Registry
from client_sdk.testing import answer_of
from client_sdk.upload.ohttp import RelayTransport
from client_sdk.upload.sealing import Sealer
from client_sdk.upload.transport import Answer, Outcome, outcome_of
from client_sdk.wire import binary_http
from client_sdk.wire.binary_http import Request
from client_sdk.wire.ed25519 import public_of
from client_sdk.wire.oblivious import OVERHEAD
from client_sdk.wire.reports import RELAYED
from collector.intake.capsules import OpenCapsule, Opener
from collector.intake.oblivious_keys import read_keys
from tests.support.device.clock import FakeClock
from tests.support.device.device import KEY, changed, make_client, metric_text
from tests.support.device.loopback import LoopbackServer, running
from tests.support.faults.proxy import read_message
from tests.support.patience import PATIENCE
from tests.support.sites.capsules import Keys, make_keys

BODY: Final = b'{"v":1}'.ljust(SIZE_CLASSES[0])
SEED: Final = bytes(range(32))
REGISTRY: Final = Registry.from_text(
    f'schema = 1\napp = {{ name = "demo", retire_key = "{public_of(SEED).hex()}" }}\n'
    + "".join(metric_text(f"m{number}") for number in range(3))
)
HEAD: Final = "HTTP/1.1 {status} Said\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\n"
SEALED: Final = "message/ohttp-res"

Outer = tuple[int, str, bytes]  # status, type and body of what a relay says
Says = Callable[["Relayed"], Outer]


class Relayed:
    """A request that came to a relay, and what is in it."""

    def __init__(self, raw: bytes, capsule: OpenCapsule) -> None:
        self.raw, self.capsule = raw, capsule
        head, _, self.message = raw.partition(b"\r\n\r\n")
        self.lines = head.decode("latin-1").split("\r\n")
        self.request = capsule.read()

    @property
    def headers(self) -> dict[str, str]:
        return {
            name.lower(): value
            for name, _, value in (line.partition(": ") for line in self.lines[1:])
        }


class FakeRelay(LoopbackServer):
    """Says what it is told to, in turn and the last for ever; it can open what it carries."""

    def __init__(self, keys: Keys, *says: Says) -> None:
        self.opener, self.says = Opener(read_keys(keys.path)), [*says]
        self.came: list[Relayed] = []
        super().__init__(_Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/to/collector/"


class _Handler(socketserver.BaseRequestHandler):
    server: FakeRelay

    def handle(self) -> None:
        server = self.server
        raw = read_message(self.request)
        relayed = Relayed(raw, server.opener.open(raw.partition(b"\r\n\r\n")[2]))
        server.came.append(relayed)
        says = server.says.pop(0) if len(server.says) > 1 else server.says[0]
        status, kind, body = says(relayed)
        head = HEAD.format(status=status, kind=kind, size=len(body))
        self.request.sendall(head.encode() + b"Retry-After: 7\r\n\r\n" + body)


def inner(status: int, **fields: str) -> Says:
    """Return what carries the collector's own answer with *status*."""
    said = answer_of(status)
    kept = (("content-type", said.content_type), *fields.items())
    named = tuple((name.replace("_", "-"), value) for name, value in kept if value)
    return lambda relayed: (200, SEALED, relayed.capsule.answer(status, named, said.body))


def outer(status: int, kind: str, body: bytes) -> Says:
    return lambda _: (status, kind, body)


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return make_keys(tmp_path)


@pytest.fixture
def collector() -> Iterator[socket.socket]:
    """Where the collector listens: nothing is to come to it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening
        with pytest.raises(BlockingIOError):
            listening.accept()


def url_of(collector: socket.socket) -> str:
    return f"http://127.0.0.1:{collector.getsockname()[1]}/telemetry/"


def transport(relay: FakeRelay, keys: Keys, collector: socket.socket) -> RelayTransport:
    return RelayTransport(relay.url, keys.relay_key, url_of(collector), KEY)


def sent(keys: Keys, collector: socket.socket, *says: Says) -> tuple[Answer, Relayed]:
    """Return what a device is answered, and what the relay got."""
    with running(FakeRelay(keys, *says)) as relay:
        way = transport(relay, keys, collector)
        answer = way.send(BODY, 10.0)
        way.hang_up()
    return answer, relay.came[0]


def test_a_relay_gets_a_capsule_and_no_more(keys: Keys, collector: socket.socket) -> None:
    _, relayed = sent(keys, collector, inner(202))

    assert relayed.lines[0] == "POST /to/collector/ HTTP/1.1"
    assert set(relayed.headers) == {
        *("host", "user-agent", "accept", "accept-encoding", "connection"),
        *("content-type", "content-length"),
    }
    assert relayed.headers["content-type"] == "message/ohttp-req"
    assert relayed.headers["accept"] == SEALED
    for secret in (KEY.encode(), BODY.strip(), url_of(collector).encode()):
        assert secret not in relayed.raw


def test_the_collector_gets_the_upload_and_the_key(keys: Keys, collector: socket.socket) -> None:
    _, relayed = sent(keys, collector, inner(202))

    assert relayed.request == Request(
        "POST",
        "https",
        url_of(collector).split("/")[2],
        "/v1/reports",
        (("authorization", f"Bearer {KEY}"), ("content-type", "application/json")),
        BODY,
    )


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (202, Outcome.ACCEPTED),
        (400, Outcome.PERMANENT),
        (410, Outcome.PERMANENT),
        (401, Outcome.INCAPABLE),
        (404, Outcome.INCAPABLE),
        (429, Outcome.TRANSIENT),
        (503, Outcome.TRANSIENT),
    ],
)
def test_what_the_collector_says_in_the_capsule_counts(
    keys: Keys, collector: socket.socket, status: int, outcome: Outcome
) -> None:
    answer, _ = sent(keys, collector, inner(status, retry_after="30"))

    assert outcome_of(answer) is outcome
    assert (answer.status, answer.body) == (status, answer_of(status).body)
    assert answer.retry_after == (None if status == 202 else 30.0)


OWN_WORDS: Final[dict[str, Outer]] = {
    "an acknowledgement": (202, "application/json", answer_of(202).body),
    "an acknowledgement as a capsule": (202, SEALED, answer_of(202).body),
    "a success": (200, "application/json", answer_of(202).body),
    "a problem of the collector": (400, "application/problem+json", answer_of(400).body),
    "a final problem": (410, "application/problem+json", answer_of(410).body),
    "no capsule of ours": (422, "application/problem+json", answer_of(422).body),
    "no content": (204, "text/plain", b""),
    "somewhere else": (302, "text/html", b""),
    "not found": (404, "text/html", b"<p>"),
    "too much": (429, "text/plain", b""),
    "too large": (413, "text/plain", b""),
    "broken": (502, "text/html", b""),
}


@pytest.mark.parametrize("name", OWN_WORDS)
def test_what_a_relay_says_itself_settles_nothing(
    keys: Keys, collector: socket.socket, name: str
) -> None:
    answer, _ = sent(keys, collector, outer(*OWN_WORDS[name]))

    assert outcome_of(answer) in (Outcome.TRANSIENT, Outcome.INCAPABLE)
    assert (answer.body, answer.content_type, answer.retry_after) in (
        (b"", "", 7.0),
        (b"", "", None),  # a 202 asks for no wait
    )


@pytest.mark.parametrize(
    "says",
    [
        outer(200, SEALED, b""),
        outer(200, SEALED, bytes(1_024)),
        lambda relayed: (200, SEALED, relayed.capsule.seal(b"no binary HTTP")),
        lambda relayed: (200, SEALED, relayed.capsule.answer(202, (), b"")[:-1]),
    ],
    ids=["nothing", "zeros", "another content", "cut off"],
)
def test_an_answer_that_cannot_be_opened_is_none(
    keys: Keys, collector: socket.socket, says: Says
) -> None:
    with pytest.raises(TransportError, match="cannot be opened") as caught:
        sent(keys, collector, says)

    assert not caught.value.unseen


def test_a_relay_that_confuses_answers_is_noticed(keys: Keys, collector: socket.socket) -> None:
    """Law: the answer to another device's capsule, good as it is, acknowledges nothing."""
    kept: list[Outer] = []

    def keep(relayed: Relayed) -> Outer:
        kept.append(inner(202)(relayed))
        return kept[0]

    first, _ = sent(keys, collector, keep)

    assert outcome_of(first) is Outcome.ACCEPTED
    with pytest.raises(TransportError, match="cannot be opened"):
        sent(keys, collector, lambda _: kept[0])


def relayed_client(
    relay: FakeRelay,
    keys: Keys,
    collector: socket.socket,
    clock: FakeClock,
    folder: Path | None = None,
) -> Client:
    client = Client(
        url_of(collector),
        KEY,
        REGISTRY,
        consent="granted",
        data_dir=folder,
        relay=relay.url,
        relay_key=keys.relay_key,
        mode="manual",
        clock=clock,
        uptime=clock.uptime,
        opt_outs=NoOptOuts(),
    )
    for number in range(3):
        client.record(f"m{number}", True)
    return client


def columns(relayed: Relayed) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(relayed.request.content)["columns"]
    return found


def test_each_report_goes_alone_and_all_capsules_are_of_one_size(
    keys: Keys, collector: socket.socket
) -> None:
    with running(FakeRelay(keys, inner(202))) as relay:
        client = relayed_client(relay, keys, collector, FakeClock())
        client.flush(PATIENCE)
        counts = changed(client)
        client.close()

    uploads = [relayed for relayed in relay.came if relayed.request.method == "POST"]
    assert sorted(column["metric"] for upload in uploads for column in columns(upload)) == sorted(
        {column["metric"] for upload in uploads for column in columns(upload)}
    )
    assert [len(columns(upload)) for upload in uploads] == [1, 1, 1]
    assert counts["uploaded"] == 3
    assert len({len(relayed.message) for relayed in relay.came}) == 1
    assert {len(upload.request.content) for upload in uploads} == {SIZE_CLASSES[0]}
    assert len(relay.came[0].message) == OVERHEAD + len(
        binary_http.encode_request(uploads[0].request)
    )


def test_a_repeated_upload_is_the_same_bytes_in_another_capsule(
    keys: Keys, collector: socket.socket, tmp_path: Path
) -> None:
    clock = FakeClock()
    with running(FakeRelay(keys, outer(502, "text/html", b""), inner(202))) as relay:
        client = relayed_client(relay, keys, collector, clock, tmp_path / "data")
        client.flush(PATIENCE)
        assert (changed(client)["postponed"], client.flush(0.0).waiting) == (1, 3)
        for _ in range(4):
            clock.advance(days=1)
            client.flush(PATIENCE)
        client.close()

    first, *later = relay.came
    [second] = [relayed for relayed in later if relayed.request == first.request]
    assert first.capsule.encapsulated != second.capsule.encapsulated
    blocks = {first.message[at : at + 8] for at in range(7, len(first.message) - 7)}
    assert not any(
        second.message[at : at + 8] in blocks for at in range(7, len(second.message) - 7)
    )


class Zero:
    """Randomness with no chance in it."""

    def uniform(self, n: int) -> int:
        return 0


def first_metrics(randomness: Any, runs: int) -> set[str]:
    """Return which metrics are reported first by devices that have three reports to send."""
    client, found = make_client(registry=REGISTRY), set()
    for number in range(3):
        client.record(f"m{number}", True)
    with client._engine.store.transaction() as tx:
        for _ in range(runs):
            sealer = Sealer(randomness, RELAYED)
            upload = sealer.seal(tx, 20_000)
            assert upload is not None
            found |= {column["metric"] for column in json.loads(upload.body)["columns"]}
            assert sealer.unseal(tx, upload)
    client.close()
    return found


def test_which_of_several_reports_goes_first_is_left_to_chance() -> None:
    """N = 60 times the first of three reports: one of them never by 3 · (2/3)^60 < 1e-9."""
    assert len(first_metrics(system_randomness(), 60)) == 3


def test_a_fixed_order_of_reports_would_be_found() -> None:
    """Control: unsealed reports are the oldest again, so without chance one is always first."""
    assert len(first_metrics(Zero(), 60)) == 1


def test_the_list_of_retired_metrics_is_asked_for_in_a_capsule_as_long_as_an_upload(
    keys: Keys, collector: socket.socket
) -> None:
    text = Retirement(1_700_000_000, frozenset([REGISTRY.metric("m1").digest])).text(SEED)

    def says(relayed: Relayed) -> Outer:
        if relayed.request.method == "GET":
            return 200, SEALED, relayed.capsule.answer(200, (), text)
        return inner(202)(relayed)

    with running(FakeRelay(keys, says)) as relay:
        client = relayed_client(relay, keys, collector, clock := FakeClock())
        client.flush(PATIENCE)
        clock.advance(days=7)
        client.record("m1", True)
        counts = changed(client)
        client.close()

    [asked] = [relayed for relayed in relay.came if relayed.request.method == "GET"]
    assert (asked.request.path, asked.request.fields) == ("/v1/retired", ())
    assert len(asked.message) == len(relay.came[0].message)
    assert counts["retired"] == 1


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"relay": "https://r.example.org"}, "relay_key"),
        ({"relay_key": "AAAA"}, "relay"),
        ({"relay": "http://r.example.org", "relay_key": "GOOD"}, "relay"),
        ({"relay": "https://r.example.org?a=b", "relay_key": "GOOD"}, "relay"),
        ({"relay": "https://r.example.org", "relay_key": "AAAA"}, "relay_key"),
        ({"relay": "", "relay_key": "GOOD"}, "relay"),
    ],
)
def test_a_relay_that_cannot_be_meant_is_refused_at_once(
    keys: Keys, options: dict[str, str], name: str
) -> None:
    given = {key: keys.relay_key if value == "GOOD" else value for key, value in options.items()}

    with pytest.raises(InvalidParameterError) as caught:
        Client(
            "https://t.example.org",
            KEY,
            REGISTRY,
            consent="granted",
            data_dir=None,
            mode="manual",
            **given,  # type: ignore[arg-type]  # of a relay only
        )

    assert caught.value.name == name


def test_without_the_extra_a_relay_is_refused_and_all_else_works(keys: Keys) -> None:
    program = f"""
import sys
sys.modules["cryptography"] = None
import client_sdk
from client_sdk.core.errors import InvalidParameterError
def client(**options):
    return client_sdk.Client("https://t.example.org", {KEY!r}, REGISTRY, consent="granted",
        data_dir=None, mode="manual", **options)
REGISTRY = client_sdk.Registry.from_text({metric_and_head()!r})
client().close()
try:
    client(relay="https://r.example.org", relay_key={keys.relay_key!r})
except InvalidParameterError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )

    assert "pip install 'hearsay-telemetry[relay]'" in done.stdout


def metric_and_head() -> str:
    return 'schema = 1\napp = { name = "demo" }\n' + metric_text("m")


def test_programs_that_end_at_once_send_by_their_relay(
    keys: Keys, collector: socket.socket, tmp_path: Path
) -> None:
    """Their child is told of the relay."""
    path = tmp_path / "metrics.toml"
    path.write_text('schema = 1\napp = { name = "demo" }\n' + metric_text("m0"), encoding="utf-8")
    with running(FakeRelay(keys, inner(202))) as relay:
        way = {
            "endpoint": url_of(collector),
            "write_key": KEY,
            "relay": relay.url,
            "relay_key": keys.relay_key,
        }
        place = {"registry": path, "consent": "granted", "data_dir": tmp_path / "child"}
        command.configure(**way, **place)  # type: ignore[arg-type]  # each is of its kind
        command.record("m0", True)
        counts = command.flush()

    assert counts["uploaded"] == 1
    assert [len(columns(relayed)) for relayed in relay.came] == [1]


def test_what_a_child_noted_of_a_collector_does_not_hold_for_its_relay() -> None:
    way = {"endpoint": "https://t.example.org", "write_key": KEY, "caps": {}}
    relay = {"relay": "https://r.example.org"}

    assert (
        collector_checksum(way)
        == collector_checksum({**way, "relay": None})
        != collector_checksum({**way, **relay})
    )


def test_a_relay_cannot_stand_beside_a_transport(keys: Keys) -> None:
    with pytest.raises(InvalidParameterError, match="relay="):
        make_client(relay="https://r.example.org", relay_key=keys.relay_key)


def test_a_dry_run_shows_the_uploads_of_a_relay(keys: Keys) -> None:
    client = Client(
        "https://t.example.org",
        KEY,
        REGISTRY,
        consent="granted",
        data_dir=None,
        mode="manual",
        dry_run=True,
        relay="https://r.example.org",
        relay_key=keys.relay_key,
        opt_outs=NoOptOuts(),
    )
    for number in range(3):
        client.record(f"m{number}", True)
    client.flush()

    assert [len(json.loads(body)["columns"]) for body in client.withheld()] == [1, 1, 1]
    client.close()
