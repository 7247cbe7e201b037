"""A question that would cost the store too much is refused before it is read, with what to ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from flask.testing import FlaskClient

from collector.core.cells import Cell
from collector.core.errors import BusyError
from collector.query.price import MOST_READ
from collector.storage.values import Index
from tests.collector.web.conftest import MakeApp
from tests.support.crowds.asked import JANUARY, post
from tests.support.store.memory_storage import MemoryStorage

ASKED = {"metrics": ["page"], "date_range": JANUARY}


class Crowded(MemoryStorage):
    """Has more tallies than one question may read, and gives none."""

    def index(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Index:
        return Index((), MOST_READ, {})

    def vectors(self, index: Index, width: int) -> Iterator[tuple[Cell, bytes]]:
        raise AssertionError("was read")


class Busy(MemoryStorage):
    def vectors(self, index: Index, width: int) -> Iterator[tuple[Cell, bytes]]:
        raise BusyError("questions: too many large ones wait; ask again later, or for less")


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> MemoryStorage:
    made: MemoryStorage = request.param()
    return made


@pytest.mark.parametrize("storage", [Crowded], indirect=True)
def test_more_than_one_question_may_read_is_told_before_it_is_read(client: FlaskClient) -> None:
    refused = post(client, ASKED)

    problem = refused.get_json(force=True)
    assert (refused.status_code, problem["type"]) == (400, "urn:hearsay:problem:bad-parameter")
    assert problem["detail"].startswith("date_range: would read 256000000 counters")
    assert problem["detail"].endswith("take a shorter window")


@pytest.mark.parametrize("storage", [Busy], indirect=True)
def test_too_many_large_questions_at_once_are_asked_to_come_again(make_app: MakeApp) -> None:
    refused = post(make_app().test_client(), ASKED)

    assert (refused.status_code, refused.get_json(force=True)["type"]) == (
        429,
        "urn:hearsay:problem:busy",
    )
    assert int(refused.headers["Retry-After"]) > 0
