"""An answer is the same in JSON, CSV, Arrow and flat records; no cell of a CSV is a formula."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import pytest
from flask.testing import FlaskClient

from collector.analytics.rows import Row
from collector.web.api.formats import ARROW, FORMS, PARQUET, rfc3339
from tests.support.crowds.asked import JANUARY, JANUARY_5, follow, post, store
from tests.support.crowds.uploads import READ_TOKEN, bearer, registry
from tests.support.store.memory_storage import MemoryStorage

REGISTRY: Final = registry()
PAGE: Final = REGISTRY.metric("page")
QUESTION: Final = {
    "metrics": ["page"],
    "date_range": JANUARY,
    "dimensions": ["time:week", "platform"],
}
MEDIA: Final = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": ARROW,
    "parquet": PARQUET,
}
TABLES: Final = [form for form in FORMS if form.name != "geojson"]  # of any answer


@pytest.fixture
def filled(client: FlaskClient, storage: MemoryStorage) -> FlaskClient:
    """Two weeks of two platforms, one of them with too few reports for a number."""
    for week in (0, 7):
        store(storage, PAGE, JANUARY_5 + week, 400, platform="linux")
        store(storage, PAGE, JANUARY_5 + week, 150, platform="mac")
    store(storage, PAGE, JANUARY_5 + 8, 101)
    return client


def lines_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_every_form_tells_the_same_numbers(filled: FlaskClient) -> None:
    """Of each row its dimensions, its number, both ends, its reports and its reason."""
    pyarrow = pytest.importorskip("pyarrow")
    rows = post(filled, QUESTION).get_json()["rows"]
    flat = [flattened(row) for row in rows]

    by_csv = lines_of(post(filled, QUESTION, query_string={"format": "csv"}).text)
    stream = post(filled, QUESTION, query_string={"format": "arrow"}).data
    by_arrow = pyarrow.ipc.open_stream(stream).read_all().to_pylist()
    records = post(filled, QUESTION, query_string={"format": "rows"}).get_json()

    assert len(flat) == 15
    assert by_arrow == flat
    assert [{**record, "time": record["time"][:10]} for record in records] == flat
    assert by_csv == [{name: shown(one[name]) for name in one} for one in flat]


def flattened(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its dimensions as columns, and its notes and its reason in words."""
    notes, reason = row.pop("notes"), row.pop("reason")
    note = "; ".join(each["text"] for each in notes) or None
    return {**row.pop("dimensions"), **row, "note": note, "reason": reason and reason["text"]}


def shown(value: object) -> str:
    return "" if value is None else str(value)


def test_flat_records_name_what_a_dashboard_needs(filled: FlaskClient) -> None:
    """No selectors: time, item, value, ends and reports are keys of each record."""
    records = follow(filled, QUESTION, format="rows").get_json()

    assert {"time", "platform", "item", "value", "ci_low", "ci_high", "n"} <= set(records[0])
    assert datetime.fromisoformat(records[0]["time"]).utcoffset() is not None


@pytest.mark.parametrize(
    ("label", "beginning"),
    [
        ("2026-01-05", "2026-01-05T00:00:00Z"),
        ("2026-01", "2026-01-01T00:00:00Z"),
        ("2026-01-05T07:00Z", "2026-01-05T07:00:00Z"),
        ("2026-01-05/2026-01-11", "2026-01-05T00:00:00Z"),  # the first and the last of several
        ("2026-01-05T07:00Z/2026-01-05T09:00Z", "2026-01-05T07:00:00Z"),
        ("once", None),
    ],
)
def test_a_label_of_time_is_told_as_its_beginning(label: str, beginning: str | None) -> None:
    assert rfc3339(label) == beginning
    assert beginning is None or datetime.fromisoformat(beginning).utcoffset() is not None


@pytest.mark.parametrize("accepted", MEDIA.items(), ids=MEDIA)
def test_the_form_is_chosen_by_the_accept_header_too(
    filled: FlaskClient, accepted: tuple[str, str]
) -> None:
    name, media_type = accepted

    response = post(filled, QUESTION, headers={"Accept": media_type.partition(";")[0]})

    assert response.content_type == media_type
    assert response.data == post(filled, QUESTION, query_string={"format": name}).data
    assert "Accept" in response.headers["Vary"]


@pytest.mark.parametrize("accepted", ["*/*", "text/html,*/*;q=0.8", "image/png", ""])
def test_who_accepts_no_form_of_ours_gets_json(filled: FlaskClient, accepted: str) -> None:
    response = post(filled, QUESTION, headers={"Accept": accepted})

    assert response.content_type == "application/json"


def test_an_estimate_has_the_same_forms(filled: FlaskClient) -> None:
    path = "/v1/metrics/page/estimate"
    window = {"from": JANUARY[0], "to": JANUARY[1]}

    for form in TABLES:
        said = {**window, "format": form.name}
        response = filled.get(path, query_string=said, headers=bearer(READ_TOKEN))
        assert response.content_type == MEDIA.get(form.name, "application/json")
    lines = lines_of(filled.get(path, query_string={**said, "format": "csv"},
                                headers=bearer(READ_TOKEN)).text)  # fmt: skip
    assert [line["item"] for line in lines] == ["home", "news", "shop"]


@pytest.mark.parametrize(
    "said", [{"format": "xml"}, {"format": ""}, {"format": ["csv", "json"]}, {"form": "csv"}]
)
def test_a_form_that_is_none_of_ours_is_a_problem(
    filled: FlaskClient, said: Mapping[str, Any]
) -> None:
    response = post(filled, QUESTION, query_string=said)

    document = response.get_json(force=True)
    assert (response.status_code, document["type"]) == (400, "urn:hearsay:problem:bad-parameter")
    assert document["errors"][0].keys() == {"parameter", "detail"}


def test_without_arrow_the_answer_names_what_to_install(
    filled: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    response = post(filled, QUESTION, query_string={"format": "arrow"})

    assert response.status_code == 406
    assert "hearsay-collector[archive]" in response.get_json(force=True)["detail"]


def test_a_link_gives_what_the_post_gives(filled: FlaskClient) -> None:
    """A question fits into an address, so that an answer can be shared and read by dashboards."""
    for form in TABLES:
        posted = post(filled, QUESTION, query_string={"format": form.name})
        linked = follow(filled, QUESTION, format=form.name)
        assert linked.data == posted.data
        assert linked.headers["ETag"] == posted.headers["ETag"]


def row(item: str, value: float | None = 0.5) -> Row:
    return Row({"item": item}, value, value, value, 0.1, 7, 0.05, "good")
