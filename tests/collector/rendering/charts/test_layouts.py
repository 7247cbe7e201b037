"""One chart, two layouts; notes and an earlier period on its lines."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

import pytest
from msgspec.structs import replace

from client_sdk.core.errors import InvalidParameterError
from collector.analytics.rows import ITEM, TIME, Chart, Row
from collector.rendering.charts import Before, ChartOptions, Mark, chart_of
from collector.rendering.numbers import ends_of, finest, margin, value_of
from tests.support.charts import bars, difference, dots, heat, histogram, line
from tests.support.sites.drawing import boxes, of_class, parsed, path_points, tag
from tests.support.sites.gallery import (
    PICTURES,
    blank,
    buckets,
    day,
    differences,
    month_before,
    months,
    notes,
    platforms,
    row,
    shares,
    themes_over_time,
    two_way,
)

PHONE = ChartOptions(width=320, interactive=False)
_LONG = "never married, divorced or widowed "
_PLOT_LINES = {"grid", "axis", "noise"}
FINGER = 44  # user units, which are pixels on a phone of 360


@pytest.mark.parametrize(
    "picture", [bars(shares(), "t", PHONE), dots(platforms(), "t", PHONE)], ids=["bars", "dots"]
)
def test_a_line_on_a_phone_is_as_high_as_a_finger_and_its_label_has_the_width(picture: str) -> None:
    labels = of_class(parsed(picture), "label")
    places = [float(label.get("y") or 0) for label in labels]

    assert min(b - a for a, b in pairwise(places)) >= FINGER - 0.1
    assert {label.get("text-anchor") for label in labels} == {None}


def test_a_line_that_leads_somewhere_is_one_target_with_its_label() -> None:
    face = ChartOptions(width=320, link=lambda row: f"/metric/x?item={row.item}")
    root = parsed(bars(shares()[:3], "t", face))

    links = [e for e in root.iter() if tag(e) == "a"]
    assert [a.get("href") for a in links] == [f"/metric/x?item={r.item}" for r in shares()[:3]]
    for link in links:
        (felt,) = of_class(link, "hover")
        assert float(felt.get("height") or 0) >= FINGER
        assert of_class(link, "label")
    assert root.get("role") == "group"


def test_a_hostile_address_is_escaped() -> None:
    face = ChartOptions(link=lambda row: '/metric/x?item="><script>alert(1)</script>')
    root = parsed(bars(shares()[:2], "t", face))

    assert "script" not in {tag(e) for e in root.iter()}


@pytest.mark.parametrize("draw", [bars, dots, difference])
def test_what_is_not_felt_carries_no_numbers_twice(draw: object) -> None:
    picture = draw(differences()[:3], "t", PHONE)  # type: ignore[operator]

    assert of_class(parsed(picture), "mark") == []
    assert len(of_class(parsed(picture), "value") + of_class(parsed(picture), "margin")) >= 2


@pytest.mark.parametrize(
    "name", [name for name in PICTURES if name not in ("curve", "spark", "nothing")]
)
def test_a_drawing_for_a_phone_is_lighter_than_the_other(name: str) -> None:
    assert len(PICTURES[name](PHONE)) <= len(PICTURES[name](ChartOptions())) * 1.05


def test_lines_on_a_phone_have_their_names_below() -> None:
    root = parsed(line(themes_over_time(), "t", PHONE))

    foot = max(float(e.get("y") or 0) for e in of_class(root, "tick"))
    labels = of_class(root, "label")
    assert [label.text for label in labels][:2] == ["light", "dark"]
    assert all(float(label.get("y") or 0) > foot for label in labels)


def test_all_numbers_of_a_chart_have_as_many_decimals() -> None:
    """Law: those of the row that deserves most, and never fewer than a row deserves."""
    rows = [row("a", 0.283, 0.03), row("b", 0.062, 0.019)]

    assert [value_of(r) for r in rows] == ["28 %", "6.2 %"]
    least = finest(rows)
    assert [value_of(r, least=least) for r in rows] == ["28.3 %", "6.2 %"]
    assert [margin(r, least=least) for r in rows] == ["± 3.0", "± 1.9"]
    assert ends_of(rows[0], least=least) == ("25.3 %", "31.3 %")
    values = [e.text for e in of_class(parsed(bars(rows, "t")), "value")]
    assert values == ["28.3 %", "6.2 %"]


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("name", ["bars", "dots", "difference"])
def test_no_line_of_a_plot_on_a_phone_runs_through_a_text(name: str, long: bool) -> None:
    """A line through a minus makes a plus of it."""
    draw = {"bars": bars, "dots": dots, "difference": difference}[name]
    rows = differences()[:3] if name == "difference" else shares()[:4]
    rows = [
        replace(r, dimensions={"item": _LONG + str(i)}) for i, r in enumerate(rows)
    ] * long or rows

    drawn = list(boxes(parsed(draw(rows, "t", PHONE))))

    grounds = [box for box in drawn if box.element.get("class") == "paper"]
    looks = {"label", "value", "margin", "aside"}
    texts = [box for box in drawn if box.element.get("class") in looks]
    high = [box for box in drawn if box.foot - box.top > FINGER]  # no sample of the legend
    lines = [drawn.index(box) for box in high if box.element.get("class") in _PLOT_LINES]
    assert len(texts) >= 2 * len(rows)
    assert max(lines) < drawn.index(grounds[0])
    for box in texts:
        assert any(
            ground.left <= box.left + 1
            and box.right <= ground.right + 1
            and ground.top <= box.top + 1
            and box.foot <= ground.foot + 1
            for ground in grounds
        ), box.element.text


@pytest.mark.parametrize("name", ["bars", "dots", "difference"])
def test_a_long_label_on_a_phone_is_whole_and_above_its_number(name: str) -> None:
    draw = {"bars": bars, "dots": dots, "difference": difference}[name]
    rows = differences()[:3] if name == "difference" else shares()[:3]
    named = [replace(r, dimensions={"item": f"{_LONG}{i}"}) for i, r in enumerate(rows)]

    drawn = list(boxes(parsed(draw(named, "t", PHONE))))

    labels = [box for box in drawn if box.element.get("class") == "label"]
    assert [box.element.text for box in labels] == [f"{_LONG}{i}" for i in range(3)]
    others = [b for b in drawn if b.element.get("class") in {"value", "margin", "aside"}]
    marks = [
        b for b in drawn if (b.element.get("class") or "").startswith(("reach", "quiet", "whisker"))
    ]
    zero = [b for b in marks if b.foot - b.top > FINGER]  # the line at zero
    assert not any(a.overlaps(b, 0.5) for a in labels for b in others)
    assert not any(a.overlaps(b, 0.5) for a in (*labels, *others) for b in marks if b not in zero)


def test_a_cross_stands_in_a_strip_and_on_no_line_of_the_axis() -> None:
    rows = [row({TIME: day(i)}, 0.0, 0.01) for i in range(5)]
    rows[2] = blank({TIME: day(2)})
    for picture in (line(rows, "t"), histogram([*buckets(), blank("120–130")], "t")):
        root = parsed(picture)
        (strip,) = [box for box in boxes(root) if box.element.get("class") == "void"]
        (cross,) = [box for box in boxes(root) if box.element.get("class") == "gap"]
        lines = [b.top for b in boxes(root) if b.element.get("class") == "axis"]

        assert strip.left <= cross.left <= cross.right <= strip.right
        assert all(not cross.top <= line <= cross.foot for line in lines)


def wide_table() -> list[Row]:
    """Return a table of so many columns that no interval has room on a phone."""
    return [
        row({"a": a, "b": f"{b}"}, 0.5, (0.003 if b else 0.011)) for a in "xy" for b in range(10)
    ]


@pytest.mark.parametrize(
    ("rows", "width", "is_cut"),
    [
        (two_way(), 720, False),
        (two_way(), 540, False),
        (two_way(), 320, False),
        (wide_table(), 720, False),
        (wide_table(), 280, True),
    ],
)
def test_no_cell_prints_a_number_without_its_interval(
    rows: list[Row], width: int, is_cut: bool
) -> None:
    """Law: it stands below the number where it has room, and else a note tells how wide all are."""
    root = parsed(heat(rows, "t", ChartOptions("x", width=width, styled=True)))

    printed = [e.text or "" for e in root.iter() if (e.get("class") or "").startswith("on-")]
    numbers = sum(not text.startswith(("±", "(")) for text in printed)
    assert numbers == sum(row.value is not None for row in rows)
    assert sum("±" in text or "(" in text for text in printed) == (0 if is_cut else numbers)
    notes = [e.text or "" for e in of_class(root, "note")]
    widths = ["Intervals of ± 0.3 to 1.1 points; the table"] if is_cut else []
    assert [text for text in notes if text.startswith("Intervals")] == widths


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
    assert len(of_class(parsed(picture), "ghost")) == 1 + 1  # and the box in the legend
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


def test_both_reach_every_chart_over_time_of_an_answer() -> None:
    marks, before = notes(), month_before()
    picture = chart_of(Chart.ROWS, months(), "t", ChartOptions(), marks=marks, before=before)
    whole = chart_of(
        Chart.ROWS, [row("a", 0.2, 0.01)], "t", ChartOptions(), marks=marks, before=before
    )

    assert middle(picture, "past")
    assert texts(picture, "flag") == ["1", "2", "3"]
    assert texts(whole, "flag") == []


def test_the_earlier_period_has_another_sample_in_the_legend_than_the_noise() -> None:
    now = [dated(i, 0.001) for i in range(7)]
    before = Before([dated(i - 7, 0.002) for i in range(7)], 7, "the week before")
    root = parsed(line(now, "t", ChartOptions(), (), before))

    assert {"within noise", "the week before"} <= {e.text for e in of_class(root, "note")}
    samples = [e for e in of_class(root, "noise") if e.get("height") == "9"]
    assert len(samples) == 1
    (across,) = [e for e in of_class(root, "past") if tag(e) == "line"]
    assert float(across.get("x2") or 0) - float(across.get("x1") or 0) == 12
