"""What the page of a metric says first: the number of what is chosen, by the name of what it is."""

from __future__ import annotations

import re
from typing import Any

import pytest
from flask.testing import FlaskClient

from client_sdk.core.epoch import epoch_of
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.registry import Registry
from collector.core.cells import Cell
from tests.collector.web.conftest import MakeApp
from tests.collector.web.pages.conftest import BROWSER, Visit
from tests.support.crowds.uploads import NOON, READ_TOKEN
from tests.support.store.memory_storage import MemoryStorage

FINDING = re.compile(
    r'<p class="finding"><span class="big">(.*?)</span> '
    r'(?:<span class="give">(.*?)</span> )?(.*?)</p>'
)
LEVEL = {"p50": 0.5, "p95": 0.95}


def api(browser: FlaskClient, metric: str, verb: str, **options: Any) -> list[dict[str, Any]]:
    question = {"metrics": [metric], "verb": verb, "options": options}
    reply = browser.post(
        "/v1/query", json=question, headers={"Authorization": f"Bearer {READ_TOKEN}"}
    )
    assert reply.status_code == 200, reply.text
    rows: list[dict[str, Any]] = reply.get_json()["rows"]
    return rows


def is_shown(text: str, row: dict[str, Any]) -> bool:
    """Return whether *text*, such as "29.4 %" or "530 ms", is the value of *row* in its digits."""
    number = text.split()[0].replace(",", "").replace("−", "-")
    factor = 100 if row["unit"] == "share" else 1
    zeros = len(number) - len(number.rstrip("0")) if "." not in number else 0
    last = 10.0 ** (zeros - len(number.partition(".")[2]))
    return abs(float(number) - factor * float(row["value"])) <= 0.5001 * last


def test_it_is_the_number_of_the_item_that_is_chosen(visit: Visit, browser: FlaskClient) -> None:
    rows = api(browser, "category", "estimate")
    possible = [row for row in rows if 0 <= row["value"] <= 1]
    assert len(possible) >= 2

    for row in possible:
        item = row["dimensions"]["item"]
        found = FINDING.search(visit("/metric/category", {"item": item}).text)
        assert found
        assert is_shown(found[1], row)
        assert found[2]
        assert found[3].startswith(item)


@pytest.mark.parametrize("level", LEVEL)
def test_a_chosen_quantile_is_called_by_its_name(
    visit: Visit, browser: FlaskClient, level: str
) -> None:
    (row,) = api(browser, "number", "quantile", levels=[LEVEL[level]])

    found = FINDING.search(visit("/metric/number", {"item": level}).text)

    assert found
    assert is_shown(found[1], row)
    assert found[3].startswith(level)
    assert "mean" not in found[3]


@pytest.mark.parametrize(("metric", "what"), [("number", "mean"), ("boolean", "of devices")])
def test_without_a_choice_it_is_the_number_of_its_tile(
    visit: Visit, metric: str, what: str
) -> None:
    found = FINDING.search(visit(f"/metric/{metric}").text)
    assert found
    overview = visit("/").text
    title = f'/metric/{metric}">'
    tile = overview[overview.index(title) :].partition("</li>")[0]

    assert f'<span class="big">{found[1]}</span>' in tile
    assert found[2] in tile
    assert found[3].startswith(what)


PLACES = {"home": (0.6, 0.6), "work": (0.05, 0.3), "shop": (0.35, 0.1)}  # before and after
TEXT = """
schema = 1
app = "places"
[metrics.place]
type = "category"
values = ["home", "work", "shop"]
title = "Where"
question = "Where are they?"
every = "1d"
longitudinal = "fresh"
epsilon = "2.0"
mechanism = "grr"
expected_devices = 20000
min_reports = 100
owner = "team"
expires = 2027-12-31
"""
DAYS, N = 12, 20_000


def test_a_change_of_another_item_does_not_take_the_place_of_the_greatest(
    make_app: MakeApp, storage: MemoryStorage
) -> None:
    """Law: the head is the number of the tile; what changed in other items is news below it."""
    metric = Registry.from_text(TEXT).metric("place")
    assert isinstance(metric.mechanism, GRR)
    p, q = float(metric.mechanism.channel.p), float(metric.mechanism.channel.q)
    for i in range(DAYS):
        shares = [after if i >= DAYS // 2 else before for before, after in PLACES.values()]
        said = [round(N * (share * p + (1 - share) * q)) for share in shares]
        cell = Cell(metric.digest, epoch_of("1d", NOON) - DAYS + 1 + i, "")
        storage.put({cell: [(0, sum(said)), *enumerate(said, 1)]})
    client = make_app(TEXT).test_client()
    client.set_cookie("hearsay", READ_TOKEN)

    page = client.get("/metric/place", headers=BROWSER).text
    overview = client.get("/", headers=BROWSER).text

    found = FINDING.search(page)
    assert found
    assert found[3].startswith("home")
    assert f'<span class="big">{found[1]}</span>' in overview
    news = re.findall(r'<p class="news">(.*?)</p>', page)
    assert {"work", "shop"} == {item for item in PLACES if any(item in text for text in news)}
