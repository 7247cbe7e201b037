"""A running relay: what leaves it, what stays in it, and what devices and operators are told."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Final

import pytest
import requests
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from client_sdk.core.limits import RELAY_WAIT, RELAY_WAIT_CHILD
from client_sdk.recording.child import SENDING
from client_sdk.upload.ohttp import RelayTransport, seal
from client_sdk.upload.transport import TIMEOUT
from client_sdk.wire.binary_http import Request, encode_request
from client_sdk.wire.oblivious import KeyConfiguration
from collector.cli import main
from collector.relay.batches import CARRY_S
from collector.relay.front import ANSWER_SIZE, MAX_MESSAGE
from collector.relay.process import PATIENT_S, Settings
from tests.support.crowds.uploads import WRITE_KEY
from tests.support.device.loopback import running
from tests.support.device.tls import CERTIFICATES, TRUSTED
from tests.support.faults.proxy import read_message
from tests.support.patience import PATIENCE, wait_for
from tests.support.sites.raw_requests import SMUGGLING, chunked, exchange, statuses
from tests.support.sites.relayed import (
    GOOD,
    RELAY,
    OpaqueGateway,
    Relay,
    request_of,
    running_relay,
    started,
)
from tests.support.store.cluster import free_port
from tests.support.store.processes import memory_of

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="addresses beside 127.0.0.1 and /proc are Linux's"
)

BATCH: Final = 12
# As many devices as a batch has networks, each at an address of its own.
ADDRESSES: Final = tuple(f"127.0.{number}.77" for number in range(1, BATCH + 1))
CANARY: Final = "canary-5ce77a10"
SAID: Final = (
    f"User-Agent: {CANARY}",
    f"Cookie: session={CANARY}",
    f"Authorization: Bearer {CANARY}",
    "X-Forwarded-For: 203.0.113.77",
    f"Referer: https://{CANARY}.example",
    f"traceparent: 00-{CANARY}-01",
)
MESSAGES: Final = [os.urandom(1_200) for _ in ADDRESSES]


@pytest.fixture(scope="module")
def gateway() -> Iterator[OpaqueGateway]:
    with running(OpaqueGateway()) as server:
        yield server


@pytest.fixture(scope="module")
def relay(gateway: OpaqueGateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    folder, to = tmp_path_factory.mktemp("relay"), f"http://127.0.0.1:{gateway.port}"
    with running_relay(folder, to, batch=BATCH, within=0.2) as running_one:
        yield running_one


def send_all(relay: Relay, *lines: str) -> list[bytes]:
    """Send a message from each address at once and return the answers."""
    with ThreadPoolExecutor(len(ADDRESSES)) as devices:
        return list(
            devices.map(
                lambda pair: relay.send(pair[0], pair[1], *lines),
                zip(MESSAGES, ADDRESSES, strict=True),
            )
        )


def test_the_gateway_sees_the_relay_and_messages_and_nothing_else(
    relay: Relay, gateway: OpaqueGateway
) -> None:
    """Whatever a device says of itself; requests differ in their messages only."""
    gateway.came.clear()

    answers = send_all(relay, *SAID)

    assert sorted(gateway.messages) == sorted(MESSAGES)
    assert gateway.peers == {"127.0.0.1"}
    assert len({request.partition(b"\r\n\r\n")[0] for request in gateway.came}) == 1
    told = gateway.came[0].partition(b"\r\n\r\n")[0].decode().split("\r\n")
    assert told[0] == "POST /v1/oblivious HTTP/1.1"
    assert {line.partition(":")[0] for line in told[1:]} == {
        *("Host", "Accept-Encoding", "Content-Type", "Content-Length")
    }
    assert {answer.partition(b"\r\n\r\n")[2] for answer in answers} == {b"sealed answer"}


def test_the_log_and_the_disk_have_no_trace_of_a_device(relay: Relay) -> None:
    """No address, no header, no message; the only file that it has open for writing is the log."""
    send_all(relay, *SAID)
    relay.exchange(request_of(b"", *SAID), ADDRESSES[0])
    relay.exchange(request_of(CANARY.encode(), kind=CANARY), ADDRESSES[0])

    log = relay.log.read_text()
    assert all(isinstance(json.loads(line), dict) for line in log.splitlines())
    assert not [trace for trace in (CANARY, "203.0.113", *ADDRESSES, "127.0.0.1") if trace in log]
    folder = Path(f"/proc/{relay.process.pid}/fd")
    files = {Path(link).resolve() for link in folder.iterdir()}
    assert {file for file in files if file.is_file() and os.access(file, os.W_OK)} <= {relay.log}


def test_a_trace_in_the_log_would_be_found(relay: Relay) -> None:
    """The control: an access log of the same request has what the search looks for."""
    line = f'{ADDRESSES[0]} "POST / HTTP/1.1" 200 "{CANARY}"\n'

    assert [trace for trace in (CANARY, *ADDRESSES) if trace in line]


ODD: Final = {
    "another type": (request_of(b"x", kind="application/json"), 415),
    "no message": (request_of(b""), 400),
    "too large": (request_of(bytes(MAX_MESSAGE + 1)), 413),
    "another method": (request_of(b"", method="PUT"), 405),
    "good": (request_of(b"x"), 200),
}


@pytest.mark.parametrize(("request_", "status"), ODD.values(), ids=ODD)
def test_every_answer_has_one_size_on_the_wire(relay: Relay, request_: bytes, status: int) -> None:
    """So an observer of the device cannot tell what became of its message."""
    answer = relay.exchange(request_)

    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert len(answer) == ANSWER_SIZE


def preflight(origin: str) -> bytes:
    lines = (f"Origin: {origin}", "Access-Control-Request-Method: POST")
    return request_of(b"", *lines, method="OPTIONS")


def test_a_page_may_send_and_read_its_answer_where_its_site_is_listed(
    gateway: OpaqueGateway, tmp_path: Path
) -> None:
    """Every answer to it has the usual size, and the gateway is told nothing of it."""
    listed, other = "https://app.example", "https://other.example"
    gateway.came.clear()
    to = f"http://127.0.0.1:{gateway.port}"
    with running_relay(tmp_path, to, origins=(listed,)) as open_relay:
        first = open_relay.exchange(preflight(listed))
        sent = open_relay.send(b"x", "127.0.0.1", f"Origin: {listed}")
        refused = open_relay.exchange(request_of(b"", f"Origin: {listed}"))
        strange = open_relay.exchange(preflight(other))
        apart = open_relay.send(b"y", "127.0.0.1", f"Origin: {other}")

    named = f"access-control-allow-origin: {listed}\r\n".encode()
    assert [named in answer for answer in (first, sent, refused)] == [True] * 3
    assert first.startswith(b"HTTP/1.1 200 ")
    assert b"access-control-allow-headers: content-type\r\n" in first
    assert (strange[:12], b"access-control" in strange + apart) == (b"HTTP/1.1 405", False)
    assert {len(answer) for answer in (first, sent, refused, strange, apart)} == {ANSWER_SIZE}
    assert gateway.messages == [b"x", b"y"]
    assert b"app.example" not in b"".join(gateway.came)


WRONG: Final = {
    "a problem": b"HTTP/1.1 422 Unprocessable\r\nContent-Type: application/problem+json\r\n",
    "another type": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n",
    "a redirect": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\n",
    "too much": b"HTTP/1.1 503 Unavailable\r\nRetry-After: 99\r\n",
    "no HTTP": b"SSH-2.0-x\r\n",
}


def told(answer: bytes) -> bytes:
    """Return *answer* without its date."""
    return re.sub(rb"date: [^\r]*", b"", answer)


def test_whatever_the_gateway_says_in_error_devices_are_told_the_same(tmp_path: Path) -> None:
    """No gateway, a wrong one or an angry one: 503, byte for byte, and the device keeps it all."""
    with (
        running(OpaqueGateway()) as gateway,
        running_relay(tmp_path, f"http://127.0.0.1:{gateway.port}") as relay,
    ):
        answers = [relay.send(b"sealed")]
        for gateway.head in WRONG.values():
            answers.append(relay.send(b"sealed"))
        gateway.head, gateway.answer = GOOD, bytes(70_000)
        answers.append(relay.send(b"sealed"))
        gateway.shutdown()
        gateway.server_close()
        answers.append(relay.send(b"sealed"))

    good, *bad = answers
    assert good.startswith(b"HTTP/1.1 200 ")
    assert len(bad) == len(WRONG) + 2
    assert {len(answer) for answer in answers} == {ANSWER_SIZE}
    assert len({told(answer) for answer in bad}) == 1
    assert bad[0].startswith(b"HTTP/1.1 503 ")


def test_a_message_that_comes_twice_is_carried_twice(relay: Relay, gateway: OpaqueGateway) -> None:
    """The relay has nothing to know it by; that its upload counts once is the collector's work."""
    gateway.came.clear()

    relay.send(MESSAGES[0])
    relay.send(MESSAGES[0])

    assert gateway.messages == [MESSAGES[0]] * 2


