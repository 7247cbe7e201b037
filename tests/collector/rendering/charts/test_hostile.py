"""Charts of hostile texts and of any numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from client_sdk.core.errors import InvalidParameterError
from collector.analytics.rows import Chart, Row, empty_row
from collector.core.remarks import Code, remark
from collector.rendering.charts import ChartOptions, chart_of, page_chart, pictures_of
from collector.rendering.charts.curve import Curve, curve
from collector.rendering.charts.spark import spark
from collector.rendering.letters import one_line
from collector.rendering.tables import table_of
from tests.hostile.markup import MARKUP
from tests.support.charts import bars, cdf, difference, dots, grid, heat, histogram, line
from tests.support.sites.drawing import boxes, parsed, tag, view
from tests.support.sites.gallery import REASON, blank, day, row

TAGS: Final = {"svg", "g", "rect", "line", "path", "circle", "text", "title", "desc", "style"}
NASTY: Final = (
    *MARKUP[::141],
    "<script>alert('1')</script>&\"]]>",
    "]]><![CDATA[",
    "\x00\x01\x1b[31m\x7f\ufffe\ud800",
    "line\nbreak\tand\rreturn",
    "\u202egnp.exe\u202c",
    "\u2066\u2067\u2068 open isolates",
    "שלום עולם",
    "مرحبا 123",
    "ｗｉｄｅ　ｌｅｔｔｅｒｓ　ｔｈａｔ　ｄｏ　ｎｏｔ　ｆｉｔ　ａｎｙｗｈｅｒｅ",
    "a\u0300\u0301\u0302\u0303" * 60,
    "👩‍👩‍👧‍👦" * 30,
    "W" * 500,
    "",
    " ",
)
KINDS: Final[dict[str, Callable[[list[Row], str, ChartOptions], str]]] = {
    "bars": bars,
    "line": line,
    "histogram": histogram,
    "cdf": cdf,
    "dots": dots,
    "difference": difference,
    "heat": heat,
    "grid": grid,
    "spark": spark,
    "chart_of": lambda rows, title, face: chart_of(Chart.ROWS, rows, title, face),
}


def hostile_rows(text: str) -> list[Row]:
    """Return rows with *text* wherever a row holds one."""
    rows = [
        replace(
            row(
                {"item": f"{text}{i}" if i else text, text: f"{text}{i % 2}", "time": day(i)},
                0.1 + 0.1 * i,
                0.02,
            ),
            notes=(remark(Code.NOTE, text=text),),
            unit="share" if i < 2 else text,
        )
        for i in range(4)
    ]
    return [*rows, replace(blank(text), refusal=remark(Code.NOTE, text=text))]


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_texts_stay_texts_within_the_view(kind: str) -> None:
    for text in NASTY:
        for rows in (hostile_rows(text), hostile_rows(text)[:2]):
            picture = KINDS[kind](rows, text, ChartOptions(standalone=True))
            root = parsed(picture)

            assert {tag(e) for e in root.iter()} <= TAGS
            attributes = {key for e in root.iter() for key in e.attrib}
            assert not any(key.startswith("on") or key == "style" for key in attributes)
            wide, high = view(root)
            assert all(
                box.left >= -1 and box.right <= wide + 1 and box.top >= -1 and box.foot <= high + 1
                for box in boxes(root)
            ), text


def on_page(made: list[Row], title: str, kind: Chart = Chart.ROWS) -> str:
    """Return the chart of a page with the words around it, as one element."""
    return f"<div>{page_chart(partial(pictures_of, kind, made, title), 'p')}</div>"


@pytest.mark.parametrize("kind", [Chart.ROWS, Chart.BUCKETS, Chart.CURVE])
def test_hostile_texts_of_a_page_stay_texts_and_turn_nothing(kind: Chart) -> None:
    """Law: of the words around a drawing, too, which are a page's own."""
    for text in NASTY:
        written = on_page(hostile_rows(text), text, kind)
        root = parsed(written)

        assert {tag(e) for e in root.iter()} <= {*TAGS, "div", "p", "ul", "li"}
        attributes = {key for e in root.iter() for key in e.attrib}
        assert not any(key.startswith("on") or key == "style" for key in attributes)
        assert not {"\u202e", "\u2066", "\u2067"} & set("".join(root.itertext()))


@pytest.mark.parametrize("text", NASTY)
def test_hostile_names_of_curves_stay_texts(text: str) -> None:
    root = parsed(curve([Curve(text, ((10, 0.5), (100, 0.1)))], text, ChartOptions(), unit=text))

    assert {tag(e) for e in root.iter()} <= TAGS


