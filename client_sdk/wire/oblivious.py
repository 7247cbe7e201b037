"""The bytes of Oblivious HTTP that a device writes and a collector reads, or the other way round.

A capsule is a header, the public half of a key of its own, and a sealed request.  Its answer is a
nonce and a sealed response, under keys that only the two ends of the capsule can work out.  X25519
and AES-GCM are left to ``cryptography``, at either end.

Source: RFC 9458, sections 3 (key configurations), 4.3 (requests) and 4.4 (answers); RFC 9180,
sections 4.1 and 5.1 (HPKE in mode base).
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
MAX_HEAD: Final = 4_096  # bytes of a request without its content; ours has some 150 and a key

_EXPORT_LABEL: Final = b"message/bhttp response"  # of the secret that HPKE exports
_INFO_LABEL: Final = b"message/bhttp request\0"
_NONCE_SIZE: Final = 12  # bytes of a nonce of the AEAD
_HASH_SIZE: Final = 32  # bytes of SHA-256
_SUITE: Final = KDF.to_bytes(2, "big") + AEAD.to_bytes(2, "big")
_KEM_SUITE: Final = b"KEM" + KEM.to_bytes(2, "big")
_HPKE_SUITE: Final = b"HPKE" + KEM.to_bytes(2, "big") + _SUITE
_VERSION: Final = b"HPKE-v1"
_MODE_BASE: Final = b"\0"


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
    """Return the usable configurations of a list (section 3.2), in its order.

    Raises: ValueError: *data* is no such list.
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


class CapsuleSecrets(NamedTuple):
    """What both ends of a capsule work out."""

    key: bytes  # of the request
    nonce: bytes
    answer: bytes  # from which key and nonce of the answer follow


def context_of(header: bytes) -> bytes:
    """Return what the keys of all capsules with *header* are bound to (RFC 9180, section 5.1)."""
    hashes = (
        _extract(b"", b"psk_id_hash", b""),
        _extract(b"", b"info_hash", _INFO_LABEL + header),
    )
    return _MODE_BASE + b"".join(hashes)


def capsule_secrets(
    shared: bytes, encapsulated: bytes, public: bytes, context: bytes
) -> CapsuleSecrets:
    """Return the secrets of one capsule.

    Args: shared: what X25519 gives of one end's secret key and the other's public one.
          encapsulated: the public key that the capsule alone has.  public: the collector's.
          context: see ``context_of``.
    """
    pseudorandom = _extract(b"", b"eae_prk", shared, _KEM_SUITE)
    both = encapsulated + public
    shared = _expand(pseudorandom, b"shared_secret", both, _HASH_SIZE, _KEM_SUITE)
    secret = _extract(shared, b"secret", b"")
    exporter = _expand(secret, b"exp", context, _HASH_SIZE)
    return CapsuleSecrets(
        _expand(secret, b"key", context, SECRET_SIZE),
        _expand(secret, b"base_nonce", context, _NONCE_SIZE),
        _expand(exporter, b"sec", _EXPORT_LABEL, SECRET_SIZE),
    )


def answer_keys(secret: bytes, encapsulated: bytes, nonce: bytes) -> tuple[bytes, bytes]:
    """Return key and nonce of the answer to a capsule: HKDF of its exported *secret*."""
    random_key = hmac.digest(encapsulated + nonce, secret, "sha256")
    key = hmac.digest(random_key, b"key\x01", "sha256")[:SECRET_SIZE]
    return key, hmac.digest(random_key, b"nonce\x01", "sha256")[:_NONCE_SIZE]


def _extract(salt: bytes, label: bytes, material: bytes, suite: bytes = _HPKE_SUITE) -> bytes:
    """Return LabeledExtract of RFC 9180, section 4."""
    return hmac.digest(salt, _VERSION + suite + label + material, "sha256")


def _expand(key: bytes, label: bytes, info: bytes, size: int, suite: bytes = _HPKE_SUITE) -> bytes:
    """Return LabeledExpand of RFC 9180, section 4, of one block at most."""
    text = size.to_bytes(2, "big") + _VERSION + suite + label + info
    return hmac.digest(key, text + b"\x01", "sha256")[:size]