def test_a_network_that_sends_too_much_is_told_so_and_others_are_not(
    gateway: OpaqueGateway, tmp_path: Path
) -> None:
    to = f"http://127.0.0.1:{gateway.port}"
    with running_relay(tmp_path, to, per_network=3) as relay:
        answers = [relay.send(b"x", ADDRESSES[0])[9:12] for _ in range(5)]
        other = relay.send(b"x", ADDRESSES[1])[9:12]
        log = relay.log.read_text()

    assert answers == [b"200"] * 3 + [b"429"] * 2
    assert other == b"200"
    assert ADDRESSES[0] not in log


def test_proxies_that_are_named_are_believed_and_others_are_told_of(
    gateway: OpaqueGateway, tmp_path: Path
) -> None:
    """Behind a proxy all devices would be one network; the log says which option is missing."""
    to, line = f"http://127.0.0.1:{gateway.port}", "X-Forwarded-For: 203.0.113.{}"
    with running_relay(tmp_path, to, per_network=1) as relay:
        unknown = [relay.send(b"x", "127.0.0.1", line.format(1))[9:12] for _ in range(2)]
        log = relay.log.read_text()
    with running_relay(tmp_path, to, per_network=1, behind=("127.0.0.1",)) as relay:
        known = [
            relay.send(b"x", "127.0.0.1", f"X-Forwarded-For: 203.0.{n}.1")[9:12] for n in (1, 2)
        ]

    assert unknown == [b"200", b"429"]
    assert "--behind" in log
    assert known == [b"200", b"200"]