@pytest.mark.parametrize("text", NASTY)
def test_hostile_texts_stay_texts_in_tables(text: str) -> None:
    root = parsed(table_of(hostile_rows(text), text))

    known = {"table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td"}
    assert {e.tag for e in root.iter()} <= known


def test_the_whole_of_a_shortened_label_is_in_its_title() -> None:
    long = "a label that is much too long for the column that it would have to stand in " * 2
    root = parsed(bars([row(long, 0.5, 0.01)], "t"))

    (label,) = [e for e in root.iter() if e.get("class") == "label"]
    assert (label.text or "").endswith("…")
    assert [e.text for e in label] == [long.strip()]


def test_a_label_cannot_turn_the_numbers_beside_it() -> None:
    assert one_line("\u202egnp.exe") == "gnp.exe"
    assert one_line("שלום") == "\u2068שלום\u2069"


@pytest.mark.parametrize("prefix", ["", "a b", "1a", 'x"onload="', "é", "a" * 65])
def test_a_prefix_that_is_no_id_is_refused(prefix: str) -> None:
    with pytest.raises(InvalidParameterError, match="prefix="):
        ChartOptions(prefix=prefix)


@pytest.mark.parametrize("sizes", [{"width": 10}, {"width": 10_000}, {"most_rows": 0}])
def test_sizes_in_which_nothing_can_be_read_are_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(InvalidParameterError):
        ChartOptions(**sizes)  # type: ignore[arg-type]  # only sizes


EXAMPLES: Final = 12  # of each kind
OF_NUMBERS: Final = (bars, line, histogram, cdf, dots, difference, heat, grid, spark)
numbers = st.one_of(
    st.floats(-1, 1),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -0.0, 1e-300, 5e-324, 1e300, -1e300, 1e16]),
)
names = st.sampled_from(["", "a", "b", "10–20", "20–30", "0,0", "3,1", "7", "2026-03-01", "(all)"])
dimensions = st.dictionaries(
    st.sampled_from(["item", "time", "platform", "measure", "against"]), names, max_size=4
)


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """Draw a row: in one of five without a number, in others with ends in any order."""
    unit = draw(st.sampled_from(["share", "ms", "relative", ""]))
    named = draw(dimensions)
    if draw(st.integers(0, 4)) == 0:
        return empty_row(named, 3, 0.05, unit, remark(Code.NOTE, text=REASON))
    value, low, high = (draw(numbers) for _ in range(3))
    made = Row(named, value, low, high, 0.1, draw(st.integers(0, 10**9)), 0.05, "good", unit)
    return replace(made, is_open=draw(st.booleans()), p_value=draw(st.none() | st.floats(0, 1)))


@pytest.mark.parametrize("kind", OF_NUMBERS, ids=lambda kind: kind.__name__)
@settings(max_examples=EXAMPLES)
@given(st.lists(rows(), max_size=7), st.sampled_from([280, 640]))
def test_a_kind_of_chart_draws_any_rows_within_its_view(
    kind: object, made: list[Row], width: int
) -> None:
    root = parsed(kind(made, "t", ChartOptions(width=width)))  # type: ignore[operator]

    wide, high = view(root)
    assert all(
        box.left >= -1 and box.right <= wide + 1 and box.top >= -1 and box.foot <= high + 1
        for box in boxes(root)
    )


@settings(max_examples=2 * EXAMPLES)
@given(
    st.sampled_from(Chart),
    st.lists(rows(), max_size=7),
)
def test_any_rows_of_any_verb_have_a_chart(kind: Chart, made: list[Row]) -> None:
    root = parsed(chart_of(kind, made, "t"))
    shown = parsed(on_page(made, "t", kind))

    assert root.findtext("{*}desc")
    assert shown.findtext(".//svg/desc")
    places = [e.get("x", "") + e.get("cx", "") for e in shown.iter()]
    assert not any("n" in place for place in places)  # nan, inf


@given(
    st.lists(st.tuples(st.floats(1, 1e12), st.floats(1e-12, 1e12)), min_size=1, max_size=5),
    st.none() | st.floats(1, 1e12),
    st.none() | st.floats(1e-12, 1e12),
)
def test_any_curve_is_drawn_within_its_view(
    points: list[tuple[float, float]], devices: float | None, need: float | None
) -> None:
    made = Curve("ε = 1", tuple(sorted(points)))
    root = parsed(curve([made], "t", devices=devices, need=need))

    wide, high = view(root)
    assert all(box.right <= wide + 1 and box.foot <= high + 1 for box in boxes(root))


@pytest.mark.parametrize("kind", OF_NUMBERS, ids=lambda kind: kind.__name__)
def test_no_rows_are_still_a_chart(kind: object) -> None:
    root = parsed(kind([], "t"))  # type: ignore[operator]

    assert root.findtext("{*}title") == "t"
