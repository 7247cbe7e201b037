"""Bodies are read within the limit of their key, however they come, in bounded memory."""

from __future__ import annotations

import tracemalloc
import zlib
from io import BytesIO

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from client_sdk.core.limits import MAX_DEVICE_BODY, MAX_INFLATION
from client_sdk.wire.reports import Column
from collector.core.errors import BodyTooLargeError, MalformedUploadError
from collector.web.ingest.upload import inflate
from tests.support.crowds.uploads import (
    TODAY,
    WRITE_KEY,
    as_json,
    bearer,
    registry,
    upload,
)

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
