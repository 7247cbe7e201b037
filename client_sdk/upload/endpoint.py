"""Where uploads go: which addresses and keys can be meant, before anything is sent."""

from __future__ import annotations

from ..core.errors import InvalidParameterError
from ..core.typing import Final

PATH: Final = "/v1/reports"
MAX_KEY: Final = 512  # characters; no collector makes a longer one
_MAX_PORT: Final = "65535"
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/:")


def require_header(name: str, secret: object, most: int) -> None:
    """Return if *secret*, the parameter called *name*, can be a header of at most *most* letters.

    Raises: InvalidParameterError, which hides it.
    """
    text = secret if isinstance(secret, str) else ""
    printable = text.isascii() and text.isprintable() and " " not in text
    if not printable or not 1 <= len(text) <= most:
        rule = f"must be 1 to {most} printable ASCII characters without spaces"
        raise InvalidParameterError(name, "(hidden)", rule)


def base_of(endpoint: str) -> str:
    """Return *endpoint* without PATH, which some give along, and without a slash at its end.

    Raises: InvalidParameterError.
    """
    return checked_url("endpoint", endpoint).rstrip("/").removesuffix(PATH).rstrip("/")


def checked_url(name: str, url: str) -> str:
    """Return *url*, the parameter called *name*, if requests may go there.

    Raises: InvalidParameterError: not https (plain http only to this machine), or no URL; it is
            shown without what could be a secret.
    """
    if not _is_plain(url):
        _require_url(name, url)
    return url


def _is_plain(endpoint: object) -> bool:
    """Whether *endpoint* is surely good, as most are: ``urllib.parse`` takes 2 ms to load."""
    if not isinstance(endpoint, str) or not _PLAIN.issuperset(endpoint):
        return False
    scheme, _, rest = endpoint.partition("://")
    host, _, port = rest.partition("/")[0].partition(":")
    known = scheme == "https" or (scheme == "http" and host in ("localhost", "127.0.0.1"))
    number = f"{port:0>5}"
    return known and host != "" and number.isdigit() and len(number) == 5 and number <= _MAX_PORT


def _require_url(name: str, endpoint: str) -> None:
    from urllib.parse import urlsplit

    printable = str(endpoint).rpartition("@")[2].partition("?")[0]
    try:
        url = urlsplit(endpoint)
        host, _ = url.hostname, url.port
    except (ValueError, TypeError, AttributeError):
        raise InvalidParameterError(name, printable, "must be a URL") from None
    if not host or url.query or url.fragment or "@" in url.netloc or not endpoint.isprintable():
        rule = "must be a URL with a host, and without user, query or fragment"
        raise InvalidParameterError(name, printable, rule)
    if url.scheme != "https" and not (url.scheme == "http" and _is_loopback(host)):
        rule = "must begin with https:// (http:// only to this machine)"
        raise InvalidParameterError(name, printable, rule)


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
