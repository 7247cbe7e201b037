"""Read a body within limits, compressed or not: a bomb costs no more than an honest body."""

from __future__ import annotations

import zlib
from typing import IO, Final

from ..core.errors import BodyTooLargeError, MalformedUploadError

_GZIP: Final = 16 + zlib.MAX_WBITS  # zlib's way to say: a gzip header is expected


def require_size(size: int, limit: int) -> None:
    """Raise BodyTooLargeError if *size* bytes are more than *limit*."""
    if size > limit:
        raise BodyTooLargeError(f"the body may have at most {limit} bytes here")


def read(stream: IO[bytes], limit: int) -> bytes:
    """Return the whole *stream*: one read may bring only what has arrived.

    Raises: BodyTooLargeError: it has more than *limit* bytes, of which one is read.
    """
    parts: list[bytes] = []
    left = limit + 1
    while left > 0 and (part := stream.read(left)):
        parts.append(part)
        left -= len(part)
    require_size(limit + 1 - left, limit)
    return b"".join(parts)


def inflate(body: bytes, limit: int) -> bytes:
    """Return gzip *body* inflated, of at most *limit* bytes.

    Raises: BodyTooLargeError: it would be longer.  MalformedUploadError: not whole gzip.
    """
    inflater = zlib.decompressobj(_GZIP)
    try:
        inflated = inflater.decompress(body, limit + 1)
    except zlib.error:
        raise MalformedUploadError("the body is not valid gzip") from None
    if len(inflated) > limit:
        raise BodyTooLargeError(f"the body may inflate to at most {limit} bytes for this key")
    if not inflater.eof or inflater.unused_data:
        raise MalformedUploadError("the body is not one whole gzip stream")
    return inflated
