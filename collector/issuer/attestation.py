"""Who may have tokens: what an issuer asks before it signs.  One class a way to ask.

A token is worth what its attestation is.  An issuer that gives tokens to anyone has a rate
limit by connection and no more; so there is no such way here.

An identity is a name that stays the same for one person, machine or licence: it is what tokens are
counted by.  It is never written down: see ``allowance``.
"""

from __future__ import annotations

import hmac
import http.client
import json
import os
import re
import ssl
from collections.abc import Callable
from contextlib import closing
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from client_sdk.core.base64url import base64url

from ..core.deadline import Deadline
from ..core.errors import CollectorError, ConfigError
from ..core.settings import is_loopback

_MAX_IDENTITY: Final = 512  # characters
TIMEOUT_S: Final = 5.0  # seconds for a service that is asked
_MOST_SEEN: Final = 65_536  # attestations of a kind that are remembered: 9 MB
_NO_S: Final = 60.0  # seconds for which a no is kept
_KEY_SIZE: Final = 16  # bytes
_LEAST_SECRET: Final = 32  # bytes
_MOST_SECRET: Final = 4_096  # bytes
_MOST_ANSWER: Final = 4_096  # bytes
_NO: Final = (401, 403, 404, 410)
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
_LABEL: Final = b"hearsay attestation: "
_SETTING: Final = "--attest"


class AttestationError(CollectorError):
    """Who attests could not be asked, or gave no answer that can be read.  Nobody gets tokens."""


class Attestation(Protocol):
    """Names the identity behind an attestation.  Called by several threads at once."""

    def identity(self, attestation: str) -> str | None:
        """Return the name behind *attestation*; None if it may have no tokens.

        Raises: AttestationError: that cannot be found out now.
        """


class SharedSecret:
    """A secret of the management of machines, of which each has a part that names it.

    The management installs ``name.mac`` on each machine, as ``hearsay issuer-attestation`` prints
    it; the secret itself stays with the management and the issuer.
    """

    def __init__(self, secret: bytes) -> None:
        """Check by *secret*.  Raises ConfigError: it is too short."""
        if not _LEAST_SECRET <= len(secret) <= _MOST_SECRET:
            rule = (
                f"must have {_LEAST_SECRET} to {_MOST_SECRET} bytes, such as openssl rand -hex 32"
            )
            raise ConfigError("secret", "***", rule)
        self._secret = secret

    @classmethod
    def of_file(cls, path: Path) -> SharedSecret:
        """Read the secret in *path*.  Raises ConfigError."""
        try:
            return cls(path.read_bytes().strip())
        except OSError as error:
            raise ConfigError("secret", path, f"cannot be read: {error.strerror}") from None

    def attestation_of(self, name: str) -> str:
        """Return what the machine called *name* shows.  Raises ConfigError: it cannot be a name."""
        if not _NAME.fullmatch(name):
            raise ConfigError("NAME", name, "must be 1 to 128 letters, digits, _ or -")
        mac = hmac.digest(self._secret, _LABEL + name.encode("ascii"), "sha256")
        return f"{name}.{base64url(mac)}"

    def identity(self, attestation: str) -> str | None:
        """Return the name that *attestation* begins with, if the rest proves it."""
        name = attestation.partition(".")[0]
        if not _NAME.fullmatch(name):
            return None
        shown = attestation.encode("utf-8", "replace")
        right = hmac.compare_digest(shown, self.attestation_of(name).encode("ascii"))
        return name if right else None