def test_messages_that_trickle_hold_up_nobody(relay: Relay) -> None:
    """Three hundred begin a message and stop."""
    with ExitStack() as slow:
        for _ in range(300):
            connection = socket.create_connection(("127.0.0.1", relay.port), PATIENCE)
            slow.enter_context(connection).sendall(request_of(b"x" * 1_000)[:-900])

        assert len(relay.send(b"honest")) == ANSWER_SIZE


CUT: Final = 20  # messages
CUTS: Final = {
    "closed": socket.socket.close,
    "reset": lambda connection: (
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)),
        connection.close(),
    ),
    "half-closed": lambda connection: connection.shutdown(socket.SHUT_WR),
}


@pytest.mark.parametrize("end", CUTS.values(), ids=CUTS)
def test_a_message_that_is_cut_off_is_not_passed_on(
    relay: Relay, gateway: OpaqueGateway, end: Callable[[socket.socket], object]
) -> None:
    """It says its length, so that what came of it is known not to be all."""
    gateway.came.clear()

    with ExitStack() as cut:
        for _ in range(CUT):
            connection = socket.create_connection(("127.0.0.1", relay.port), PATIENCE)
            cut.enter_context(connection).sendall(request_of(b"x" * 1_000)[:-900])
            end(connection)
        whole = relay.send(b"whole")

    assert len(whole) == ANSWER_SIZE
    assert gateway.messages == [b"whole"]


