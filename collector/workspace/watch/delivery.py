"""Messages on their way: signed webhooks and mail.

A webhook is a POST of JSON by TLS to an address that the operator's file names.  The name is
resolved once, every address of it must be public unless the channel says ``private``, and the
connection goes to the address that was looked at; nothing redirects it.  So who controls the name
cannot turn a message, or its answer, towards this network.  Answers are thrown away.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import smtplib
import socket
import ssl
from collections.abc import Callable
from contextlib import closing
from email.message import EmailMessage
from email.utils import formatdate
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import msgspec

from ...core.deadline import Deadline
from ...core.errors import CollectorError, ConfigError, unread
from ...core.settings import is_loopback
from ...rendering.letters import one_line
from ...storage.records import FIRING, QUIET, WatchMessage
from .rules import Channel

TIMEOUT_S: Final = 10.0  # of connecting, and of each answer; below the lease of a round
SIGNATURE: Final = "Hearsay-Signature"  # t=<Unix time>,v1=<HMAC-SHA256 of "<time>.<body>" in hex>
MOST_ANSWER: Final = 65_536  # bytes that are read of an answer
# In addition to Python's private ones: addresses that translate into others, or that its older
# tables leave out.
_INWARD: Final = tuple(
    ip_network(network)
    for network in (
        *("192.0.0.0/24", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/23", "2002::/16"),
        *("::/96", "::ffff:0:0:0/96"),  # addresses of IPv4 in other words
        *("fec0::/10", "5f00::/16", "3fff::/20"),  # of a site, of segment routing, of examples
    )
)
_PORTS: Final = {"http": 80, "https": 443}
_WORDS: Final = {FIRING: "alarm", QUIET: "over"}
_Resolve: TypeAlias = Callable[[str, int], list[str]]


class DeliveryError(CollectorError, OSError):
    """A message was not taken.  Says why, never the address, which may be a secret."""


def deliver(
    channel: Channel,
    message: WatchMessage,
    now: int,
    *,
    resolve: _Resolve | None = None,
    answer_s: float = TIMEOUT_S,
) -> None:
    """Hand *message* to *channel*; returns once it was taken.

    Args:   answer_s: seconds for the whole answer of a webhook, also of one that trickles in.
    Raises: DeliveryError: it was not, or it is not known; sending again has the same id.
    """
    try:
        if channel.mail:
            _mail(channel, message)
        else:
            _post(channel, message, now, resolve or _addresses_of, answer_s)
    except DeliveryError:
        raise
    # ValueError: of an address or a password that is none, which its text may repeat.
    except (OSError, ValueError, HTTPException, smtplib.SMTPException, ConfigError) as error:
        raise DeliveryError(f"channel={channel.name}: {type(error).__name__}") from error


def body_of(channel: Channel, message: WatchMessage) -> bytes:
    """Return what a webhook is sent: of the form "slack" one text."""
    if channel.form == "slack":
        text = subject_of(message) + (f"\n{message.note}" if message.note else "")
        for letter, safe in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
            text = text.replace(letter, safe)
        return json.dumps({"text": text}, ensure_ascii=False).encode()
    verdict = msgspec.to_builtins(message.verdict)
    fields = {"id": message.id, "watch": message.watch, "metric": message.metric}
    return json.dumps({**fields, "note": message.note, **verdict}, ensure_ascii=False).encode()


def subject_of(message: WatchMessage) -> str:
    """Return the message in one line."""
    verdict = message.verdict
    word = _WORDS.get(verdict.state, "not answered")
    days = " to ".join(dict.fromkeys((verdict.first, verdict.last)))
    return one_line(f"[{word}] {message.watch}: {verdict.text} ({days})")


def signature(secret: bytes, now: int, body: bytes) -> str:
    """Return the header by which a receiver knows that *body* is ours, and not an old one."""
    digest = hmac.new(secret, f"{now}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={now},v1={digest}"


def _addresses_of(host: str, port: int) -> list[str]:
    """Return the addresses of *host*.  Raises OSError."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def require_public(address: str) -> None:
    """Raise DeliveryError if *address* is of this machine, this network or unassigned."""
    ip: Any = ip_address(address.partition("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if not ip.is_global or ip.is_multicast or any(ip in network for network in _INWARD):
        rule = "its name leads into this network; private = true allows that"
        raise DeliveryError(f"webhook: {rule}")


def _post(
    channel: Channel, message: WatchMessage, now: int, resolve: _Resolve, answer_s: float
) -> None:
    url = channel.webhook or _secret(channel.webhook_file)
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in _PORTS or not host or parts.username or parts.fragment:
        raise DeliveryError(f"channel={channel.name}: webhook: must be https://host/path")
    if parts.scheme == "http" and not (channel.private or is_loopback(host)):
        raise DeliveryError(f"channel={channel.name}: webhook: must be https; private allows http")
    port = parts.port or _PORTS[parts.scheme]
    addresses = resolve(host, port)
    if not channel.private:
        for address in addresses:
            require_public(address)
    body = body_of(channel, message)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "hearsay",
        "Idempotency-Key": message.id,
    }
    if channel.secret_file:
        headers[SIGNATURE] = signature(_secret(channel.secret_file).encode(), now, body)
    connection = _connection(parts.scheme, host, port, addresses[0])
    with closing(connection), Deadline(answer_s) as deadline:
        deadline.watch(connection.sock)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", target, body, headers)
        with connection.getresponse() as response:
            response.read(MOST_ANSWER)
    if not 200 <= response.status < 300:
        raise DeliveryError(f"channel={channel.name}: answered {response.status}")


def _connection(scheme: str, host: str, port: int, address: str) -> HTTPConnection:
    """Return a connection to *address*, which shows itself as *host*."""
    plain = socket.create_connection((address, port), TIMEOUT_S)
    if scheme == "http":
        connection = HTTPConnection(host, port, timeout=TIMEOUT_S)
        connection.sock = plain
        return connection
    secure = HTTPSConnection(host, port, timeout=TIMEOUT_S)
    try:
        secure.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise
    return secure


def mail_of(
    channel: Channel, subject: str, text: str, id: str = "", html: str = ""
) -> EmailMessage:
    """Return a mail from and to whom *channel* says."""
    mail = EmailMessage()
    mail["From"], mail["To"] = channel.sender, ", ".join(channel.mail)
    mail["Subject"], mail["Date"] = one_line(subject), formatdate()
    mail["Auto-Submitted"] = "auto-generated"
    if id:
        mail["Message-ID"] = f"<{id}@{channel.sender.partition('@')[2]}>"
    mail.set_content(text)
    if html:
        mail.add_attachment(html.encode(), maintype="text", subtype="html", filename="report.html")
    return mail


def post(channel: Channel, mail: EmailMessage) -> None:
    """Hand *mail* to the server of *channel*.  Raises DeliveryError, OSError, SMTPException."""
    host, _, port = channel.server.rpartition(":")
    context = ssl.create_default_context()
    if channel.tls == "none" and not is_loopback(host):
        raise DeliveryError(f"channel={channel.name}: tls: none is for a server on this machine")
    if channel.tls == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(host, int(port), timeout=TIMEOUT_S, context=context)
    else:
        server = smtplib.SMTP(host, int(port), timeout=TIMEOUT_S)
    with server:
        if channel.tls == "starttls":
            server.starttls(context=context)
        if channel.user:
            server.login(channel.user, _secret(channel.password_file))
        server.send_message(mail)


def _mail(channel: Channel, message: WatchMessage) -> None:
    subject = subject_of(message)
    text = "\n\n".join(part for part in (subject, message.note) if part) + "\n"
    post(channel, mail_of(channel, subject[:200], text, message.id))


def _secret(path: str) -> str:
    """Return what the file at *path* holds.  Raises ConfigError."""
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("channel", path, unread(error)) from None
    if not text:
        raise ConfigError("channel", path, "is empty")
    return text
