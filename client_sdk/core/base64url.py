"""Bytes as text: base64url without padding (RFC 4648, section 5), and hexadecimal digits."""

from __future__ import annotations

_URL = str.maketrans("+/", "-_", "=")
_STANDARD = bytes.maketrans(b"-_+/=", b"+/***")  # the alphabet of binascii; * is in neither
_PADDING = (b"", b"===", b"==", b"=")  # length modulo 4 is the index; it is never 1


def base64url(data: bytes) -> str:
    """Return *data* as base64url without padding (RFC 4648, section 5)."""
    import binascii  # a start has no use for it

    return binascii.b2a_base64(data, newline=False).decode("ascii").translate(_URL)


def is_hex(text: object, size: int) -> bool:
    """Whether *text* is *size* bytes in small hexadecimal digits."""
    return isinstance(text, str) and len(text) == 2 * size and set(text) <= set("0123456789abcdef")


def from_base64url(text: str) -> bytes:
    """Return the bytes of unpadded base64url *text*.

    Raises: ValueError: a character outside the alphabet, padding, or an impossible length.
    """
    import binascii

    padded = text.encode(errors="replace").translate(_STANDARD) + _PADDING[len(text) % 4]
    return binascii.a2b_base64(padded, strict_mode=True)
