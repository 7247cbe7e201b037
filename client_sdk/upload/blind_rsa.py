"""Blind RSA signatures, the client's half, in plain integers of the standard library.

The signer sees a number that is uniform whatever is signed, so what it signs and what is shown
later have nothing in common.  That holds for a key whose signing is a permutation; a signer could
make another kind on purpose, and then tell requests apart.  So each key comes with a proof, checked
before it is used.

The time of these computations tells nothing to who could use it: the signer, who might measure it,
gets one answer a token by a connection that begins when all is computed.

Source: RFC 9474, sections 4.1 to 4.4: RSABSSA-SHA384-PSS-Deterministic; RFC 8017, sections 9.1.1
and B.2.1.  The proof is the part for a prime exponent of Goldberg, Reyzin, Sagga, Baldimtsi, ePrint
2018/057, as derived here, since only its abstract was at hand.

Proof that a proof suffices: if the prime e divides the order of the group, at most one in e of its
elements has an e-th root.  The ROOTS challenges are hashes of the key, so who makes a key finds
roots of all with a chance of at most e^-ROOTS = 2^-128 a try.
"""

from __future__ import annotations

from hashlib import sha384
from math import gcd

from ..core.randomness import Randomness, draw_bytes
from ..core.typing import Final, NamedTuple
from ..wire.private_token import EXPONENT, ROOTS, permutation_targets

SALT_SIZE: Final = 48  # bytes
_HASH_SIZE: Final = 48  # bytes of SHA-384


class Blinding(NamedTuple):
    """A request, and what only its device knows of it."""

    blinded: bytes
    inverse: int


def blind(message: bytes, modulus: int, randomness: Randomness) -> Blinding:
    """Return *message* as the signer may see it.

    Raises: EntropyError.
    """
    while True:
        salt = draw_bytes(randomness, SALT_SIZE)
        factor = randomness.uniform(modulus)
        encoded = encode(message, salt, modulus.bit_length() - 1)
        # a product that shares a divisor with the modulus would show which message it hides
        if gcd(factor * int.from_bytes(encoded, "big"), modulus) == 1:
            return blind_with(encoded, modulus, factor)


def blind_with(encoded: bytes, modulus: int, factor: int) -> Blinding:
    """Return the message that was *encoded*, under *factor*."""
    size = (modulus.bit_length() + 7) // 8
    blinded = int.from_bytes(encoded, "big") * pow(factor, EXPONENT, modulus) % modulus
    return Blinding(blinded.to_bytes(size, "big"), pow(factor, -1, modulus))


def finalize(message: bytes, modulus: int, inverse: int, answer: bytes) -> bytes | None:
    """Return the signature of *message* in a signer's *answer*; None if there is none in it."""
    size = (modulus.bit_length() + 7) // 8
    number = int.from_bytes(answer, "big")
    if len(answer) != size or number >= modulus:
        return None
    signature = number * inverse % modulus
    encoded = pow(signature, EXPONENT, modulus)
    good = is_encoding(encoded, message, modulus.bit_length() - 1)
    return signature.to_bytes(size, "big") if good else None


def is_permutation(modulus: int, roots: tuple[int, ...]) -> bool:
    """Whether *roots* prove that signing with the key of *modulus* is a permutation."""
    return len(roots) == ROOTS and all(
        0 < root < modulus and pow(root, EXPONENT, modulus) == target
        for root, target in zip(roots, permutation_targets(modulus), strict=True)
    )


def encode(message: bytes, salt: bytes, bits: int) -> bytes:
    """Return EMSA-PSS of *message* in *bits* bits."""
    size = (bits + 7) // 8
    digest = _digest_of(message, salt)
    block = bytes(size - len(salt) - _HASH_SIZE - 2) + b"\x01" + salt
    masked = _masked(block, digest, bits)
    return masked + digest + b"\xbc"


def is_encoding(encoded: int, message: bytes, bits: int) -> bool:
    """Whether *encoded* is EMSA-PSS of *message* with some salt."""
    size = (bits + 7) // 8
    if encoded.bit_length() > bits:
        return False
    text = encoded.to_bytes(size, "big")
    masked, digest = text[: -_HASH_SIZE - 1], text[-_HASH_SIZE - 1 : -1]
    block = _masked(masked, digest, bits)
    padding = bytes(len(block) - SALT_SIZE - 1) + b"\x01"
    salt = block[-SALT_SIZE:]
    right = block[:-SALT_SIZE] == padding and digest == _digest_of(message, salt)
    return right and text[-1] == 0xBC


def _digest_of(message: bytes, salt: bytes) -> bytes:
    return sha384(bytes(8) + sha384(message).digest() + salt).digest()


def _masked(block: bytes, seed: bytes, bits: int) -> bytes:
    """Return *block* under the mask that *seed* gives; masked twice it is itself."""
    counters = range(-(-len(block) // _HASH_SIZE))
    mask = b"".join(sha384(seed + counter.to_bytes(4, "big")).digest() for counter in counters)
    number = int.from_bytes(block, "big") ^ int.from_bytes(mask[: len(block)], "big")
    excess = 8 * (len(block) + _HASH_SIZE + 1) - bits  # bits beyond, which are 0
    return (number & ((1 << (8 * len(block) - excess)) - 1)).to_bytes(len(block), "big")
