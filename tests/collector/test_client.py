"""The client asks one question and gives its numbers as rows, tables, files and pictures."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
import requests
from flask import Flask
from requests.adapters import BaseAdapter

from collector.client import PAGE as MOST_ROWS
from collector.client import Client, Result
from collector.core.config import Config
from collector.core.errors import (
    AnswerError,
    ConfigError,
    ForeignFormError,
    MissingPackageError,
    UnreachableError,
)
from collector.web import create_app
from tests.support.crowds.asked import JANUARY, JANUARY_5, store
from tests.support.crowds.uploads import NOON, READ_TOKEN, registry, registry_text
from tests.support.patience import PATIENCE
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage


class _Adapter(BaseAdapter):
    """Hands each request to an application, and keeps it."""

    def __init__(self, app: Flask) -> None:
        super().__init__()
        self._client = app.test_client()
        self.sent: list[requests.PreparedRequest] = []

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        self.sent.append(request)
        address = urlsplit(str(request.url))
        found = self._client.open(
            address.path,
            method=str(request.method),
            query_string=address.query,
            headers=dict(request.headers),
            data=request.body,
        )
        response = requests.Response()
        response.status_code = found.status_code
        response.headers.update(dict(found.headers))
        response.raw = BytesIO(found.data)
        response.url = str(request.url)
        return response

    def close(self) -> None:
        """Nothing is open."""


def session_of(app: Flask) -> tuple[requests.Session, list[requests.PreparedRequest]]:
    """Return a session that asks *app*, and the list to which it adds what it has sent."""
    session, adapter = requests.Session(), _Adapter(app)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session, adapter.sent


def failing_session(answer: Mapping[str, Any] | Exception) -> requests.Session:
    """Return a session that always gets the same: an exception, or status, headers and body."""

    class Failing(BaseAdapter):
        def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
            if isinstance(answer, Exception):
                raise answer
            response = requests.Response()
            response.status_code = answer["status"]
            response.headers.update(answer.get("headers", {}))
            response.raw = BytesIO(answer.get("body", b""))
            response.url, response.request = str(request.url), request
            return response

        def close(self) -> None:
            pass

    session = requests.Session()
    session.mount("http://", Failing())
    session.mount("https://", Failing())
    return session


URL: Final = "https://telemetry.example.org"
PAGE: Final = registry().metric("page")
WEEKS: Final[dict[str, Any]] = {"date_range": JANUARY, "dimensions": ["time:week"]}


@pytest.fixture
def app(tmp_path: Path) -> Flask:
    """A collector with two weeks of reports of one metric."""
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(), encoding="utf-8")
    config = Config.from_env({"HEARSAY_REGISTRY": str(path), "HEARSAY_READ_TOKEN": READ_TOKEN})
    storage = MemoryStorage()
    for week in (0, 7):
        store(storage, PAGE, JANUARY_5 + week, 400, platform="linux")
    return create_app(config, storage, lambda: NOON, MemoryCredentials())


@pytest.fixture
def client(app: Flask) -> Client:
    return Client(URL, READ_TOKEN, session_of(app)[0])


def test_a_question_gives_rows_with_what_they_rest_on(client: Client) -> None:
    result = client.query("page", verb="top_k", date_range=JANUARY, options={"k": 2})

    assert (len(result), result.verb, result.title) == (2, "top_k", "Page")
    assert [row["dimensions"]["item"] for row in result] == ["home", "news"]
    assert all(row["ci_low"] < row["value"] < row["ci_high"] for row in result)
    assert result.meta["n"] == 800


def test_the_metrics_are_those_that_the_token_may_see(client: Client) -> None:
    assert [metric["name"] for metric in client.metrics()] == list(registry().metrics)


def test_records_are_flat_and_have_the_same_keys(client: Client) -> None:
    records = client.query("page", **WEEKS).records()

    assert len(records) == 6
    assert {tuple(record) for record in records} == {tuple(records[0])}
    assert list(records[0])[:3] == ["time", "item", "value"]


def test_an_arrow_table_holds_the_records(client: Client) -> None:
    pytest.importorskip("pyarrow")
    result = client.query("page", **WEEKS)

    assert result.to_arrow().to_pylist() == result.records()


def test_a_parquet_file_holds_the_table(client: Client, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    result = client.query("page", **WEEKS)
    result.to_parquet(tmp_path / "answer.parquet")

    assert parquet.read_table(tmp_path / "answer.parquet").to_pylist() == result.records()


def test_a_data_frame_is_made_of_the_records_with_times_that_pandas_knows(client: Client) -> None:
    result = client.query("page", **WEEKS)

    frame = result.to_pandas()

    assert frame["value"].tolist() == [row["value"] for row in result.records()]
    assert frame["time"].dt.strftime("%Y-%m-%d").tolist() == [
        row["time"] for row in result.records()
    ]


def test_a_table_without_its_package_says_how_to_get_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = client.query("page", **WEEKS)
    for package in ("pandas", "pyarrow"):
        monkeypatch.setitem(sys.modules, package, None)

    write = partial(result.to_parquet, "never")
    for make, package in (
        (result.to_pandas, "pandas"), (result.to_arrow, "pyarrow"), (write, "pyarrow"),
    ):  # fmt: skip
        with pytest.raises(MissingPackageError, match=f"^{package}: .*analysis.*records()"):
            make()


def test_a_file_holds_the_numbers_exactly(client: Client) -> None:
    result = client.query("page", **WEEKS)

    lines = list(csv.DictReader(io.StringIO(result.to_csv(), newline="")))

    assert [float(line["value"]) for line in lines] == [row["value"] for row in result]
    rare = {"raw", "shrunken", "fakes_to_flip", "certainty"}
    assert set(lines[0]) == set(result.records()[0]) | rare


def test_what_few_answers_have_is_a_column_where_a_row_has_it(
    client: Client, tmp_path: Path
) -> None:
    """Law: every record of an answer has the same keys, and a Parquet file has them as columns."""
    from pyarrow.parquet import read_table

    plain = client.query("page", **WEEKS)
    moved = client.query("page", postprocess="norm_sub", verb="frequency", **WEEKS)
    moved.to_parquet(tmp_path / "moved.parquet")

    assert "raw" not in plain.records()[0]
    assert {"raw"} <= set(moved.records()[0])
    assert "fakes_to_flip" not in moved.records()[0]
    assert read_table(tmp_path / "moved.parquet").to_pylist() == moved.records()


def test_a_notebook_shows_the_chart_the_table_and_what_they_rest_on(client: Client) -> None:
    """Well-formed markup, without a script."""
    html = client.query("page", **WEEKS)._repr_html_()

    page = ElementTree.fromstring(html)  # noqa: S314  # our own
    names = {element.tag.rpartition("}")[2] for element in page.iter()}
    assert {"svg", "table"} <= names
    assert "script" not in names
    assert "800 reports" in html


def test_an_answer_without_numbers_shows_the_reasons(client: Client) -> None:
    result = client.query("theme", date_range=JANUARY)

    assert {row["value"] for row in result} == {None}
    assert "not enough reports" in result._repr_html_()
    assert "not enough reports" in result.to_csv()


def test_warnings_and_names_are_text_of_a_page_and_no_markup() -> None:
    """A registry may hold any title."""
    basis = {"title": "<script>alert(1)</script>"}
    warnings = [{"code": "note", "text": "<b>&"}]
    meta = {"chart": "rows", "metrics": [basis], "n": 0, "warnings": warnings}

    html = Result((), meta).to_html()

    assert "<script" not in html
    assert "<b>" not in html


def test_a_refusal_says_where_and_what_would_work(client: Client) -> None:
    with pytest.raises(AnswerError, match=r"options\.k: expected `int` >= 1") as caught:
        client.query("page", verb="top_k", options={"k": 0})

    assert caught.value.status == 400
    assert caught.value.faults[0]["pointer"] == "/options/k"


@pytest.mark.parametrize(
    ("token", "metric", "status"), [("x" * 20, "page", 401), (READ_TOKEN, "pages", 404)]
)
def test_other_refusals_keep_their_status(app: Flask, token: str, metric: str, status: int) -> None:
    client = Client(URL, token, session_of(app)[0])

    with pytest.raises(AnswerError) as caught:
        client.query(metric)

    assert caught.value.status == status
    assert token not in str(caught.value)
    assert (f"asked of {URL}" in str(caught.value)) == (status == 401)  # it may be another's token


def test_a_long_answer_is_fetched_page_by_page() -> None:
    """All rows, unless a page of them is asked for."""
    sent: list[Any] = []

    class Paged(Client):
        def _ask(self, method: str, path: str, body: Any = None) -> Any:
            sent.append(body["pagination"])
            size = MOST_ROWS if len(sent) < 3 else 7
            return {"rows": [{"dimensions": {}} for _ in range(size)], "meta": {}}

    assert len(Paged(URL, READ_TOKEN).query("page")) == 2 * MOST_ROWS + 7
    assert [page["offset"] for page in sent] == [0, MOST_ROWS, 2 * MOST_ROWS]
    sent.clear()
    assert len(Paged(URL, READ_TOKEN).query("page", pagination={"limit": 5})) == MOST_ROWS
    assert sent == [{"limit": 5}]


def test_a_link_is_the_same_question(app: Flask, client: Client) -> None:
    link = client.link("page", verb="top_k", date_range=JANUARY)

    answer = app.test_client().get(
        link.removeprefix(URL), headers={"Authorization": f"Bearer {READ_TOKEN}"}
    )

    asked = client.query("page", verb="top_k", date_range=JANUARY)
    assert answer.get_json()["rows"] == list(asked.rows)
    assert READ_TOKEN not in link


@pytest.mark.parametrize(
    "answer",
    [
        requests.ConnectionError("canary"),
        requests.Timeout("canary"),
        {"status": 200, "body": b"<html>"},
        {"status": 502, "body": b""},
    ],
    ids=repr,
)
def test_no_answer_of_a_collector_is_an_error_of_its_own(answer: Any) -> None:
    client = Client(URL, READ_TOKEN, failing_session(answer))

    with pytest.raises(UnreachableError) as caught:
        client.query("page")

    assert READ_TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    "body", ['{"rows": [1], "meta": {}}', '{"rows": []}', '{"meta": {}}', "[]"]
)
def test_an_answer_of_another_form_is_not_taken_for_one(body: str) -> None:
    client = Client(URL, READ_TOKEN, failing_session({"status": 200, "body": body.encode()}))

    with pytest.raises(ForeignFormError, match="another form"):
        client.query("page")


def test_the_token_follows_no_redirection() -> None:
    """It belongs to the collector that was named."""
    moved = {"status": 302, "headers": {"Location": "https://else.example.org/"}, "body": b"{}"}

    with pytest.raises(AnswerError):
        Client(URL, READ_TOKEN, failing_session(moved)).metrics()


def test_the_token_wins_over_a_password_of_the_users_netrc(
    app: Flask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which requests prefers to a header, and would send to the collector."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine telemetry.example.org login me password secret\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    session, sent = session_of(app)

    Client(URL, READ_TOKEN, session).metrics()

    assert [one.headers["Authorization"] for one in sent] == [f"Bearer {READ_TOKEN}"]


@pytest.mark.parametrize(
    ("url", "token"),
    [
        *((url, READ_TOKEN) for url in ("", "telemetry.example.org", "ftp://a", "https://")),
        *((url, READ_TOKEN) for url in ("http://telemetry.example.org", "https://me:canary@a")),
        *((URL, token) for token in ("", " ", "canary\n", "canaryü")),
    ],
)
def test_a_collector_that_cannot_be_asked_safely_is_refused(url: str, token: str) -> None:
    """A token in the clear over a network would be everybody's."""
    with pytest.raises(ConfigError) as caught:
        Client(url, token)

    assert "canary" not in str(caught.value)


def test_this_machine_may_be_asked_in_the_clear() -> None:
    assert repr(Client("http://127.0.0.1:8000/", READ_TOKEN)) == "Client('http://127.0.0.1:8000')"


def test_the_import_loads_no_server_and_no_numbers() -> None:
    """What a script pays that only wants rows; charts and tables are loaded when asked for."""
    command = "import collector.client, sys; print(*sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", command],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )

    assert not {"flask", "redis", "numpy", "pandas", "pyarrow", "msgspec"} & set(
        done.stdout.split()
    )


def test_an_answer_about_two_metrics_is_headed_by_what_is_asked_of_which() -> None:
    """Neither metric's own question is the one that was answered."""
    metrics = [{"title": "Spent", "question": "How much?"}, {"title": "Deals", "question": "Who?"}]
    of_both = Result((), {"verb": "ratio", "metrics": metrics})
    of_one = Result((), {"verb": "mean", "metrics": metrics[:1]})

    assert (of_both.title, of_one.title) == ("Ratio of Spent and Deals", "Spent")
