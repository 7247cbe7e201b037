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


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/?nothing=1", "known are range, from, to"),
        ("/?nothing=", "known are range, from, to"),
        ("/ask?nothing=", "known are q"),
        ("/compare?nothing=&to=", "known are metric"),
        ("/?range=7d&range=14d", "range: must be given once"),
        ("/?from=2026-01-01", "to: must be given"),
        ("/?range=dates&to=2026-01-01", "from: must be given"),
        ("/metric/category?by=platform", "known are item"),
        ("/metric/category/answer.csv?nothing=1", "known are item"),
        ("/metric/category?item=a&item=b", "item: must be given once"),
        ("/compare?panel=1", "known are metric"),
        ("/compare.csv?metric=category&by=time&by=time", "by: must be given once"),
        ("/plan?metric=category&nothing=1", "known are metric"),
        ("/ask?nothing=1", "known are q"),
        ("/ask?verb=trend&verb=frequency", "verb: must be given once"),
        ("/ask.csv?nothing=1", "known are q"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused_by_name(
    visit: Visit, path: str, named: str
) -> None:
    response = visit(path)

    assert response.status_code == 400
    assert named in Page(response.text).text


def test_a_mistyped_address_of_a_question_keeps_the_metric_and_the_question(visit: Visit) -> None:
    """Law: what is wrong with an address costs no more than that."""
    page = visit("/ask?metric=number&verb=quantile&tme=week").text

    assert "the address has an unknown one" in page
    assert 'aria-current="true">Up to which number' in page
    assert '<option value="number" selected>' in page


@pytest.mark.parametrize(
    "path",
    [
        "/?range=7d&from=&to=",
        "/?range=dates&from=&to=",
        "/ask?from=",
        "/compare?to=&against=",
        "/ask?metric=category&metric=set&verb=estimate&by=&by=platform",
    ],
)
def test_what_a_form_leaves_empty_is_no_fault_of_its_address(visit: Visit, path: str) -> None:
    assert "parameter" not in Page(visit(path).text).text
    assert "must be given" not in Page(visit(path).text).text
