"""The bytes of Oblivious HTTP that a device writes and a collector reads, or the other way round.

A capsule is a header, the public half of a key of its own, and a sealed request.  Its answer is a
nonce and a sealed response, under keys that only the two ends of the capsule can work out.  HPKE
itself is left to a library at either end.

Source: RFC 9458, sections 3 (key configurations), 4.3 (requests) and 4.4 (answers).
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from ..core.typing import Final, NamedTuple

PATH: Final = "/v1/oblivious"  # of the collector; relays forward to it
REQUEST_TYPE: Final = "message/ohttp-req"
ANSWER_TYPE: Final = "message/ohttp-res"

KEM: Final = 0x0020  # DHKEM(X25519, HKDF-SHA256)
KDF: Final = 0x0001  # HKDF-SHA256
AEAD: Final = 0x0001  # AES-128-GCM
KEY_SIZE: Final = 32  # bytes of a key of X25519, public or secret, and so of what is encapsulated
HEADER_SIZE: Final = 7  # bytes: identifiers of key, KEM, KDF and AEAD
TAG_SIZE: Final = 16  # bytes that AES-GCM adds
SECRET_SIZE: Final = 16  # bytes: the longer of key and nonce of the AEAD; of an answer's nonce too
OVERHEAD: Final = HEADER_SIZE + KEY_SIZE + TAG_SIZE  # bytes of a capsule around its request
ANSWER_OVERHEAD: Final = SECRET_SIZE + TAG_SIZE  # bytes around the response in an answer
MAX_HEAD: Final = 4_096  # bytes of a request beside its content; ours has some 150 and a key

EXPORT_LABEL: Final = b"message/bhttp response"  # of the secret that HPKE exports
_INFO_LABEL: Final = b"message/bhttp request\0"
NONCE_SIZE: Final = 12  # bytes of a nonce of the AEAD
_SUITE: Final = KDF.to_bytes(2, "big") + AEAD.to_bytes(2, "big")


class KeyConfiguration(NamedTuple):
    """A public key of a collector, by which capsules are sealed."""

    key_id: int
    public: bytes

    @property
    def header(self) -> bytes:
        """What begins a capsule that is sealed by this key."""
        return bytes([self.key_id]) + b"".join(n.to_bytes(2, "big") for n in (KEM, KDF, AEAD))

    def encode(self) -> bytes:
        """Return the key configuration of section 3.1, with one suite."""
        kem, length = KEM.to_bytes(2, "big"), len(_SUITE).to_bytes(2, "big")
        return b"".join((bytes([self.key_id]), kem, self.public, length, _SUITE))


def encode_configurations(configurations: Iterable[KeyConfiguration]) -> bytes:
    """Return the list of section 3.2, application/ohttp-keys: each after its length."""
    encoded = [configuration.encode() for configuration in configurations]
    return b"".join(len(text).to_bytes(2, "big") + text for text in encoded)


def decode_configurations(data: bytes) -> list[KeyConfiguration]:
    """Return those of the list of section 3.2 that can be used here, in its order.

    Raises: ValueError: it is no such list.
    """
    usable = []
    while data:
        size = int.from_bytes(data[:2], "big")
        configuration, data = data[2 : 2 + size], data[2 + size :]
        if len(configuration) < size or size < HEADER_SIZE:
            raise ValueError("key configurations: must be whole")
        kem = int.from_bytes(configuration[1:3], "big")
        if kem != KEM:
            continue  # how long its key is, only those know who know it
        end = 3 + KEY_SIZE
        suites = configuration[end + 2 :]
        if len(suites) != int.from_bytes(configuration[end : end + 2], "big") or len(suites) % 4:
            raise ValueError("key configurations: must have a list of suites")
        if any(suites[at : at + 4] == _SUITE for at in range(0, len(suites), 4)):
            usable.append(KeyConfiguration(configuration[0], configuration[3:end]))
    return usable


def info_of(header: bytes) -> bytes:
    """Return what HPKE binds a capsule with *header* to."""
    return _INFO_LABEL + header


def answer_keys(secret: bytes, encapsulated: bytes, nonce: bytes) -> tuple[bytes, bytes]:
    """Return key and nonce of the answer to a capsule: HKDF of its exported *secret*."""
    random_key = hmac.digest(encapsulated + nonce, secret, "sha256")
    key = hmac.digest(random_key, b"key\x01", "sha256")[:SECRET_SIZE]
    return key, hmac.digest(random_key, b"nonce\x01", "sha256")[:NONCE_SIZE]
