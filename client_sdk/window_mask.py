"""Masks: what a window holds, as bytes that say nothing without the device secret.

Each write draws a nonce, and so a keystream of its own.  A tag finds damage, and a secret, a place
or a layout other than those it was written with.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from hmac import compare_digest
from typing import TYPE_CHECKING, Final, NamedTuple

from .core.dataclass import dataclass
from .core.randomness import Randomness
from .storage.secret import Secret

if TYPE_CHECKING:
    from .storage.schema import Transaction

NONCE_SIZE: Final = 16  # bytes; one of 2^128 for each write
TAG_SIZE: Final = 16  # bytes

_STREAM: Final = b"hearsay window 1 stream\0"
_TAG: Final = b"hearsay window 1 tag\0"
_EPOCH: Final = 8  # bytes


class Key(NamedTuple):
    """Which window: of a gateway's device or of none, a metric and an epoch."""

    device: bytes
    digest: bytes
    epoch: int

    @property
    def place(self) -> bytes:
        """The key as bytes, of which none are the beginning of another's."""
        epoch = self.epoch.to_bytes(_EPOCH, "big", signed=True)
        return bytes([len(self.device)]) + self.device + self.digest + epoch


@dataclass(frozen=True)
class Masker:
    """Masks and unmasks within one transaction; the secret is read, or made, when first needed."""

    tx: Transaction
    secret: Secret
    randomness: Randomness

    def mask(self, key: Key, content: bytes) -> bytes:
        """Return *content* masked for its window.  Raises StoreError, EntropyError."""
        return mask(self._secret, key.place, content, self.randomness)

    def unmask(self, key: Key, masked: bytes) -> bytes | None:
        """Return the content of a window; None if this device's secret did not mask it."""
        return unmask(self._secret, key.place, masked)

    @cached_property
    def _secret(self) -> bytes:
        return self.secret.get(self.tx)


def mask(secret: bytes, place: bytes, content: bytes, randomness: Randomness) -> bytes:
    """Return *content* masked under the *secret*.

    Args:   place: what the content belongs to; no place is the beginning of another.
    Raises: EntropyError: no nonce could be drawn.
    """
    nonce = randomness.uniform(1 << (8 * NONCE_SIZE)).to_bytes(NONCE_SIZE, "big")
    context = secret + place + nonce
    return nonce + _xor_keystream(context, content) + _tag(context, content)


def unmask(secret: bytes, place: bytes, masked: bytes) -> bytes | None:
    """Return the content of *masked*; None if this secret did not mask it for this place."""
    if len(masked) < NONCE_SIZE + TAG_SIZE:
        return None
    context = secret + place + masked[:NONCE_SIZE]
    content = _xor_keystream(context, masked[NONCE_SIZE:-TAG_SIZE])
    return content if compare_digest(_tag(context, content), masked[-TAG_SIZE:]) else None


def _xor_keystream(context: bytes, content: bytes) -> bytes:
    """Return *content* XOR the keystream of *context*; twice gives it back."""
    stream = hashlib.shake_256(_STREAM + context).digest(len(content))
    masked = int.from_bytes(content, "big") ^ int.from_bytes(stream, "big")
    return masked.to_bytes(len(content), "big")


def _tag(context: bytes, content: bytes) -> bytes:
    return hashlib.shake_256(_TAG + context + content).digest(TAG_SIZE)
