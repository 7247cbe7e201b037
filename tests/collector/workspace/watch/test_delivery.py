"""Webhooks are signed, go where the operator said and nowhere else; mail goes by a real server."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from email import message_from_bytes
from email.policy import default
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk.core.epoch import DAY
from collector.demo.embedded import EmbeddedStore
from collector.storage.connect import open_storage
from collector.storage.connection import Connection
from collector.storage.hashes import RedisHashes
from collector.storage.records import FIRING, QUIET, UNABLE, Verdict, WatchMessage, WatchStore
from collector.workspace.watch.delivery import (
    SIGNATURE,
    DeliveryError,
    body_of,
    deliver,
    require_public,
    signature,
    subject_of,
)
from collector.workspace.watch.rounds import LEASE_S, Rounds
from collector.workspace.watch.rules import Channel, parse
from tests.support.store.servers import needs_real, own_keys
from tests.support.store.watched import NEWEST, NOON, catalog_of, fold

NOW: Final = 1_772_625_600
VERDICT: Final = Verdict(
    "2026-03-02", "2026-03-02", FIRING, "Dark mode: 60 % (57 to 63 %): above 50 %", NOW
)
MESSAGE: Final = WatchMessage("a" * 32, "dark", "m", NOW, "roll back", VERDICT, {})


class Receiver(HTTPServer):
    """Keeps what is posted, and answers with ``status``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.location = 204, ""
        self.requests: list[tuple[str, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook?x=1"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        receiver: Any = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        receiver.requests.append((self.path, dict(self.headers), body))
        self.send_response(receiver.status)
        if receiver.location:
            self.send_header("Location", receiver.location)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[Any]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with serving(Receiver()) as server:
        yield server


def test_a_webhook_is_signed_so_that_its_receiver_knows_it_is_ours(
    receiver: Receiver, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    channel = Channel("team", webhook=receiver.url, secret_file=str(secret), private=True)

    deliver(channel, MESSAGE, NOW)

    ((path, headers, body),) = receiver.requests
    assert path == "/hook?x=1"
    assert headers["Idempotency-Key"] == MESSAGE.id
    time, digest = (part.partition("=")[2] for part in headers[SIGNATURE].split(","))
    expected = hmac.new(b"s3cret", f"{time}.".encode() + body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(digest, expected)
    said = json.loads(body)
    assert (said["watch"], said["state"], said["note"]) == ("dark", FIRING, "roll back")


def test_another_body_time_or_key_has_another_signature() -> None:
    ours = signature(b"key", NOW, b"body")

    others = [(b"key", NOW, b"bodY"), (b"key", NOW + 1, b"body"), (b"kez", NOW, b"body")]

    assert ours not in {signature(*other) for other in others}


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 410, 429, 500, 503])
def test_whatever_is_no_success_is_a_failure_and_nothing_is_followed(
    receiver: Receiver, status: int
) -> None:
    receiver.status, receiver.location = status, receiver.url
    channel = Channel("team", webhook=receiver.url, private=True)

    with pytest.raises(DeliveryError, match=f"^channel=team: answered {status}$"):
        deliver(channel, MESSAGE, NOW)
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "address",
    [
        "https://hooks.example:secret/",
        "https://hooks.example:99999/secret",
        "https://[secret/",
        "https://secret..example/",
        f"https://{'secret' * 12}.example/",
        "http://127.0.0.1:9/secret\u00e9",
        "http://127.0.0.1:9/sec ret",
    ],
)
def test_an_address_that_is_none_is_a_failure_and_ends_no_round(address: str) -> None:
    channel = Channel("team", webhook=address, private=True)

    with pytest.raises(DeliveryError, match=r"^channel=team: ") as failure:
        deliver(channel, MESSAGE, NOW)
    assert "secret" not in str(failure.value)


def test_an_answer_that_trickles_in_is_given_up() -> None:
    lines = 2_000  # a hundred seconds of them
    sent: list[int] = []

    class Slow(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.wfile.write(b"HTTP/1.1 500 Slow\r\n")
            with suppress(OSError):
                for line in range(lines):
                    self.wfile.write(b"X-Line: 1\r\n" if line % 50 == 0 else b" more\r\n")
                    sent.append(line)
                    time.sleep(0.05)

        def log_message(self, *_: object) -> None:
            pass

    with serving(HTTPServer(("127.0.0.1", 0), Slow)) as server:
        channel = Channel("team", webhook=f"http://127.0.0.1:{server.server_port}/", private=True)

        with pytest.raises(DeliveryError, match=r"^channel=team: "):
            deliver(channel, MESSAGE, NOW, answer_s=0.2)

    assert len(sent) < lines


def test_a_receiver_that_is_not_there_is_a_failure_that_names_no_address() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    channel = Channel("team", webhook=f"http://127.0.0.1:{port}/secret-path", private=True)

    with pytest.raises(DeliveryError) as failure:
        deliver(channel, MESSAGE, NOW)
    assert "secret-path" not in str(failure.value)


INWARD: Final = (
    *("127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "0.0.0.1", "255.255.255.255", "224.0.0.1", "192.0.0.8"),
    *("198.18.0.1", "192.0.2.1", "240.0.0.1", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1"),
    *("fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"),
    *("2002:7f00:1::", "2002:a00:1::", "2001:db8::1", "100::1", "2001:0:4136::fdd2"),
    *("64:ff9b::7f00:1", "64:ff9b:1::a00:1", "::127.0.0.1", "::ffff:0:127.0.0.1", "::ffff:0:a00:1"),
    *("fec0::1", "feff::1", "5f00::1", "5f00:ffff::1", "3fff::1", "3fff:fff::1"),
)  # fmt: skip


def leading(addresses: list[str]) -> Callable[[str, int], list[str]]:
    """Return a resolver whose every name has these *addresses*."""

    def resolve(host: str, port: int) -> list[str]:
        return addresses

    return resolve


@pytest.mark.parametrize("address", INWARD)
def test_an_address_of_this_network_gets_no_connection(receiver: Receiver, address: str) -> None:
    """Alone or behind a public address it is refused before anything connects."""
    channel = Channel("team", webhook=f"https://hooks.example.org:{receiver.server_port}/")

    for answers in ([address], ["93.184.216.34", address]):
        with pytest.raises(DeliveryError, match="leads into this network"):
            deliver(channel, MESSAGE, NOW, resolve=leading(answers))
    assert receiver.requests == []


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"])
def test_a_public_address_is_none_of_these(address: str) -> None:
    require_public(address)


@pytest.mark.parametrize(
    "url",
    [
        *("http://hooks.example.org/", "ftp://hooks.example.org/", "file:///etc/passwd"),
        *("https://", "https://user@hooks.example.org/", "gopher://x/", "//hooks.example.org/"),
    ],
)
def test_only_tls_and_plain_addresses_are_taken(url: str) -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise AssertionError("asked for a name")

    with pytest.raises(DeliveryError, match="webhook: must be https"):
        deliver(Channel("team", webhook=url), MESSAGE, NOW, resolve=resolve)


def test_the_name_is_resolved_once_and_the_connection_goes_there(receiver: Receiver) -> None:
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    url = f"http://hooks.example.org:{receiver.server_port}/"
    deliver(Channel("team", webhook=url, private=True), MESSAGE, NOW, resolve=resolve)

    assert asked == ["hooks.example.org"]
    assert receiver.requests[0][1]["Host"].startswith("hooks.example.org")


@pytest.mark.parametrize("name", ["good", "self_signed", "wrong_host", "expired"])
def test_a_server_gets_the_message_only_if_it_proves_its_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To an authority that is believed: here that of the tests."""
    monkeypatch.setenv("SSL_CERT_FILE", "tests/data/tls/ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path("tests/data/tls") / f"{name}.pem")
    receiver = Receiver()
    receiver.socket = context.wrap_socket(receiver.socket, server_side=True)
    receiver.handle_error = lambda *_: None  # type: ignore[method-assign]  # it fails on purpose
    url = f"https://localhost:{receiver.server_port}/"
    with serving(receiver), nullcontext() if name == "good" else pytest.raises(DeliveryError):
        deliver(Channel("team", webhook=url, private=True), MESSAGE, NOW)

    assert len(receiver.requests) == (name == "good")


def test_slack_gets_one_text_in_which_nothing_is_markup() -> None:
    verdict = Verdict("2026-03-02", "2026-03-02", FIRING, "<!channel> a & b", NOW)
    message = WatchMessage("x", "dark", "m", NOW, "<https://evil|roll back>", verdict, {})

    said = json.loads(body_of(Channel("team", webhook="https://x", form="slack"), message))

    assert set(said) == {"text"}
    assert "<" not in said["text"]
    assert "&lt;!channel&gt; a &amp; b" in said["text"]


@pytest.mark.parametrize(
    ("state", "word"), [(FIRING, "alarm"), (QUIET, "over"), (UNABLE, "not answered")]
)
def test_a_message_says_in_a_line_what_happened(state: str, word: str) -> None:
    verdict = Verdict("2026-03-02", "2026-03-02", state, "a\nb", NOW)
    message = WatchMessage("x", "dark", "m", NOW, "", verdict, {})

    assert subject_of(message) == f"[{word}] dark: a b (2026-03-02)"


class MailServer(socketserver.TCPServer):
    """Takes mail by SMTP; with a *context* it offers STARTTLS."""

    allow_reuse_address = True

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.context, self.mails, self.is_secure = context, list[bytes](), False


class _Conversation(socketserver.StreamRequestHandler):
    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())

    def finish(self) -> None:
        super().finish()
        self.request.close()

    def handle(self) -> None:
        server: Any = self.server
        self.say("220 test")
        while line := self.rfile.readline().decode(errors="replace").strip().upper():
            if line.startswith(("EHLO", "HELO")):
                self.say("250-test\r\n250-STARTTLS\r\n250 OK" if server.context else "250 OK")
            elif line == "STARTTLS" and server.context:
                self.say("220 go on")
                self.request = server.context.wrap_socket(self.request, server_side=True)
                self.rfile, self.wfile = self.request.makefile("rb"), self.request.makefile("wb", 0)
                server.is_secure = True
            elif line == "DATA":
                self.say("354 go on")
                body = b""
                while (part := self.rfile.readline()) != b".\r\n":
                    body += part
                server.mails.append(body)
                self.say("250 OK")
            elif line == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 OK" if line.startswith(("MAIL", "RCPT", "RSET")) else "502 no")


def mail_channel(port: int, **more: Any) -> Channel:
    people = ["ops@example.org", "pm@example.org"]
    server = f"127.0.0.1:{port}"
    return Channel("mail", mail=people, sender="hearsay@example.org", server=server, **more)


def test_a_mail_reaches_its_server() -> None:
    with serving(MailServer()) as server:
        deliver(mail_channel(server.server_address[1], tls="none"), MESSAGE, NOW)

    (raw,) = server.mails
    mail = message_from_bytes(raw, policy=default)
    assert mail["To"] == "ops@example.org, pm@example.org"
    assert mail["Subject"].startswith("[alarm] dark: Dark mode")
    assert mail["Message-ID"] == f"<{MESSAGE.id}@example.org>"
    assert "roll back" in mail.get_content()


@pytest.mark.parametrize(("name", "taken"), [("good", True), ("self_signed", False)])
def test_a_mail_goes_by_tls_to_a_server_that_proves_its_name(
    name: str, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "tests/data/tls/ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"tests/data/tls/{name}.pem")
    server = MailServer(context)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # it may fail on purpose
    with serving(server):
        try:
            deliver(mail_channel(server.server_address[1]), MESSAGE, NOW)
        except DeliveryError:
            assert not taken

    assert (server.is_secure or not taken, len(server.mails)) == (True, int(taken))


def test_a_mail_goes_over_no_open_line() -> None:
    with serving(MailServer()) as server:
        with pytest.raises(DeliveryError):
            deliver(mail_channel(server.server_address[1]), MESSAGE, NOW)
        remote = Channel(
            "mail", mail=["a@b"], sender="a@b", server="mail.example.org:25", tls="none"
        )
        with pytest.raises(DeliveryError, match="is for a server on this machine"):
            deliver(remote, MESSAGE, NOW)

    assert server.mails == []


def test_a_secret_that_is_missing_is_a_failure_and_told_by_its_file(tmp_path: Path) -> None:
    channel = Channel("team", webhook_file=str(tmp_path / "none"))

    with pytest.raises(DeliveryError, match=r"^channel=team: ConfigError$"):
        deliver(channel, MESSAGE, NOW)


class _Clocked(WatchStore):
    """Watches of a real store, on a clock that a test moves."""

    clock = NOON

    def now(self) -> int:
        return self.clock


@pytest.mark.real
@needs_real
def test_a_receiver_that_was_down_for_an_hour_gets_each_message_once_and_in_order(
    real_store: EmbeddedStore, receiver: Receiver
) -> None:
    """With a real store, real tallies and a real receiver, and a process killed on the way."""
    keys = own_keys(1)
    tallies = open_storage(real_store.url, keys.prefix, 1, "standard")
    tallies.prepare()
    store = _Clocked(RedisHashes(Connection.open(real_store.url), keys.prefix))
    catalog = catalog_of()
    for day, share in enumerate((0.2, 0.8, 0.2, 0.8), NEWEST):
        fold(tallies, catalog, day, 20_000, share)
    watches = parse(
        '[[watch]]\nname = "dark"\nmetric = "m"\nabove = 0.5\n[[channel]]\nname = "team"\n'
        f'webhook = "{receiver.url}"\nprivate = true\n'
    )

    def rounds() -> Rounds:
        return Rounds(watches, catalog, tallies, store, deliver)

    try:
        rounds().round()
        store.clock += 3 * DAY + LEASE_S  # and nobody has released the lease: it was killed
        receiver.status = 503
        for _ in range(13):
            second = rounds()
            second.round()
            second.release()
            store.clock += 300
        tried = len(receiver.requests)
        receiver.status = 200
        receiver.requests.clear()
        for _ in range(4):
            second.round()
            store.clock += 300
    finally:
        tallies.destroy()

    said = [json.loads(body) for _, _, body in receiver.requests]
    assert 5 <= tried <= 13
    assert [entry["state"] for entry in said] == [FIRING, QUIET, FIRING]
    assert [entry["last"] for entry in said] == ["2026-03-03", "2026-03-04", "2026-03-05"]
    assert len({entry["id"] for entry in said}) == 3
