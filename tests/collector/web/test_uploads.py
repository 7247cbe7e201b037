"""Intake over HTTP: what is acknowledged is stored once, within limits and in bounded memory."""

from __future__ import annotations

import gzip
import logging
import tracemalloc
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from client_sdk.core.limits import (
    MAX_CLOCK_SKEW,
    MAX_DEVICE_BODY,
    MAX_GATEWAY_BODY,
    MAX_INFLATION,
    MAX_REPORT_AGE,
)
from client_sdk.wire.reports import Column
from collector.core.cells import ATTESTED, RELAYED, Cell, key_source, split_source
from collector.core.credentials import digest_of, id_of
from collector.core.entry import AcceptedColumn, decode
from collector.core.errors import (
    BodyTooLargeError,
    ForgottenUploadError,
    MalformedUploadError,
    NotPreparedError,
    RefusedByStoreError,
    ReplacedStoreError,
    StorageFullError,
    StorageUnavailableError,
    UnsafeStoreError,
)
from collector.core.logs import PERIOD_S, Incidents
from collector.intake.wire import JSON, MSGPACK
from collector.web.ingest.upload import Head, inflate
from collector.web.services import services_of
from tests.support.crowds.uploads import (
    GATEWAY_KEY,
    READ_TOKEN,
    TODAY,
    WRITE_KEY,
    as_json,
    as_msgpack,
    bearer,
    cell_under,
    registry,
    upload,
)
from tests.support.device.clock import FakeClock
from tests.support.sites.posting import post, problem_of
from tests.support.store.memory_storage import MemoryStorage

PAGE = registry().metric("page")
SMALL = as_json(upload([Column(PAGE.digest, TODAY, b"\2")]))
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
    response = post_chunked(client, Trickle(SMALL, chunk))

    assert response.get_json() == {"accepted": 1, "duplicate": False, "rejected": []}


