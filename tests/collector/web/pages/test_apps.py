"""Two apps of one collector with metrics of the same names: each has addresses of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from markupsafe import escape

from client_sdk.registry import Registry
from client_sdk.wire.reports import Column
from collector.core.credentials import READ, VIEWER, WRITE, Credential
from collector.core.errors import ConfigError
from tests.support.crowds.uploads import (
    TODAY,
    as_json,
    bearer,
    epoch_today,
    registry_text,
    upload,
)
from tests.support.sites.in_memory import in_memory
from tests.support.store.memory_credentials import MemoryCredentials

TOKEN, OF_OTHER, KEY = "t" * 30, "o" * 30, "k" * 30
HTML = {"Accept": "text/html"}


def other_text(*, separate: bool = True) -> str:
    app = f'app = {{ name = "other", separate = {str(separate).lower()} }}'
    return registry_text().replace('app = "test"', app).replace("First page", "Front door")


def app_of(tmp_path: Path, *texts: str) -> Flask:
    stored = MemoryCredentials()
    stored.add(OF_OTHER, Credential(READ, app="other", role=VIEWER, expires=TODAY + 9))
    stored.add(KEY, Credential(WRITE, app="other"))
    return in_memory(tmp_path, *texts, credentials=stored, settings={"HEARSAY_READ_TOKEN": TOKEN})


@pytest.fixture
def client(tmp_path: Path) -> FlaskClient:
    return app_of(tmp_path, registry_text(), other_text()).test_client()


def get(client: FlaskClient, path: str, token: str = TOKEN) -> Any:
    return client.get(path, headers={**bearer(token), **HTML})


def test_the_overview_has_a_switch_and_each_app_an_overview_of_its_own(client: FlaskClient) -> None:
    whole, part = get(client, "/").text, get(client, "/apps/other").text

    assert 'href="/apps/other"' in whole
    assert 'href="/metric/test/page"' in whole
    assert 'href="/metric/other/page"' in whole
    assert "Overview of other" in part
    assert 'href="/metric/other/page"' in part
    assert 'href="/metric/test/page"' not in part
    assert '<a href="/apps/other" aria-current="page">' in part


def test_a_collector_of_one_app_has_no_switch_and_bare_addresses(tmp_path: Path) -> None:
    client = app_of(tmp_path, registry_text()).test_client()

    text = get(client, "/").text

    assert 'aria-label="Apps"' not in text
    assert 'href="/metric/page"' in text
    assert get(client, "/metric/test/page").status_code == 200


def test_an_app_that_a_token_may_not_read_is_as_unknown_as_no_app(client: FlaskClient) -> None:
    hidden, none = get(client, "/apps/test", OF_OTHER), get(client, "/apps/nobody", OF_OTHER)

    assert (hidden.status_code, none.status_code) == (404, 404)
    assert hidden.text.replace("test", "nobody") == none.text
    assert 'aria-label="Apps"' not in get(client, "/", OF_OTHER).text


@pytest.mark.parametrize(
    "path",
    [
        "/metric/{}",
        "/compare?metric={}",
        "/plan?metric={}",
        "/ask?metric={}&verb=estimate",
        "/metric/{}/answer.csv",
    ],
)
def test_each_page_takes_the_address_and_refuses_the_bare_name(
    client: FlaskClient, path: str
) -> None:
    page = get(client, path.format("page"))

    assert page.status_code == 400
    assert str(escape("write other/page or test/page")) in page.text
    assert get(client, path.format("other/page")).status_code in (200, 404)
    assert get(client, path.format("other/nothing")).status_code in (400, 404)


def test_the_files_of_a_panel_are_reached_by_bare_names_and_by_addresses(
    client: FlaskClient, tmp_path: Path
) -> None:
    text = get(client, "/metric/other/page").text
    begin = text.index('href="/metric/other/page/') + len('href="')
    file = text[begin : text.index('"', begin)]

    assert file.partition("?")[0].endswith(".csv")
    assert get(client, file).status_code == 200
    alone = app_of(tmp_path, registry_text()).test_client()
    assert get(alone, file.replace("other/", "")).status_code == 200


def test_the_api_lists_and_answers_each_by_its_address(client: FlaskClient) -> None:
    listed = get(client, "/v1/metrics").json["metrics"]
    names = [metric["name"] for metric in listed]

    assert {"test/page", "other/page"} <= set(names)
    assert len(set(names)) == len(names)
    assert {metric["app"] for metric in listed} == {"test", "other"}
    assert get(client, "/v1/metrics/other%2Fpage/estimate").json["meta"]["metrics"][0]["name"] == (
        "other/page"
    )
    refused = client.get("/v1/metrics/page/estimate", headers=bearer(TOKEN))
    assert (refused.status_code, "test/page" in refused.text) == (400, True)


def test_one_metric_by_two_names_is_no_two_metrics(client: FlaskClient) -> None:
    question = {"metrics": ["theme", "test/theme"], "verb": "crosstab"}
    alone = {"metrics": ["test/theme", "test/theme"], "verb": "crosstab"}

    for body in (question, alone):
        answer = client.post("/v1/query", json=body, headers=bearer(TOKEN))
        assert answer.status_code == 400


def test_an_upload_of_one_app_is_not_of_the_other_though_defined_alike(tmp_path: Path) -> None:
    app = app_of(tmp_path, registry_text(), other_text())
    mine, its = (
        Registry.from_text(text).metric("page") for text in (registry_text(), other_text())
    )
    client = app.test_client()

    def send(digest: bytes) -> Any:
        body = as_json(upload([Column(digest, epoch_today(its), b"\0")], upload_id=os.urandom(16)))
        headers = {**bearer(KEY), "Content-Type": "application/json"}
        return client.post("/v1/reports", data=body, headers=headers).json

    assert its.digest != mine.digest
    assert send(its.digest)["accepted"] == 1
    assert send(mine.digest)["rejected"][0]["reason"] == "unknown_metric"


def test_two_apps_that_define_a_metric_alike_do_not_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="separate = true"):
        app_of(tmp_path, registry_text(), other_text(separate=False))


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ("/metric/test/page?range=7d&item=home", "/metric/other/page?range=7d"),
        ("/ask?metric=test/page&verb=top_k&range=14d", "/ask?metric=other/page&range=14d"),
        ("/compare?metric=test/page&by=time", "/compare?metric=other/page"),
        ("/privacy", "/apps/other"),
    ],
)
def test_the_switch_leads_to_the_same_page_of_the_other_app(
    client: FlaskClient, path: str, other: str
) -> None:
    """With the time that was chosen; what else was chosen need not mean anything there."""
    text = get(client, path).text

    switch = text.partition('aria-label="Apps"')[2].partition("</nav>")[0]
    assert f'href="{escape(other)}"' in switch
    assert get(client, other).status_code == 200


def test_the_switch_leads_to_the_overview_of_an_app_without_such_a_metric(tmp_path: Path) -> None:
    """A link never opens a page that says that there is nothing."""
    text = other_text().replace("[metrics.page]", "[metrics.entry]")
    client = app_of(tmp_path, registry_text(), text).test_client()

    switch = get(client, "/metric/test/page").text.partition('aria-label="Apps"')[2]

    assert 'href="/apps/other"' in switch.partition("</nav>")[0]
