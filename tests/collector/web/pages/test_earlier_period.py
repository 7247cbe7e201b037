"""What pages draw and say of an earlier period, of quantiles over time, and of days by zoom."""

from __future__ import annotations

import json
import re

import pytest

from tests.collector.web.pages.conftest import ONE_METRIC, Visit

PAGE = f"/metric/{ONE_METRIC}"
NOTICE = re.compile(r'<section[^>]* id="time".*?</h2>\s*(.*?)<div class="body">', re.DOTALL)

OVER_TIME = json.dumps(
    {"metrics": [ONE_METRIC], "verb": "trend", "dimensions": ["time:day"], "date_range": "7d"}
)
EARLIER = re.compile(
    r"previous period, \d{4}-\d\d-\d\d – \d{4}-\d\d-\d\d"
)  # its name, in the legend


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
    assert "previous period, 2" in followed.text  # the legend, with its dates


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
    whole = visit(PAGE, {"range": "7d"}).text
    first, last = re.findall(r"\d{4}-\d\d-\d\d", whole[whole.index("Window (UTC)") :])[:2]
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
