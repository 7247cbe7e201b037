"""Answers that cannot change any more are kept; who asks again is told so, and nobody else is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import pytest
from flask import Flask
from flask.testing import FlaskClient
from msgspec import structs

from collector.core.cells import LAST_VERSION, Cell, key_source, segment_text
from collector.core.credentials import ANALYST, READ, Credential
from collector.core.exclusions import Exclusion, Inclusion, to_json
from collector.query import cache
from collector.query.cache import Cache
from collector.storage.values import Index
from collector.web.services import services_of
from tests.collector.web.conftest import MakeApp
from tests.support.crowds.asked import JANUARY, JANUARY_5, follow, post, store
from tests.support.crowds.uploads import ADMIN_TOKEN, READ_TOKEN, bearer, registry, registry_text
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

PAGE: Final = registry().metric("page")
CLOSED: Final = {"metrics": ["page"], "date_range": JANUARY}
HEADERS: Final = {**bearer(READ_TOKEN), "Accept": "text/html,application/json"}
RUNNING: Final = {"metrics": ["page"], "date_range": "30d"}


class CountingStorage(MemoryStorage):
    """Counts how often tallies are read."""

    def __init__(self) -> None:
        super().__init__()
        self.readings = 0

    def index(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Index:
        self.readings += 1
        return super().index(metric, epochs, latest)


@pytest.fixture
def storage() -> CountingStorage:
    storage = CountingStorage()
    store(storage, PAGE, JANUARY_5, 400, platform="linux")
    return storage


def test_a_closed_window_is_read_from_the_store_once(
    client: FlaskClient, storage: CountingStorage
) -> None:
    answers = [post(client, CLOSED) for _ in range(3)]

    assert storage.readings == 1
    assert len({answer.data for answer in answers}) == 1
    assert len({answer.headers["ETag"] for answer in answers}) == 1
    assert answers[0].headers["Cache-Control"] == "private, no-cache"
    assert answers[0].get_json()["meta"]["metrics"][0]["version"] == LAST_VERSION


def test_what_a_browser_keeps_ends_with_what_was_declared_of_the_relay(
    make_app: MakeApp,
) -> None:
    """It states what a relay leaves of epsilon, and the next process may know of more fakes."""
    tags = [
        post(make_app(relay_operator=name, colluding=share).test_client(), CLOSED).headers["ETag"]
        for name, share in (("Example", 0), ("Example", Fraction(1, 5)), ("Example", 0), ("", 0))
    ]

    assert tags[0] == tags[2]
    assert len(set(tags)) == 3


BAD: Final = "badbadbadbad"
GONE: Final = Exclusion(
    id="5f0a91c2", by="key", name=BAD, first=JANUARY[0], last=JANUARY[1],
    author="ada", because="2.3 counted twice", at=1,
)  # fmt: skip


def with_keys(storage: MemoryStorage) -> None:
    """Put in reports of two keys, of a window that is closed."""
    for key, n in ((BAD, 300), ("goodgoodgood", 500)):
        text = segment_text(PAGE, {"platform": "mac"}, key_source(key))
        storage.put({Cell(PAGE.digest, JANUARY_5, text): [(0, n), (1, n)]})


QUERY: Final = {"q": json.dumps({"metrics": ["page"], "date_range": JANUARY})}
OF_COMPARE: Final = {"metric": "page", "from": JANUARY[0], "to": JANUARY[1]}


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1/query", QUERY),
        ("/ask", QUERY),
        ("/metric/page", {"range": "91d"}),
        ("/compare", OF_COMPARE),
    ],
)
def test_every_process_heeds_an_exclusion_at_once_and_its_end(
    make_app: MakeApp, storage: CountingStorage, path: str, asked: dict[str, str]
) -> None:
    """Each keeps answers, pages and charts; whichever was asked before, none gives an old one."""
    with_keys(storage)
    clients = [make_app().test_client() for _ in range(2)]
    taken_back = structs.replace(GONE, included=Inclusion("bob", "it was right", 2))

    def ask() -> list[tuple[str | None, str]]:
        answers = [client.get(path, query_string=asked, headers=HEADERS) for client in clients * 2]
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.text for answer in answers}) == 1
        return [(answer.headers.get("ETag"), answer.text) for answer in answers]

    before = ask()
    storage.excluded = {GONE.id: to_json(GONE)}
    excluded = ask()
    storage.excluded = {GONE.id: to_json(taken_back)}

    assert ask() == before
    assert BAD not in before[0][1]
    assert f"key {BAD}" in excluded[0][1]
    assert before[0][0] is None or before[0][0] != excluded[0][0]
    tag = {**HEADERS, "If-None-Match": before[0][0] or '"x"'}
    storage.excluded = {GONE.id: to_json(GONE)}
    again = clients[0].get(path, query_string=asked, headers=tag)
    assert (again.status_code, again.text) == (200, excluded[0][1])


def test_a_window_that_can_still_change_is_read_each_time(
    client: FlaskClient, storage: CountingStorage
) -> None:
    answers = [post(client, RUNNING) for _ in range(3)]

    assert storage.readings == 3
    assert all("ETag" not in answer.headers for answer in answers)
    assert {answer.headers["Cache-Control"] for answer in answers} == {"no-store"}


def test_who_has_the_answer_is_told_that_it_still_holds(
    client: FlaskClient, storage: CountingStorage
) -> None:
    """Even by a process that has not answered it yet, and without the store."""
    tag = post(client, CLOSED).headers["ETag"]
    storage.readings = 0

    again = post(client, CLOSED, headers={"If-None-Match": tag})
    linked = client.get(
        "/v1/query",
        query_string={"q": '{"metrics":["page"],"date_range":["2026-01-05","2026-01-18"]}'},
        headers={**bearer(READ_TOKEN), "If-None-Match": f'"other", {tag}'},
    )

    assert (again.status_code, again.data) == (304, b"")
    assert (again.headers["ETag"], linked.status_code) == (tag, 304)
    assert storage.readings == 0


def test_another_tag_is_answered_in_full(client: FlaskClient) -> None:
    response = post(client, CLOSED, headers={"If-None-Match": '"0123"'})

    assert response.status_code == 200
    assert response.get_json()["meta"]["n"] == 400


@pytest.mark.parametrize(
    "change",
    [
        {"alpha": 0.1},
        {"verb": "frequency"},
        {"metrics": ["theme"]},
        {"filters": [["is", "platform", ["linux"]]]},
        {"dimensions": ["platform"]},
        {"date_range": [JANUARY[0], "2026-01-17"]},
        {"version": 0},
        {"pagination": {"limit": 1}},
        {"order_by": [["value", "desc"]]},
        {"include": ["total_rows"]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_question_is_another_answer(client: FlaskClient, change: dict[str, Any]) -> None:
    kept = post(client, CLOSED).headers["ETag"]

    other = post(client, CLOSED | change, headers={"If-None-Match": kept})

    assert other.status_code == 200, other.text
    assert other.headers["ETag"] != kept


def test_another_form_is_another_answer(client: FlaskClient) -> None:
    tags = {
        follow(client, CLOSED, format=form).headers["ETag"]
        for form in ("json", "csv", "arrow", "rows")
    }

    assert len(tags) == 4


@pytest.mark.parametrize(
    "bend",
    [
        lambda text: text.replace("min_reports = 100", "min_reports = 500", 1),
        lambda text: text.replace('title = "Page"', 'title = "First page"'),
        lambda text: text.replace('["linux", "mac"]', '["linux", "mac", "amiga"]'),
        lambda text: text.replace('epsilon = "1.0"', 'epsilon = "2.0"', 1),
    ],
    ids=["min_reports", "title", "segments", "epsilon"],
)
def test_after_a_change_of_the_registry_no_old_answer_holds(make_app: MakeApp, bend: Any) -> None:
    """A browser keeps the tag for longer than a process runs."""
    kept = post(make_app().test_client(), CLOSED).headers["ETag"]

    later = make_app(bend(registry_text())).test_client()

    assert post(later, CLOSED, headers={"If-None-Match": kept}).status_code == 200


def test_what_another_store_answers_is_another_answer(
    app: Flask, client: FlaskClient, storage: CountingStorage
) -> None:
    """One that was lost is empty, and one that was restored is not: neither holds for the other."""
    tags: list[str] = []
    for contents in ("one.0", "two.0", "two.2"):
        storage.contents = contents
        services_of(app).pressure.poll()
        told = post(client, CLOSED, headers={"If-None-Match": ", ".join(tags)})
        assert told.status_code == 200
        tags.append(told.headers["ETag"])

    assert len(set(tags)) == 3
    assert storage.readings == 3


def test_nothing_is_kept_of_a_store_that_is_gone(
    app: Flask, client: FlaskClient, storage: CountingStorage
) -> None:
    storage.contents = ""
    services_of(app).pressure.poll()

    answers = [post(client, CLOSED) for _ in range(2)]

    assert storage.readings == 2
    assert all("ETag" not in answer.headers for answer in answers)


def test_a_kept_answer_is_shown_to_nobody_who_may_not_see_its_metric(
    credentials: MemoryCredentials, make_app: MakeApp
) -> None:
    """Who may not see a metric learns neither from the cache nor from a tag that it is there."""
    limited = "limited-token-for-tests-0123456789"
    few = Credential(
        READ, role=ANALYST, app="test", metrics=frozenset({"theme"}), expires=JANUARY_5 + 90
    )
    credentials.add(limited, few)
    client = make_app().test_client()
    tag = post(client, CLOSED).headers["ETag"]

    asked = post(client, CLOSED, token=limited)
    known = post(client, CLOSED, token=limited, headers={"If-None-Match": tag})
    unknown = post(client, CLOSED | {"metrics": ["pages"]}, token=limited)

    assert (asked.status_code, known.status_code, unknown.status_code) == (404, 404, 404)
    assert asked.get_json(force=True)["type"] == unknown.get_json(force=True)["type"]
    assert post(client, CLOSED, token=ADMIN_TOKEN).status_code == 403
    assert post(client, CLOSED | {"metrics": ["theme"]}, token=limited).status_code == 200


def test_a_refusal_is_not_kept(client: FlaskClient) -> None:
    response = post(client, CLOSED | {"order_by": [["colour", "asc"]]})

    assert response.status_code == 400
    assert response.headers["Cache-Control"] == "no-store"
    assert "ETag" not in response.headers


def test_the_least_recently_used_answers_are_forgotten_first() -> None:
    """And all of them together are never more than the limit."""
    kept, whole = Cache[bytes](), bytes(cache.LARGEST)
    most = cache.MOST_BYTES // cache.LARGEST

    for number in range(most):
        kept.put(bytes([number]), whole, len(whole))
    assert kept.get(b"\0") is not None
    kept.put(b"new", whole, len(whole))

    assert kept.get(b"\1") is None
    assert [kept.get(key) is None for key in (b"\0", b"new")] == [False, False]


def test_an_answer_that_is_longer_than_its_part_is_not_kept() -> None:
    kept = Cache[bytes]()

    kept.put(b"a", b"", cache.LARGEST + 1)
    kept.put(None, b"b", 1)

    assert (kept.get(b"a"), kept.get(None)) == (None, None)


def test_a_body_that_is_put_again_counts_once() -> None:
    kept = Cache[bytes]()
    for _ in range(100):
        kept.put(b"a", b"", cache.LARGEST)
    kept.put(b"b", b"b", 1)

    assert kept.get(b"a") is not None


def test_each_application_keeps_answers_of_its_own(app: Flask, make_app: MakeApp) -> None:
    other = make_app()
    post(app.test_client(), CLOSED)

    assert app.extensions["hearsay"].answers is not other.extensions["hearsay"].answers


def test_what_is_pruned_is_said_and_no_kept_answer_outlives_it(
    client: FlaskClient, storage: CountingStorage
) -> None:
    """Neither nothing nor what was true before: not from the process, and not from a browser."""
    tag = post(client, CLOSED).headers["ETag"]
    storage.marks[PAGE.digest] = JANUARY_5 + 7

    part = post(client, CLOSED, headers={"If-None-Match": tag})
    storage.marks[PAGE.digest] = JANUARY_5 + 14
    none = post(client, CLOSED, headers={"If-None-Match": tag})

    meta = part.get_json()["meta"]
    assert (part.status_code, meta["n"], meta["metrics"][0]["window"]["epochs"]) == (200, 0, 7)
    assert any("pruned), 7 of 14 epochs of the window" in each["text"] for each in meta["warnings"])
    assert (none.status_code, none.get_json(force=True)["type"]) == (
        410,
        "urn:hearsay:problem:pruned",
    )
    assert "page up to 2026-01-18 was deleted" in none.get_json(force=True)["detail"]


def test_an_answer_that_is_pruned_while_it_is_read_is_no_answer(make_app: MakeApp) -> None:
    """Half of it may have been there."""

    class Pruned(MemoryStorage):
        def index(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Index:
            found = super().index(metric, epochs, latest)
            self.marks[metric] = JANUARY_5 + 7
            return found

    app = make_app()
    pruned = Pruned()
    store(pruned, PAGE, JANUARY_5, 400, platform="linux")
    shared = app.extensions["hearsay"]
    app.extensions["hearsay"] = replace(shared, tallies=pruned)

    answers = [post(app.test_client(), CLOSED) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [503, 200]
    assert "pruned" in [each["code"] for each in answers[1].get_json()["meta"]["warnings"]]
