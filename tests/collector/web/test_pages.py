"""Who may see pages, and that style sheets and scripts are there.  What they show: dashboard/."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from client_sdk.epoch import DAY, epoch_of
from collector.storage.values import Cell
from tests.collector.web.conftest import MakeApp
from tests.support.memory_storage import MemoryStorage
from tests.support.uploads import NOON, READ_TOKEN, TODAY, WRITE_KEY, bearer, registry

REGISTRY = registry()


@pytest.mark.parametrize(
    ("name", "mimetype"),
    [
        ("hearsay.css", "text/css"),
        ("charts.css", "text/css"),
        ("theme.js", "text/javascript"),
        ("pages.js", "text/javascript"),
        ("icon.svg", "image/svg+xml"),
    ],
)
def test_a_file_of_the_pages_is_there_with_its_type(
    client: FlaskClient, name: str, mimetype: str
) -> None:
    """Browsers are told to believe the type and nothing else."""
    response = client.get(f"/static/{name}", buffered=True)

    assert (response.status_code, response.mimetype) == (200, mimetype)


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
    page_metric, theme = REGISTRY.metric("page"), REGISTRY.metric("theme")
    today = Cell(page_metric.digest, TODAY, "")
    storage.fold(0, [], {today: [(0, 12_000), (1, 6_000), (2, 4_000), (3, 2_000)]})
    week = epoch_of(theme.every, NOON - 7 * DAY)
    storage.fold(0, [], {Cell(theme.digest, week, ""): [(0, 5_000), (1, 5_001)]})

    page = client.get("/", headers=bearer(READ_TOKEN))
    answer = client.get("/v1/metrics/theme/estimate", headers=bearer(READ_TOKEN))

    assert "12,000 reports" in page.text
    assert page.text.count("hearsay fsck") == 1
    assert answer.status_code == 500
    assert "urn:hearsay:problem:damaged-tally" in answer.text
