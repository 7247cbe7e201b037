"""The randomness of permanent responses: drawn again from one secret, so that none is stored.

A guarantee about permanent responses is therefore computational: it rests on SHAKE-256 and on the
secret never leaving the device.

Source: NIST FIPS 202, SHA-3 Standard: SHAKE-256, an extendable-output function.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

from .core.errors import InvalidParameterError
from .core.randomness import ByteRandomness

SECRET_SIZE: Final = 32  # bytes of operating system entropy, one secret a device
ITEM_SIZE: Final = 4  # bytes of an encoded item, big-endian; above MAX_DOMAIN_SIZE
_FIRST_SQUEEZE: Final = 256  # bytes; a GRR or a hash report needs less


def permanent_randomness(secret: bytes, digest: bytes, encoded: bytes) -> ByteRandomness:
    """Return the primitives over SHAKE-256(secret || digest || encoded): the same every time.

    Args:   secret: SECRET_SIZE bytes.  digest: of the metric, of fixed size.
            encoded: what the response is permanent for; ``encode_item`` of a value.
    Raises: InvalidParameterError: the secret has another size; it is not shown.
    """
    if len(secret) != SECRET_SIZE:
        raise InvalidParameterError("secret", "...", f"must be {SECRET_SIZE} bytes")
    return ByteRandomness(_squeeze(secret + digest + encoded))


def encode_item(item: int) -> bytes:
    """Return the fixed-width form of *item* from which its permanent response is derived."""
    return item.to_bytes(ITEM_SIZE, "big")


def _squeeze(absorbed: bytes) -> Callable[[int], bytes]:
    """Return a reader of the SHAKE-256 stream of *absorbed*, no byte twice."""
    shake = hashlib.shake_256(absorbed)
    squeezed, position = b"", 0

    def read(count: int) -> bytes:
        nonlocal squeezed, position
        start, position = position, position + count
        if position > len(squeezed):  # hashlib squeezes from the beginning only
            squeezed = shake.digest(max(2 * position, _FIRST_SQUEEZE))
        return squeezed[start:position]

    return read
