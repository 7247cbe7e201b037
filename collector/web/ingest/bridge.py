"""From the server's own protocol to WSGI, which Flask speaks, and back; and its waiting room.

Half of the places are for requests that show a good credential.  That is judged on the event loop,
by what was last read of the store.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs

from werkzeug.http import parse_etags

from ...core.errors import OverloadedError
from ...core.proxies import ProxyLogin
from ...intake.keyring import Keyring
from ...serving.application import Answer, Headers
from ...serving.bodies import Scope
from ..auth import shown_in

_FIELDS: Final = 4  # of the form of a log-in
_Wsgi: TypeAlias = Callable[[dict[str, object], Callable[..., Any]], Iterable[bytes]]
_OF_A_BODY: Final = ("content-length", "content-type")


def unless_kept(answer: Answer, scope: Scope) -> Answer:
    """Return *answer* to *scope*, a GET or HEAD: 304 if that names its ``ETag``."""
    tag = dict(answer.headers)["etag"]
    if parse_etags(scope.headers.get("if-none-match")).contains_raw(tag):
        kept = [header for header in answer.headers if header[0] not in _OF_A_BODY]
        return Answer(304, kept, b"")
    return answer._replace(body=b"") if scope.method == "HEAD" else answer


def environ_of(scope: Scope, body: bytes) -> dict[str, object]:
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


def call(app: _Wsgi, environ: dict[str, object]) -> Answer:
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
    return Answer(int(status.split(" ", 1)[0]), small(headers), body)


def small(headers: Iterable[tuple[str, str]]) -> Headers:
    """Return *headers* by names in small letters, as the server sends them."""
    return [(name.lower(), value) for name, value in headers]


def peer_of(scope: Scope) -> str:
    """Return the address of the socket by which the request *scope* came."""
    return scope.client.rpartition(":")[0].strip("[]")


class Places:
    """The requests of a process that have a thread or wait for one."""

    def __init__(self, keyring: Keyring, proxy: ProxyLogin | None, most: int) -> None:
        """Let *most* requests in, half of them without a credential that *keyring* knows.

        Args: proxy: whom it names, shows a credential.
        """
        self._keyring, self._proxy, self._most = keyring, proxy, most
        self._taken = {True: 0, False: 0}  # by whether the credential is known

    @contextmanager
    def place(self, is_known: bool) -> Iterator[None]:
        """Count a request, by whether its credential is known.

        Law: however many come without a credential, half of the places stay for those with.

        Raises: OverloadedError: as many have a thread or wait for one as may.
        """
        is_full = sum(self._taken.values()) >= self._most
        if is_full or (not is_known and self._taken[False] >= self._most // 2):
            raise OverloadedError("pages and queries: as many wait as may")
        self._taken[is_known] += 1
        try:
            yield
        finally:
            self._taken[is_known] -= 1

    def knows(self, scope: Scope) -> bool:
        """Return whether the request *scope* shows a good token, or the name of a person."""
        if self._names(scope) and self._proxy and self._proxy.is_trusted(peer_of(scope)):
            return True
        return any(map(self._keyring.knows, _presented(scope)))

    def is_good(self, form: bytes) -> bool:
        """Return whether the *form* of a log-in holds a good token."""
        try:
            [token, *_] = parse_qs(form.decode(), max_num_fields=_FIELDS)["token"]
        except (ValueError, KeyError):
            return False
        return self._keyring.knows(f"Bearer {token.strip()}")

    def shows(self, scope: Scope) -> bool:
        """Return whether the request *scope* holds anything that may name the visitor."""
        return self._names(scope) or bool(_presented(scope))

    def _names(self, scope: Scope) -> bool:
        header = self._proxy and scope.headers.get(self._proxy.user_header.lower())
        return bool(header)


def _presented(scope: Scope) -> list[str]:
    cookie = "; ".join(scope.headers.get_all("cookie"))
    return shown_in(scope.headers.get("authorization") or "", cookie)
