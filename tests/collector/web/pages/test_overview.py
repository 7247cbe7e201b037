"""The overview of many metrics, and numbers that changed."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

import pytest
from flask.testing import FlaskClient

from client_sdk.core.epoch import DAY, epoch_label, epoch_of
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.registry import Registry
from collector.core.cells import Cell
from collector.web.pages.overview import MOST_TILES
from tests.collector.web.conftest import MakeApp
from tests.collector.web.pages.conftest import BROWSER
from tests.support.crowds.asked import post
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
    assert all(page.count('aria-current="page">') == 3 for page in pages)  # overview twice
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


@pytest.mark.parametrize("n", [1_000, 100_000])
def test_a_tile_has_the_width_of_the_interval_and_no_grade(
    make_app: MakeApp, storage: MemoryStorage, n: int
) -> None:
    """Law: however wide it is, a page does not call its own number poor, nor show it in red."""
    text = 'schema = 1\napp = "one"\n' + entry(0)
    (metric,) = Registry.from_text(text)
    storage.put({Cell(metric.digest, int(NOON // DAY), ""): [(0, n), (1, n // 2), (2, n // 2)]})
    client = make_app(text).test_client()
    client.set_cookie("hearsay", READ_TOKEN)

    page = get(client)

    half = re.search(r'<span class="give">± ([\d.]+) points</span>', page)
    (row,) = post(client, {"metrics": ["m00"]}).get_json()["rows"]
    assert half
    assert float(half[1]) >= 50 * (row["ci_high"] - row["ci_low"])
    assert not re.search(r"\b(good|fair|poor)\b", Page(page).text)
    assert "fault" not in page.partition("<main")[2]


N: Final = 4_000  # reports of a day or a week
BEFORE: Final = 0.39  # the share that says yes
NOW: Final = 0.16
EPOCHS: Final = 6  # with reports; the last is running
AT: Final = 3  # the first of them after the step
TODAY: Final = datetime.fromtimestamp(NOON, UTC).date().isoformat()
FORM: Final = """
[metrics.{name}]
title = "{name} metric"
question = "Did they {name}?"
type = "boolean"
epsilon = "1"
every = "{every}"
longitudinal = "fresh"
expected_devices = 10000
min_reports = 100
owner = "tests"
expires = 2027-12-31
"""
LEVELS: Final = 'schema = 1\napp = "levels"\n' + "".join(
    FORM.format(name=name, every=every)
    for name, every in (("daily", "1d"), ("weekly", "7d"), ("steady", "1d"))
)


def said_yes(share: float, mechanism: GRR) -> int:
    """Return how many of N reports say yes where *share* of the devices do."""
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    return round(N * (share * p + (1 - share) * q))


@pytest.fixture
def stepped(make_app: MakeApp, storage: MemoryStorage) -> FlaskClient:
    """Pages of metrics that fell from BEFORE to NOW, and of one that did not."""
    for metric in Registry.from_text(LEVELS):
        assert isinstance(metric.mechanism, GRR)
        for i in range(EPOCHS):
            share = BEFORE if i < AT or metric.name == "steady" else NOW
            yes = said_yes(share, metric.mechanism)
            epoch = epoch_of(metric.every, NOON) - (EPOCHS - 1) + i
            storage.put({Cell(metric.digest, epoch, ""): [(0, N), (1, N - yes), (2, yes)]})
    client = make_app(LEVELS).test_client()
    client.set_cookie("hearsay", READ_TOKEN)
    return client


def page(client: FlaskClient, path: str) -> str:
    """Return the words of a page, without its charts."""
    response = client.get(path, headers=BROWSER)
    assert response.status_code == 200, response.text
    text = re.sub(r"<svg.*?</svg>", "", response.text, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def label(every: str, back: int) -> str:
    """Return the first day of the epoch *back* before the running one."""
    return epoch_label(every, epoch_of(every, NOON) - back)


def test_the_page_of_a_metric_tells_the_level_since_a_change_and_that_before(
    stepped: FlaskClient,
) -> None:
    """Law: the average over a step is shown as an average, beside both levels and their days.

    The running day is in neither, as it is no evidence of the change.
    """
    text = page(stepped, "/metric/daily")

    assert re.search(r"16 % ± [\d.]+ points of devices, since 2 Mar", text)
    average = "The average of 27 Feb to 4 Mar, across a change."
    ends = r"\([\d.]+ % to [\d.]+ %\)"
    now = f"yes: 16 % {ends}, 2 to 3 Mar; before, 39.0 % {ends}, 27 Feb to 1 Mar."
    assert re.search(f"{re.escape(average)} {now}", text)


def test_a_change_of_a_weekly_metric_is_said_of_the_week(stepped: FlaskClient) -> None:
    """Law: the first day of the week of a change is not said to be its day."""
    week = "the week of 16 to 22 Feb"

    number = r"16 % ± [\d.]+ points of devices"
    assert re.search(f"{number}, since {week}", page(stepped, "/metric/weekly"))
    overview = page(stepped, "/")
    assert re.search(f"{number} lower since {week}", overview)
    assert re.search(f"{number} lower since 2 Mar", overview)


def test_where_nothing_changed_the_average_is_said_to_be_one(stepped: FlaskClient) -> None:
    """Law: no level is told of a step that was not detected."""
    text = page(stepped, "/metric/steady")

    assert "The average of 27 Feb to 4 Mar; no change was detected" in text
    assert "Now:" not in text


def test_a_comparison_names_its_metric_and_marks_a_week_that_is_running(
    stepped: FlaskClient,
) -> None:
    """Law: no row is called "yes" alone, and no days to come are said to be compared."""
    monday = label("7d", 0)
    path = f"/compare?metric=weekly&range=dates&from={monday}&to={TODAY}"
    drawn = stepped.get(path, headers=BROWSER).text

    assert 'aria-label="Chart: weekly metric: difference' in drawn
    assert re.search(r'<th scope="row">weekly metric: yes</th>', drawn)
    assert re.search(r"\w+ \(in progress\) against 23 Feb to 1 Mar\.", drawn)
    assert "(in progress)" not in page(stepped, "/compare?metric=weekly")


def test_the_window_of_a_running_week_ends_today(stepped: FlaskClient) -> None:
    """Law: no page tells a last day that is yet to come."""
    text = page(stepped, "/metric/weekly")

    assert re.search(r" reports, \d+ \w{3} to 4 Mar(; there are no reports before)? \(UTC\)", text)
    assert "(UTC) in progress" in text
