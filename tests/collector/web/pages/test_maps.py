"""Pages call the cells of a map by their degrees; addresses keep row and column."""

from __future__ import annotations

import re

import pytest

from tests.collector.web.pages.conftest import Visit

CELL = "42° to 43° N, 3° to 4° E"
IN_WORDS = "from 3° to 4° east, 42° to 43° north"
NUMBERED = re.compile(r">\s*[0-9],[0-9]\s*<")  # a cell by row and column, for people to read


@pytest.mark.parametrize("path", ["/metric/location", "/ask?metric=location&verb=map"])
def test_no_cell_of_a_map_is_told_by_its_row_and_column(visit: Visit, path: str) -> None:
    """Neither in the chart nor in its table."""
    panel = visit(path).text.partition('id="answer"')[2].partition("</section>")[0]

    assert f'data-row="{CELL}' in panel
    assert '<th scope="row">42° to 43° N</th>' in panel
    assert NUMBERED.findall(panel) == []


@pytest.mark.parametrize("path", ["/compare?metric=location", "/ask?metric=location&verb=compare"])
def test_a_list_of_cells_tells_their_degrees(visit: Visit, path: str) -> None:
    assert re.search(rf'<option value="2,3"[^>]*>{IN_WORDS}</option>', visit(path).text)


def test_a_chosen_cell_is_in_the_address_and_its_degrees_on_the_page(visit: Visit) -> None:
    page = visit("/metric/location?item=2,3").text

    assert f'<option value="2,3" selected>{IN_WORDS}</option>' in page
    assert f">{IN_WORDS} over time</h2>" in page
    assert "item=2%2C3" in page  # of its files


def test_the_tile_of_a_map_says_where_most_devices_are(visit: Visit) -> None:
    """Half of the devices are in the south-west, the others in the north-east."""
    tile = visit("/?search=location").text

    assert re.search(r'<p class="of">from \d° to \d° east, 4\d° to 4\d° north', tile)
