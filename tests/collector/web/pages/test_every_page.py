"""Every page: complete without a script, nothing from elsewhere; what each asks and refuses."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import pytest
from flask import Flask

from collector.core.cells import Cell
from collector.core.remarks import WORDS, Code
from collector.web.auth import is_page
from collector.web.pages.remarks import AT_ONCE, UNSURE
from tests.collector.web.conftest import MakeApp
from tests.collector.web.pages.conftest import Visit
from tests.hostile.markup import MARKUP
from tests.support.crowds.uploads import READ_TOKEN, TODAY, bearer
from tests.support.device.every_type import EPOCHS, NAMES, N, registry_text
from tests.support.sites.page import Page
from tests.support.store.memory_storage import MemoryStorage

MOST_BYTES: Final = 150_000  # of a page with its style sheets and scripts
PAGES: Final = (
    *("/", "/compare", "/ask", "/ask?metric=category&verb=top_k", "/plan", "/privacy"),
    *(
        "/privacy/people",
        "/privacy/differencing",
        "/login",
        "/watches",
        "/boards",
        "/boards/deleted",
        "/notes",
        *(f"/metric/{name}" for name in NAMES),
    ),
)
HOSTILE: Final = [text for text in MARKUP if '"' not in text and "\\" not in text][:40]

# Those that need a parameter, those of operators, and a file.
OTHERS: Final = {"/pin", "/share", "/operations", "/privacy/record.json"}

every_page = pytest.mark.parametrize("path", PAGES)
every_type = pytest.mark.parametrize("name", NAMES)


def test_every_page_with_an_address_of_its_own_is_looked_at(site: Flask) -> None:
    pages = {
        rule.rule
        for rule in site.url_map.iter_rules()
        if "GET" in (rule.methods or ()) and not rule.arguments
        if is_page(site.view_functions[rule.endpoint])
    }

    assert pages - set(PAGES) == OTHERS, "add it to PAGES"


@every_page
def test_a_page_has_nothing_inline_and_nothing_from_elsewhere(visit: Visit, path: str) -> None:
    """Its policy would refuse it; and nobody else is told of a visit."""
    response = visit(path)
    page = Page(response.text)

    assert response.status_code == 200
    assert page.acting == []
    assert page.scripts.strip() == ""
    assert all(src.startswith("/static/") for src in page.values("src"))


@every_page
def test_a_page_has_the_landmarks_and_names_that_readers_of_screens_need(
    visit: Visit, path: str
) -> None:
    page = Page(visit(path).text)
    ids = page.values("id")

    assert page.tags.count("h1") == page.tags.count("main") == page.tags.count("header") == 1
    assert len(ids) == len(set(ids))
    assert set(" ".join(page.values("aria-labelledby")).split()) <= set(ids)
    assert "en" in page.values("lang", "html")
    for picture in page.pictures:
        assert picture.get("role") in {"img", "group"} or picture.get("aria-hidden") == "true"
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


@pytest.mark.parametrize(
    "path", ["/ask?metric=category&verb=estimate", *(f"/metric/{name}" for name in NAMES)]
)
def test_code_beside_a_chart_is_closed_at_first(visit: Visit, path: str) -> None:
    text = visit(path).text

    assert "<details><summary>The query</summary>" in text
    assert not re.search(r"<details open[^>]*><summary>The query", text)


@every_page
def test_a_page_weighs_no_more_than_it_may(visit: Visit, path: str) -> None:
    page = visit(path)
    files = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text))
    weight = len(page.data) + sum(len(visit(file).data) for file in files)

    assert len(files) >= 4
    assert weight <= MOST_BYTES


@every_type
def test_a_metric_shows_a_chart_a_table_and_its_reports(visit: Visit, name: str) -> None:
    text = visit(f"/metric/{name}").text
    page = Page(text)

    assert 'class="fault"' not in text
    assert page.tags.count("svg") >= 1
    bars = page.values("class", "table").count("chart-table breakdown")
    assert page.tags.count("table") - bars == page.text.count("Table")
    segments = {"category": 2, "boolean": 4, "number": 2}.get(name, 1)
    assert f"{EPOCHS * N * segments:,}" in page.text


@every_type
def test_the_numbers_of_every_panel_can_be_had_as_a_file(visit: Visit, name: str) -> None:
    files = Page(visit(f"/metric/{name}").text).values("data-copy")

    assert files
    for file in files:
        response = visit(file)
        assert response.status_code == 200, file
        assert response.mimetype == "text/csv"
        assert response.text.count("\r\n") >= 2, file


@every_type
def test_the_query_beside_a_chart_is_one_that_the_api_answers(
    visit: Visit, site: Flask, name: str
) -> None:
    """The body of the command line, sent as it is shown."""
    text = html.unescape(visit(f"/metric/{name}").text)
    bodies = re.findall(r"-d '(\{.*\})'", text)

    assert len(bodies) == text.count("curl -H")
    for body in bodies:
        answer = site.test_client().post(
            "/v1/query",
            data=body,
            content_type="application/json",
            headers=bearer(READ_TOKEN),
        )
        assert answer.status_code == 200, answer.text
        assert answer.get_json()["meta"]["query"]["metrics"] == json.loads(body)["metrics"]


def test_the_program_beside_a_chart_is_python(visit: Visit) -> None:
    text = html.unescape(visit("/metric/category").text)
    programs = re.findall(r"<code>(import os.*?)</code>", text, re.DOTALL)

    assert len(programs) == text.count("curl -H")
    for program in programs:
        compile(program, "program", "exec")


@pytest.mark.parametrize("path", ["/", *(f"/metric/{name}" for name in NAMES)])
def test_a_window_without_reports_says_so_and_breaks_nothing(visit: Visit, path: str) -> None:
    response = visit(f"{path}?from=2025-01-01&to=2025-01-31")

    assert response.status_code == 200
    assert "not enough reports" in response.text or "Waiting for the first report" in response.text


@pytest.mark.parametrize(
    "query",
    [
        "range=9d",
        "from=2026-03-04&to=2026-03-01",
        "from=x&to=y",
        "segment.platform=atari",
        "segment.none=x",
        "item=none",
    ],
)
@pytest.mark.parametrize("path", ["/", "/metric/category", "/compare", "/ask"])
def test_a_choice_that_cannot_be_is_told_and_is_no_failure(
    visit: Visit, path: str, query: str
) -> None:
    response = visit(f"{path}?{query}")

    assert response.status_code in (200, 400)
    assert response.mimetype == "text/html"


def test_a_page_that_has_not_changed_is_not_sent_again(visit: Visit) -> None:
    """So that a page can be kept fresh at little cost."""
    tag = visit("/metric/category").headers["ETag"]

    again = visit("/metric/category", tag=tag)

    assert again.status_code == 304
    assert again.headers["Cache-Control"] == "no-store"


def test_hostile_words_of_a_registry_stay_words_on_every_page(
    make_app: MakeApp, storage: MemoryStorage
) -> None:
    """In titles, questions, labels, steps, parts, periods, units and segments."""
    hostile = iter(HOSTILE)
    text = re.sub(
        r'"(light|opened|week 0|-40|git|a|ms|hours|linux|control|All of pair|What about set\?)"',
        lambda _: json.dumps(next(hostile), ensure_ascii=False),
        registry_text(),
    )
    app = make_app(text)
    for metric in app.extensions["hearsay"].catalog.registries[0]:
        storage.tallied[Cell(metric.digest, TODAY, "")] |= {0: 900, 1: 400, 2: 300}
    client = app.test_client()

    for path in PAGES:
        response = client.get(path, headers={**bearer(READ_TOKEN), "Accept": "text/html"})
        page = Page(response.text)
        assert response.status_code == 200, path
        assert page.acting == [], path
        assert page.scripts.strip() == ""


@pytest.mark.parametrize("label", HOSTILE[:12])
def test_hostile_words_of_an_address_stay_words(visit: Visit, label: str) -> None:
    for path in ("/login", "/compare", "/ask", "/plan", "/metric/category", "/nothing"):
        names = ("next", "item", "metric", "by", "against", "q", "option.k", "segment.platform")
        query = {name: label for name in names} | {"verb": "top_k"}
        response = visit(path, query)

        assert response.mimetype == "text/html", path
        assert Page(response.text).acting == [], path


def test_an_empty_system_tells_what_to_do_next(make_app: MakeApp) -> None:
    client = make_app().test_client()

    text = client.get("/", headers=bearer(READ_TOKEN)).text

    for step in ("Waiting for the first report", "client.record(", "/readyz", "hearsay demo"):
        assert step in text


EARLIER: Final = "there are no reports before."
DATES: Final = "against=dates&against.from=2026-02-19&against.to=2026-02-20"
IN_WORDS: Final = "from 3° to 4° east, 42° to 43° north"
MAP: Final = '{"metrics":["location"],"verb":"map","date_range":"7d"}'
OVER_TIME: Final = (
    '{"metrics":["category"],"verb":"trend","dimensions":["time:day"],"date_range":"7d"}'
)
OF_A_GROUP: Final = json.dumps(
    {
        "metrics": ["boolean"],
        "verb": "compare",
        "date_range": "7d",
        "against": "previous",
        "dimensions": ["platform"],
        "filters": [["is", "platform", ["mac"]]],
        "options": {"by": "time"},
    }
)
NUMBER: Final = re.compile(r'data-row="[^"]*  [^"]')  # a row of a chart that has a number
NO_PERIOD: Final = re.compile(r"previous period, \d+ ")

# By address: fields of the question of the first panel, None for those that it does not have.
QUESTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "/ask?metric=category&verb=top_k&range=7d&by=&by=platform&segment.platform=linux"
    "&alpha=0.01&option.k=2&option.order=most": {
        "metrics": ["category"],
        "verb": "top_k",
        "date_range": "7d",
        "dimensions": ["platform"],
        "filters": [["is", "platform", ["linux"]]],
        "alpha": 0.01,
        "options": {"k": 2, "order": "most"},
        "against": None,
    },
    "/ask?metric=boolean&verb=frequency&segment.platform=linux&segment.platform=mac"
    "&segment.arm=!new": {
        "filters": [["is_not", "arm", ["new"]], ["is", "platform", ["linux", "mac"]]]
    },
    "/ask?metric=category&verb=segments": {"options": {"item": "light"}},
    "/ask?metric=boolean&verb=lift": {"options": {"dimension": "arm", "control": "control"}},
    # Without scripts the fields of the dimension before are sent along.
    "/ask?metric=boolean&verb=lift&by=platform&option.control=control": {
        "options": {"dimension": "platform", "control": "linux"}
    },
    "/ask?metric=boolean&verb=compare&range=7d": {"against": "previous"},
    "/ask?metric=boolean&verb=compare&range=7d&against=year": {"against": "year"},
    f"/ask?metric=boolean&verb=compare&range=7d&{DATES}": {"against": ["2026-02-19", "2026-02-20"]},
    "/ask?metric=boolean&verb=compare&against=segment.arm": {
        "dimensions": ["arm"],
        "against": None,
    },
    "/ask?metric=category&verb=crosstab": {"metrics": ["category", "boolean"]},
    "/ask?metric=number&verb=range": {"options": {"low": 500.0}},
    "/ask?metric=category&verb=range": {"options": {"high": "dark"}},
    "/ask?metric=number&verb=range&option.low=200&option.high=400": {
        "options": {"low": "200", "high": "400"}
    },
    "/compare?metric=boolean&by=time&range=7d": {"against": "previous"},
    "/compare?metric=boolean": {"date_range": "7d"},  # of more days there is nothing before
    f"/compare?metric=boolean&by=time&range=7d&{DATES}": {"against": ["2026-02-19", "2026-02-20"]},
    "/compare?metric=boolean&segment.platform=!mac&segment.arm=new&range=7d": {
        "filters": [["is", "arm", ["new"]], ["is_not", "platform", ["mac"]]]
    },
    "/compare?metric=boolean&by=arm&against=control": {"options": {"against": "control"}},
    "/metric/boolean?segment.platform=linux&segment.platform=mac&range=7d": {
        "filters": [["is", "platform", ["linux", "mac"]]]
    },
    "/metric/category": {"verb": "top_k"},  # as its tile: the intervals of all hold at once
}

# By what is typed: where the changes of all metrics stand.
CHANGES: Final[Mapping[str, str]] = {
    "what changed": "/#changed",
    "what changed lately": "/#changed",
    "what changed on 2026-02-19": "/?from=2026-02-19&to=2026-02-19#changed",
}

# By address: texts and patterns that its page has, and those that it has not.
TEXTS: Final[
    Mapping[str, tuple[Sequence[str | re.Pattern[str]], Sequence[str | re.Pattern[str]]]]
] = {
    "/ask?find=category+by+platform+zebra": (
        ['<div class="panels">', "platform", "Not understood: “zebra”."],
        ['class="fault"', "Nothing here fits"],
    ),
    "/ask?find=%3Cscript%3Ezebra": (["Nothing here fits “<script>zebra”"], ['class="panels"']),
    **dict.fromkeys(  # no comparison and no map is by day, and of two dimensions it is about one
        (
            "/ask?find=boolean+change+by+arm+by+day",
            "/ask?find=boolean+change+by+arm+by+platform",
            "/ask?find=mean+uptake+by+arm+by+platform",
            "/ask?find=location+map+by+day",
            "/ask?find=boolean+crosstab+by+arm",
        ),
        (['<div class="panels">'], ["This cannot be asked"]),
    ),
    "/ask?find=boolean+not+linux": (["segment.platform=%21linux"], ["segment.platform=linux"]),
    "/ask?metric=boolean&verb=trend": ([">a year ago</option>"], ["the a year"]),
    "/ask?find=+": ([], ["Nothing here fits", 'class="panels"']),
    "/compare?metric=boolean&by=time&range=7d": (["against 18 to 24 Feb."], ['class="fault"']),
    f"/compare?metric=boolean&by=time&range=7d&{DATES}": (
        ["against 19 to 20 Feb."],
        ['class="fault"'],
    ),
    "/compare?metric=boolean": ([], ["Not enough reports to compare yet"]),
    "/compare?metric=boolean&range=30d": (["Not enough reports"], []),
    "/compare?metric=boolean&segment.platform=!mac&segment.arm=new&range=7d": (
        ["segment.platform=%21mac"],  # of its files
        [],
    ),
    "/compare?metric=boolean&by=arm&against=control": (["no detectable change"], []),
    "/metric/boolean?segment.platform=linux&segment.platform=mac&range=7d": (
        [f'name="segment.platform" value="{name}" checked' for name in ("linux", "mac")],
        [],
    ),
    "/plan?metric=boolean&devices=3&epsilon=1&share=50": (["from 500 devices at ε 1"], []),
    "/plan?metric=boolean&devices=6&epsilon=1&share=50": (["from 500,000 devices at ε 1"], []),
    "/plan?metric=boolean&devices=2&epsilon=1&share=10": (
        [
            re.compile(r'class="big">no number below [\d,]+ reports'),
            "half-width of the interval, points",
        ],
        ["200 points"],
    ),
    '/ask?q={"metrics":["boolean"],"filters":[["is_not","arm",["new"]]]}': (
        ['value="!new" checked', "Arm: not new", "arm: not new"],
        [],
    ),
    "/ask?metric=boolean&verb=lift&by=platform": (
        [f"Platform: {WORDS[Code.NOT_DRAWN]}.", 'value="platform"'],
        [],
    ),
    "/ask?metric=boolean&verb=lift": (
        ["new against control", "Each against control", 'name="by"'],
        [WORDS[Code.NOT_DRAWN], "option.dimension", 'value="platform"'],
    ),
    f"/ask?q={OF_A_GROUP}": ([NUMBER], ["mac against"]),
    "/ask?metric=boolean&verb=actives": (
        [re.compile(r"On 2026-03-03: [\d,]+ devices against [\d,]+: .*, exact\.")],
        [],
    ),
    # What is wrong with an address costs no more than that.
    "/ask?metric=number&verb=quantile&tme=week": (
        [
            "the address has an unknown one",
            'aria-current="true">What are median and p95',
            '<option value="number" selected>',
        ],
        [],
    ),
    "/?range=7d&from=&to=": ([], ["parameter", "must be given"]),
    "/?range=dates&from=&to=": ([], ["parameter", "must be given"]),
    "/ask?from=": ([], ["parameter", "must be given"]),
    "/compare?to=&against=": ([], ["parameter", "must be given"]),
    "/ask?metric=category&metric=set&verb=estimate&by=&by=platform": (
        [],
        ["unknown parameter", "must be given"],
    ),
    # Of which days an answer is; days before the first report are none.
    **{
        f"/ask?{question}": ([f'<p class="hint">{said}'], [])
        for question, said in (
            ("metric=category&verb=top_k", f"19 Feb to 4 Mar; {EARLIER}"),
            ("metric=boolean&verb=segments", f"19 Feb to 4 Mar; {EARLIER}"),
            ("metric=number&verb=quantile", f"19 Feb to 4 Mar; {EARLIER}"),
            ("metric=location&verb=map&range=7d", "26 Feb to 4 Mar."),
            ("metric=boolean&verb=lift&by=", f"Each against control. 19 Feb to 4 Mar; {EARLIER}"),
            ("metric=boolean&verb=compare&range=7d", "25 Feb to 3 Mar against 18 to 24 Feb."),
            (
                "metric=category&verb=top_k&range=7d&segment.platform=linux",
                "26 Feb to 4 Mar. platform: linux</p>",
            ),
        )
    },
    **{
        address: ([re.compile(rf'<option value="2,3"[^>]*>{IN_WORDS}</option>')], [])
        for address in ("/compare?metric=location", "/ask?metric=location&verb=compare")
    },
    "/metric/location?item=2,3": (
        [
            f'<option value="2,3" selected>{IN_WORDS}</option>',
            f">{IN_WORDS} over time</h2>",
            "item=2%2C3",  # of its files
        ],
        [],
    ),
    "/?search=location": (
        [re.compile(r'<p class="of">from \d° to \d° east, 4\d° to 4\d° north')],
        [],
    ),
    "/ask?metric=category&verb=top_k&before=previous": ([], ['<select name="before"', NO_PERIOD]),
    # An answer says that segments are alike; a metric's page what intervals mean, once for all.
    "/ask?metric=boolean&verb=segments&range=": ([UNSURE], []),
    "/metric/boolean": ([AT_ONCE], [UNSURE]),
    "/ask?metric=boolean&verb=segments&by=platform&by=time:week": ([], ["is higher than", UNSURE]),
    "/ask?metric=boolean&verb=segments&postprocess=pooled": ([], ["is higher than", UNSURE]),
    "/privacy": (['href="/privacy/differencing"'], []),
    "/metric/key_value": (["Bar chart of", "Dots with intervals of"], []),
}

NOT_ASKED: Final = "This cannot be asked"
# By address: the status, and what the page says of it.
REFUSED: Final[Mapping[str, tuple[int, str]]] = {
    **{
        f"/ask?{address}": (400, NOT_ASKED)
        for address in (
            "verb=none",
            "metric=none&verb=top_k",
            "metric=category&verb=top_k&option.k=many",
            "metric=category&verb=estimate&alpha=2",
            "q={",
            "q=[]",
            'q={"metrics":["category"],"options":{"none":1}}',
            'q={"metrics":["category"],"verb":"none","dimensions":["time"]}',
            "metric=category&verb=estimate&by=none",
        )
    },
    '/ask?q={"metrics":["category"],"verb":"segments"}': (400, "options.item"),
    "/ask?metric=category&verb=trend&before=ever": (400, "before"),
    "/ask?metric=boolean&verb=compare&against=dates&against.from=2026-02-19": (
        400,
        "against.to: must be a date",
    ),
    "/ask?metric=boolean&verb=frequency&segment.country=de": (
        400,
        "metric=boolean has the dimensions",
    ),
    **{
        f"/plan?metric=number&{query}": (400, "must be a number from")
        for query in ("devices=x", "devices=99", "epsilon=0", "epsilon=nan", "share=0", "need=-1")
    },
    f"/ask.exe?q={MAP}": (404, "Not Found"),
    "/metric/category/answer.html": (404, "Not Found"),
    "/metric/category/nothing.svg": (404, "Not Found"),
    "/metric/category/answer.geojson": (400, "is for answers of the verb map"),
    f"/ask.geojson?q={OVER_TIME}": (400, "is for answers of the verb map"),
    "/ask.svg?q={}": (400, "metrics"),
    "/?nothing=1": (400, "known are range, from, to"),
    "/?nothing=": (400, "known are range, from, to"),
    "/ask?nothing=": (400, "known are q"),
    "/compare?nothing=&to=": (400, "known are metric"),
    "/?range=7d&range=14d": (400, "range: must be given once"),
    "/?from=2026-01-01": (400, "to: must be given"),
    "/?range=dates&to=2026-01-01": (400, "from: must be given"),
    "/metric/category?by=platform": (400, "known are item"),
    "/metric/category/answer.csv?nothing=1": (400, "known are item"),
    "/metric/category?item=a&item=b": (400, "item: must be given once"),
    "/compare?panel=1": (400, "known are metric"),
    "/compare.csv?metric=category&by=time&by=time": (400, "by: must be given once"),
    "/plan?metric=category&nothing=1": (400, "known are metric"),
    "/ask?nothing=1": (400, "known are q"),
    "/ask?verb=trend&verb=frequency": (400, "verb: must be given once"),
    "/ask.csv?nothing=1": (400, "known are q"),
}


@pytest.mark.parametrize("address", QUESTIONS)
def test_the_address_of_a_page_is_the_question_that_it_asks(visit: Visit, address: str) -> None:
    response = visit(address)

    assert response.status_code == 200
    expected = QUESTIONS[address]
    asked: list[dict[str, Any]] = [
        json.loads(text) for text in re.findall(r"-d '(\{.*\})'", html.unescape(response.text))
    ]
    assert expected in [{field: one.get(field) for field in expected} for one in asked]


@pytest.mark.parametrize("address", TEXTS)
def test_a_page_says_what_its_address_is_about(visit: Visit, address: str) -> None:
    said, unsaid = TEXTS[address]

    page = html.unescape(visit(address).text)

    for text in said:
        assert text in page if isinstance(text, str) else text.search(page), text
    for text in unsaid:
        assert text not in page if isinstance(text, str) else not text.search(page), text


@pytest.mark.parametrize("address", REFUSED)
def test_an_address_that_cannot_be_meant_is_refused_by_name(visit: Visit, address: str) -> None:
    status, named = REFUSED[address]

    response = visit(address)

    assert response.status_code == status
    assert named in Page(response.text).text or named in html.unescape(response.text)
    assert named != NOT_ASKED or "<form" in response.text


@pytest.mark.parametrize("typed", CHANGES)
def test_what_changed_leads_to_the_changes_of_all_metrics(visit: Visit, typed: str) -> None:
    response = visit("/ask", {"find": typed})

    assert (response.status_code, response.location) == (303, CHANGES[typed])
