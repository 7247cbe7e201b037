"""From the server's own protocol to WSGI, which Flask speaks, and back; no head in doubt passes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any, Final, NamedTuple, TypeAlias

from werkzeug.http import parse_etags

from ...core.errors import MalformedHeadError

Wsgi: TypeAlias = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
_HOST: Final = re.compile(r"[A-Za-z0-9._~%-]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?", re.ASCII)
_OF_A_BODY: Final = ("Content-Length", "Content-Type")
_OLD: Final = "1"  # HTTP/1.0, in which a health check need not name a host


class Answer(NamedTuple):
    """A whole response."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def unless_kept(self, scope: Any) -> Answer:
        """Return it as an answer to *scope*, a GET or HEAD: 304 if it names this ``ETag``."""
        tag = dict(self.headers)["ETag"]
        if parse_etags(scope.headers.get("if-none-match")).contains_raw(tag):
            kept = [header for header in self.headers if header[0] not in _OF_A_BODY]
            return Answer(304, kept, b"")
        return self._replace(body=b"") if scope.method == "HEAD" else self


def environ_of(scope: Any, body: bytes) -> dict[str, Any]:
    """Return the WSGI environment of the request *scope* with *body*."""
    host, _, port = scope.server.rpartition(":")
    environ = {
        "REQUEST_METHOD": scope.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": scope.path.encode().decode("latin-1"),  # the server has decoded it
        "QUERY_STRING": scope.query_string,
        "SERVER_NAME": host or "localhost",
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name in scope.headers:
        if "_" in name:
            continue  # it would pass for the name with - in its place
        key = name.upper().replace("-", "_")
        if key == "CONTENT_TYPE":
            environ[key] = scope.headers.get(name)
        elif key not in ("CONTENT_LENGTH", "TRANSFER_ENCODING"):
            environ[f"HTTP_{key}"] = ",".join(scope.headers.get_all(name))
    return environ


def call(app: Wsgi, environ: dict[str, Any]) -> Answer:
    """Return the response of *app*, whole: it is a page or a document, never a stream."""
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start(status: str, headers: list[tuple[str, str]], _: object = None) -> None:
        started[:] = [(status, headers)]

    parts = app(environ, start)
    try:
        body = b"".join(parts)
    finally:
        if hasattr(parts, "close"):
            parts.close()
    [(status, headers)] = started
    return Answer(int(status.split(" ", 1)[0]), headers, body)


def require_plain(scope: Any) -> None:
    """Return if there is one way to read the head of the request *scope*.

    Raises: MalformedHeadError: says which part is not plain, and nothing of what it holds.
    """
    headers = scope.headers
    hosts = headers.get_all("host")
    if len(hosts) != 1 and (hosts or scope.http_version != _OLD):
        raise MalformedHeadError("Host: must be given once")
    if hosts and not _HOST.fullmatch(hosts[0]):
        raise MalformedHeadError("Host: must be a name and perhaps a port")
    if scope.authority is not None and [scope.authority] != hosts:
        raise MalformedHeadError("Host: must be the one that the request names")
    codings = headers.get_all("transfer-encoding")
    if codings and (len(codings) > 1 or codings[0].strip().lower() != "chunked"):
        raise MalformedHeadError("Transfer-Encoding: must be chunked, once, or absent")
    if not scope.method.isupper():
        raise MalformedHeadError("method: must be in capital letters")
    if not scope.path.startswith("/") and scope.path != "*":
        raise MalformedHeadError("path: must begin with a slash")