def test_a_body_that_ends_before_its_declared_length_is_refused(client: FlaskClient) -> None:
    response = client.post(
        "/v1/reports",
        input_stream=BytesIO(SMALL[:-10]),
        content_type="application/json",
        headers=bearer(WRITE_KEY),
        environ_overrides={"CONTENT_LENGTH": str(len(SMALL))},
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


THEME, AGE, PAGE = (registry().metric(name) for name in ("theme", "age", "page"))
WEEK: Final = (TODAY + 3) // 7
COLUMN: Final = Column(THEME.digest, WEEK, b"\1")
NOBODY: Final = Column(b"nobody", WEEK, b"\0")
BODY: Final = as_json(upload([COLUMN]))
GZIP: Final = gzip.compress(BODY)
THREE_OF_PAGE: Final = [
    Column(PAGE.digest, TODAY, b"\0"),
    COLUMN,
    Column(PAGE.digest, TODAY, b"\1"),
]
REJECTED: Final = [
    Column(THEME.digest, WEEK, b"\0\7\1\7"),
    NOBODY,
    Column(AGE.digest, TODAY + 9, bytes(AGE.mechanism.payload_size)),
]


@dataclass(frozen=True)
class Sent:
    """A body and how it is sent; the status, the answer or the problem, and what is stored."""

    body: bytes
    status: int = 202
    problem: str = ""
    accepted: int = 0
    rejected: Sequence[tuple[int, str, int]] = ()  # column, reason, count
    stored: Sequence[tuple[Cell, bytes]] | None = None  # cells and payloads, if they are compared
    key: str = WRITE_KEY
    more: Mapping[str, str] = field(default_factory=dict)  # content type and encoding


def of_kind(body: bytes, content_type: str, status: int, problem: str) -> Sent:
    return Sent(body, status, problem, more={"content_type": content_type})


def deflated(body: bytes, status: int, problem: str = "", encoding: str = "gzip") -> Sent:
    return Sent(body, status, problem, accepted=status == 202, more={"encoding": encoding})


OURS: Final = (cell_under(WRITE_KEY, THEME, WEEK), b"\1")
SENT: Final = {
    "one report": Sent(BODY, accepted=1, stored=[OURS]),
    "msgpack stores the same": Sent(
        as_msgpack([COLUMN], upload_id=b"b" * 16),
        accepted=1,
        stored=[OURS],
        more={"content_type": MSGPACK},
    ),
    "a content type may have parameters": Sent(
        BODY, accepted=1, more={"content_type": f"{JSON}; charset=utf-8"}
    ),
    "rejections are counted by column and reason": Sent(
        as_json(upload(REJECTED)),
        accepted=2,
        rejected=[
            (0, "item_out_of_range", 2),
            (1, "unknown_metric", 1),
            (2, "epoch_in_future", 1),
        ],
        stored=[(cell_under(GATEWAY_KEY, THEME, WEEK), b"\0\1")],
        key=GATEWAY_KEY,
    ),
    "what is rejected whole is not stored": Sent(
        as_json(upload([NOBODY])), rejected=[(0, "unknown_metric", 1)], stored=[]
    ),
    "sealed too long ago": Sent(
        as_json(upload([COLUMN], sealed=TODAY - MAX_REPORT_AGE - 1)), 410, "upload-expired"
    ),
    "sealed in the future": Sent(
        as_json(upload([COLUMN], sealed=TODAY + MAX_CLOCK_SKEW + 1)), 422, "upload-in-future"
    ),
    **{
        f"{body!r} is no upload as {kind}": of_kind(body, kind, 400, "malformed-upload")
        for kind in (JSON, MSGPACK)
        for body in (b"", b"canary7f3a", b'{"v":1,"canary7f3a":2}', b"\x81\xa6canary\1")
    },
    **{
        f"{kind!r} is not read": of_kind(BODY, kind, 415, "unsupported-type")
        for kind in ("", "text/plain", "text/html", "application/x-www-form-urlencoded", "json")
    },
    # No device makes a second: who took the key out of an application sends an upload a fake.
    **{
        f"a column of {len(payloads)} under a public key": Sent(
            as_json(upload([Column(PAGE.digest, TODAY, payloads), COLUMN])),
            accepted=1,
            rejected=[(0, "several_reports", len(payloads))],
            stored=[OURS],
        )
        for payloads in (b"\0\1", b"\0\7\7", b"\7\7\7\7", b"\0" * 500)
    },
    "a column of many devices under the key of a gateway": Sent(
        as_json(upload([Column(THEME.digest, WEEK, b"\0\1\1")])),
        accepted=3,
        stored=[(cell_under(GATEWAY_KEY, THEME, WEEK), b"\0\1\1")],
        key=GATEWAY_KEY,
    ),
    # A device puts them into one column, so that nothing tells them apart.
    "two columns of a metric and epoch under a public key": Sent(
        as_json(upload(THREE_OF_PAGE)), 400, "malformed-upload"
    ),
    "two columns of a metric and epoch under the key of a gateway": Sent(
        as_json(upload(THREE_OF_PAGE)), accepted=3, key=GATEWAY_KEY
    ),
    # JSON may end in spaces.
    **{
        f"{limit + over} bytes under {key}": Sent(
            BODY.ljust(limit + over), 413 if over else 202, accepted=1 - over, key=key
        )
        for key, limit in ((WRITE_KEY, MAX_DEVICE_BODY), (GATEWAY_KEY, MAX_GATEWAY_BODY))
        for over in (0, 1)
    },
    "a megabyte of reports of a gateway": Sent(
        as_msgpack([Column(PAGE.digest, TODAY, bytes(MEGABYTE))]),
        accepted=MEGABYTE,
        key=GATEWAY_KEY,
        more={"content_type": MSGPACK},
    ),
    "gzip is read": deflated(GZIP, 202),
    **{
        f"{name} is not one whole stream of gzip": deflated(body, 400, "malformed-upload")
        for name, body in (
            ("cut", GZIP[:-1]),
            ("cut early", GZIP[:20]),
            ("garbage after", GZIP + b"garbage"),
            ("two", GZIP + GZIP),
            ("wrong checksum", GZIP[:-5] + bytes(5)),
            ("zlib", zlib.compress(BODY)),
            ("plain", BODY),
            ("empty", b""),
        )
    },
    **{
        f"encoding {encoding} is not read": deflated(BODY, 415, "", encoding)
        for encoding in ("br", "deflate", "gzip, gzip", "zstd", "x")
    },
    **{
        f"gzip of {over} bytes beyond what it may inflate to": deflated(
            gzip.compress(BODY.ljust(MAX_DEVICE_BODY * MAX_INFLATION + over)), 413 if over else 202
        )
        for over in (0, 1)
    },
    "a bomb": deflated(bomb(BOMB_SIZE), 413),
}


@pytest.mark.parametrize("law", SENT)
def test_an_upload_is_answered_and_stored_as_the_table_says(
    client: FlaskClient, storage: MemoryStorage, law: str
) -> None:
    """What is refused is not stored, and nothing of a body is repeated."""
    sent = SENT[law]

    response = post(client, sent.body, key=sent.key, **sent.more)

    assert response.status_code == sent.status
    assert "canary" not in response.text
    if sent.status == 202:
        rejected: list[dict[str, Any]] = [
            {"column": column, "reason": reason, "count": count}
            for column, reason, count in sent.rejected
        ]
        answer = {"accepted": sent.accepted, "duplicate": False, "rejected": rejected}
        assert response.get_json() == answer
    else:
        assert problem_of(response)["type"].endswith(sent.problem)
        assert storage.entries == {}
    if sent.stored is not None:
        columns = [column for entry in storage.entries.values() for column in decode(entry)]
        assert columns == [AcceptedColumn(*column) for column in sent.stored]


def test_a_repeated_upload_is_a_duplicate_and_stored_once(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    answers = [post(client, as_json(upload([COLUMN]))) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [202, 202, 202]
    assert [answer.get_json()["duplicate"] for answer in answers] == [False, True, True]
    assert len(storage.entries) == 1


@pytest.mark.parametrize(
    "failure",
    [
        *(StorageUnavailableError("gone"), StorageFullError("full")),
        *(UnsafeStoreError(["aof_enabled=0"]), ForgottenUploadError("clock")),
    ],
)
def test_a_store_that_cannot_take_it_asks_for_a_retry(
    client: FlaskClient, storage: MemoryStorage, failure: Exception
) -> None:
    storage.failure = failure

    response = post(client, as_json(upload([COLUMN])))

    assert response.status_code == 503
    assert 30 <= int(response.headers["Retry-After"]) <= 300
    assert problem_of(response)["type"].startswith("urn:hearsay:problem:store-")
    assert "Traceback" not in response.text


def test_a_store_that_was_started_again_unsafe_is_not_ready_and_acknowledges_nothing(
    app: Flask, client: FlaskClient, storage: MemoryStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """It answers as before; only its settings tell that it would forget.  They are logged once."""
    before = client.get("/readyz").status_code
    storage.faults = ("aof_enabled=0: must be 1, for profile strict",)
    services_of(app).pressure.poll()

    uploads = [post(client, as_json(upload([COLUMN]))) for _ in range(3)]
    ready = client.get("/readyz")

    assert before == 200
    assert [problem_of(one)["type"][-12:] for one in (*uploads, ready)] == ["store-unsafe"] * 4
    assert not storage.entries
    assert len([record for record in caplog.records if "aof_enabled=0" in record.getMessage()]) == 1


@pytest.mark.parametrize(
    "failure",
    [
        *(StorageFullError("cannot write its log"), NotPreparedError("lacks the library")),
        *(ForgottenUploadError("clock"), ReplacedStoreError(), RefusedByStoreError("ERR")),
    ],
)
def test_what_refuses_every_upload_is_logged_once_and_not_by_each(
    app: Flask,
    client: FlaskClient,
    storage: MemoryStorage,
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
) -> None:
    """On the disk that is full, and before the next poll as well as after it."""
    services_of(app).pressure.poll()
    storage.failure = failure
    body = as_json(upload([COLUMN]))

    answers = [post(client, body).status_code for _ in range(50)]
    services_of(app).pressure.poll()
    services_of(app).pressure.poll()
    answers += [post(client, body).status_code for _ in range(50)]

    assert answers == [503] * 100
    assert len(caplog.records) <= 2


def test_a_failure_that_goes_on_is_told_again_with_how_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    incidents = Incidents(clock)
    for _ in range(3):
        for _ in range(10):
            incidents.tell(logging.getLogger("hearsay.web"), "store-full", "is out of memory")
        clock.advance(seconds=PERIOD_S)

    told = [record.getMessage() for record in caplog.records]
    assert told == [
        "store-full: is out of memory",
        *["store-full: is out of memory (and 9 times more since the last line)"] * 2,
    ]


def test_a_store_that_was_emptied_is_not_ready_and_acknowledges_nothing(
    app: Flask, client: FlaskClient, storage: MemoryStorage, caplog: pytest.LogCaptureFixture
) -> None:
    services_of(app).pressure.poll()
    storage.failure = ReplacedStoreError()
    services_of(app).pressure.poll()
    storage.failure = None  # what the poll has noticed holds until the next one

    answers = [
        post(client, as_json(upload([COLUMN]))),
        client.get("/readyz"),
        client.get("/v1/metrics/page/estimate", headers=bearer(READ_TOKEN)),
        client.post("/v1/query", json={"metrics": ["page"]}, headers=bearer(READ_TOKEN)),
    ]

    # a question too: 0 would stand for what nobody knows any more
    assert [problem_of(answer)["type"][-12:] for answer in answers] == ["store-unsafe"] * 4
    assert services_of(app).snapshot().is_replaced
    assert services_of(app).snapshot().refused == {0: True}
    assert "store.generation=gone" in caplog.text


def test_a_store_that_is_full_is_not_ready(
    app: Flask, client: FlaskClient, storage: MemoryStorage
) -> None:
    """Readiness says what an upload would be told."""
    storage.memory_share = 0.9
    services_of(app).pressure.poll()

    answers = [post(client, as_json(upload([COLUMN]))), client.get("/readyz")]

    assert [problem_of(answer)["type"][-10:] for answer in answers] == ["store-full"] * 2


def test_a_retry_after_an_outage_is_first_sight(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    storage.failure = StorageUnavailableError("gone")
    post(client, as_json(upload([COLUMN])))
    storage.failure = None

    response = post(client, as_json(upload([COLUMN])))

    assert response.get_json() == {"accepted": 1, "duplicate": False, "rejected": []}


def test_an_unexpected_error_is_a_problem_that_shows_nothing(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    storage.failure = RuntimeError("canary7f3a")

    response = post(client, as_json(upload([COLUMN])))

    assert response.status_code == 500
    assert problem_of(response)["type"].endswith("internal")
    assert "canary" not in response.text
    assert "Traceback" not in response.text


@pytest.mark.parametrize("columns", [[COLUMN], [COLUMN, Column(AGE.digest, TODAY, b"\0" * 8)]])
def test_what_is_known_of_how_an_upload_came_reaches_the_store_with_its_reports(
    app: Flask, storage: MemoryStorage, columns: list[Column]
) -> None:
    """Whoever opens a capsule or checks a token says it with the headers; see HotRoute."""
    hot, body = services_of(app).hot, as_json(upload(columns))
    source = frozenset({RELAYED, ATTESTED})

    admission = hot.admit(Head(bearer(WRITE_KEY)["Authorization"], JSON, "", len(body), source))
    judgement = hot.judge(admission, body)

    assert judgement.sealed is not None
    stored = decode(judgement.sealed.entry)
    key = key_source(id_of(digest_of(WRITE_KEY)))
    expected = key | (source if len(columns) == 1 else {ATTESTED})
    assert {split_source(column.cell.segment)[0] for column in stored} == {expected}
