"""Of which days an answer is, and what is said beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from flask import Flask
from flask.testing import FlaskClient

from client_sdk.core.epoch import epoch_of
from client_sdk.registry import Registry
from collector.analytics.rows import GOOD, SHARE, Row, empty_row
from collector.core.cells import Cell
from collector.core.remarks import Code, remark
from collector.web.pages.devices import longer
from collector.web.pages.remarks import differences_text, ranking_text
from tests.collector.web.pages.conftest import BROWSER, ONE_METRIC, Visit
from tests.support.crowds.uploads import NOON, READ_TOKEN, bearer
from tests.support.device.every_type import fill, registry_text
from tests.support.sites.in_memory import browser_of, in_memory
from tests.support.store.memory_storage import MemoryStorage

PAGE = f"/metric/{ONE_METRIC}"
NOTICE = re.compile(r'<section[^>]* id="time".*?</h2>\s*(.*?)<div class="picture"', re.DOTALL)

OVER_TIME = json.dumps(
    {"metrics": [ONE_METRIC], "verb": "trend", "dimensions": ["time:day"], "date_range": "7d"}
)
EARLIER = re.compile(r"previous period, \d+ (?:\w{3} )?to \d+ \w{3}\b")  # its name, in the legend


def above_the_line(visit: Visit, query: dict[str, str]) -> str:
    """Return what stands between the heading and the chart over time."""
    matched = NOTICE.search(visit(PAGE, query).text)
    assert matched
    return " ".join(matched[1].split())


def test_a_period_without_reports_is_said_above_the_chart_with_a_range_that_has_them(
    visit: Visit,
) -> None:
    """The store has fourteen days."""
    for chosen in ({}, {"range": "28d"}, {"range": "14d"}):
        said = above_the_line(visit, {**chosen, "before": "previous"})
        assert "The previous period has no reports." in said
        (link,) = re.findall(r'href="([^"]+)">Choose 7 days to compare<', said)

    followed = visit(link.replace("&amp;", "&"))
    assert followed.status_code == 200
    assert "range=7d" in link
    assert "The previous period has no reports" not in followed.text
    assert EARLIER.search(followed.text)


@pytest.mark.parametrize("query", [{}, {"range": "7d"}, {"range": "7d", "before": "previous"}])
def test_nothing_is_said_where_nothing_is_compared_or_the_period_has_reports(
    visit: Visit, query: dict[str, str]
) -> None:
    assert above_the_line(visit, query) == ""


def test_a_year_without_reports_is_said_without_a_range(visit: Visit) -> None:
    said = above_the_line(visit, {"before": "year"})

    assert "There are no reports of the same dates a year ago." in said
    assert "href" not in said


def test_chosen_days_are_named_with_a_link_to_all_days(visit: Visit) -> None:
    first, last = "2026-02-26", "2026-03-04"
    said = above_the_line(visit, {"from": first, "to": last, "before": "previous"})

    assert f"Only {first} – {last} is shown." in said
    assert f'href="{PAGE}?before=previous">Show all days</a>' in said


@pytest.mark.parametrize(
    "path", [f"/ask?q={OVER_TIME}", f"/ask?metric={ONE_METRIC}&verb=trend&range=7d"]
)
def test_the_answer_to_a_question_is_drawn_over_an_earlier_period_and_saved_with_it(
    visit: Visit, path: str
) -> None:
    """The form has the control, the address keeps it, and so has the chart that is saved."""
    plain, drawn = visit(path).text, visit(f"{path}&before=previous").text

    assert '<select name="before"' in plain
    assert not EARLIER.search(plain)
    assert EARLIER.search(drawn)
    assert re.search(r'<option value="previous" selected>', drawn)
    saved = [
        visit(re.findall(r'href="([^"]+)"[^>]*>SVG<', text)[0].replace("&amp;", "&")).text
        for text in (plain, drawn)
    ]
    assert [bool(EARLIER.search(picture)) for picture in saved] == [False, True]


def test_a_chart_of_a_metric_is_saved_with_the_period_that_it_shows(visit: Visit) -> None:
    files = {
        address.replace("&amp;", "&")
        for address in re.findall(
            r'href="([^"]+)"[^>]*>SVG<', visit(PAGE, {"range": "7d", "before": "previous"}).text
        )
    }
    (over_time,) = (address for address in files if "/time.svg" in address)

    assert EARLIER.search(visit(over_time).text)
    assert not EARLIER.search(visit(over_time.replace("&before=previous", "")).text)


def test_rows_of_an_answer_and_of_a_comparison_lead_to_the_page_of_what_they_are_of(
    visit: Visit,
) -> None:
    asked = visit("/ask", {"metric": "category", "verb": "segments", "by": "platform"}).text
    compared = visit("/compare", {"metric": "category", "by": "platform", "range": "7d"}).text

    for text in (asked, compared):
        led = {
            link.replace("&amp;", "&") for link in re.findall(r'<a href="(/metric/[^"]+)">', text)
        }
        assert any("segment.platform=" in link for link in led)
        assert all(visit(link).status_code == 200 for link in led)
    assert any("range=7d" in link for link in led)
    two = visit("/ask", {"metric": ["number", "mean"], "verb": "ratio"}).text
    assert '<a href="/metric/' not in two  # a row of two metrics has no page of its own


def test_a_quantile_is_followed_over_time_in_place_of_the_mean(visit: Visit) -> None:
    """Every point lies above the median's, with an interval; other panels stay as they were."""
    numbers = {}
    for level in ("", "p50", "p95"):
        text = visit("/metric/number", {"range": "14d", "item": level}).text
        panel = text[text.index('id="time"') :].partition("</section>")[0]
        heading = re.search(r'id="time-title">([^<]+)<', panel)
        assert heading
        assert heading[1] == (f"{level} over time" if level else "Over time")
        rows = [row.split("  ") for row in re.findall(r'data-row="([^"]+)"', panel)]
        numbers[level] = {
            row[0]: float(row[1].split()[0].replace(",", "")) for row in rows if len(row) > 1
        }
        assert not level or f"<option selected>{level}</option>" in text
        saved = re.findall(r'href="([^"]+/time\.csv[^"]*)"', panel)[0].replace("&amp;", "&")
        assert (level or "mean") in visit(saved).text

    assert len(numbers["p95"]) > 3
    assert all(number > numbers["p50"][day] for day, number in numbers["p95"].items())