class Seen:
    """Whose attestations were good lately, and to which the answer was no.

    Both, and identities, are kept as hashes under a key that ends with the process, the newest of
    each kind.
    """

    def __init__(self, monotonic: Callable[[], float], most: int = _MOST_SEEN) -> None:
        """Keep *most* of each kind; a no for NO_S by the clock *monotonic*."""
        self._monotonic, self._most, self._key = monotonic, most, os.urandom(_KEY_SIZE)
        self._good: dict[bytes, bytes] = {}  # hash of whose it was
        self._refused: dict[bytes, float] = {}

    def note(self, attestation: str, identity: str | None) -> None:
        """Note the identity of *attestation*; None if the answer was no."""
        mark = self._mark(attestation)
        self._good.pop(mark, None)
        self._refused.pop(mark, None)
        if identity is None:
            self._refused[mark] = self._monotonic()
        else:
            self._good[mark] = self._mark(identity)
        for kept in (self._good, self._refused):
            if len(kept) > self._most:
                del kept[next(iter(kept))]

    def account(self, attestation: str) -> bytes | None:
        """Return a hash of the identity of *attestation* at the last answer, however long ago.

        None if that was no, or if there was none.
        """
        return self._good.get(self._mark(attestation))

    def was_refused(self, attestation: str) -> bool:
        """Return whether the answer to *attestation* was no within NO_S."""
        at = self._refused.get(self._mark(attestation))
        return at is not None and self._monotonic() - at < _NO_S

    def _mark(self, attestation: str) -> bytes:
        text = attestation.encode("utf-8", "surrogatepass")
        return blake2b(text, key=self._key, digest_size=_KEY_SIZE).digest()


class HttpCallback:
    """A service of the application's owner that knows licences or accounts.

    It gets ``{"attestation": …}`` by POST, and answers 200 with ``{"identity": …}``, or 401, 403,
    404 or 410 for a no.  Anything else is no answer.
    """

    def __init__(self, url: str, timeout: float = TIMEOUT_S) -> None:
        """Ask at *url*.  Raises ConfigError: no https, and not on this machine."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
        if not host or not safe or "@" in parts.netloc or parts.fragment:
            rule = "callback must be https://, without user and fragment; http for this machine"
            raise ConfigError(_SETTING, "***", rule)
        self._host, self._timeout = host, timeout
        self._secure, self._port = parts.scheme == "https", parts.port
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def identity(self, attestation: str) -> str | None:
        """Ask the service.  Raises AttestationError."""
        try:
            status, body = self._ask(json.dumps({"attestation": attestation}).encode("ascii"))
        except (OSError, http.client.HTTPException) as error:
            raise AttestationError(f"callback: no answer: {type(error).__name__}") from None
        if status in _NO:
            return None
        if status != 200:
            raise AttestationError(f"callback: answered with status {status}")
        try:
            answer: object = json.loads(body)
        except (ValueError, RecursionError):
            raise AttestationError("callback: the answer is not JSON") from None
        name = answer.get("identity") if isinstance(answer, dict) else None
        if (
            not isinstance(name, str)
            or not 1 <= len(name) <= _MAX_IDENTITY
            or not name.isprintable()
        ):
            rule = f'must have "identity", of 1 to {_MAX_IDENTITY} printable characters'
            raise AttestationError(f"callback: the answer {rule}")
        return name

    def _ask(self, body: bytes) -> tuple[int, bytes]:
        connection: http.client.HTTPConnection
        if self._secure:
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout, context=context
            )
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        with closing(connection), Deadline(self._timeout) as deadline:
            headers = {"Content-Type": "application/json", "Connection": "close"}
            connection.connect()
            deadline.watch(connection.sock)
            connection.request("POST", self._path, body, headers)
            response = connection.getresponse()
            text = response.read(_MOST_ANSWER + 1)
            deadline.require()
        if len(text) > _MOST_ANSWER:
            raise AttestationError(f"callback: the answer is longer than {_MOST_ANSWER} bytes")
        return response.status, text


def attestation_of(text: str) -> Attestation:
    """Return the way to ask that *text* names: ``secret=FILE``, ``callback=URL``, or another's.

    ``python=MODULE:NAME`` calls what an installed module has under that name, without arguments,
    for an object with a method ``identity``.

    Raises: ConfigError: none of these, or it cannot be used.
    """
    kind, _, place = text.partition("=")
    ways: dict[str, Callable[[str], Attestation]] = {
        "secret": lambda path: SharedSecret.of_file(Path(path)),
        "callback": HttpCallback,
        "python": _of_module,
    }
    if kind not in ways or not place:
        raise ConfigError(_SETTING, kind, f"must be one of {', '.join(f'{w}=…' for w in ways)}")
    return ways[kind](place)


def _of_module(place: str) -> Attestation:
    module, _, name = place.partition(":")
    try:
        attestation: Attestation = getattr(import_module(module), name)()
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(_SETTING, place, f"cannot be loaded: {error}") from None
    if not callable(getattr(attestation, "identity", None)):
        raise ConfigError(_SETTING, place, "must make an object with a method identity")
    return attestation
