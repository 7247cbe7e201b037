"""What the page of a metric says first: the number of what is chosen, by the name of what it is."""

from __future__ import annotations

import re
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.collector.web.pages.conftest import Visit
from tests.support.crowds.uploads import READ_TOKEN

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
