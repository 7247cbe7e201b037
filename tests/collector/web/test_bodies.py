"""Bodies are read within the limit of their key, however they come, in bounded memory."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from io import BytesIO

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from client_sdk.core.limits import MAX_DEVICE_BODY, MAX_GATEWAY_BODY, MAX_INFLATION
from client_sdk.wire.reports import Column
from collector.core.errors import BodyTooLargeError, MalformedUploadError
from collector.web.ingest.upload import inflate
from tests.support.crowds.uploads import (
    GATEWAY_KEY,
    TODAY,
    WRITE_KEY,
    as_json,
    as_msgpack,
    bearer,
    registry,
    upload,
)
from tests.support.sites.posting import post

PAGE = registry().metric("page")
BODY = as_json(upload([Column(PAGE.digest, TODAY, b"\2")]))
MEGABYTE = 1 << 20


class Trickle:
    """A stream that gives *chunk* bytes a read and counts what was taken."""

    def __init__(self, data: bytes, chunk: int, repeat: int = 1) -> None:
        self._data, self._chunk, self._left = data, chunk, repeat
        self._stream = BytesIO()
        self.taken = 0

    def read(self, size: int = -1) -> bytes:
        wanted = self._chunk if size < 0 else min(size, self._chunk)
        part = self._stream.read(wanted)
        if not part and self._left:
            self._left -= 1
            self._stream = BytesIO(self._data)
            part = self._stream.read(wanted)
        self.taken += len(part)
        return part


def padded(size: int) -> bytes:
    """Return an upload of *size* bytes: JSON may end in spaces."""
    return BODY.ljust(size)


def post_chunked(client: FlaskClient, stream: Trickle, key: str = WRITE_KEY) -> TestResponse:
    return client.post(
        "/v1/reports",
        content_type="application/json",
        headers={**bearer(key), "Transfer-Encoding": "chunked"},
        environ_overrides={
            "wsgi.input": stream,
            "wsgi.input_terminated": True,
            "CONTENT_LENGTH": "",
        },
    )


@pytest.mark.parametrize("key", [WRITE_KEY, GATEWAY_KEY])
@pytest.mark.parametrize("over", [0, 1])
def test_a_body_may_be_as_long_as_its_key_allows(client: FlaskClient, key: str, over: int) -> None:
    limit = MAX_DEVICE_BODY if key == WRITE_KEY else MAX_GATEWAY_BODY

    response = post(client, padded(limit + over), key=key)

    assert response.status_code == (413 if over else 202)


def test_a_gateway_sends_columns_that_a_device_could_not(client: FlaskClient) -> None:
    body = as_msgpack([Column(PAGE.digest, TODAY, bytes(MEGABYTE))])

    answers = [
        post(client, body, key=key, content_type="application/msgpack")
        for key in (WRITE_KEY, GATEWAY_KEY)
    ]

    assert [answer.status_code for answer in answers] == [413, 202]
    assert answers[1].get_json()["accepted"] == MEGABYTE


def test_a_declared_body_of_a_hundred_megabytes_is_refused_unread(client: FlaskClient) -> None:
    stream = Trickle(bytes(MEGABYTE), MEGABYTE, repeat=100)

    response = client.post(
        "/v1/reports",
        content_type="application/json",
        headers=bearer(WRITE_KEY),
        environ_overrides={"wsgi.input": stream, "CONTENT_LENGTH": str(100 * MEGABYTE)},
    )

    assert (response.status_code, stream.taken) == (413, 0)


def test_an_undeclared_body_of_a_hundred_megabytes_is_refused_at_the_limit(
    client: FlaskClient,
) -> None:
    stream = Trickle(b" " * MEGABYTE, 4_096, repeat=100)

    response = post_chunked(client, stream)

    assert (response.status_code, stream.taken) == (413, MAX_DEVICE_BODY + 1)


@pytest.mark.parametrize("chunk", [1, 7, 1_000])
def test_an_undeclared_body_is_read_to_its_end_whatever_a_read_brings(
    client: FlaskClient, chunk: int
) -> None:
    response = post_chunked(client, Trickle(BODY, chunk))

    assert response.get_json() == {"accepted": 1, "duplicate": False, "rejected": []}


def test_a_body_that_ends_before_its_declared_length_is_refused(client: FlaskClient) -> None:
    response = client.post(
        "/v1/reports",
        input_stream=BytesIO(BODY[:-10]),
        content_type="application/json",
        headers=bearer(WRITE_KEY),
        environ_overrides={"CONTENT_LENGTH": str(len(BODY))},
    )

    assert response.status_code == 400


BOMB_SIZE = 50 * MEGABYTE  # under 64 KiB as gzip


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
