"""What pages say of privacy, of the differencing attack, and of panels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from math import exp
from pathlib import Path
from random import SystemRandom
from typing import Any, Final

import pytest
from flask import Flask
from flask.testing import FlaskClient

from benchmarks.accuracy.differencing import central, exact, locally
from client_sdk.privacy.budget import NANO, cost_of
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.wording import explain, what_was_sent, why_deniable
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.core.cells import Cell
from collector.estimation.isolation import NEWCOMER, TIMES
from tests.collector.web.conftest import MakeApp
from tests.collector.web.pages.conftest import BROWSER, ONE_METRIC, Visit, token_of
from tests.support.crowds.asked import post
from tests.support.crowds.uploads import READ_TOKEN, TODAY
from tests.support.device.device import metric_text
from tests.support.device.every_type import NAMES, registry_text
from tests.support.device.registries import BOOLEAN, table
from tests.support.sites.in_memory import browser_of, in_memory
from tests.support.sites.page import Page
from tests.support.store.memory_storage import MemoryStorage

EVERY_TYPE: Final = Registry.from_text(registry_text())
WIDE: Final = Caps(report="99", metric_week="9999", week="9999", lifetime="9999", delta="0.1")
ODDS: Final = re.compile(r"([\d,.]+) to 1\b")
GUESS: Final = re.compile(r"at most ([\d.]+\d) times in 100|([\d.]*\d) (?:times )?in 100")


def told(metric: Metric, visit: Visit) -> Iterator[str]:
    """Yield each text that says how much a report of *metric* proves."""
    yield explain(metric, WIDE)
    yield why_deniable(metric)
    people = Page(visit("/privacy/people").text).text
    section = people[people.index(metric.title) :]
    yield section[: section.index("Asked by")]
    privacy = visit("/privacy").text
    row = re.search(rf'/metric/{metric.name}".*?</tr>', privacy, re.DOTALL)
    assert row is not None
    yield row[0]
    page = Page(visit(f"/metric/{metric.name}").text).text
    yield from re.findall(r"Odds shift by at most\s*\S+ to 1", page)


@pytest.mark.parametrize("name", NAMES)
def test_no_statement_of_odds_or_guesses_is_below_what_holds(name: str, visit: Visit) -> None:
    """Law: e^ε and the best guess of one report, exact to twelve digits, are never undercut."""
    metric = EVERY_TYPE.metric(name)
    ratio = exp(metric.mechanism.spent)
    odds, guesses = 0, 0

    for text in told(metric, visit):
        for found in ODDS.findall(text):
            odds += 1
            assert float(Decimal(found.replace(",", ""))) >= ratio * (1 - 1e-12)
        for found in GUESS.findall(text):
            if (right := float(found[0] or found[1])) != 50:  # of a coin
                guesses += 1
                assert right >= 100 * ratio / (1 + ratio) * (1 - 1e-12)

    assert odds >= 6
    assert guesses >= 3


@pytest.mark.parametrize("name", NAMES)
def test_a_person_sees_a_report_that_could_be_sent_the_same_at_each_visit(
    name: str, visit: Visit
) -> None:
    """Law: the example is what a valid payload says; of a number drawn by chance it is that."""
    first, second = (Page(visit("/privacy/people").text).text for _ in range(2))
    metric = EVERY_TYPE.metric(name)
    example = (
        first[first.index(metric.title) :].partition("A possible one:")[2].split("\n")[0].strip()
    )

    size = metric.mechanism.payload_size
    payloads = [number.to_bytes(size, "big") for number in range(256 ** min(size, 2))]
    assert first == second
    assert size > 2 or example in {
        what_was_sent(metric, payload, is_brief=True)
        for payload in payloads
        if metric.mechanism.reason(payload) is None
    }
    assert example


@pytest.mark.parametrize("name", NAMES)
def test_a_guess_after_many_reports_is_named_at_its_bound_or_above(name: str, visit: Visit) -> None:
    """Law: the second bar of a question is of all reports of seven days, or of life."""
    text = Page(visit("/privacy/people").text).text
    metric = EVERY_TYPE.metric(name)
    section = text[text.index(metric.title) :].partition("Details")[0]
    cost = cost_of(metric)
    ratio = exp((cost.week if cost.life is None else cost.life) / NANO)

    found = re.search(r"(?:Seven days|For life|The one report)\s+(\d+) in 100", section)
    assert found is not None
    assert int(found[1]) >= 100 * ratio / (1 + ratio) * (1 - 1e-12)
    assert int(found[1]) <= 100


def test_a_plan_names_the_odds_of_each_epsilon_that_it_compares(visit: Visit) -> None:
    """Law: each row of the plan states a bound for its own ε."""
    rows = re.findall(r'<th scope="row">([\d.]+)</th>.*?</tr>', visit("/plan?metric=boolean").text)
    page = visit("/plan?metric=boolean").text

    for epsilon in rows:
        row = page[page.index(f'<th scope="row">{epsilon}</th>') :]
        (shown, *_) = ODDS.findall(row)
        assert float(shown.replace(",", "")) >= exp(float(epsilon)) * (1 - 1e-12)
    assert len(rows) >= 3


def test_the_people_measured_need_no_token(browser: FlaskClient) -> None:
    response = browser.get("/privacy/people", headers=BROWSER)

    assert response.status_code == 200
    assert not [name for name in NAMES if f"All of {name}" not in response.text]
    assert 'href="/privacy"' not in response.text  # which they may not see


def test_why_a_guess_can_be_right_though_no_report_proves_it_is_said_before_the_bars(
    visit: Visit,
) -> None:
    text = visit("/privacy/people").text

    why = text.index("reports of the same question add up until a guess is nearly always right")
    assert text.index("no report proves") < why < text.index("<meter")


def test_what_was_counted_is_not_told_to_the_people(
    browser: FlaskClient, make_app: MakeApp, storage: MemoryStorage
) -> None:
    """The page is made without the store: it is the same when the store is away."""
    storage.failure = RuntimeError("the store was asked")

    response = make_app().test_client().get("/privacy/people", headers=BROWSER)

    assert response.status_code == 200
    assert "reports yet" not in browser.get("/privacy/people", headers=BROWSER).text


def test_the_people_are_told_that_reports_add_up(browser: FlaskClient) -> None:
    text = Page(browser.get("/privacy/people", headers=BROWSER).text).text

    assert re.search(r"many reports together reveal more than one", text)
    assert re.search(r"at most ε [0-9.,]+ in any seven days and ε [0-9.,]+ in any 365 days", text)
    assert "fewer than a hundred" not in text
    assert "The number of reports is counted exactly" in text


def test_a_sum_of_some_questions_is_not_called_that_of_all(
    browser: FlaskClient, visit: Visit
) -> None:
    whole = visit("/privacy").text
    browser.set_cookie("hearsay", token_of(ONE_METRIC))
    part = visit_as(browser)

    assert "All questions together" in whole
    assert "All questions together" not in part
    assert "The questions that you may see together" in part


def test_a_bar_of_privacy_is_as_long_as_its_epsilon_of_seven_days(visit: Visit) -> None:
    """Law: of the longest bar, which is that of all metrics or of the default cap."""
    table = visit("/privacy").text.partition('id="amounts"')[2].partition("</table>")[0]
    row = re.compile(r'row">([^<]+)</th>.*?<rect width="([\d.]+)".*?<td>([\d.,]+)</td></tr>', re.S)

    rows = {
        name: (float(width), float(text.replace(",", "")))
        for name, width, text in row.findall(table)
    }
    longest = max(epsilon for _, epsilon in rows.values())

    assert {metric.title for metric in EVERY_TYPE} <= rows.keys()
    assert len(rows) == len(EVERY_TYPE.metrics) + 2
    assert all(width == pytest.approx(100 * e / longest, abs=0.02) for width, e in rows.values())


def test_the_sheet_of_privacy_says_how_long_reports_are_kept_and_who_sees_addresses(
    make_app: MakeApp, tmp_path: Path
) -> None:
    """Law: by the settings; without an archive or a relay nothing is said of them."""
    kept = {"archive": str(tmp_path), "archive_days": 90, "relay_operator": "Example Relays"}

    plain, more = (Page(visit_as(logged_in(make_app(**settings)))).text for settings in ({}, kept))

    assert "in the archive for 90 days" in more
    assert "the relay of Example Relays" in more
    assert "archive" not in plain
    assert "the relay of" not in plain
    assert all("2026-03-04" in text and "True answers" in text for text in (plain, more))


def logged_in(app: Flask) -> FlaskClient:
    client = app.test_client()
    client.set_cookie("hearsay", READ_TOKEN)
    return client


def visit_as(browser: FlaskClient) -> str:
    return browser.get("/privacy", headers=BROWSER).text


def test_a_comparison_without_numbers_says_what_to_do_next(make_app: MakeApp) -> None:
    client = make_app().test_client()
    client.set_cookie("hearsay", READ_TOKEN)

    opened, month, week = (
        client.get(f"/compare{address}", headers=BROWSER).text
        for address in ("", "?range=30d", "?range=7d")
    )

    assert "another metric or segment" in opened
    assert "Show 7 days" in month
    assert "range=7d" in month
    assert "Show 7 days" not in week
    assert "another metric or segment" in week


TILES: Final = 11
DAYS: Final = 14
REPORTS: Final = 4_000  # a day
TEXT: Final = 'schema = 1\napp = "tiles"\n' + "\n".join(
    table(f"m{i}", BOOLEAN, every='"1d"', mechanism='"grr"', min_reports="1000", segments=None)
    for i in range(TILES)
)
REGISTRY: Final = Registry.from_text(TEXT)
WINDOW: Final = {"date_range": "14d", "dimensions": ["time:day"]}


def fill(storage: MemoryStorage, name: str, before: float, after: float) -> None:
    """Store what devices send on average, with another share in the second week."""
    metric = REGISTRY.metric(name)
    channel: Any = metric.mechanism.channel  # type: ignore[attr-defined]  # grr has one
    p, q = float(channel.p), float(channel.q)
    for day in range(DAYS):
        share = after if day >= DAYS // 2 else before
        said = round(REPORTS * (q + (p - q) * share))
        cell = Cell(metric.digest, TODAY - DAYS + 1 + day, "")
        storage.put({cell: [(0, REPORTS), (1, REPORTS - said), (2, said)]})


@pytest.mark.parametrize(("after", "is_told"), [(0.329, False), (0.36, True)])
def test_a_change_is_told_if_it_stands_out_of_all_tiles(
    make_app: MakeApp, storage: MemoryStorage, after: float, is_told: bool
) -> None:
    """Both are found by a question about this metric alone; of eleven only one stands out."""
    for i in range(TILES):
        fill(storage, f"m{i}", 0.3, after if i == 0 else 0.3)
    client = make_app(TEXT).test_client()

    answer = post(client, {"metrics": ["m0"], "verb": "trend", **WINDOW}).get_json()
    (change,) = answer["meta"]["facts"]["changes"]
    client.post("/login", data={"token": READ_TOKEN})
    page = client.get("/?range=14d").text

    assert page.count('class="tile') >= TILES or page.count("/metric/m") >= TILES
    assert change["detected"]
    assert (change["p_value"] * TILES <= 0.05) == is_told
    assert page.count('class="change"') == is_told
    assert ("higher since" in page) == is_told
    assert ("rose from" in page) == is_told
    assert ("Nothing beyond noise" in page) != is_told


@pytest.mark.parametrize("words", ["14d", "12mo"])
def test_a_page_counts_devices_by_day_however_long_its_time_is(
    make_app: MakeApp, storage: MemoryStorage, words: str
) -> None:
    """Of weeks no more than bounds would be known; no count has a reason, or needs more reports."""
    fill(storage, "m0", 0.3, 0.3)
    client = make_app(TEXT).test_client()
    client.post("/login", data={"token": READ_TOKEN})

    told = client.get(f"/metric/m0/devices.csv?range={words}").text.splitlines()
    heads = told[0].split(",")
    rows = [dict(zip(heads, line.split(","), strict=False)) for line in told[1:]]

    days = [row for row in rows if row["time"] != "(all)"]
    assert [row["value"] for row in days] == [f"{REPORTS}.0"] * DAYS
    assert rows[-1]["ci_low"] == f"{REPORTS}.0"
    assert rows[-1]["value"] == ""


HEAD = 'schema = 1\napp = "demo"\n[panel]\nweek = "4"\n'
WEEKLY = "".join(metric_text(f"m{place}", every="7d") for place in range(10))


def shown(folder: Path, text: str, address: str) -> str:
    """Return what the page at *address* says of a registry, in one line."""
    reply = browser_of(in_memory(folder, text)).get(address, headers={"Accept": "text/html"})
    assert reply.status_code == 200, reply.text
    return re.sub(r"\s+", " ", Page(reply.text).text)


def test_the_devices_that_a_panel_draws_are_named_as_such(tmp_path: Path) -> None:
    """Law: both numbers, and no word of a panel where all devices answer."""
    drawn = shown(tmp_path, HEAD + WEEKLY, "/plan?metric=m0&devices=4")
    alone = shown(tmp_path, HEAD.partition("[panel]")[0] + WEEKLY, "/plan?metric=m0&devices=4")

    assert "which the panel draws from 10,000" in drawn
    assert "panel draws" not in alone


def test_devices_that_later_windows_cannot_bring_are_needed_in_one(tmp_path: Path) -> None:
    """Law: a permanent response says nothing new in later windows."""
    text = 'schema = 1\napp = "demo"\n' + metric_text("m").replace('"fresh"', '"permanent"')

    said = shown(tmp_path, text, "/plan?metric=m&devices=3&need=0.1")

    assert re.search(r"±0.1 points takes\s*[\d,]+ devices", said)
    assert re.search(r"Windows for that\s*all in one window", said)
    assert "no number is enough" not in said
    assert "never" not in said


@pytest.mark.parametrize("power", [2, 4, 6.5])
def test_a_plan_draws_the_half_width_that_is_needed(tmp_path: Path, power: float) -> None:
    """Law: points of a share, whatever the number of devices."""
    said = shown(tmp_path, HEAD + WEEKLY, f"/plan?metric=m0&devices={power}&need=5")

    assert "± 5 points needed" in said


PATH = "/privacy/differencing"
ALL_TYPES = Registry.from_text(registry_text())
SHOWN = re.compile(r"± ([\d,]+)")


def cells(text: str, head: str) -> list[str]:
    """Return the cells of the row of *head*."""
    (row,) = re.findall(rf'<tr><th scope="row">{re.escape(head)}</th>(.*?)</tr>', text)
    return re.findall(r"<td>(.*?)</td>", row)


def epsilon_of(metric: Metric) -> float:
    """Return what a device is charged for a report of *metric* at most."""
    return metric.most_nano / 1e9


def test_each_column_has_the_interval_that_the_attack_has(visit: Visit) -> None:
    """Exact, of a server however often it is asked, and of Hearsay, whose figure stays."""
    text = visit(PATH).text
    both, alone = locally()

    for times in TIMES:
        shown = [SHOWN.findall(cell)[0] for cell in cells(text, f"After {2 * times:,} answers")]
        first, server, ours = (int(number.replace(",", "")) for number in shown)
        assert first == exact().half_width
        assert server == round(central(times, SystemRandom()).half_width)
        assert ours == pytest.approx(both.half_width, rel=1e-3)
    own = SHOWN.findall(cells(text, "From the newcomer's report by itself")[2])
    assert int(own[0].replace(",", "")) == pytest.approx(alone.half_width, rel=1e-3)
    assert f"{NEWCOMER:,}" in text


def test_two_visits_show_the_same_since_nothing_is_drawn(visit: Visit) -> None:
    assert visit(PATH).text == visit(PATH).text


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_the_best_guess_from_an_isolated_report_of_each_metric(
    visit: Visit, name: str
) -> None:
    text, metric = visit(PATH).text, ALL_TYPES.metric(name)
    row = text[text.index(f'/metric/{name}"') :].split("</tr>")[0]
    ours, server = re.findall(r"(\d+) in 100", row)
    least, most = (
        1 / (1 + exp(-amount)) for amount in (metric.mechanism.spent, epsilon_of(metric))
    )

    assert least <= int(ours) / 100 < most + 0.02
    assert int(server) == 100


def test_a_number_has_the_interval_of_a_report_and_its_range(visit: Visit) -> None:
    text = visit(PATH).text
    row = text[text.index('/metric/mean"') :].split("</tr>")[0]
    domain = ALL_TYPES.metric("mean").domain

    found = re.search(r"± ([\d,.]+) \S+, of a range of ([\d,]+)", row)
    assert found is not None
    assert float(found[2].replace(",", "")) == domain.extent
    assert float(found[1].replace(",", "")) > domain.extent / 2


def test_who_sees_part_of_the_metrics_sees_them_alone(browser: FlaskClient) -> None:
    browser.set_cookie("hearsay", token_of(ONE_METRIC))

    text = browser.get(PATH, headers=BROWSER).text

    assert f'/metric/{ONE_METRIC}"' in text
    assert not [name for name in NAMES if name != ONE_METRIC and f'/metric/{name}"' in text]


def test_without_a_token_the_page_asks_to_log_in(browser: FlaskClient) -> None:
    assert browser.get(PATH, headers=BROWSER).status_code in (302, 303)
