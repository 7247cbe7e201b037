"""An overview of many metrics: found by words, under headings, each once on several pages."""

from __future__ import annotations

import re
from typing import Final

import pytest
from flask.testing import FlaskClient

from client_sdk.core.epoch import DAY, epoch_label, epoch_of
from client_sdk.registry import Registry
from collector.core.cells import Cell
from collector.web.pages.overview import MOST_TILES
from tests.collector.web.conftest import MakeApp
from tests.collector.web.pages.conftest import BROWSER
from tests.support.crowds.uploads import NOON, READ_TOKEN
from tests.support.sites.page import Page
from tests.support.store.memory_storage import MemoryStorage

COUNT: Final = 40
GROUPS: Final = ("Start-up", "", "Editing")
HOSTILE: Final = '"><script>alert(1)</script>'


def entry(number: int, group: str = "") -> str:
    own = f'group = "{group}"\n' if group else ""
    return (
        f'[metrics.m{number:02}]\ntitle = "Metric {COUNT - number:02}"\nquestion = "Really?"\n'
        f'type = "boolean"\nepsilon = "1"\nevery = "1d"\nlongitudinal = "fresh"\n'
        f'expected_devices = 10000\nmin_reports = 100\nowner = "team {number % 2}"\n{own}'
        "expires = 2027-12-31\n"
    )


TEXT: Final = 'schema = 1\napp = "many"\n' + "".join(entry(i, GROUPS[i % 3]) for i in range(COUNT))


@pytest.fixture
def many(make_app: MakeApp, storage: MemoryStorage) -> FlaskClient:
    for metric in Registry.from_text(TEXT):
        storage.put({Cell(metric.digest, int(NOON // DAY), ""): [(0, 900), (1, 400), (2, 500)]})
    client = make_app(TEXT).test_client()
    client.set_cookie("hearsay", READ_TOKEN)
    return client


def get(client: FlaskClient, query: str = "", status: int = 200) -> str:
    response = client.get(f"/{query}", headers=BROWSER)
    assert response.status_code == status
    return response.text


def names(text: str) -> list[str]:
    return re.findall(r'<a href="/metric/(m\d+)', text)


def headings(text: str) -> list[str]:
    return re.findall(r'<h2 class="group">(.*?)</h2>', text)


def test_every_metric_stands_on_one_page(many: FlaskClient) -> None:
    pages = [get(many, f"?sheet={page}") for page in (1, 2, 3)]

    shown = [name for page in pages for name in names(page)]
    assert sorted(shown) == [f"m{i:02}" for i in range(COUNT)]
    assert [len(names(page)) for page in pages] == [MOST_TILES, MOST_TILES, COUNT - 2 * MOST_TILES]
    assert all(page.count('aria-current="page">') == 2 for page in pages)  # overview, and its page
    assert names(get(many, "?sheet=99")) == names(pages[2])


def test_groups_stand_in_the_order_of_the_registry_and_the_rest_is_last(many: FlaskClient) -> None:
    found = [heading for page in (1, 2, 3) for heading in headings(get(many, f"?sheet={page}"))]

    assert list(dict.fromkeys(found)) == ["Start-up", "Editing", "Other"]
    assert names(get(many))[:3] == ["m00", "m03", "m06"]


@pytest.mark.parametrize(
    ("order", "first", "heads"),
    [
        ("name", ["m39", "m38"], []),
        ("registry", ["m00", "m01"], []),
        ("owner", ["m00", "m02"], ["team 0"]),
        ("group", ["m00", "m03"], ["Start-up", "Editing"]),
    ],
)
def test_an_order_is_kept_in_the_address(
    many: FlaskClient, order: str, first: list[str], heads: list[str]
) -> None:
    page = get(many, f"?order={order}&range=7d")

    assert names(page)[:2] == first
    assert headings(page) == heads
    assert f'href="/?range=7d&amp;order={order}&amp;sheet=2"' in page
    assert f'<option value="{order}" selected>' in page


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("metric 40", ["m00"]),
        ("M33", ["m33"]),
        ("editing m02", ["m02"]),
        ("team 1 start-up 37", ["m03"]),
        ("nothing of this", []),
    ],
)
def test_a_search_finds_metrics_that_have_all_words(
    many: FlaskClient, words: str, found: list[str]
) -> None:
    """In name, title, question, group and owner, however they are written."""
    page = get(many, f"?search={words}")

    assert names(page) == found
    assert f"{len(found)} of {COUNT} metrics match" in page
    assert 'href="/">Show all' in page


def test_a_search_stays_a_text(many: FlaskClient) -> None:
    page = get(many, f"?search={HOSTILE}")

    assert "<script>alert" not in page
    assert "0 of 40 metrics match" in page


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?order=size", "order: must be one of group, owner, name, registry"),
        ("?sheet=0", "sheet: must be a number from 1"),
        ("?sheet=-1", "sheet: must be a number from 1"),
        ("?sheet=two", "sheet: must be a number from 1"),
        ("?sheet=99999999999999999999", "sheet: must be a number from 1"),
        ("?search=a&search=b", "search: must be given once"),
    ],
)
def test_a_choice_that_is_none_is_refused(many: FlaskClient, query: str, words: str) -> None:
    assert words in get(many, query, 400)


def test_a_few_metrics_need_no_search(make_app: MakeApp, storage: MemoryStorage) -> None:
    text = 'schema = 1\napp = "few"\n' + entry(0) + entry(1)
    for metric in Registry.from_text(text):
        storage.put({Cell(metric.digest, int(NOON // DAY), ""): [(0, 900), (1, 400), (2, 500)]})
    client = make_app(text).test_client()
    client.set_cookie("hearsay", READ_TOKEN)

    page = get(client)

    assert names(page) == ["m00", "m01"]
    assert 'name="search"' not in page
    assert "group" not in headings(page)


def test_a_group_is_no_part_of_what_a_report_means() -> None:
    head = 'schema = 1\napp = "a"\n'
    plain, grouped = (Registry.from_text(head + entry(0, group)) for group in ("", "G"))

    assert plain.metric("m00").digest == grouped.metric("m00").digest
    assert (plain.metric("m00").group, grouped.metric("m00").group) == ("", "G")


def test_a_short_range_says_since_when_the_reports_of_a_weekly_metric_are(
    make_app: MakeApp, storage: MemoryStorage
) -> None:
    """Law: a number of the first days of a week is not shown as that of seven days."""
    text = 'schema = 1\napp = "some"\n' + entry(0) + entry(1).replace('"1d"', '"7d"')
    daily, weekly = Registry.from_text(text)
    for metric in (daily, weekly):
        epoch = epoch_of(metric.every, NOON)
        storage.put({Cell(metric.digest, epoch, ""): [(0, 900), (1, 400), (2, 500)]})
    client = make_app(text).test_client()
    client.set_cookie("hearsay", READ_TOKEN)
    began = epoch_label("7d", epoch_of("7d", NOON))

    short, long = (
        re.findall(r"900 reports[^<]*", get(client, query)) for query in ("?range=7d", "")
    )

    assert short == ["900 reports", f"900 reports since {began}"]
    assert long == ["900 reports"] * 2


def test_what_good_fair_and_poor_mean_is_said_in_words_below(many: FlaskClient) -> None:
    """Law: a phone has no pointer to rest on them."""
    said = Page(get(many)).text

    assert (
        "± of a good number is at most 5 % of it, of a fair one at most 25 %, of a poor one more"
        in said
    )
