"""Notes and an earlier period lie where their times are, each with its words and intervals."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from client_sdk.core.errors import InvalidParameterError
from collector.analytics.rows import ITEM, SHARE, TIME, Chart, Row
from collector.rendering.charts import Before, ChartOptions, Mark, chart_of
from tests.support.charts import line
from tests.support.sites.drawing import of_class, parsed, path_points, tag
from tests.support.sites.gallery import REASON, blank, month_before, months, notes, row

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
    picture = line(
        [dated(i, 0.3) for i in range(5)], "t", ChartOptions(), [Mark("2026-10-22", "2.4 out")]
    )

    (dash,) = of_class(parsed(picture), "reference")
    places = [x for x, _ in middle(picture, "line-1")]
    assert float(dash.get("x1") or 0) == pytest.approx(places[2], abs=0.1)
    assert texts(picture, "flag") == ["1"]
    assert texts(picture, "note")[-1] == "1 · 2026-10-22: 2.4 out"


def test_a_note_out_of_view_is_not_drawn_and_one_within_the_last_stretch_is() -> None:
    weeks = [row({TIME: f"2026-10-{d}"}, 0.3, 0.01) for d in ("05", "12", "19")]
    marks = [Mark("2026-10-04", "early"), Mark("2026-10-23", "in"), Mark("2026-10-26", "late")]

    assert texts(line(weeks, "t", ChartOptions(), marks), "note")[-1:] == ["1 · 2026-10-23: in"]


def test_notes_that_would_touch_share_a_number() -> None:
    picture = line(months(), "t", ChartOptions(width=420), notes())

    assert texts(picture, "flag") == ["1", "2"]
    assert "an outage of two hours" in texts(picture, "note")[-1]
    assert len(of_class(parsed(picture), "reference")) == 3


def test_a_note_with_an_address_is_a_link_and_no_script_is_an_address() -> None:
    links = [e.get("href") for e in parsed(line(months(), "t", ChartOptions(), notes())).iter()]

    assert [href for href in links if href] == ["/boards/releases"]
    for url in ("javascript:alert(1)", "//elsewhere.example", "/\\elsewhere", "data:text/html,x"):
        with pytest.raises(InvalidParameterError, match="url="):
            Mark("2026-10-22", "x", url)


def test_a_hostile_note_stays_a_text() -> None:
    hostile = "<script>alert(1)</script>\"'><a href=x>"
    picture = line(months(), "t", ChartOptions(), [Mark("2026-10-22", hostile)])

    assert "script" not in {tag(e) for e in parsed(picture).iter()}
    assert hostile in texts(picture, "note")[-1]


def test_an_earlier_period_is_drawn_at_the_same_places_with_its_band_and_numbers() -> None:
    now = [dated(i, 0.3) for i in range(7)]
    before = Before([dated(i - 7, 0.2 + i / 100) for i in range(7)], 7, "the week before")
    picture = line(now, "t", ChartOptions(), (), before)

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
    picture = line(now, "t", ChartOptions(), (), before)

    assert middle(picture, "past")[0][0] == middle(picture, "line-1")[3][0]


def test_an_earlier_period_beyond_the_axis_is_cut_off() -> None:
    now = [dated(i, 0.3) for i in range(4)]
    before = Before([dated(i - 7, 0.2) for i in range(7)], 7, "the week before")

    assert len(middle(line(now, "t", ChartOptions(), (), before), "past")) == 4


def test_each_line_has_its_own_earlier_one_and_others_are_not_drawn() -> None:
    now = [dated(i, v, item) for item, v in (("a", 0.3), ("b", 0.2)) for i in range(7)]
    old = [dated(i - 7, v, item) for item, v in (("b", 0.1), ("c", 0.4)) for i in range(7)]
    picture = line(now, "t", ChartOptions(), (), Before(old, 7, "the week before"))

    assert len(of_class(parsed(picture), "past-2")) == 1
    assert [of_class(parsed(picture), f"past-{n}") for n in (1, 3)] == [[], []]
    assert "thin: the week before" in texts(picture, "note")


def test_an_earlier_period_without_numbers_says_why() -> None:
    now = [dated(i, 0.3) for i in range(7)]
    empty = [blank({TIME: "2026-10-13"})]

    few = line(now, "t", ChartOptions(), (), Before(empty, 7, "the week before"))
    none = line(now, "t", ChartOptions(), (), Before([], 7, "the week before"))
    assert f"the week before: {REASON}" in texts(few, "note")
    assert "the week before: no reports" in texts(none, "note")


def test_both_reach_every_chart_over_time_of_an_answer() -> None:
    marks, before = notes(), month_before()
    picture = chart_of(Chart.ROWS, months(), "t", ChartOptions(), marks=marks, before=before)
    whole = chart_of(
        Chart.ROWS, [row("a", 0.2, 0.01)], "t", ChartOptions(), marks=marks, before=before
    )

    assert middle(picture, "past")
    assert texts(picture, "flag") == ["1", "2", "3"]
    assert texts(whole, "flag") == []


def test_numbers_of_another_unit_are_no_earlier_period() -> None:
    times = [row({TIME: f"2026-10-{d}"}, 400.0, 9.0, unit="ms") for d in range(10, 17)]
    shares = [row({TIME: f"2026-10-{d:02}"}, 0.2, 0.01, unit=SHARE) for d in range(3, 10)]
    picture = chart_of(
        Chart.ROWS, times, "t", ChartOptions(), before=Before(shares, 7, "the week before")
    )

    assert "the week before: no reports" in texts(picture, "note")


def test_the_earlier_period_has_another_sample_in_the_legend_than_the_noise() -> None:
    now = [dated(i, 0.001) for i in range(7)]
    before = Before([dated(i - 7, 0.002) for i in range(7)], 7, "the week before")
    root = parsed(line(now, "t", ChartOptions(), (), before))

    assert {"within noise", "the week before"} <= {e.text for e in of_class(root, "note")}
    samples = [e for e in of_class(root, "noise") if e.get("height") == "9"]
    assert len(samples) == 1
    (across,) = [e for e in of_class(root, "past") if tag(e) == "line"]
    assert float(across.get("x2") or 0) - float(across.get("x1") or 0) == 12
