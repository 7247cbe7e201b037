"""Notes and an earlier period lie where their times are, each with its words and intervals."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from client_sdk.core.errors import InvalidParameterError
from collector.analytics.rows import ITEM, TIME, Chart, Row
from collector.rendering.charts import Before, Face, Mark, chart_of
from tests.support.charts import line
from tests.support.sites.drawing import of_class, parsed, path_points, tag
from tests.support.sites.gallery import month_before, months, notes, row

START = date(2026, 10, 20)


def dated(number: int, value: float, item: str = "", half_width: float = 0.01) -> Row:
    names = {TIME: (START + timedelta(days=number)).isoformat()}
    return row({**names, ITEM: item} if item else names, value, half_width)


def texts(picture: str, look: str) -> list[str]:
    return [e.text or "" for e in of_class(parsed(picture), look)]


def middle(picture: str, look: str) -> list[tuple[float, float]]:
    (path,) = [e for e in of_class(parsed(picture), look) if tag(e) == "path"]
    return list(path_points(path.get("d") or ""))


def test_a_note_stands_at_its_day_and_its_words_are_below() -> None:
    picture = line([dated(i, 0.3) for i in range(5)], "t", Face(), [Mark("2026-10-22", "2.4 out")])

    (dash,) = of_class(parsed(picture), "reference")
    places = [x for x, _ in middle(picture, "line-1")]
    assert float(dash.get("x1") or 0) == pytest.approx(places[2], abs=0.1)
    assert texts(picture, "flag") == ["1"]
    assert texts(picture, "note")[-1] == "1 · 2026-10-22: 2.4 out"


def test_a_note_with_an_address_is_a_link_and_no_script_is_an_address() -> None:
    links = [e.get("href") for e in parsed(line(months(), "t", Face(), notes())).iter()]

    assert [href for href in links if href] == ["/boards/releases"]
    for url in ("javascript:alert(1)", "//elsewhere.example", "/\\elsewhere", "data:text/html,x"):
        with pytest.raises(InvalidParameterError, match="url="):
            Mark("2026-10-22", "x", url)


def test_a_hostile_note_stays_a_text() -> None:
    hostile = "<script>alert(1)</script>\"'><a href=x>"
    picture = line(months(), "t", Face(), [Mark("2026-10-22", hostile)])

    assert "script" not in {tag(e) for e in parsed(picture).iter()}
    assert hostile in texts(picture, "note")[-1]


def test_an_earlier_period_is_drawn_at_the_same_places_with_its_band_and_numbers() -> None:
    now = [dated(i, 0.3) for i in range(7)]
    before = Before([dated(i - 7, 0.2 + i / 100) for i in range(7)], 7, "the week before")
    picture = line(now, "t", Face(), (), before)

    assert [x for x, _ in middle(picture, "past")] == [x for x, _ in middle(picture, "line-1")]
    assert [y for _, y in middle(picture, "past")] > [y for _, y in middle(picture, "line-1")]
    assert len(of_class(parsed(picture), "past-band")) == 1 + 1  # and the box in the legend
    assert "the week before" in texts(picture, "note")
    told = {e.get("data-label"): e.get("data-low") for e in of_class(parsed(picture), "mark")}
    assert told["2026-10-13"] == "19.0 %"


def test_a_day_without_reports_moves_no_other_day() -> None:
    """Law: places follow dates, not the order of rows, which skip days without reports."""
    now = [dated(i, 0.3) for i in range(7)]
    before = Before([dated(i - 7, 0.2) for i in range(3, 7)], 7, "the week before")
    picture = line(now, "t", Face(), (), before)

    assert middle(picture, "past")[0][0] == middle(picture, "line-1")[3][0]


def test_an_earlier_period_beyond_the_axis_is_cut_off() -> None:
    now = [dated(i, 0.3) for i in range(4)]
    before = Before([dated(i - 7, 0.2) for i in range(7)], 7, "the week before")

    assert len(middle(line(now, "t", Face(), (), before), "past")) == 4


def test_both_reach_every_chart_over_time_of_an_answer() -> None:
    marks, before = notes(), month_before()
    picture = chart_of(Chart.ROWS, months(), "t", Face(), marks=marks, before=before)
    whole = chart_of(Chart.ROWS, [row("a", 0.2, 0.01)], "t", Face(), marks=marks, before=before)

    assert middle(picture, "past")
    assert texts(picture, "flag") == ["1", "2", "3"]
    assert texts(whole, "flag") == []


def test_the_earlier_period_has_another_sample_in_the_legend_than_the_noise() -> None:
    now = [dated(i, 0.001) for i in range(7)]
    before = Before([dated(i - 7, 0.002) for i in range(7)], 7, "the week before")
    root = parsed(line(now, "t", Face(), (), before))

    assert {"within noise", "the week before"} <= {e.text for e in of_class(root, "note")}
    samples = [e for e in of_class(root, "noise") if e.get("height") == "9"]
    assert len(samples) == 1
    (across,) = [e for e in of_class(root, "past") if tag(e) == "line"]
    assert float(across.get("x2") or 0) - float(across.get("x1") or 0) == 12
