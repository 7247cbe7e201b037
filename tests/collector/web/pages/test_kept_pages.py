"""Pages keep answers and charts for who comes next; what they show is what the store holds now."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from flask import Flask
from flask.testing import FlaskClient

from collector.core.cells import BEYOND, Cell, segment_text
from collector.query.cache import Cache
from collector.web.services import services_of
from tests.collector.web.conftest import MakeApp
from tests.support.crowds.uploads import READ_TOKEN, TODAY, bearer, registry, registry_text
from tests.support.store.memory_storage import MemoryStorage

PAGE: Final = registry().metric("page")
LINUX: Final = Cell(PAGE.digest, TODAY, segment_text(PAGE, {"platform": "linux"}))
PAGES: Final = (
    "/",
    "/metric/page?range=14d&before=previous",
    "/ask?metric=page&verb=trend&by=time:day&range=14d",
)
QUERY: Final = {"metrics": ["page"], "date_range": "14d"}


def shown(app: Flask) -> list[bytes]:
    """Return every page, as it is sent."""
    client = app.test_client()
    answers = [client.get(page, headers=bearer(READ_TOKEN)) for page in PAGES]
    assert [answer.status_code for answer in answers] == [200] * len(PAGES)
    return [answer.data for answer in answers]


@pytest.fixture
def storage() -> MemoryStorage:
    storage = MemoryStorage()
    for day in range(20):
        for number, platform in enumerate(("linux", "mac"), 1):
            cell = Cell(PAGE.digest, TODAY - day, segment_text(PAGE, {"platform": platform}))
            storage.put({cell: [(0, 900), (1, 500 + day), (2, 200 + 10 * number), (3, 200)]})
    return storage


def folded(storage: MemoryStorage) -> None:
    """One more report, as a worker folds it."""
    storage.append(bytes(16), TODAY, b"entry", 1)
    [claimed] = storage.claim(0, "any", 1, 0)
    storage.fold(0, [claimed.id], {LINUX: [(0, 1), (1, 1)]})


def folded_late(storage: MemoryStorage) -> None:
    storage.put({LINUX._replace(epoch=TODAY - 9, lateness=BEYOND): [(0, 1), (2, 1)]})


def refolded(storage: MemoryStorage) -> None:
    storage.tallied[LINUX][1] -= 3
    storage.tallied[LINUX][2] += 3


def pruned(storage: MemoryStorage) -> None:
    storage.marks[PAGE.digest] = TODAY - 8
    for cell in [cell for cell in storage.tallied if cell.epoch < TODAY - 8]:
        del storage.tallied[cell]


@pytest.mark.parametrize("change", [folded, folded_late, refolded, pruned])
def test_a_page_that_was_shown_before_is_that_of_a_process_that_keeps_nothing(
    app: Flask,
    make_app: MakeApp,
    storage: MemoryStorage,
    change: Callable[[MemoryStorage], None],
) -> None:
    before = shown(app)
    again = shown(app)

    change(storage)

    assert again == before
    assert shown(app) == shown(make_app())
    assert shown(app)[0] != before[0]


def test_a_page_of_what_was_pruned_and_restored_is_that_of_before(
    app: Flask, storage: MemoryStorage
) -> None:
    before, held = shown(app), {cell: dict(counts) for cell, counts in storage.tallied.items()}
    pruned(storage)
    without = shown(app)

    storage.marks.clear()
    gone = (cell for cell in held if cell not in storage.tallied)
    storage.put({cell: list(held[cell].items()) for cell in list(gone)})
    whole = shown(app)

    assert without[0] != before[0]
    assert whole == before


def test_a_page_does_not_change_by_what_is_set_aside(
    app: Flask, make_app: MakeApp, storage: MemoryStorage
) -> None:
    before = shown(app)
    storage.append(bytes(16), TODAY, b"entry", 1)
    [claimed] = storage.claim(0, "any", 1, 0)

    storage.quarantine(0, claimed.id, "entry.checksum")

    assert shown(app) == before == shown(make_app())


def test_a_store_that_stands_still_costs_no_second_drawing(app: Flask) -> None:
    kept = services_of(app).pages
    shown(app)
    size = kept.size

    shown(app)

    assert kept.size == size > 0


def test_the_same_rows_are_drawn_anew_where_they_lead_elsewhere(
    client: FlaskClient, make_app: MakeApp
) -> None:
    fresh = make_app().test_client()
    page, chosen = "/metric/page?range=14d", "/metric/page?range=14d&item=home"

    client.get(page, headers=bearer(READ_TOKEN))
    after = client.get(chosen, headers=bearer(READ_TOKEN)).data

    assert after == fresh.get(chosen, headers=bearer(READ_TOKEN)).data


def test_a_page_says_what_its_registry_says_though_another_was_kept_beside(
    app: Flask, make_app: MakeApp
) -> None:
    shown(app)
    renamed = make_app(registry_text().replace('title = "Page"', 'title = "First page"'))
    replace(services_of(renamed), pages=services_of(app).pages).attach(renamed)

    pages = shown(renamed)

    assert b"First page" in pages[0]
    assert pages == shown(make_app())


def test_one_token_cannot_make_a_process_keep_more_than_the_limit(app: Flask) -> None:
    most = 200_000
    replace(services_of(app), pages=Cache[Any](most)).attach(app)
    client, sizes = app.test_client(), []

    for number in range(1, 20):
        question = {**QUERY, "alpha": number / 1_000}
        address = "/ask?q=" + json.dumps(question)
        assert client.get(address, headers=bearer(READ_TOKEN)).status_code == 200
        sizes.append(services_of(app).pages.size)

    assert max(sizes) <= most
    assert sizes[-1] > most / 2
