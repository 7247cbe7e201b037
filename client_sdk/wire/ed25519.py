"""Signatures that the standard library can check: Ed25519, in plain integers.

They prove who wrote a list of retired metrics.  A forger could silence metrics and nothing else,
so no secret and no budget depends on this file.  Only a developer's own machine ever signs, so the
time that signing takes reveals nothing.

Source: RFC 8032, section 5.1; points are (X, Y, Z, T) with x = X/Z, y = Y/Z, xy = T/Z (section
5.1.4).  As there, S of a signature must be below the order, and coordinates below p.
"""

from __future__ import annotations

from hashlib import sha512

from ..core.typing import Final, TypeAlias

_SEED_SIZE: Final = 32  # bytes of a secret key, and of a public one
SIGNATURE_SIZE: Final = 64  # bytes

_P: Final = 2**255 - 19
_ORDER: Final = 2**252 + 27742317777372353535851937790883648493
_D: Final = -121665 * pow(121666, -1, _P) % _P
_ROOT: Final = pow(2, (_P - 1) // 4, _P)  # of -1

_Point: TypeAlias = tuple[int, int, int, int]
_ZERO: Final[_Point] = (0, 1, 1, 0)


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether *signature* signs *message* with the secret key of *public*."""
    if len(public) != _SEED_SIZE or len(signature) != SIGNATURE_SIZE:
        return False
    key, commitment = _point(public), _point(signature[:32])
    answer = int.from_bytes(signature[32:], "little")
    if key is None or commitment is None or answer >= _ORDER:
        return False
    challenge = _hash(signature[:32] + public + message)
    return _equal(_times(answer, _BASE), _add(commitment, _times(challenge, key)))


def public_of(seed: bytes) -> bytes:
    """Return the public key of the secret *seed*."""
    return _bytes(_times(_secret(seed)[0], _BASE))


def sign(seed: bytes, message: bytes) -> bytes:
    """Return the signature of *message* by the secret *seed*, always the same."""
    secret, prefix = _secret(seed)
    nonce = _hash(prefix + message)
    commitment = _bytes(_times(nonce, _BASE))
    challenge = _hash(commitment + public_of(seed) + message)
    answer = (nonce + challenge * secret) % _ORDER
    return commitment + answer.to_bytes(32, "little")


def _secret(seed: bytes) -> tuple[int, bytes]:
    """Return the scalar of *seed*, its low and high bits set as they must be, and the prefix."""
    digest = sha512(seed).digest()
    scalar = int.from_bytes(digest[:32], "little") & ((1 << 254) - 8) | (1 << 254)
    return scalar, digest[32:]


def _hash(data: bytes) -> int:
    return int.from_bytes(sha512(data).digest(), "little") % _ORDER


def _add(p: _Point, q: _Point) -> _Point:
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % _P, (p[1] + p[0]) * (q[1] + q[0]) % _P
    c, d = 2 * p[3] * q[3] * _D % _P, 2 * p[2] * q[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(scalar: int, point: _Point) -> _Point:
    total = _ZERO
    while scalar:
        if scalar & 1:
            total = _add(total, point)
        point, scalar = _add(point, point), scalar >> 1
    return total


def _equal(p: _Point, q: _Point) -> bool:
    return (p[0] * q[2] - q[0] * p[2]) % _P == 0 == (p[1] * q[2] - q[1] * p[2]) % _P


def _point(text: bytes) -> _Point | None:
    """Return the point that *text* encodes; None if it is none."""
    y = int.from_bytes(text, "little")
    sign_bit, y = y >> 255, y & ((1 << 255) - 1)
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT % _P
    if (x * x - square) % _P or (x == 0 and sign_bit):
        return None
    x = _P - x if x & 1 != sign_bit else x
    return x, y, 1, x * y % _P


def _bytes(point: _Point) -> bytes:
    inverse = pow(point[2], -1, _P)
    x, y = point[0] * inverse % _P, point[1] * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


_BASE_POINT: Final = _point((4 * pow(5, -1, _P) % _P).to_bytes(32, "little"))
_BASE: Final[_Point] = _BASE_POINT or _ZERO
