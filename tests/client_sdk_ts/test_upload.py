"""Laws of uploads in TypeScript: the bytes and the times are those of the Python device."""

from __future__ import annotations

import json
import random
from typing import Any, Final

from client_sdk.core.base64url import base64url, from_base64url
from client_sdk.core.randomness import ByteRandomness
from client_sdk.privacy.retirement import Retirement
from client_sdk.privacy.retirement import read as read_list
from client_sdk.storage.store import Store
from client_sdk.upload.schedule import Schedule
from client_sdk.upload.transport import Answer, _retry_after, outcome_of, read_acknowledgement
from client_sdk.wire.ed25519 import public_of
from client_sdk.wire.reports import Report, columns_of, seal_padded
from tests.support.enumeration.seeded import ShakeStream
from tests.support.node import Node

PROGRAM: Final = "programs/upload.js"
STEPS: Final = 400  # of the schedule
NOW: Final = 1_790_000_000


class Draws:
    """The numbers that a Randomness drew, for another one to repeat."""

    def __init__(self, seed: bytes) -> None:
        self._source = ByteRandomness(ShakeStream(seed).read)
        self.numbers: list[str] = []

    def uniform(self, n: int) -> int:
        drawn = self._source.uniform(n)
        self.numbers.append(str(drawn))
        return drawn


def some_uploads(chance: random.Random) -> list[dict[str, Any]]:
    """Return uploads of all sizes, as what ``sealPadded`` takes."""
    digests = [chance.randbytes(6).hex() for _ in range(8)]
    return [
        {
            "id": base64url(chance.randbytes(16)),
            "day": chance.randrange(30_000),
            "segment": dict(
                chance.sample(
                    [
                        ("version", "2.0"),
                        ("os", 'a "b" \\ \n\x7f'),
                        ("place", "Žluťoučký 🐎"),
                        ("a", ""),
                    ],
                    chance.randrange(5),
                )
            ),
            "reports": [
                {
                    "digest": chance.choice(digests),
                    "epoch": chance.choice([0, 1, -3, 2**31, 480_000]),
                    "payload": base64url(chance.randbytes(size)),
                }
                for _ in range(reports)
            ],
        }
        for reports, size in [(0, 1), (1, 1), (3, 2), (9, 5), (40, 16), (200, 40), (200, 900)] * 3
    ]


def test_sealed_bytes_are_those_of_python(node: Node) -> None:
    uploads = some_uploads(random.Random("sealed"))
    sealed = [
        seal_padded(
            from_base64url(upload["id"]),
            upload["day"],
            upload["segment"],
            columns_of(
                Report(bytes.fromhex(r["digest"]), r["epoch"], from_base64url(r["payload"]))
                for r in upload["reports"]
            ),
        ).decode("ascii")
        for upload in uploads
    ]

    bodies = node.ask(PROGRAM, "seal", question=uploads)

    assert bodies == sealed
    assert {len(body) for body in bodies} > {1_024, 4_096, 16_384}


