"""Whether an address can be listened on, and a request that comes be read in one way."""

from __future__ import annotations

import re
import socket
from typing import Any, Final

from ..core.errors import ConfigError, MalformedHeadError

_HOST: Final = re.compile(r"[A-Za-z0-9._~%-]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?", re.ASCII)
_OLD: Final = "1"  # HTTP/1.0, in which a health check need not name a host


def require_free(name: str, host: str, port: int) -> None:
    """Return if nobody listens: else the server would share the port, and the requests.

    Raises: ConfigError: about the setting *name*: somebody does, or this user may not.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(name, port, f"cannot be listened on: {error}") from None


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
    if len(headers.get_all("content-type")) > 1:
        raise MalformedHeadError("Content-Type: must be given at most once")
    if not scope.method.isupper():
        raise MalformedHeadError("method: must be in capital letters")
    if not scope.path.startswith("/") and scope.path != "*":
        raise MalformedHeadError("path: must begin with a slash")
