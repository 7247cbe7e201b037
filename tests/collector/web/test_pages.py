"""The result page shows every metric, with reports and without, and texts only as texts."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from client_sdk.epoch import DAY, epoch_of
from client_sdk.registry import Registry
from collector.storage.values import Cell
from tests.collector.web.conftest import MakeApp
from tests.support.memory_storage import MemoryStorage
from tests.support.uploads import (
    NOON,
    READ_TOKEN,
    TODAY,
    WRITE_KEY,
    bearer,
    registry,
    registry_text,
)

HOSTILE = "<script>alert('1')</script>&\\\"><img src=x onerror=alert(2)>"  # as TOML has it
REGISTRY = registry()


class Page(HTMLParser):
    """What a browser would see: tags, attributes and text."""

    def __init__(self, response: TestResponse) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self.feed(response.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def overview(client: FlaskClient) -> Page:
    response = client.get("/", headers=bearer(READ_TOKEN))
    assert response.status_code == 200, response.text
    assert response.mimetype == "text/html"
    return Page(response)


def store_reports(storage: MemoryStorage, known: Registry) -> None:
    page = known.metric("page")
    cell = Cell(page.digest, TODAY, "")
    storage.fold(0, [], {cell: [(0, 12_000), (1, 6_000), (2, 4_000), (3, 2_000)]})


def test_without_reports_every_metric_says_why_it_has_no_numbers(client: FlaskClient) -> None:
    page = overview(client)

    assert page.tags.count("section") == page.tags.count("svg") == len(REGISTRY.metrics)
    assert all(metric.title in page.text for metric in REGISTRY)
    assert "not enough reports: 0 of at least 100 needed" in page.text
    assert "rect" not in page.tags


def test_with_reports_a_metric_has_bars_numbers_and_its_n(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    store_reports(storage, REGISTRY)

    page = overview(client)

    assert page.tags.count("rect") >= 3
    assert "12,000 reports" in page.text
    assert "%" in page.text


def test_hostile_texts_of_a_registry_stay_texts(make_app: MakeApp, storage: MemoryStorage) -> None:
    text = (
        registry_text()
        .replace('"home"', f'"{HOSTILE}"')
        .replace('title = "Page"', f'title = "{HOSTILE}"')
        .replace("Which page comes first?", HOSTILE)
        .replace('unit = "years"', f'unit = "{HOSTILE}"')
    )
    store_reports(storage, Registry.from_text(text))

    page = overview(make_app(text).test_client())

    assert "script" not in page.tags
    assert "img" not in page.tags
    assert not [name for name in page.attributes if name.startswith("on")]
    assert page.text.count("alert('1')") >= 3


def test_a_page_has_no_inline_style_or_script_that_its_policy_would_refuse(
    client: FlaskClient,
) -> None:
    page = overview(client)

    assert {"script", "style"}.isdisjoint(page.tags)
    assert "style" not in page.attributes


def test_the_style_sheet_of_the_page_is_there(client: FlaskClient) -> None:
    response = client.get("/static/hearsay.css", buffered=True)

    assert (response.status_code, response.mimetype) == (200, "text/css")


@pytest.mark.parametrize("secret", ["", WRITE_KEY])
def test_an_open_page_needs_no_token_but_the_api_still_does(make_app: MakeApp, secret: str) -> None:
    client = make_app(open_dashboard=True).test_client()

    statuses = [
        client.get(path, headers=bearer(secret)).status_code for path in ("/", "/v1/metrics")
    ]

    assert statuses == [200, 401]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("localhost:8000", 200),
        ("[::1]:8000", 200),
        ("rebound.example", 401),
        ("127.0.0.1.rebound.example:8000", 401),
        ("localhost.rebound.example", 401),
    ],
)
def test_an_open_page_is_open_only_under_the_names_of_this_machine(
    make_app: MakeApp, host: str, status: int
) -> None:
    client = make_app(open_dashboard=True).test_client()

    assert client.get("/", headers={"Host": host}).status_code == status


def test_a_damaged_tally_costs_only_the_answer_of_its_own_metric(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    """The page shows the others; the API names the damage, as a problem document."""
    store_reports(storage, REGISTRY)
    theme = REGISTRY.metric("theme")
    week = epoch_of(theme.every, NOON - 7 * DAY)
    storage.fold(0, [], {Cell(theme.digest, week, ""): [(0, 5_000), (1, 5_001)]})

    page = overview(client)
    answer = client.get("/v1/metrics/theme/estimate", headers=bearer(READ_TOKEN))

    assert "12,000 reports" in page.text
    assert page.text.count("hearsay fsck") == 1
    assert answer.status_code == 500
    assert "urn:hearsay:problem:damaged-tally" in answer.text