@pytest.mark.parametrize(
    ("metric", "query", "is_drawn"),
    [
        ("boolean", {"range": "7d"}, True),
        ("number", {"range": "7d", "item": "p95"}, True),
        ("set", {"range": "7d", "item": "git"}, True),
        ("set", {"range": "7d"}, False),  # several lines
        ("boolean", {}, False),  # of the 30 days before are no reports
        ("boolean", {"from": "2026-02-23", "to": "2026-03-04"}, False),  # of some days before
        ("boolean", {"from": "2026-03-02", "to": "2026-03-02"}, False),  # a day is no line
    ],
)
def test_a_line_alone_is_drawn_over_a_whole_previous_period_unasked(
    visit: Visit, metric: str, query: dict[str, str], is_drawn: bool
) -> None:
    """Law: the main line alone has it, the file has what the chart shows, and the form says so."""
    text = visit(f"/metric/{metric}", query).text
    line, _, others = text.partition('id="time"')[2].partition("</section>")
    saved = re.findall(r'href="([^"]*/time\.svg[^"]*)"', line)[0].replace("&amp;", "&")

    assert bool(EARLIER.search(line)) == is_drawn
    assert not EARLIER.search(others)
    assert '<th scope="col">change</th>' not in others
    assert ('<option value="">previous period, line only</option>' in text) == is_drawn
    assert bool(EARLIER.search(visit(saved).text)) == is_drawn


def test_a_chart_that_has_all_its_rows_leads_to_no_chart_of_all_rows(visit: Visit) -> None:
    """The curve of a number has more points than a list of bars has rows, and draws each."""
    curve = visit("/metric/number").text.partition('id="up-to"')[2].partition("</section>")[0]

    assert 'id="up-to-title"' in curve
    assert "all=" not in curve


ALONE = "Each device is asked once; these are all reports so far."


