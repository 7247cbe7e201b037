"""What a row of the table of settings is, and how the texts of its variables are read.

A parser takes the name of a variable and its text; it returns the value, or raises ConfigError.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from ipaddress import ip_address
from typing import Final, TypeVar
from urllib.parse import urlsplit

from .credentials import digest_of
from .errors import ConfigError, unread

T = TypeVar("T")

HIDDEN: Final = "***"  # shown instead of a key or token
ROW: Final = "setting"  # of a field's metadata
_NAME: Final = re.compile(r"[a-z0-9.:-]+", re.ASCII)  # of a host, as browsers write it
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*", re.ASCII)  # https, or that of an application
_DEFAULT_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}  # browsers leave them out
_EVERY_SITE: Final[Mapping[str, str]] = {
    "*": "would let every site do so, from its visitors' browsers; list the origins of yours",
    "null": "is the origin of files and of any page in a sandbox; serve yours from an origin",
}
_MAX_DIGITS: Final = 9  # of an integer setting
_LONGEST_NAME: Final = 100  # characters
_SHARE: Final = re.compile(r"0(\.[0-9]{1,9})?", re.ASCII)
_SCHEMES: Final = ("redis", "rediss", "unix", "redis-cluster", "rediss-cluster")


@dataclass(frozen=True)
class Setting:
    """A row of the table: one environment variable."""

    name: str  # of the variable
    parse: Callable[[str, str], object]  # name and text to the value; raises ConfigError
    help: str  # Markdown, with links as they are in docs/operate
    default: str  # as it would be written
    unset: str  # what an empty default means, in words
    secret: bool  # it is never shown, and may be in a file that *name*_FILE names
    needs: str  # field of another setting without which this one means nothing

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that give it."""
        return (self.name, f"{self.name}_FILE") if self.secret else (self.name,)

    def is_set(self, value: object) -> bool:
        """Return whether *value* is another than the default."""
        return value != self.parse(self.name, self.default)

    def text(self, env: Mapping[str, str] = os.environ) -> str:
        """Return what *env*, or the file that it names, says, or the default.

        Raises: ConfigError: the file cannot be read, or both are set.
        """
        file = f"{self.name}_FILE"
        path = env.get(file) if self.secret else None
        if not path:
            written = env.get(self.name, self.default)
            return written or self.default if self.secret else written
        if env.get(self.name):
            raise ConfigError(self.name, HIDDEN, f"and {file} must not both be set")
        try:
            with open(path, encoding="utf-8") as opened:
                text = opened.read().strip()
        except (OSError, UnicodeDecodeError) as error:
            # from None: a decoding error holds the bytes of the secret
            raise ConfigError(file, path, unread(error)) from None
        if not text:
            raise ConfigError(file, path, "is empty")
        return text


def setting(
    name: str,
    parse: Callable[[str, str], T],
    help: str,
    default: object = "",
    *,
    unset: str = "none",
    secret: bool = False,
    needs: str = "",
) -> T:
    """Return the field of a setting; its arguments are those of ``Setting``."""
    row = Setting(name, parse, help, str(default), unset, secret, needs)
    declared: T = field(repr=not secret, metadata={ROW: row})
    return declared


def text(name: str, written: str) -> str:
    """Return *written*: any text is right."""
    return written


def paths(name: str, written: str) -> tuple[str, ...]:
    """Return the paths in *written*, separated as in ``PATH``."""
    return tuple(path for path in written.split(os.pathsep) if path)


def registries(name: str, written: str) -> tuple[str, ...]:
    """Return the paths in *written*.  Raises ConfigError: there is none."""
    if not (named := paths(name, written)):
        raise ConfigError(name, "", "must name at least one metrics.toml")
    return named


def one_of(*allowed: str) -> Callable[[str, str], str]:
    """Return a parser of the texts *allowed*."""

    def parse(name: str, written: str) -> str:
        if written not in allowed:
            raise ConfigError(name, written, f"must be one of {', '.join(allowed)}")
        return written

    return parse


def flag(name: str, written: str) -> bool:
    """Return whether *written* is 1.  Raises ConfigError: it is not 0 either."""
    return one_of("0", "1")(name, written) == "1"


def integer(least: int, most: int) -> Callable[[str, str], int]:
    """Return a parser of integers from *least* to *most*."""

    def parse(name: str, written: str) -> int:
        is_short = written.isascii() and written.isdigit() and len(written) <= _MAX_DIGITS
        if not (is_short and least <= int(written) <= most):
            raise ConfigError(name, written, f"must be an integer from {least} to {most}")
        return int(written)

    return parse


