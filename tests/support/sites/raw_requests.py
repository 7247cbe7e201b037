"""Requests as raw bytes: what no library would send, and what comes back to it."""

from __future__ import annotations

import re
import socket
import ssl
from typing import Final

from collector.intake.wire import JSON
from tests.support.crowds.uploads import WRITE_KEY

LAST: Final = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def head(*lines: str, method: str = "POST", path: str = "/v1/reports") -> bytes:
    """Return a request up to its body."""
    said = (
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {WRITE_KEY}",
        f"Content-Type: {JSON}",
        *lines,
    )
    return ("\r\n".join(said) + "\r\n\r\n").encode("latin-1")


def exchange(connection: socket.socket, *parts: bytes) -> bytes:
    """Return all that comes back to *parts* until the other side closes or is quiet."""
    said = b""
    with connection:
        try:
            for part in parts:
                connection.sendall(part)
            while part := connection.recv(65_536):
                said += part
        except (ConnectionError, TimeoutError, ssl.SSLError):
            pass  # closed in the middle, or quiet
    return said


def statuses(said: bytes) -> list[int]:
    """Return the status of each answer in what came back."""
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3}) ", said)]


def chunked(body: bytes, size: int = 10) -> bytes:
    parts = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


CODINGS: Final = (
    *("Transfer-Encoding: chunked", "Transfer-Encoding:chunked", "transfer-encoding: CHUNKED"),
    *("Transfer-Encoding : chunked", "Transfer-Encoding: xchunked", "Transfer-Encoding: \tchunked"),
    *("Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity, chunked"),
    *("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "Transfer-Encoding: gzip"),
    *(
        "Transfer-Encoding: identity",
        "X: y\r\n Transfer-Encoding: chunked",
        "Transfer_Encoding: chunked",
    ),
    *(
        "Transfer-Encoding:\x0bchunked",
        "Transfer-Encoding: chunked\x00",
        'Transfer-Encoding: "chunked"',
    ),
)
LENGTHS: Final = (
    *("Content-Length: 5\r\nContent-Length: 6", "Content-Length: 5, 6", "Content-Length: +5"),
    *("Content-Length: -1", "Content-Length: 0x5", "Content-Length: 5 5", "Content-Length: \xb2"),
    *("Content-Length: 5.0", "Content-Length: 1e1", "Content-Length: ", "Content-Length : 5"),
    *(
        f"Content-Length: {'9' * 400}",
        "Content-Length: 18446744073709551616",
        "Content-Length:\r\n 5",
    ),
    *("Content-Length: 5\r\nContent-Length: 5\x00", "Content_Length: 40", "Content-Length: 5;a"),
)
SMUGGLING: Final = {
    **{f"length and {c!r}": head("Content-Length: 4", c) + b"0\r\n\r\n" for c in CODINGS},
    **{f"{c!r} alone": head(c) + b"0\r\n\r\n" for c in CODINGS},
    **{repr(c): head(c) + b"{}   " for c in LENGTHS},
    "a chunk larger than told": head(CODINGS[0]) + b"1\r\n{}\r\n0\r\n\r\n",
    "a negative chunk": head(CODINGS[0]) + b"-1\r\n{}\r\n0\r\n\r\n",
    "a chunk of 2^64 and one": head(CODINGS[0]) + b"10000000000000001\r\n{\r\n0\r\n\r\n",
    "a chunk with a long extension": head(CODINGS[0])
    + b"1;"
    + b"a" * 70_000
    + b"\r\n{\r\n0\r\n\r\n",
    "lines that end in LF alone": head(CODINGS[0]).replace(b"\r\n", b"\n") + b"0\n\n",
    "a chunk that ends in LF alone": head(CODINGS[0]) + b"2\n{}\n0\n\n",
    "a trailer that sets a length": head(CODINGS[0]) + b"0\r\nContent-Length: 40\r\n\r\n",
    "no host": head().replace(b"Host: localhost\r\n", b""),
    "two hosts": head("Host: other", "Content-Length: 0"),
    "a space before the path": head("Content-Length: 0").replace(b"POST ", b"POST  ", 1),
    "a NUL in the path": head("Content-Length: 0", path="/livez\0"),
    "HTTP/1.0 with chunks": head(CODINGS[0]).replace(b"1.1", b"1.0", 1) + b"0\r\n\r\n",
    "HTTP/2 in clear": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an upgrade": head("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AA"),
    "a websocket": head("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: AA=="),
    "a tunnel": head(method="CONNECT", path="example.org:443"),
    "an absolute path": head("Content-Length: 0", path="http://example.org/v1/reports"),
    "a made-up method": head("Content-Length: 0", method="A" * 200),
}
