"""Oblivious HTTP: an upload in a capsule that a relay carries and only the collector opens.

The relay sees an address and a capsule; the collector sees the relay and what is in the capsule.
So nobody sees both, as long as the two keep to themselves what they see.  The keys of the collector
are compiled into the application: one that was fetched could be another for every device.

Every capsule is sealed to a fresh key of its own, also where the upload in it is repeated.

It needs ``cryptography``, of the extra ``hearsay-telemetry[relay]``, which is loaded at the first
upload.  Beside it the standard library is enough.

Source: RFC 9458, sections 4.3 and 4.4.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from importlib.util import find_spec

from ..core.base64url import from_base64url
from ..core.dataclass import dataclass
from ..core.errors import InvalidParameterError, TransportError
from ..core.limits import RELAY_WAIT, SIZE_CLASSES
from ..core.typing import Final
from ..wire import binary_http
from ..wire.binary_http import Request
from ..wire.oblivious import (
    ANSWER_TYPE,
    KEY_SIZE,
    REQUEST_TYPE,
    SECRET_SIZE,
    TAG_SIZE,
    KeyConfiguration,
    answer_keys,
    capsule_secrets,
    context_of,
    decode_configurations,
)
from .endpoint import PATH, checked_url
from .transport import JSON, NEEDED, NO_HEADERS, OK, Answer, RequestsTransport, no_key, wait_of

_PACKAGE: Final = "cryptography"
_NEEDED: Final = (
    f"{_PACKAGE}.hazmat.primitives.asymmetric.x25519",
    f"{_PACKAGE}.hazmat.primitives.ciphers.aead",
)
_NOT_INSTALLED: Final = "needs pip install 'hearsay-telemetry[relay]'"
_KEY_RULE: Final = (
    "must be what hearsay oblivious-key prints: key configurations of RFC 9458, in base64url, one"
    " of which is for X25519 with HKDF-SHA256 and AES-128-GCM"
)


@dataclass(frozen=True)
class Capsule:
    """A sealed request, and what opens its answer."""

    message: bytes
    encapsulated: bytes
    secret: bytes

    def open_answer(self, message: bytes) -> bytes:
        """Return the answer in *message*.  Raises ValueError: it is none to this capsule."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce, sealed = message[:SECRET_SIZE], message[SECRET_SIZE:]
        if len(sealed) < TAG_SIZE:
            raise ValueError("answer: is shorter than an empty one")
        key, aead_nonce = answer_keys(self.secret, self.encapsulated, nonce)
        try:
            return AESGCM(key).decrypt(aead_nonce, sealed, b"")
        except InvalidTag:
            raise ValueError("answer: does not belong to its capsule") from None


def seal(
    configuration: KeyConfiguration, request: bytes, entropy: Callable[[int], bytes] = os.urandom
) -> Capsule:
    """Return *request* in a capsule for the holder of *configuration*'s key.

    Args: entropy: gives the secret key that this capsule alone has.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import (
        X25519PrivateKey,
        X25519PublicKey,
    )
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    own = X25519PrivateKey.from_private_bytes(entropy(KEY_SIZE))
    shared = own.exchange(X25519PublicKey.from_public_bytes(configuration.public))
    header, encapsulated = configuration.header, own.public_key().public_bytes_raw()
    secrets = capsule_secrets(shared, encapsulated, configuration.public, context_of(header))
    sealed = AESGCM(secrets.key).encrypt(secrets.nonce, request, b"")
    return Capsule(header + encapsulated + sealed, encapsulated, secrets.answer)


class RelayTransport(RequestsTransport):
    """POST of capsules to a relay.  Only what the collector says in its own capsule counts."""

    accept = ANSWER_TYPE
    silence = longest = RELAY_WAIT

    def __init__(self, relay: str, relay_key: str, endpoint: str, write_key: str) -> None:
        """Send by *relay*, a whole URL, to the collector *endpoint* with *write_key*.

        Args:   relay_key: the collector's key configurations in base64url.
        Raises: InvalidParameterError: as of ``RequestsTransport``; a *relay_key* that is none; or
                the extra ``relay`` is not installed.
        """
        super().__init__(endpoint, write_key, content_type=REQUEST_TYPE)
        self._authority = self._base.partition("://")[2].partition("/")[0]
        self._base, self._auth, self._write_key = checked_url("relay", relay), no_key, write_key
        self._configuration = configuration_of(relay_key)
        self._more = NO_HEADERS  # of the last upload, such as a token
        if find_spec(_PACKAGE) is None:
            raise InvalidParameterError("relay", relay, _NOT_INSTALLED)

    def _request(
        self, path: str, body: bytes | None, limit: float, more: Mapping[str, str]
    ) -> Generator[Answer, None, None]:
        """Yield the collector's answer, once it came whole, or that of the way without its body."""
        self._load((*NEEDED, *_NEEDED))
        capsule = seal(self._configuration, self._inner(path, body, more))
        *_, whole = self._answers("", capsule.message, limit)  # half a capsule says nothing
        yield _opened(capsule, whole)

    def _inner(self, path: str, body: bytes | None, more: Mapping[str, str] = NO_HEADERS) -> bytes:
        """Return the request in the capsule; one for a list is as long as one with an upload."""
        if body is not None:
            self._more = more
        fields = (
            ("authorization", f"Bearer {self._write_key}"),
            ("content-type", JSON),
            *((name.lower(), text) for name, text in self._more.items()),
        )
        content = b" " * SIZE_CLASSES[0] if body is None else body
        upload = Request("POST", "https", self._authority, PATH, fields, content)
        encoded = binary_http.encode_request(upload)
        if body is not None:
            return encoded
        listed = Request("GET", "https", self._authority, path)
        return binary_http.encode_request(listed, len(encoded))


def configuration_of(relay_key: str) -> KeyConfiguration:
    """Return the first usable key of *relay_key*.  Raises InvalidParameterError."""
    try:
        usable = decode_configurations(from_base64url(relay_key))
    except (ValueError, TypeError, AttributeError):
        usable = []
    if not usable:
        raise InvalidParameterError("relay_key", "(not shown)", _KEY_RULE)
    return usable[0]


def _opened(capsule: Capsule, answer: Answer) -> Answer:
    """Return what the collector answered, or the relay: its word on an upload does not count."""
    kind = answer.content_type.partition(";")[0].strip().lower()
    if answer.status != OK or kind != ANSWER_TYPE:
        return Answer(answer.status if answer.status != OK else 0, answer.retry_after)
    try:
        inner = binary_http.decode_response(capsule.open_answer(answer.body))
    except ValueError:
        raise TransportError("no answer: the relay's cannot be opened") from None
    fields = dict(inner.fields)
    wait = wait_of(inner.status, fields.get("retry-after"), fields.get("date"))
    return Answer(inner.status, wait, inner.content, fields.get("content-type", ""))
