"""Open capsules that a relay carried, and seal their answers.  No network, no clock, no store.

Whoever made a capsule is not in it.  All that can be wrong with one is one error, so that nobody
learns from an answer why it was not opened.

Source: RFC 9458, sections 4.3 and 4.4; RFC 9180, sections 4.1 and 5.1, mode base, whose labels are
here: a library for both took twice as long.  X25519 and AES-GCM are those of ``cryptography``,
loaded where a collector has keys of capsules.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from client_sdk.core.limits import MAX_DEVICE_BODY, SIZE_CLASSES
from client_sdk.wire import binary_http
from client_sdk.wire.binary_http import Fields, Request, Response
from client_sdk.wire.oblivious import (
    AEAD,
    ANSWER_OVERHEAD,
    EXPORT_LABEL,
    HEADER_SIZE,
    KDF,
    KEM,
    KEY_SIZE,
    MAX_HEAD,
    NONCE_SIZE,
    OVERHEAD,
    SECRET_SIZE,
    answer_keys,
    info_of,
)

from ..core.errors import CapsuleError, MalformedUploadError
from .oblivious_keys import ObliviousKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAX_CAPSULE: Final = OVERHEAD + MAX_HEAD + MAX_DEVICE_BODY  # bytes
_VERSION: Final = b"HPKE-v1"
_KEM_SUITE: Final = b"KEM" + KEM.to_bytes(2, "big")
_HPKE_SUITE: Final = b"HPKE" + b"".join(number.to_bytes(2, "big") for number in (KEM, KDF, AEAD))
_MODE_BASE: Final = b"\0"
_HASH_SIZE: Final = 32  # bytes of SHA-256
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
        """Return a sealed response whose size is one of few, as those of uploads are."""
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
        info = info_of(key.configuration.header)
        hashes = _extract(b"", b"psk_id_hash", b""), _extract(b"", b"info_hash", info)
        self._context = b"".join((_MODE_BASE, *hashes))

    def open(self, encapsulated: bytes, sealed: bytes) -> OpenCapsule:
        """Return what is in a capsule.  Raises what ``cryptography`` raises."""
        shared = self._exchange(self._point(encapsulated))
        pseudorandom = _extract(b"", b"eae_prk", shared, _KEM_SUITE)
        both = encapsulated + self._public
        secret = _expand(pseudorandom, b"shared_secret", both, _HASH_SIZE, _KEM_SUITE)
        secret = _extract(secret, b"secret", b"")
        key = _expand(secret, b"key", self._context, SECRET_SIZE)
        nonce = _expand(secret, b"base_nonce", self._context, NONCE_SIZE)
        exporter = _expand(secret, b"exp", self._context, _HASH_SIZE)
        request = self._cipher(key).decrypt(nonce, sealed, b"")
        answer_secret = _expand(exporter, b"sec", EXPORT_LABEL, SECRET_SIZE)
        return OpenCapsule(request, encapsulated, answer_secret, self._cipher)


def _extract(salt: bytes, label: bytes, material: bytes, suite: bytes = _HPKE_SUITE) -> bytes:
    """Return LabeledExtract of RFC 9180, section 4."""
    return hmac.digest(salt, _VERSION + suite + label + material, "sha256")


def _expand(key: bytes, label: bytes, info: bytes, size: int, suite: bytes = _HPKE_SUITE) -> bytes:
    """Return LabeledExpand of RFC 9180, section 4, of one block at most."""
    text = size.to_bytes(2, "big") + _VERSION + suite + label + info
    return hmac.digest(key, text + b"\x01", "sha256")[:size]


class Opener:
    """Opens what is sealed to one of a collector's keys."""

    def __init__(self, keys: Iterable[ObliviousKey]) -> None:
        """Take the keys."""
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
        except Exception:  # noqa: BLE001  # of several kinds, and nobody is to learn which
            raise CapsuleError from None