def trace(draws: Draws) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return steps of a schedule, drawn by chance, and the times after each in Python."""
    chance, schedule, now = random.Random("steps"), Schedule(draws), float(NOW)  # type: ignore[arg-type]
    store = Store(None)
    steps: list[list[Any]] = []
    times: list[list[Any]] = []
    for _ in range(STEPS):
        now += chance.choice([0, 1.5, 30, 600, 7_200, 90_000, -3_600, -200_000])
        name = chance.choice(["plan", "claim", "release", "postpone", "postpone", "rest"])
        lots, requested = chance.randrange(7), chance.choice([0, -5, 61.5, 3_600, 1e9])
        unseen, rest = chance.random() < 0.3, 0.0
        with store.transaction() as tx:
            if name == "plan":
                schedule.plan(tx, now, lots)
            elif name == "claim":
                schedule.claim(tx, now, b"an upload")
            elif name == "release":
                schedule.release(tx)
            elif name == "postpone":
                schedule.postpone(tx, now, requested, unseen=unseen)
            else:
                rest = schedule.rest(tx, now)
        steps.append([name, now, lots, requested, unseen])
        times.append(
            [
                *(rest, schedule.due(now), schedule.wait(now), schedule.backoff(now)),
                *(schedule.may_depart(now), schedule.failing, schedule.claimed != b""),
                len(draws.numbers),
            ]
        )
    store.close()
    for row in times:
        row[-1] = len(draws.numbers) - row[-1]
    return steps, times


def test_the_schedule_has_the_times_of_python_for_the_same_draws(node: Node) -> None:
    draws = Draws(b"schedule")
    steps, times = trace(draws)

    repeated = node.ask(PROGRAM, "schedule", question={"numbers": draws.numbers, "steps": steps})

    assert repeated == times
    assert len({json.dumps(row) for row in times}) > STEPS / 2


CHANGES: Final[list[dict[str, Any]]] = [
    {"issued": 1_790_000_001},
    {"issued": True},
    {"issued": -1},
    {"issued": 1.5},
    {"version": 2},
    {"retired": []},
    {"retired": ["AB" * 6]},
    {"retired": ["ab"]},
    {"retired": {}},
    {"signature": "00" * 64},
    {"signature": 1},
]
PROBLEM: Final = "application/problem+json; charset=utf-8"
OURS: Final = '{"type": "urn:hearsay:problem:sealed", "status": %d}'
ANSWERS: Final = [
    Answer(202, None, b'{"accepted": 3, "rejected": [{"count": 2}, {"count": -1}, 5, null]}'),
    Answer(202, None, b'{"accepted": 0, "duplicate": true, "rejected": {}}'),
    *(Answer(202, None, body) for body in (b"", b"{}", b"[1]", b"<html>", b'{"accepted": true}')),
    Answer(202, None, b'{"accepted": 1}' + b" " * 70_000),
    *(Answer(status) for status in (0, 100, 200, 204, 301, 302, 307, 404, 408, 425, 429, 500, 599)),
    *(
        Answer(status, None, (OURS % status).encode(), PROBLEM)
        for status in (400, 401, 403, 404, 409, 410, 413, 415, 422, 503)
    ),
    Answer(413, None, (OURS % 413).encode(), "text/html"),
    Answer(413, None, (OURS % 400).encode(), PROBLEM),
    Answer(413, None, b'{"type": "about:blank", "status": 413}', PROBLEM),
    Answer(400, None, b"<html>", PROBLEM),
]


def test_an_answer_means_what_it_means_to_python(node: Node) -> None:
    answers = [
        {"status": a.status, "body": a.body.decode(), "contentType": a.content_type}
        for a in ANSWERS
    ]
    meant = [[outcome_of(a).name.lower(), *read_acknowledgement(a.body)] for a in ANSWERS]

    understood = node.ask(PROGRAM, "outcomes", question=answers)

    assert understood == meant
    assert {outcome for outcome, *_ in meant} == {"accepted", "transient", "permanent", "incapable"}


def test_retry_after_is_read_as_in_python_and_by_the_date_of_the_collector(node: Node) -> None:
    date = "Wed, 21 Oct 2026 07:28:00 GMT"
    headers: list[tuple[str | None, str | None]] = [
        *((text, date) for text in ("0", "120", "9" * 30, "-5", "1.5", "", "soon", "٣")),
        *(("Wed, 21 Oct 2026 08:28:00 GMT", sent) for sent in (date, None, "nonsense")),
        ("Tue, 20 Oct 2026 08:28:00 GMT", date),
        (None, date),
    ]

    seconds = node.ask(
        PROGRAM, "retry_after", question=[[503, *pair] for pair in headers] + [[202, "5", date]]
    )

    assert seconds == [*(_retry_after(text, sent) for text, sent in headers), None]
    assert 3_600.0 in seconds


def test_only_addresses_that_python_takes_are_taken(node: Node) -> None:
    good = [
        "https://c.example",
        "https://c.example:8443/x/v1/reports/",
        "http://127.0.0.1:80",
        "http://localhost/",
    ]
    bad = [
        "http://c.example",
        "c.example",
        "https://u:p@c.example",
        "https://c.example/?a=secret",
        "ftp://c",
        "",
        "https://",
    ]

    bases = node.ask(PROGRAM, "addresses", question=good + bad)

    assert bases[:4] == [
        "https://c.example",
        "https://c.example:8443/x",
        "http://127.0.0.1:80",
        "http://localhost",
    ]
    assert all(text.startswith("endpoint=") for text in bases[4:])
    assert not any("secret" in text or "u:p" in text for text in bases)


def test_a_list_of_retired_metrics_is_taken_from_its_developer_only(node: Node) -> None:
    seed, digests = b"\x07" * 32, [b"\xab" * 6, b"\x01" * 6]
    key = public_of(seed).hex()
    text = Retirement(1_790_000_000, frozenset(digests)).text(seed).decode()
    form = json.loads(text)
    lists = [
        (text, key),
        (Retirement(0, frozenset()).text(seed).decode(), key),
        (text, public_of(b"\x08" * 32).hex()),
        *((json.dumps(form | change), key) for change in CHANGES),
        *((bad, key) for bad in ("", "{}", "[]", "null", text[:-9], json.dumps(form | {"x": 1}))),
        (text, "00" * 32),
    ]

    read = node.ask(PROGRAM, "retirements", question=lists)

    assert read[0] == {"issued": 1_790_000_000, "digests": sorted(d.hex() for d in digests)}
    assert read[1] == {"issued": 0, "digests": []}
    assert read[2:] == [None] * (len(lists) - 2)
    assert [read_list(t.encode(), bytes.fromhex(k)) is None for t, k in lists] == [
        answer is None for answer in read
    ]
