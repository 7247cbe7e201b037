"""Whether an address can be listened on."""

from __future__ import annotations

import socket

from .errors import ConfigError


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
