"""Labels of a registry that are markup are shown as text: no script, no attribute, no link."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Final

import pytest

from client_sdk.limits import MAX_LABEL
from collector.storage.values import Cell
from tests.collector.web.conftest import MakeApp
from tests.hostile.markup import MARKUP
from tests.support.memory_storage import MemoryStorage
from tests.support.uploads import COMMON, READ_TOKEN, TODAY, bearer

LABELS: Final = tuple(text for text in MARKUP if len(text) <= MAX_LABEL)[:1_000]
A_METRIC: Final = 50  # labels
REPORTS: Final = 1_000
# All that the page is made of; anything else came out of a label.
_TAGS: Final = {
    *("html", "head", "meta", "title", "link", "body", "main", "header", "footer", "section"),
    *("article", "figure", "figcaption", "h1", "h2", "h3", "p", "a", "dl", "dt", "dd", "ul", "li"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary", "code", "div"),
    *("span", "strong", "em", "small", "svg", "g", "rect", "line", "text", "path", "desc", "nav"),
}


class _Page(HTMLParser):
    """Reads a page as a browser would, and keeps what could act."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.acting: list[str] = []
        self.said: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _TAGS:
            self.acting.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name in ("style", "srcdoc", "formaction"):
                self.acting.append(name)
            if name in ("href", "src", "xlink:href") and not (value or "").startswith(("/", "#")):
                self.acting.append(f"{name}={value}")

    def handle_comment(self, data: str) -> None:
        self.acting.append(f"<!--{data}")

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def page_of(text: str) -> _Page:
    page = _Page()
    page.feed(text)
    page.close()
    return page


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
    """In titles, questions, tables and charts, with answers beside them."""
    assert len(set(LABELS)) == 1_000
    app = make_app(hostile_registry())
    for metric in app.extensions["hearsay"].catalog.registries[0]:
        cell = Cell(metric.digest, TODAY, "")
        storage.tallied[cell] |= {0: REPORTS, 1: REPORTS - 2, 2: 1, 3: 1}

    response = app.test_client().get("/", headers=bearer(READ_TOKEN))
    page = page_of(response.text)

    assert response.status_code == 200
    assert page.acting == []
    shown = "".join(page.said)
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
    acting = [label for label in LABELS if page_of(place.format(label)).acting]

    assert len(acting) > len(LABELS) // 20