def megabytes(name: str, written: str) -> int | None:
    """Return the integer *written*; None without one.  Raises ConfigError."""
    return integer(0, 10**6)(name, written) if written else None


def label(name: str, written: str) -> str:
    """Return *written* without blanks around it.  Raises ConfigError: it cannot be shown."""
    stripped = written.strip()
    if len(stripped) > _LONGEST_NAME or not stripped.isprintable():
        rule = f"must be a name of at most {_LONGEST_NAME} printable characters"
        raise ConfigError(name, HIDDEN, rule)
    return stripped


def share(name: str, written: str) -> Fraction:
    """Return the part *written*, below 1.  Raises ConfigError."""
    if not _SHARE.fullmatch(written):
        rule = "must be a decimal from 0 to below 1, such as 0.05: a part of all devices"
        raise ConfigError(name, written, rule)
    return Fraction(written)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach *host*."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def address(name: str, written: str) -> str:
    """Return the IP address *written*.  Raises ConfigError."""
    try:
        return "127.0.0.1" if written == "localhost" else str(ip_address(written))
    except ValueError:
        raise ConfigError(name, written, "must be an IP address or localhost") from None


def origin(name: str, written: str) -> str:
    """Return the origin *written*, as browsers write it, or "".  Raises ConfigError."""
    rule = "must be https://name or https://name:port, and nothing behind; http for this machine"
    scheme, host, exact = _parts_of(written)
    is_safe = scheme == "https" or (scheme == "http" and is_loopback(host))
    if written and not (is_safe and written == exact):
        raise ConfigError(name, written, rule)
    return written


def origins(name: str, written: str) -> tuple[str, ...]:
    """Return the origins *written*, by commas, each once.  Raises ConfigError."""
    return checked_origins(name, filter(None, map(str.strip, written.split(","))))


def checked_origins(name: str, texts: Iterable[str]) -> tuple[str, ...]:
    """Return *texts*, the value of setting *name*, each once.  Raises ConfigError."""
    different = tuple(dict.fromkeys(texts))
    for origin in different:
        if origin in _EVERY_SITE:
            raise ConfigError(name, origin, _EVERY_SITE[origin])
        scheme, host, written = _parts_of(origin)
        is_plain = scheme == "http" and not is_loopback(host)
        if not _SCHEME.fullmatch(scheme) or is_plain or origin != written:
            rule = (
                "must be an origin as browsers send it, such as https://app.example.org or"
                " https://app.example.org:8443: no path, no default port; http for this machine"
            )
            raise ConfigError(name, origin, rule)
    return different


def _parts_of(origin: str) -> tuple[str, str, str]:
    """Return scheme and host of *origin*, and how a browser writes it: "" if it is none."""
    try:
        parts = urlsplit(origin)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "", "", ""
    if not _NAME.fullmatch(host):
        return parts.scheme, host, ""
    name = f"[{host}]" if ":" in host else host
    behind = "" if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{port}"
    return parts.scheme, host, f"{parts.scheme}://{name}{behind}"


def store_url(name: str, url: str) -> str:
    """Return *url*.  Raises ConfigError: also if a store on another machine asks no password."""
    if not url:
        return url
    scheme, _, rest = url.partition("://")
    if scheme.lower() not in _SCHEMES:
        rule = f"must begin with {', '.join(f'{scheme}://' for scheme in _SCHEMES)}"
        raise ConfigError(name, HIDDEN, rule)
    user, _, places = re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")
    try:  # one by one: some Pythons refuse a list in which not each place has brackets
        hosts = [urlsplit(f"//{place}").hostname or "" for place in places.split(",")]
    except ValueError:  # not even as a cause: the address may hold a password
        raise ConfigError(name, HIDDEN, "is no address") from None
    if scheme.lower() != "unix" and not user.partition(":")[2] and not all(map(is_loopback, hosts)):
        rule = "must hold a user and a password: the store is not on this machine"
        raise ConfigError(name, HIDDEN, rule)
    return url


def digest(least: int) -> Callable[[str, str], bytes | None]:
    """Return a parser of secrets of *least* characters at least; None without one."""

    def parse(name: str, secret: str) -> bytes | None:
        if not secret:
            return None
        if not (secret.isascii() and secret.isprintable() and " " not in secret):
            rule = "must be printable ASCII without spaces, as a header holds"
            raise ConfigError(name, HIDDEN, rule)
        if len(secret) < least:
            raise ConfigError(name, HIDDEN, f"must have at least {least} characters")
        return digest_of(secret)

    return parse
