"""Labels of a registry that are markup are shown as text: no script, no attribute, no link."""

from __future__ import annotations

import json
from typing import Final

import pytest

from client_sdk.core.limits import MAX_LABEL
from collector.core.cells import Cell
from tests.collector.web.conftest import MakeApp
from tests.hostile.markup import MARKUP
from tests.support.crowds.uploads import COMMON, READ_TOKEN, TODAY, bearer
from tests.support.sites.page import Page
from tests.support.store.memory_storage import MemoryStorage

LABELS: Final = tuple(text for text in MARKUP if len(text) <= MAX_LABEL)[:1_000]
A_METRIC: Final = 50  # labels
REPORTS: Final = 1_000


def hostile_registry() -> str:
    parts = ['schema = 1\napp = "test"\n']
    for number in range(0, len(LABELS), A_METRIC):
        labels = LABELS[number : number + A_METRIC]
        quoted = ", ".join(json.dumps(label) for label in labels)
        common = COMMON.format(epsilon="1.0", min_reports=100, expires="2027-12-31")
        parts.append(
            f"[metrics.m{number}]\ntitle = {json.dumps(labels[0])}\n"
            f"question = {json.dumps(labels[1])}\ntype = 'category'\nvalues = [{quoted}]\n"
            f"mechanism = 'grr'\nevery = '1d'\n{common}"
        )
    return "\n".join(parts)


def test_a_thousand_hostile_labels_are_shown_as_text(
    make_app: MakeApp, storage: MemoryStorage
) -> None:
    """In titles, questions, forms, tables and charts, with answers beside them."""
    assert len(set(LABELS)) == 1_000
    app = make_app(hostile_registry())
    metrics = list(app.extensions["hearsay"].catalog.registries[0])
    for metric in metrics:
        cell = Cell(metric.digest, TODAY, "")
        storage.tallied[cell] |= {0: REPORTS, 1: REPORTS - 2, 2: 1, 3: 1}
    paths = ["/", "/privacy/people", *(f"/metric/{metric.name}" for metric in metrics)]

    pages = [app.test_client().get(path, headers=bearer(READ_TOKEN)).text for path in paths]

    read = [Page(text) for text in pages]
    assert [page.acting for page in read if page.acting] == []
    shown = "".join(page.text for page in read)
    assert [label for label in LABELS if label not in shown] == []


def test_hostile_labels_leave_the_query_api_as_json_only(make_app: MakeApp) -> None:
    """With a type that no browser shows as a page."""
    client = make_app(hostile_registry()).test_client()

    response = client.get("/v1/metrics", headers=bearer(READ_TOKEN))

    assert response.content_type == "application/json"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.get_json()["metrics"][0]["values"] == list(LABELS[:A_METRIC])


@pytest.mark.parametrize("place", ["<p>{}</p>", "<p title='{}'>x</p>", "<svg>{}</svg>"])
def test_a_page_that_forgets_to_escape_would_be_caught(place: str) -> None:
    """The control: unescaped, many labels act."""
    acting = [label for label in LABELS if Page(place.format(label)).acting]

    assert len(acting) > len(LABELS) // 20
