"""Gzip bodies are inflated within a bound; what is not one whole stream is refused."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
from flask.testing import FlaskClient

from client_sdk.core.limits import MAX_DEVICE_BODY, MAX_INFLATION
from client_sdk.core.wire import Column
from collector.core.errors import BodyTooLargeError, MalformedUploadError
from collector.web.ingest.upload import inflate
from tests.support.crowds.uploads import (
    TODAY,
    as_json,
    registry,
    upload,
)
from tests.support.sites.posting import post

PAGE = registry().metric("page")
BODY = as_json(upload([Column(PAGE.digest, TODAY, b"\2")]))
MEGABYTE = 1 << 20
BOMB_SIZE = 50 * MEGABYTE  # under 64 KiB as gzip


def padded(size: int) -> bytes:
    """Return an upload of *size* bytes: JSON may end in spaces."""
    return BODY.ljust(size)


def bomb(size: int) -> bytes:
    deflater = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS)
    megabyte = bytes(MEGABYTE)
    parts = [deflater.compress(megabyte) for _ in range(size // MEGABYTE)]
    return b"".join((*parts, deflater.flush()))


def test_gzip_is_read(client: FlaskClient) -> None:
    response = post(client, gzip.compress(BODY), encoding="gzip")

    assert response.get_json() == {"accepted": 1, "duplicate": False, "rejected": []}


@pytest.mark.parametrize("over", [0, 1])
def test_gzip_may_inflate_to_a_multiple_of_the_limit(client: FlaskClient, over: int) -> None:
    body = gzip.compress(padded(MAX_DEVICE_BODY * MAX_INFLATION + over))

    response = post(client, body, encoding="gzip")

    assert response.status_code == (413 if over else 202)


@pytest.mark.parametrize(
    "body",
    [
        gzip.compress(BODY)[:-1],
        gzip.compress(BODY)[:20],
        gzip.compress(BODY) + b"garbage",
        gzip.compress(BODY) + gzip.compress(BODY),
        gzip.compress(BODY)[:-5] + bytes(5),
        zlib.compress(BODY),
        BODY,
        b"",
    ],
    ids=["cut", "cut early", "garbage after", "two", "wrong checksum", "zlib", "plain", "empty"],
)
def test_what_is_not_one_whole_gzip_stream_is_malformed(client: FlaskClient, body: bytes) -> None:
    response = post(client, body, encoding="gzip")

    assert response.status_code == 400


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd", "x"])
def test_another_encoding_is_not_read(client: FlaskClient, encoding: str) -> None:
    assert post(client, BODY, encoding=encoding).status_code == 415


def test_a_bomb_is_refused(client: FlaskClient) -> None:
    body = bomb(BOMB_SIZE)

    response = post(client, body, encoding="gzip")

    assert len(body) < MAX_DEVICE_BODY
    assert response.status_code == 413


def test_a_bomb_takes_no_more_memory_than_an_honest_body() -> None:
    body, limit = bomb(BOMB_SIZE), MAX_DEVICE_BODY * MAX_INFLATION
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLargeError):
            inflate(body, limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 4 * limit < BOMB_SIZE // 10


def test_an_error_of_inflating_does_not_repeat_the_body() -> None:
    with pytest.raises(MalformedUploadError) as caught:
        inflate(b"canary7f3a", 100)

    assert "canary" not in str(caught.value)
