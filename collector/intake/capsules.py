"""Open capsules that a relay carried, and seal their answers.  No network, no clock, no store.

Whoever made a capsule is not in it.  All that can be wrong with one is one error, so that nobody
learns from an answer why it was not opened.

HPKE is that of ``pyhpke``, loaded where a collector has keys of capsules.

Source: RFC 9458, sections 4.3 and 4.4; RFC 9180, base mode.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from client_sdk.core import binary_http
from client_sdk.core.binary_http import Fields, Request, Response
from client_sdk.core.limits import MAX_DEVICE_BODY, SIZE_CLASSES
from client_sdk.core.oblivious import (
    AEAD,
    ANSWER_OVERHEAD,
    EXPORT_LABEL,
    HEADER_SIZE,
    KDF,
    KEM,
    KEY_SIZE,
    MAX_HEAD,
    OVERHEAD,
    SECRET_SIZE,
    answer_keys,
    info_of,
)

from ..core.errors import CapsuleError, MalformedUploadError, MissingPackageError
from .oblivious_keys import ObliviousKey

MAX_CAPSULE: Final = OVERHEAD + MAX_HEAD + MAX_DEVICE_BODY  # bytes
_EXPECT: Final = "expect"  # of a header that no capsule can have: its answer has no parts


class CachedKey:
    """A secret key as HPKE uses it, whose public half is worked out once: half of an opening."""

    def __init__(self, secret: Any) -> None:
        """Take a secret key of X25519."""
        self._secret, self._public = secret, secret.public_key()
        self.raw = self

    def public_key(self) -> Any:
        """Return the public half."""
        return self._public

    def exchange(self, public: Any) -> bytes:
        """Return the secret that is shared with the holder of *public*'s other half."""
        shared: bytes = self._secret.exchange(public)
        return shared


@dataclass(frozen=True)
class OpenCapsule:
    """What was in a capsule, and what its answer is sealed by."""

    request: bytes = field(repr=False)
    encapsulated: bytes
    secret: bytes = field(repr=False)
    entropy: Callable[[int], bytes] = field(default=os.urandom, repr=False)

    def seal(self, response: bytes) -> bytes:
        """Return the sealed answer *response*."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = self.entropy(SECRET_SIZE)
        key, aead_nonce = answer_keys(self.secret, self.encapsulated, nonce)
        return nonce + AESGCM(key).encrypt(aead_nonce, response, b"")

    def answer(self, status: int, fields: Fields, content: bytes) -> bytes:
        """Return a sealed response whose size is one of few, as those of uploads are."""
        response = Response(status, fields, content)
        size = len(binary_http.encode_response(response)) + ANSWER_OVERHEAD
        padded = next((whole for whole in SIZE_CLASSES if size <= whole), size)
        return self.seal(binary_http.encode_response(response, padded - ANSWER_OVERHEAD))

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


class Opener:
    """Opens what is sealed to one of a collector's keys."""

    def __init__(self, keys: Iterable[ObliviousKey]) -> None:
        """Take the keys.  Raises MissingPackageError."""
        try:
            from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
            from pyhpke import AEADId, CipherSuite, KDFId, KEMId
        except ImportError as error:
            text = "capsules need pip install 'hearsay-telemetry[collector]'"
            raise MissingPackageError(text) from error
        self._suite = CipherSuite.new(KEMId(KEM), KDFId(KDF), AEADId(AEAD))
        # What a capsule begins with decides the key; any other beginning is none of ours.
        self._keys: dict[bytes, Any] = {
            key.configuration.header: CachedKey(X25519PrivateKey.from_private_bytes(key.secret))
            for key in keys
        }

    def open(self, message: bytes) -> OpenCapsule:
        """Return what is in the capsule *message*.  Raises CapsuleError, for whatever reason."""
        header, rest = message[:HEADER_SIZE], message[HEADER_SIZE:]
        encapsulated, sealed = rest[:KEY_SIZE], rest[KEY_SIZE:]
        key = self._keys.get(header)
        if key is None:
            raise CapsuleError
        try:
            context = self._suite.create_recipient_context(encapsulated, key, info_of(header))
            request = context.open(sealed)
            secret = context.export(EXPORT_LABEL, SECRET_SIZE)
        except Exception:  # noqa: BLE001  # of several libraries, and nobody is to learn which
            raise CapsuleError from None
        return OpenCapsule(request, encapsulated, secret)
