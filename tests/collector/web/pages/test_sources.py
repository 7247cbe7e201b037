"""From the headers of an upload to the pages: how reports came is told, and changes no number."""

from __future__ import annotations

import secrets
from fractions import Fraction
from typing import Any

import pytest
from flask import Flask
from markupsafe import escape

from client_sdk.wire.reports import Column
from collector.core.cells import ATTESTED, RELAYED, UNKNOWN, Source
from collector.core.text_tables import above
from collector.intake.wire import JSON
from collector.planning.shuffling import epsilon_of
from collector.rendering.tables import lines_of
from collector.web.ingest.upload import Head
from collector.web.services import services_of
from collector.worker.worker import Worker
from tests.collector.web.pages.conftest import BROWSER
from tests.support.crowds.uploads import (
    READ_TOKEN,
    TODAY,
    WRITE_KEY,
    as_json,
    bearer,
    registry,
    upload,
)
from tests.support.store.memory_storage import MemoryStorage

PAGE = registry().metric("page")
EACH = 40  # reports of a source
RELAY, BOTH = frozenset({RELAYED}), frozenset({RELAYED, ATTESTED})


def send(app: Flask, storage: MemoryStorage, source: Source) -> None:
    """Send EACH reports, as the web process takes them, and fold them."""
    hot = services_of(app).hot
    for i in range(EACH):
        sent = upload(
            [Column(PAGE.digest, TODAY, bytes([i % 3]))], upload_id=secrets.token_bytes(16)
        )
        body = as_json(sent)
        admission = hot.admit(Head(bearer(WRITE_KEY)["Authorization"], JSON, "", len(body), source))
        sealed = hot.judge(admission, body).sealed
        assert sealed is not None
        assert storage.append(*sealed)
    metrics = registry().by_digest
    mechanisms = {digest: metric.mechanism for digest, metric in metrics.items()}
    Worker(storage, mechanisms, {d: metric.every for d, metric in metrics.items()}).step()


def answer(app: Flask, **fields: Any) -> Any:
    body = {"metrics": ["page"], "date_range": "7d", **fields}
    return app.test_client().post("/v1/query", json=body, headers=bearer(READ_TOKEN)).get_json()


def page(app: Flask) -> str:
    client = app.test_client()
    client.set_cookie("hearsay", READ_TOKEN)
    return client.get("/metric/page", headers=BROWSER).text


@pytest.fixture
def mixed(app: Flask, storage: MemoryStorage) -> Flask:
    for source in (UNKNOWN, RELAY, BOTH):
        send(app, storage, source)
    return app


def test_an_answer_tells_of_how_many_reports_it_is_known_how_they_came(mixed: Flask) -> None:
    (basis,) = answer(mixed)["meta"]["metrics"]

    assert basis["sources"] == {"relayed": 2 * EACH, "attested": EACH, "of": 3 * EACH}
    assert basis["n"] == 3 * EACH


def test_how_reports_came_changes_no_row(
    mixed: Flask, storage: MemoryStorage, make_app: Any
) -> None:
    with_sources = answer(mixed)["rows"]
    assert all(row["value"] is not None for row in with_sources)
    storage.destroy()
    plain = make_app()
    for _ in range(3):
        send(plain, storage, UNKNOWN)

    assert answer(plain)["rows"] == with_sources
    assert "sources" not in answer(plain)["meta"]["metrics"][0]


def test_a_page_tells_it_among_the_details_and_nowhere_else(mixed: Flask) -> None:
    text = page(mixed)
    details = text[text.index("How it is collected") : text.rindex("</section>")]

    assert f"<dt>Relayed</dt><dd>{2 * EACH} <span" in details
    assert f"<dt>Attested</dt><dd>{EACH} <span" in details
    assert text.count("Relayed") == 1


def shuffled(app: Flask) -> Any:
    return answer(app)["meta"]["metrics"][0].get("epsilon_shuffled")


def test_a_relay_that_nobody_declared_hides_nobody(mixed: Flask) -> None:
    assert set(shuffled(mixed)) == {"because"}
    assert "HEARSAY_RELAY_OPERATOR" in shuffled(mixed)["because"]
    assert "none is stated" in page(mixed)


def test_the_answer_and_the_details_of_a_page_state_the_same_with_all_that_it_assumes(
    storage: MemoryStorage, make_app: Any
) -> None:
    declared = make_app(relay_operator="<b>Example</b>", colluding=Fraction(1, 10))
    for source in (UNKNOWN, *[RELAY] * 8, *[BOTH] * 5):
        send(declared, storage, source)

    claim = shuffled(declared)
    text = page(declared)

    assert claim["n"] == 5 * EACH * 9 // 10  # those with a token do not hide those without
    assert 0 < claim["epsilon"] < epsilon_of(PAGE)
    details = text[text.index("How it is collected") : text.rindex("</section>")]
    assert f"at most {above(claim['epsilon'])}" in details
    assert all(str(escape(assumption[1:])) in details for assumption in claim["assumes"])
    assert "<b>" not in text
    assert text.count("Shuffled ε") == 1
    assert text.index("Shuffled ε") > text.index("<h1>")


def test_the_text_of_an_answer_never_states_it_without_what_it_assumes(
    storage: MemoryStorage, make_app: Any
) -> None:
    declared = make_app(relay_operator="Example")
    for _ in range(5):
        send(declared, storage, RELAY)
    document = answer(declared)
    claim = document["meta"]["metrics"][0]["epsilon_shuffled"]

    (line,) = [text for text in lines_of("page", [], document["meta"]) if "shuffled" in text]

    assert f"at most {above(claim['epsilon'])}" in line
    assert all(assumption in line for assumption in claim["assumes"])


def test_who_runs_the_relay_is_said_to_the_people_measured(make_app: Any) -> None:
    declared = make_app(relay_operator="Example Relays", colluding=Fraction(1, 10))
    client = declared.test_client()

    assert "Example Relays runs it" in client.get("/privacy/people", headers=BROWSER).text
    client.set_cookie("hearsay", READ_TOKEN)
    assert "Example Relays" in client.get("/privacy", headers=BROWSER).text
    assert "up to 10 %" in client.get("/privacy", headers=BROWSER).text
    plain = make_app().test_client()
    assert "relay" not in plain.get("/privacy/people", headers=BROWSER).text


def test_a_page_is_silent_where_nothing_is_known(app: Flask, storage: MemoryStorage) -> None:
    send(app, storage, UNKNOWN)

    assert "Relayed" not in page(app)
