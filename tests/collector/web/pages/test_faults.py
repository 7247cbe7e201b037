"""Errors are pages where a browser asks for a page, and problem documents everywhere else."""

from __future__ import annotations

import pytest

from collector.core.errors import StorageUnavailableError
from tests.collector.web.conftest import MakeApp
from tests.collector.web.pages.conftest import BROWSER, Visit, as_operator
from tests.support.crowds.uploads import READ_TOKEN, bearer
from tests.support.sites.page import Page
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage


@pytest.mark.parametrize(
    ("path", "status"),
    [("/nothing", 404), ("/metric/none", 404), ("/operations", 403), ("/?range=9d", 400)],
)
def test_an_error_is_a_page_to_a_browser(visit: Visit, path: str, status: int) -> None:
    response = visit(path)
    page = Page(response.text)

    assert response.status_code == status
    assert response.mimetype == "text/html"
    assert page.acting == []
    assert page.tags.count("h1") == 1
    assert str(status) in page.text
    assert "Overview" in page.text  # the way back


@pytest.mark.parametrize("accept", ["", "*/*", "application/json", "application/problem+json"])
@pytest.mark.parametrize("path", ["/nothing", "/metric/none", "/operations"])
def test_an_error_is_a_problem_document_to_a_program(
    make_app: MakeApp, path: str, accept: str
) -> None:
    headers = {**bearer(READ_TOKEN), **({"Accept": accept} if accept else {})}

    response = make_app().test_client().get(path, headers=headers)

    assert response.content_type == "application/problem+json"


def test_an_error_of_the_api_is_a_problem_document_to_a_browser_too(visit: Visit) -> None:
    assert visit("/v1/nothing").content_type == "application/problem+json"


@pytest.mark.parametrize(
    ("failure", "status"),
    [(StorageUnavailableError("gone at 10.1.2.3"), 503), (RuntimeError("canary7f3a"), 500)],
)
def test_a_failure_is_a_page_that_tells_nothing_of_the_inside(
    make_app: MakeApp, storage: MemoryStorage, failure: Exception, status: int
) -> None:
    client = make_app().test_client()
    storage.failure = failure

    response = client.get("/", headers={**BROWSER, **bearer(READ_TOKEN)})

    assert response.status_code == status
    assert response.mimetype == "text/html"
    assert ("Retry-After" in response.headers) == (status == 503)
    assert not any(word in response.text for word in ("Traceback", "canary", "10.1.2.3"))


def test_a_store_that_is_away_is_a_finding_of_the_operations(
    make_app: MakeApp, storage: MemoryStorage, credentials: MemoryCredentials
) -> None:
    client = as_operator(make_app(), credentials)
    storage.failure = StorageUnavailableError("gone")

    response = client.get("/operations", headers=BROWSER)

    assert response.status_code == 200
    assert "does not answer" in response.text


@pytest.mark.parametrize(
    ("away", "token"), [("storage", READ_TOKEN), ("credentials", "hsr_kept-in-the-store")]
)
def test_a_store_that_is_away_tells_an_operator_what_to_do(
    make_app: MakeApp, request: pytest.FixtureRequest, away: str, token: str
) -> None:
    """The page speaks to an operator, not to devices, keeps its navigation and logs nobody out."""
    client = make_app().test_client()
    client.set_cookie("hearsay", token)
    request.getfixturevalue(away).failure = StorageUnavailableError("gone")

    response = client.get("/", headers=BROWSER)

    assert response.status_code == 503
    for text in ("The store does not answer", "hearsay doctor", "HEARSAY_ADMIN_TOKEN"):
        assert text in response.text
    assert 'aria-label="Pages"' in response.text
    assert "send again" not in response.text


@pytest.mark.parametrize("question", [("GET", "/v1/metrics/theme/estimate"), ("POST", "/v1/query")])
def test_who_asks_while_the_store_is_away_is_told_to_ask_again(
    make_app: MakeApp, storage: MemoryStorage, question: tuple[str, str]
) -> None:
    """Law: of uploads is only spoken to who sends one."""
    client = make_app().test_client()
    storage.failure = StorageUnavailableError("gone")
    method, path = question

    body = {"metrics": ["theme"]} if method == "POST" else None
    response = client.open(path, method=method, json=body, headers=bearer(READ_TOKEN))

    assert response.status_code == 503
    assert response.get_json()["detail"].endswith("Ask again in a minute.")