@pytest.fixture(scope="module")
def asked_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return the pages of a collector whose metrics are asked once of each device."""
    storage, folder = MemoryStorage(), tmp_path_factory.mktemp("once")
    fill(storage, "once", epochs=1)
    browser = browser_of(in_memory(folder, registry_text("once"), storage=storage))
    return lambda address: browser.get(address, headers=BROWSER).text


@pytest.mark.parametrize(
    "address",
    [
        "/ask?metric=retention&verb=retention",
        "/metric/retention",
        "/compare?metric=boolean&by=platform",
    ],
)
def test_what_is_asked_once_offers_no_days_to_choose(
    asked_once: Callable[[str], str], visit: Visit, address: str
) -> None:
    """Law: a choice that changes nothing is not shown."""
    assert 'name="range"' not in asked_once(address)
    assert 'name="range"' in visit(address).text


def test_what_is_asked_once_says_so_and_is_not_in_progress(
    asked_once: Callable[[str], str],
) -> None:
    assert f'<p class="hint">{ALONE}</p>' in asked_once("/ask?metric=retention&verb=retention")
    assert " reports, once of each device" in asked_once("/metric/retention")


def test_warnings_are_sentences_without_the_title_above_them(visit: Visit) -> None:
    """Law: an answer about a single metric has its title as heading, so no remark repeats it."""
    answer = visit("/ask?metric=boolean&verb=lift&by=platform").text.partition("answer-title")[2]
    remarks = [text.partition("</p>")[0] for text in answer.split('<p class="hint">')[1:]]

    assert remarks
    assert all(text[0].isupper() or text.startswith("<a ") for text in remarks)
    assert not any(text.startswith("boolean: ") for text in remarks)


LENGTHS = ("1h", "1d", "7d", "28d", "once")
ENTRY = (
    '[metrics.m{every}]\ntitle = "Of {every}"\nquestion = "Really?"\ntype = "boolean"\n'
    'epsilon = "1"\nevery = "{every}"\nlongitudinal = "fresh"\nexpected_devices = 10000\n'
    'min_reports = 100\nowner = "team"\nexpires = 2027-12-31\n'
)
TEXT = 'schema = 1\napp = "app"\n' + "".join(ENTRY.format(every=every) for every in LENGTHS)


def rows(*ends: tuple[str, float, float]) -> Sequence[Row]:
    """Return a row a segment, each in the middle of its interval."""
    return [
        Row({"platform": name, "item": "yes"}, (low + high) / 2, low, high, 0.01, 900, 0.05, GOOD)
        for name, low, high in ends
    ]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (
            [("a", 0.1, 0.2), ("b", 0.5, 0.6), ("c", 0.3, 0.4)],
            "More than noise: b is higher than c and a; c is higher than a.",
        ),
        ([("a", 0.1, 0.3), ("b", 0.3, 0.5), ("c", 0.31, 0.6)],
         "More than noise: c is higher than a."),
        ([("a", -0.3, -0.2), ("b", -0.1, 0.1)], "More than noise: b is higher than a."),
        ([("a", 0.1, 0.3), ("b", 0.2, 0.4)], ""),
    ],
)  # fmt: skip
def test_segments_are_higher_only_where_intervals_are_apart(
    ends: list[tuple[str, float, float]], said: str
) -> None:
    assert ranking_text(rows(*ends)) == said


def test_a_segment_without_a_number_is_higher_than_none() -> None:
    blank = empty_row({"platform": "z", "item": "yes"}, 3, 0.05, SHARE, remark(Code.BOUNDS))

    assert ranking_text([*rows(("a", 0.1, 0.2), ("b", 0.5, 0.6)), blank]) == (
        "More than noise: b is higher than a."
    )


def differences(*ends: tuple[str, float, float]) -> Sequence[Row]:
    """Return the difference of each item, in two measures, in the middle of its interval."""
    return [
        Row(
            {"arm": "new", "against": "old", "item": name, "measure": measure},
            (low + high) / 2,
            low,
            high,
            0.01,
            900,
            0.05,
            GOOD,
        )
        for name, low, high in ends
        for measure in ("difference", "lift")
    ]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ([("a", 0.04, 0.08), ("b", -0.1, 0.1), ("c", -0.3, -0.1)],
         "More than noise: a +6 points ± 2; c −20 points ± 10."),
        ([("a", -0.02, 0.08), ("b", -0.1, 0.1)], "No difference is more than noise."),
        ([("a", 0.04, 0.08)], ""),  # its chart says so
        ([(name, 0.04, 0.08) for name in "abcdefghi"], ""),
    ],
)  # fmt: skip
def test_an_experiment_says_first_which_differences_are_more_than_noise(
    ends: list[tuple[str, float, float]], said: str
) -> None:
    """Law: each is named once, by what it differs in from the others."""
    assert differences_text(differences(*ends)) == said


@pytest.mark.parametrize(
    ("own", "others"),
    [("m1h", ["Of 1d", "Of 7d", "Of 28d"]), ("m1d", ["Of 7d", "Of 28d"]), ("m28d", [])],
)
def test_who_counts_devices_is_led_to_those_of_longer_periods(
    site: Flask, own: str, others: list[str]
) -> None:
    """Law: of reports of days a week has bounds only; a metric of weeks counts its devices."""
    with site.test_request_context():
        notices = list(longer(own, list(Registry.from_text(TEXT))))

    assert [notice.words for notice in notices] == others
    assert all(f"metric=m{each[3:]}&" in n.url for each, n in zip(others, notices, strict=True))


_BY_PLATFORM: Final = re.compile(r'<table [^>]*aria-label="By platform">.*?</table>', re.DOTALL)


def test_a_breakdown_has_the_change_of_each_group_as_the_api_answers_it(
    visit: Visit, browser: FlaskClient
) -> None:
    """Law: each is the difference of two whole periods, which its caption names; none unasked."""
    own = _BY_PLATFORM.search(visit("/metric/boolean", {"range": "7d"}).text)
    compared = {"range": "7d", "before": "previous"}
    table = _BY_PLATFORM.search(visit("/metric/boolean", compared).text)
    question = {
        "metrics": ["boolean"],
        "verb": "compare",
        "dimensions": ["platform", "time:period"],
        "date_range": "7d",
        "against": "previous",
        "options": {"by": "time"},
    }
    answer = browser.post("/v1/query", json=question, headers=bearer(READ_TOKEN)).json

    assert own
    assert table
    assert answer
    assert len(answer["rows"]) > 1
    for each in answer["rows"]:
        shown = re.search(rf">{each['dimensions']['platform']}<.*?</tr>", table[0], re.DOTALL)
        assert shown
        number = re.findall(r"([−+]?[\d.]+) points", shown[0])
        assert float(number[0].replace("−", "-")) == pytest.approx(100 * each["value"], abs=0.6)
    assert "change: " in table[0]
    assert " against " in table[0]
    assert " points" not in own[0]


def test_what_an_earlier_period_lacks_is_said_where_changes_since_are_shown(
    tmp_path: Path,
) -> None:
    """Law: no change is of a part of the period that its caption names, without a word."""
    storage = MemoryStorage()
    digest = fill(storage).metric("boolean").digest
    storage.marks[digest] = epoch_of("1d", NOON) - 10
    query = {"range": "7d", "before": "previous"}

    site = browser_of(in_memory(tmp_path, registry_text(), storage=storage))
    text = site.get("/metric/boolean", query_string=query, headers=BROWSER).text

    assert "change: 25 Feb to 3 Mar against 18 to 24 Feb" in text
    assert "(pruned), 4 of 14 epochs of the window" in text


def test_reports_of_an_earlier_definition_are_said_where_a_period_has_no_others(
    tmp_path: Path,
) -> None:
    """Law: no column of changes is missing in silence where only the definition is another."""
    now = registry_text()
    before = now.replace('["light", "dark", "sepia"]', '["light", "dark"]')
    storage = MemoryStorage()
    for text, days in ((now, range(7)), (before, range(7, 15))):
        metric = Registry.from_text(text).metric("category")
        for back, platform in product(days, ("linux", "mac")):
            cell = Cell(metric.digest, epoch_of("1d", NOON) - back, f'{{"platform":"{platform}"}}')
            storage.put({cell: [(0, 600), (1, 400), (2, 200)]})

    site = browser_of(in_memory(tmp_path, now, before, storage=storage))
    query = {"metric": "category", "verb": "segments", "option.item": "dark"}
    asked = {"by": "platform", "range": "7d", "before": "previous"}
    text = site.get("/ask", query_string={**query, **asked}, headers=BROWSER).text

    assert "change: " not in text
    assert "Compared with previous period: 9600 reports under earlier definitions are" in text
