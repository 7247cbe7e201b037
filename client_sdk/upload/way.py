"""The way that uploads take: to the collector itself, or by a relay."""

from __future__ import annotations

from ..core.errors import InvalidParameterError
from .transport import RequestsTransport


def transport_to(
    endpoint: str, write_key: str, relay: str | None = None, relay_key: str | None = None
) -> RequestsTransport:
    """Return the way to the collector *endpoint*: by *relay*, if there is one, and then only so.

    Raises: InvalidParameterError: as of the transports; or one of relay and its key is missing.
    """
    if relay is None and relay_key is None:
        return RequestsTransport(endpoint, write_key)
    if relay is None or relay_key is None:
        name = "relay" if relay is None else "relay_key"
        raise InvalidParameterError(name, None, "must be given: a relay needs its key")
    from .ohttp import RelayTransport  # few applications have a relay

    return RelayTransport(relay, relay_key, endpoint, write_key)
