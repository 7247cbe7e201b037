"""What a metric's page says of an earlier period, and of days chosen by zoom."""

from __future__ import annotations

import re

import pytest

from tests.collector.web.pages.conftest import ONE_METRIC, Visit

PAGE = f"/metric/{ONE_METRIC}"
NOTICE = re.compile(r'<section[^>]* id="time".*?</h2>\s*(.*?)<div class="body">', re.DOTALL)


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
