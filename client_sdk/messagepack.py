"""MessagePack, as far as an upload needs it: maps, lists, text, bytes and whole numbers.

The shortest form of everything, so that equal values are equal bytes.

Source: the MessagePack specification, github.com/msgpack/msgpack/blob/master/spec.md.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

_UNSIGNED: Final = ((1 << 8, ">BB", 0xCC), (1 << 16, ">BH", 0xCD), (1 << 32, ">BI", 0xCE))
_SIGNED: Final = ((1 << 7, ">Bb", 0xD0), (1 << 15, ">Bh", 0xD1), (1 << 31, ">Bi", 0xD2))
_TEXT: Final = ((1 << 8, ">BB", 0xD9), (1 << 16, ">BH", 0xDA), (1 << 32, ">BI", 0xDB))
_BYTES: Final = ((1 << 8, ">BB", 0xC4), (1 << 16, ">BH", 0xC5), (1 << 32, ">BI", 0xC6))
_LIST: Final = ((1 << 16, ">BH", 0xDC), (1 << 32, ">BI", 0xDD))
_MAP: Final = ((1 << 16, ">BH", 0xDE), (1 << 32, ">BI", 0xDF))


def pack(value: object) -> bytes:
    """Return *value* as MessagePack; a mapping keeps its order.

    Raises: TypeError: of a kind that no upload holds.  ValueError: too large for the format.
    """
    parts: list[bytes] = []
    _append(value, parts)
    return b"".join(parts)


def _append(value: object, parts: list[bytes]) -> None:
    match value:
        case bool() | float() | None:
            raise TypeError(f"{type(value).__name__}: is in no upload")
        case int():
            parts.append(_integer(value))
        case str():
            text = value.encode("utf-8")
            parts += (_head(len(text), _TEXT, 0xA0, 32), text)
        case bytes():
            parts += (_head(len(value), _BYTES), value)
        case list() | tuple():
            parts.append(_head(len(value), _LIST, 0x90, 16))
            for item in value:
                _append(item, parts)
        case Mapping():
            parts.append(_head(len(value), _MAP, 0x80, 16))
            for key, item in value.items():
                _append(key, parts)
                _append(item, parts)
        case _:
            raise TypeError(f"{type(value).__name__}: is in no upload")


def _integer(value: int) -> bytes:
    if -32 <= value < 128:
        return struct.pack(">b" if value < 0 else ">B", value)
    if value > 0:
        return _head(value, (*_UNSIGNED, (1 << 64, ">BQ", 0xCF)))
    for limit, form, tag in (*_SIGNED, (1 << 63, ">Bq", 0xD3)):
        if value >= -limit:
            return struct.pack(form, tag, value)
    raise ValueError("must fit 64 bits")


def _head(
    size: int, forms: tuple[tuple[int, str, int], ...], short: int = 0, below: int = 0
) -> bytes:
    """Return the first form that *size* fits: in one byte with the tag *short* if it is *below*."""
    if size < below:
        return bytes([short | size])
    for limit, form, tag in forms:
        if size < limit:
            return struct.pack(form, tag, size)
    raise ValueError("must fit the sizes of the format")