def test_a_message_without_a_length_is_refused(relay: Relay, gateway: OpaqueGateway) -> None:
    """The server does not tell its end from a cut."""
    gateway.came.clear()
    said, _, _ = request_of(b"").partition(b"Content-Length")
    message = said + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(b"x" * 1_000)

    answer = exchange(socket.create_connection(("127.0.0.1", relay.port), PATIENCE), message)

    assert statuses(answer) == [411]
    assert b"send Content-Length" in answer
    assert gateway.came == []


def test_what_is_no_plain_request_is_refused_or_read_in_one_way(
    relay: Relay, gateway: OpaqueGateway
) -> None:
    """Two lengths, a length beside a coding, and forty such forms: none passes anything on."""
    gateway.came.clear()

    def send(form: bytes) -> bytes:
        return exchange(socket.create_connection(("127.0.0.1", relay.port), 1.0), form)

    with ThreadPoolExecutor(len(SMUGGLING)) as devices:
        said = list(devices.map(send, SMUGGLING.values()))

    found = [status for answer in said for status in statuses(answer)]
    assert len(said) >= 40
    assert found
    assert all(400 <= status < 500 for status in found)
    assert gateway.came == []
    assert len(relay.send(b"honest")) == ANSWER_SIZE


FILES: Final = 150
LIMITED: Final = (
    "import os, resource, sys;"
    f"resource.setrlimit(resource.RLIMIT_NOFILE, ({FILES}, {FILES}));"
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


def test_connections_that_wait_leave_files_for_the_way_to_the_gateway(
    gateway: OpaqueGateway, tmp_path: Path
) -> None:
    """As many as there may be open files: they are taken in turn, and each is answered."""
    port, to = free_port(), f"http://127.0.0.1:{gateway.port}"
    settings = Settings(to, FILES, 0.5, "127.0.0.1", port, 10 * FILES, (), "", "")
    words = ["-c", LIMITED, *RELAY, json.dumps(asdict(settings))]
    with (
        started(words, port, tmp_path / "log") as relay,
        ThreadPoolExecutor(FILES) as devices,
    ):
        answers = list(devices.map(relay.send, [b"x"] * FILES))

    assert {answer[9:12] for answer in answers} == {b"200"}


def memory(relay: Relay) -> bytes:
    return b"".join(memory_of(relay.process.pid))


def test_a_relay_that_is_asked_to_stop_answers_those_who_wait(
    gateway: OpaqueGateway, tmp_path: Path
) -> None:
    to = f"http://127.0.0.1:{gateway.port}"
    with (
        running_relay(tmp_path, to, batch=2, within=600) as relay,
        socket.create_connection(("127.0.0.1", relay.port), PATIENCE) as device,
    ):
        device.sendall(request_of(CANARY.encode()))
        wait_for(lambda: CANARY.encode() in memory(relay))
        relay.process.send_signal(signal.SIGTERM)
        answer = read_message(device)
        ended = relay.process.wait(PATIENCE)
        log = relay.log.read_text()

    assert answer.startswith(b"HTTP/1.1 503 ")
    assert ended == 0
    assert "short-lived programs" in log  # at its start: 10 minutes are longer than they wait


def test_the_command_starts_a_relay_that_can_end_tls_itself(
    gateway: OpaqueGateway, tmp_path: Path
) -> None:
    """So no proxy with a log of addresses has to stand before it."""
    good, port = str(CERTIFICATES / "good.pem"), free_port()
    words = ["-m", "collector", "relay", "--to", f"http://127.0.0.1:{gateway.port}"]
    words += ["--port", str(port), "--batch", "1", "--certificate", good, "--key", good]
    with (
        started(words, port, tmp_path / "log", str(TRUSTED)),
        requests.Session() as session,
    ):
        session.verify, session.trust_env = str(TRUSTED), False
        kind = {"Content-Type": "message/ohttp-req"}
        answer = session.post(
            f"https://localhost:{port}/", b"sealed", headers=kind, timeout=PATIENCE
        )

    assert answer.content == b"sealed answer"


def test_the_memory_of_a_relay_holds_no_part_of_what_is_sealed(
    gateway: OpaqueGateway, tmp_path: Path
) -> None:
    """While a message waits there: its bytes are found, and neither its key nor its content."""
    secret = X25519PrivateKey.generate().public_key().public_bytes_raw()
    content = b'{"payloads":"' + CANARY.encode() + b'"}'
    fields = (("authorization", f"Bearer {WRITE_KEY}"),)
    request = Request("POST", "https", "t.example.org", "/v1/reports", fields, content)
    capsule = seal(KeyConfiguration(1, secret), encode_request(request))
    to = f"http://127.0.0.1:{gateway.port}"
    with (
        running_relay(tmp_path, to, batch=2, within=600) as relay,
        socket.create_connection(("127.0.0.1", relay.port), PATIENCE) as device,
    ):
        device.sendall(request_of(capsule.message))
        wait_for(lambda: capsule.message in memory(relay))
        held = memory(relay)

    assert [trace for trace in (CANARY, WRITE_KEY) if trace.encode() in held] == []
    assert capsule.secret not in held


WRONG_OPTIONS: Final = (
    (("--to", "ftp://t.example.org"), "--to=ftp://t.example.org: must be the address"),
    (("--to", "https://u:p@t.example.org"), "--to=t.example.org: must be the address"),
    (("--to", "https://t:port"), "--to=(hidden): is no address"),
    (("--within", "0s"), "--within=0s: must be from 1s to 10m"),
    (("--within", "11m"), "--within=11m: must be from 1s to 10m"),
    (("--within", "soon"), "--within=soon: must be from 1s to 10m"),
    (("--behind", "everybody"), "--behind=everybody: must be the address or network"),
    (("--certificate", "x.pem"), "--certificate=x.pem: needs --key"),
)


@pytest.mark.parametrize(("options", "rule"), WRONG_OPTIONS)
def test_a_wrong_option_is_refused_before_anything_starts(
    options: tuple[str, str], rule: str
) -> None:
    words = ["relay", *(() if options[0] == "--to" else ("--to", "https://t.example")), *options]
    done = CliRunner().invoke(main, words)

    assert done.exit_code == 1
    assert rule in done.output


def test_the_process_of_a_relay_loads_no_store_no_registry_and_no_way_to_open_a_message(
    relay: Relay,
) -> None:
    """By name, and by the libraries that are mapped into the running process."""
    program = (
        "import sys; from collector.relay import process;"
        "print([m for m in sys.modules if m.startswith(('collector', 'client_sdk'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )

    rooms = {".".join(name.split(".")[:2]) for name in re.findall(r"'([\w.]+)'", done.stdout)}
    assert rooms == {
        *("client_sdk", "client_sdk.core", "client_sdk.wire"),
        *("collector", "collector.core", "collector.relay", "collector.serving"),
    }
    mapped = Path(f"/proc/{relay.process.pid}/maps").read_text()
    for package in ("numpy", "cryptography", "hiredis", "_sqlite3"):
        assert package not in mapped
    assert "granian" in mapped


def test_the_relay_knows_for_how_long_devices_wait() -> None:
    """Its default lets a batch gather, leave and come back while the shortest-lived one waits."""
    assert (RelayTransport.longest, SENDING) == (RELAY_WAIT, RELAY_WAIT_CHILD)
    assert RELAY_WAIT_CHILD - TIMEOUT[0] > PATIENT_S + CARRY_S
    defaults = {option.name: option.default for option in main.commands["relay"].params}
    assert defaults["within"] == f"{PATIENT_S:.0f}s"
