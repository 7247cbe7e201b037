"""What operators see of the flow: uploads of each hour, and how long one can have waited."""

from __future__ import annotations

import re

import pytest
from flask.testing import FlaskClient

from client_sdk.wire.reports import Column
from collector.web.services import services_of
from tests.collector.web.conftest import MakeApp
from tests.collector.web.pages.conftest import BROWSER, as_operator
from tests.support.crowds.uploads import (
    NOON,
    TODAY,
    WRITE_KEY,
    as_json,
    bearer,
    registry,
    registry_text,
    upload,
)
from tests.support.sites.rsgi import Request, answers
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

PATH = "/v1/reports"
JSON = {"content-type": "application/json"}


def shown(operator: FlaskClient) -> str:
    """Return the text of the page, in one line."""
    page = operator.get("/operations", headers=BROWSER)
    assert page.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", page.text).split())


def test_an_hour_has_each_upload_once_and_each_that_was_refused(
    make_app: MakeApp, credentials: MemoryCredentials
) -> None:
    """Law: a repeat is in neither; the sum over the hours is what the store has accepted."""
    app = make_app(registry_text())
    operator = as_operator(app, credentials)
    column = Column(registry().metric("page").digest, TODAY, bytes([0]))
    body = as_json(upload([column]))
    good = Request(PATH, headers=bearer(WRITE_KEY) | JSON, parts=(body,))
    bad = good._replace(headers=bearer("no-key-at-all-0123456789") | JSON)

    found = answers(app, good, good, bad, bad)
    text = shown(operator)

    assert [answer and answer.status for answer in found] == [202, 202, 401, 401]
    assert "Hour Accepted Refused 2026-03-04T12:00Z 1 2 2026-03-04T11:00Z 0 0" in text
    assert "1 accepted = 0 folded + 1 waiting" in text
    assert len(re.findall(r"2026-03-0[34]T\d\d:00Z \d+ \d+", text)) == 24 + 13


@pytest.mark.parametrize(
    ("ago", "words"),
    [(0.0, "1 s"), (30.2, "31 s"), (121.0, "3 min"), (7_201.0, "3 h"), (None, "unknown")],
)
def test_an_upload_waits_no_longer_than_since_none_was_seen_waiting(
    ago: float | None,
    words: str,
    make_app: MakeApp,
    storage: MemoryStorage,
    credentials: MemoryCredentials,
) -> None:
    """Law: the bound is rounded up, and there is none before the queue was seen empty."""
    app = make_app()
    operator = as_operator(app, credentials)
    empty = shown(operator)
    storage.append(b"a" * 16, 1, b"entry", 3)
    if ago is not None:
        services_of(app).activity.see_empty(NOON - ago)

    text = shown(operator)

    assert "Oldest upload waiting none" in empty
    assert f"Oldest upload waiting {words}" in text
    assert (f"Oldest upload waiting {words} at most" in text) == (ago is not None)
