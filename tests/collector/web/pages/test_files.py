"""Files of answers and pages of maps."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re

import pytest
from flask.testing import FlaskClient

from tests.collector.web.pages.conftest import BROWSER, Visit
from tests.support.sites.drawing import parsed
from tests.support.sites.page import Page

MAP = '{"metrics":["location"],"verb":"map","date_range":"7d"}'
OVER_TIME = '{"metrics":["category"],"verb":"trend","dimensions":["time:day"],"date_range":"7d"}'


def kind_of(address: str) -> str:
    return address.partition("?")[0].rpartition(".")[2]


@pytest.mark.parametrize(
    ("path", "count"),
    [
        ("/metric/category", 3),
        ("/metric/location", 4),
        (f"/ask?q={MAP}", 4),
        ("/compare?metric=category&by=platform&range=7d", 3),
        ("/compare?metric=boolean&segment.platform=!mac&segment.arm=new&range=7d", 3),
    ],
)
def test_every_file_that_a_page_offers_can_be_saved(visit: Visit, path: str, count: int) -> None:
    """Maps have GeoJSON beside CSV, Parquet and SVG; each arrives under its own name."""
    offered = {
        address: kind_of(address)
        for address in Page(visit(path).text).values("href", "a")
        if kind_of(address) in ("csv", "parquet", "geojson", "svg")
    }

    assert len(set(offered.values())) == count
    for address, kind in offered.items():
        response = visit(address)
        assert response.status_code == 200, address
        assert response.headers["Content-Disposition"].startswith("attachment; filename=")
        assert response.headers["Content-Disposition"].endswith(f'.{kind}"')


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/metric/location", "location-time"),
        (f"/ask?q={MAP}", "location-map"),
        ("/compare?metric=category&by=platform&range=7d", "category-difference"),
    ],
)
def test_a_file_is_called_by_its_metric_and_what_it_shows(
    visit: Visit, path: str, name: str
) -> None:
    """Law: the picture that a browser makes of a drawing is called as the drawing is."""
    page = Page(visit(path).text)
    drawing = next(a for a in page.values("href", "a") if kind_of(a) == "svg")

    assert visit(drawing).headers["Content-Disposition"] == f'attachment; filename="{name}.svg"'
    assert name in page.values("data-name")


def test_the_cells_of_a_map_are_polygons_in_degrees(visit: Visit) -> None:
    """Of RFC 7946: longitude first, closed rings against the clock, and the box of all of them."""
    collection = json.loads(visit("/ask.geojson", {"q": MAP}).text)

    assert collection["bbox"] == [0, 40, 4, 43]
    assert len(collection["features"]) == 12
    second = collection["features"][1]
    assert second["geometry"]["coordinates"] == [[[1, 40], [2, 40], [2, 41], [1, 41], [1, 40]]]
    assert second["properties"]["item"] == "0,1"
    for feature in collection["features"]:
        (ring,) = feature["geometry"]["coordinates"]
        around = sum(a[0] * b[1] - b[0] * a[1] for a, b in itertools.pairwise(ring))
        assert ring[0] == ring[-1]
        assert around > 0
        own = feature["properties"]
        assert own["ci_low"] <= own["value"] <= own["ci_high"]


def test_the_file_of_a_map_has_the_degrees_of_each_cell(visit: Visit) -> None:
    lines = list(csv.DictReader(io.StringIO(visit("/ask.csv", {"q": MAP}).text, newline="")))

    (cell,) = [line for line in lines if line["item"] == "2,3"]
    assert (cell["longitude"], cell["latitude"]) == ("3.5", "42.5")
    ends = [cell[name] for name in ("west", "south", "east", "north")]
    assert ends == ["3.0", "42.0", "4.0", "43.0"]


def test_the_time_of_a_parquet_file_is_a_time_in_pandas(visit: Visit) -> None:
    """With its zone, and sorted as times are; the numbers are those of the other files."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(io.BytesIO(visit("/ask.parquet", {"q": OVER_TIME}).data))
    text = visit("/ask.csv", {"q": OVER_TIME}).text
    lines = list(csv.DictReader(io.StringIO(text, newline="")))

    assert str(frame["time"].dtype) == "datetime64[ms, UTC]"
    assert [f"{moment:%Y-%m-%d}" for moment in frame["time"]] == [line["time"] for line in lines]
    assert frame["value"].tolist() == [float(line["value"]) for line in lines]
    assert frame["n"].tolist() == [int(line["n"]) for line in lines]


def test_a_chart_by_itself_is_one_document(visit: Visit) -> None:
    response = visit("/ask.svg", {"q": MAP})

    root = parsed(response.text)
    assert response.content_type == "image/svg+xml"
    assert (root.findtext("{*}title") or "").startswith("All of location")
    assert root.find(".//{*}style") is not None
    assert not [e for e in root.iter() if e.tag.endswith("script")]


@pytest.mark.parametrize("kind", ["csv", "parquet", "geojson", "svg"])
def test_no_file_opens_without_a_token(browser: FlaskClient, kind: str) -> None:
    for path in (f"/ask.{kind}?q={MAP}", f"/metric/location/answer.{kind}"):
        response = browser.get(path, headers=BROWSER)

        assert response.status_code == 303
        assert "/login" in response.headers["Location"]


CELL = "42° to 43° N, 3° to 4° E"
NUMBERED = re.compile(r">\s*[0-9],[0-9]\s*<")  # a cell by row and column, for people to read


@pytest.mark.parametrize("path", ["/metric/location", "/ask?metric=location&verb=map"])
def test_no_cell_of_a_map_is_told_by_its_row_and_column(visit: Visit, path: str) -> None:
    """Neither in the chart nor in its table."""
    panel = visit(path).text.partition('id="answer"')[2].partition("</section>")[0]

    assert f'data-row="{CELL}' in panel
    assert '<th scope="row">42° to 43° N</th>' in panel
    assert NUMBERED.findall(panel) == []
