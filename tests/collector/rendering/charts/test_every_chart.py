"""What holds of every kind of chart, shown over the gallery."""

from __future__ import annotations

from itertools import combinations

import pytest

from collector.rendering.charts import ChartOptions
from tests.support.sites.drawing import Box, boxes, of_class, parsed, tag, view
from tests.support.sites.gallery import PICTURES

# What a page may hold; all else would have come out of a label.
TAGS = {"svg", "a", "g", "rect", "line", "path", "circle", "text", "title", "desc"}
WIDTHS = (280, 420, 640, 1000)
PAGE_BYTES = 80_000  # of a page of 150 KB, with the table
every_picture = pytest.mark.parametrize("name", PICTURES)


def at_widths(name: str) -> tuple[int, ...]:
    return (640,) if name == "spark" else WIDTHS


@every_picture
def test_a_chart_is_made_of_few_tags_and_acts_on_nothing(name: str) -> None:
    root = parsed(PICTURES[name](ChartOptions(prefix=name)))

    assert {tag(element) for element in root.iter()} <= TAGS
    attributes = {key for element in root.iter() for key in element.attrib}
    assert [key for key in attributes if key.startswith("on") or key == "style"] == []
    links = {element.get("href") or "" for element in root.iter() if "href" in element.attrib}
    assert links <= {"/boards/releases"}


@every_picture
def test_a_chart_has_a_name_and_a_description_of_its_own(name: str) -> None:
    root = parsed(PICTURES[name](ChartOptions(prefix=name)))

    ids = {e.get("id"): e for e in root.iter() if e.get("id")}
    named = (root.get("aria-labelledby") or "").split()
    assert list(ids) == named == [f"{name}-title", f"{name}-desc"]
    holds_links = any(tag(element) == "a" for element in root.iter())
    assert root.get("role") == ("group" if holds_links else "img")
    assert all(ids[key].text for key in named)


@every_picture
def test_everything_is_drawn_within_the_view(name: str) -> None:
    for width in at_widths(name):
        root = parsed(PICTURES[name](ChartOptions(width=width)))
        wide, high = view(root)

        outside = [
            (box.element.get("class"), box.element.text, box)
            for box in boxes(root)
            if box.left < -0.1 or box.top < -0.1 or box.right > wide + 0.1 or box.foot > high + 0.1
        ]
        assert outside == [], width


@every_picture
def test_no_text_runs_into_another(name: str) -> None:
    for width in at_widths(name):
        root = parsed(PICTURES[name](ChartOptions(width=width)))
        texts = [box for box in boxes(root) if tag(box.element) == "text" and upright(box)]

        touching = [
            (a.element.text, b.element.text)
            for a, b in combinations(texts, 2)
            if a.overlaps(b, slack=0.5)
        ]
        assert touching == [], width


def upright(box: Box) -> bool:
    return "rotate" not in (box.element.get("transform") or "")


@every_picture
def test_no_text_is_smaller_than_eleven_units(name: str) -> None:
    root = parsed(PICTURES[name](ChartOptions()))

    sizes = [float(e.get("font-size", 11)) for e in root.iter()]
    assert min(sizes) >= 11


@every_picture
def test_the_same_rows_give_the_same_bytes(name: str) -> None:
    options = ChartOptions(prefix=name, standalone=True)

    assert PICTURES[name](options) == PICTURES[name](options)


@every_picture
def test_a_chart_leaves_room_on_the_page(name: str) -> None:
    assert len(PICTURES[name](ChartOptions(prefix=name)).encode()) <= PAGE_BYTES


@every_picture
def test_a_chart_that_stands_alone_brings_its_styles_and_one_in_a_page_none(name: str) -> None:
    alone, within = (parsed(PICTURES[name](ChartOptions(standalone=s))) for s in (True, False))

    assert [tag(e) for e in alone.iter()].count("style") == 1
    assert [tag(e) for e in within.iter()].count("style") == 0


@every_picture
def test_every_mark_shows_its_number_with_its_interval_or_the_reason(name: str) -> None:
    root = parsed(PICTURES[name](ChartOptions()))

    for mark in of_class(root, "mark"):
        numbers = [mark.get(f"data-{key}") for key in ("value", "low", "high")]
        assert all(numbers) or (mark.get("data-reason") and not any(numbers))
