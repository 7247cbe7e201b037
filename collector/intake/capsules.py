"""Open capsules that a relay carried, and seal their answers.  No network, no clock, no store.

A capsule does not name its sender.  Every fault of a capsule is the same error, so that the answer
does not reveal why it was not opened.

``cryptography`` is loaded where a collector has keys of capsules.

Source: RFC 9458, sections 4.3 and 4.4.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from client_sdk.core.limits import MAX_DEVICE_BODY, SIZE_CLASSES
from client_sdk.wire import binary_http
from client_sdk.wire.binary_http import Fields, Request, Response
from client_sdk.wire.oblivious import (
    ANSWER_OVERHEAD,
    HEADER_SIZE,
    KEY_SIZE,
    MAX_HEAD,
    OVERHEAD,
    SECRET_SIZE,
    answer_keys,
    capsule_secrets,
    context_of,
)

from ..core.errors import CapsuleError, MalformedUploadError
from .oblivious_keys import ObliviousKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAX_CAPSULE: Final = OVERHEAD + MAX_HEAD + MAX_DEVICE_BODY  # bytes
_EXPECT: Final = "expect"  # of a header that no capsule can have: its answer has no parts


class OpenCapsule:
    """What was in a capsule, and what its answer is sealed by."""

    __slots__ = ("_cipher", "_entropy", "encapsulated", "request", "secret")

    def __init__(
        self,
        request: bytes,
        encapsulated: bytes,
        secret: bytes,
        cipher: Callable[[bytes], AESGCM],
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Take the *request* and the exported *secret*; *entropy* gives nonces."""
        self.request, self.encapsulated, self.secret = request, encapsulated, secret
        self._cipher, self._entropy = cipher, entropy

    def seal(self, response: bytes) -> bytes:
        """Return the sealed answer *response*."""
        nonce = self._entropy(SECRET_SIZE)
        key, aead_nonce = answer_keys(self.secret, self.encapsulated, nonce)
        return nonce + self._cipher(key).encrypt(aead_nonce, response, b"")

    def answer(self, status: int, fields: Fields, content: bytes) -> bytes:
        """Return a sealed response, padded to a size class like uploads."""
        response = binary_http.encode_response(Response(status, fields, content))
        size = len(response) + ANSWER_OVERHEAD
        padded = next((whole for whole in SIZE_CLASSES if size <= whole), size)
        return self.seal(response.ljust(padded - ANSWER_OVERHEAD, b"\0"))

    def read(self) -> Request:
        """Return the request.  Raises MalformedUploadError: it is none, or not a plain one."""
        try:
            request = binary_http.decode_request(self.request)
        except ValueError as error:
            raise MalformedUploadError(f"capsule: {error}") from None
        names = [name for name, _ in request.fields]
        if len({*names}) < len(names) or request.trailers or _EXPECT in names:
            rule = "fields must each be given once, without trailers and expectations"
            raise MalformedUploadError(f"capsule: {rule}")
        return request


class _Recipient:
    """One key, with what of HPKE does not change from capsule to capsule."""

    def __init__(self, key: ObliviousKey) -> None:
        from cryptography.hazmat.primitives.asymmetric import x25519
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._point, self._cipher = x25519.X25519PublicKey.from_public_bytes, AESGCM
        self._exchange = x25519.X25519PrivateKey.from_private_bytes(key.secret).exchange
        self._public = key.configuration.public
        self._context = context_of(key.configuration.header)

    def open(self, encapsulated: bytes, sealed: bytes) -> OpenCapsule:
        """Return what is in a capsule.  Raises what ``cryptography`` raises."""
        shared = self._exchange(self._point(encapsulated))
        secrets = capsule_secrets(shared, encapsulated, self._public, self._context)
        request = self._cipher(secrets.key).decrypt(secrets.nonce, sealed, b"")
        return OpenCapsule(request, encapsulated, secrets.answer, self._cipher)


class Opener:
    """Opens what is sealed to one of a collector's keys."""

    def __init__(self, keys: Iterable[ObliviousKey]) -> None:

        # What a capsule begins with decides the key; any other beginning is none of ours.
        self._keys = {key.configuration.header: _Recipient(key) for key in keys}

    def open(self, message: bytes) -> OpenCapsule:
        """Return what is in the capsule *message*.  Raises CapsuleError, for whatever reason."""
        recipient = self._keys.get(message[:HEADER_SIZE])
        if recipient is None:
            raise CapsuleError
        encapsulated = message[HEADER_SIZE : HEADER_SIZE + KEY_SIZE]
        try:
            return recipient.open(encapsulated, message[HEADER_SIZE + KEY_SIZE :])
        except Exception:  # noqa: BLE001  # of several kinds; the sender must not learn which
            raise CapsuleError from None
