"""Read a body within limits, compressed or not: a bomb costs no more than an honest body."""

from __future__ import annotations

import zlib
from typing import IO, Final

from flask import request

from client_sdk.limits import MAX_INFLATION

from ..errors import BodyTooLargeError, MalformedUploadError, UnsupportedTypeError

_GZIP: Final = 16 + zlib.MAX_WBITS  # zlib's way to say: a gzip header is expected


def read_body(limit: int) -> bytes:
    """Return the body, inflated if it came as gzip.

    Args:   limit: bytes on the wire; inflated it may have MAX_INFLATION times as many.
    Raises: BodyTooLargeError, MalformedUploadError, UnsupportedTypeError: another encoding.
    """
    if (request.content_length or 0) > limit:
        raise BodyTooLargeError(f"the body may have at most {limit} bytes for this key")
    body = _read(request.stream, limit + 1)
    if len(body) > limit:
        raise BodyTooLargeError(f"the body may have at most {limit} bytes for this key")
    encoding = request.headers.get("Content-Encoding", "identity").lower()
    if encoding == "identity":
        return body
    if encoding != "gzip":
        raise UnsupportedTypeError("Content-Encoding must be gzip or absent")
    return inflate(body, limit * MAX_INFLATION)


def _read(stream: IO[bytes], size: int) -> bytes:
    """Return the next *size* bytes, or all there are: one read may bring only what has arrived."""
    parts: list[bytes] = []
    while size > 0 and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
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
