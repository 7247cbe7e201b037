"""Pages call the cells of a map by their degrees; addresses keep row and column."""

from __future__ import annotations

import re

import pytest

from tests.collector.web.pages.conftest import Visit

CELL = "42° to 43° N, 3° to 4° E"
NUMBERED = re.compile(r">\s*[0-9],[0-9]\s*<")  # a cell by row and column, for people to read


@pytest.mark.parametrize("path", ["/metric/location", "/ask?metric=location&verb=map"])
def test_no_cell_of_a_map_is_told_by_its_row_and_column(visit: Visit, path: str) -> None:
    """Neither in the chart nor in its table."""
    panel = visit(path).text.partition('id="answer"')[2].partition("</section>")[0]

    assert f'data-row="{CELL}' in panel
    assert '<th scope="row">42° to 43° N</th>' in panel
    assert NUMBERED.findall(panel) == []
