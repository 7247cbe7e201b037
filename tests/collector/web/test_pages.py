"""Who may see pages, and that style sheets and scripts are there.  What they show: dashboard/."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from client_sdk.core.epoch import DAY, epoch_of
from collector.core.cells import Cell
from tests.collector.web.conftest import MakeApp
from tests.support.crowds.uploads import NOON, READ_TOKEN, TODAY, bearer, registry
from tests.support.store.memory_storage import MemoryStorage

REGISTRY = registry()
PATHS = ("/", "/privacy", "/operations", "/metric/page", "/ask", "/plan", "/compare")


@pytest.mark.parametrize(
    ("name", "mimetype"),
    [
        ("hearsay.css", "text/css"),
        ("charts.css", "text/css"),
        ("theme.js", "text/javascript"),
        ("login.js", "text/javascript"),
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


OF_PROXIES = [
    {"Host": "127.0.0.1:8000"},
    {"Host": "localhost:8000"},
    {"Host": "[::1]:8000"},
    {"Host": "rebound.example"},
    {"Host": "127.0.0.1", "X-Forwarded-For": "203.0.113.7", "Via": "1.1 proxy"},
]


@pytest.mark.parametrize("headers", OF_PROXIES, ids=str)
def test_pages_that_are_open_are_so_to_those_who_have_the_link_alone(
    make_app: MakeApp, headers: dict[str, str]
) -> None:
    """Whatever a proxy says or leaves out: what it passes on looks like a visit of this machine."""
    client = make_app(open_dashboard=True).test_client()

    statuses = [client.get(path, headers=headers).status_code for path in PATHS]

    assert statuses == [401] * len(PATHS)


def test_a_damaged_tally_costs_only_the_answer_of_its_own_metric(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    """The page shows the others; the API names the damage, as a problem document."""
    page_metric, theme = REGISTRY.metric("page"), REGISTRY.metric("theme")
    today = Cell(page_metric.digest, TODAY, "")
    storage.put({today: [(0, 12_000), (1, 6_000), (2, 4_000), (3, 2_000)]})
    week = epoch_of(theme.every, NOON - 7 * DAY)
    storage.put({Cell(theme.digest, week, ""): [(0, 5_000), (1, 5_001)]})

    page = client.get("/", headers=bearer(READ_TOKEN))
    answer = client.get("/v1/metrics/theme/estimate", headers=bearer(READ_TOKEN))

    assert "12,000 reports" in page.text
    assert page.text.count("hearsay fsck") == 1
    assert answer.status_code == 500
    assert "urn:hearsay:problem:damaged-tally" in answer.text
