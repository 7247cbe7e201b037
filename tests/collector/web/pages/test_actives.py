"""The numbers of devices on top of the overview: as the API has them, or not there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient

from client_sdk.core.epoch import epoch_label, epoch_of
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.registry import Registry
from client_sdk.registry.metric import COUNT, Metric
from collector.cli import main
from collector.core.cells import Cell, segment_text
from collector.core.exclusions import Exclusion, to_json
from tests.support.crowds.asked import post
from tests.support.crowds.uploads import NOON
from tests.support.device.registries import BOOLEAN, SET, file_with
from tests.support.sites.in_memory import browser_of, in_memory
from tests.support.store.memory_storage import MemoryStorage

EPOCHS: Final = 4  # with reports, and the running one
ROWS: Final = {"Devices yesterday": "active_day", "Devices last week": "active_week",
               "Devices in four weeks": "active_month"}  # fmt: skip


def devices(metric: Metric, back: int) -> int:
    """Return how many devices report *back* epochs ago; in the running one few."""
    return {"1d": 9_000, "7d": 20_000, "28d": 40_000}[metric.every] - 130 * back if back else 700


def put(storage: MemoryStorage, metric: Metric, back: int, share: float = 0.1) -> None:
    """Store the devices of an epoch, of which *share* is new."""
    assert isinstance(metric.mechanism, GRR)
    n, channel = devices(metric, back), metric.mechanism.channel
    new = round(n * (share * float(channel.p) + (1 - share) * float(channel.q)))
    cell = Cell(metric.digest, epoch_of(metric.every, NOON) - back, segment_text(metric, {}))
    storage.put({cell: [(0, n), (1, new), (2, n - new)]})


@pytest.fixture(scope="module")
def text() -> str:
    """The registry that ``hearsay registry init`` writes."""
    made = CliRunner().invoke(main, ["registry", "init", "--app", "shop", "--owner", "us"])
    assert made.exit_code == 0, made.output
    return made.output


def counting(text: str) -> list[Metric]:
    return [metric for metric in Registry.from_text(text) if metric.show == COUNT]


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


def test_cards_say_what_operators_have_taken_out(
    tmp_path: Path, text: str, storage: MemoryStorage
) -> None:
    """Law: no report is left out of a total in silence, and none that was is called missing."""
    (daily,) = [metric for metric in counting(text) if metric.every == "1d"]
    for back in (0, 1, 2):
        put(storage, daily, back)
    site = site_of(tmp_path, storage, text)
    day = epoch_label("1d", epoch_of("1d", NOON) - 1)
    exclusion = Exclusion(
        id="5f0a91c2", by="key", name="badbadbadbad", first=day, last=day,
        author="ada", because="a test device", at=int(NOON),
    )  # fmt: skip
    before = cards(get(site))["Devices yesterday"]

    storage.excluded = {exclusion.id: to_json(exclusion)}

    after = cards(get(site))["Devices yesterday"]
    said = f"reports of key badbadbadbad of {day} are left out"
    assert said not in before
    assert said in after


def site_of(folder: Path, storage: MemoryStorage, *texts: str) -> FlaskClient:
    return browser_of(in_memory(folder, *texts, storage=storage))


def get(site: FlaskClient, address: str = "/") -> str:
    reply = site.get(address, headers={"Accept": "text/html"})
    assert reply.status_code == 200, reply.text
    return reply.text


def cards(page: str) -> dict[str, str]:
    """Return the words of each card by its title."""
    listed = page.partition('<ul class="tiles cards"')[2].partition("</ul>")[0]
    found = re.findall(r"<h2><a [^>]*>(.*?)</a></h2>(.*?)</li>", listed, re.DOTALL)
    return {title: " ".join(re.sub(r"<[^>]+>", " ", rest).split()) for title, rest in found}


def asked(site: FlaskClient, metric: str, verb: str, back: int, **more: Any) -> dict[str, Any]:
    """Return the first row of the API about the epoch that was *back* epochs ago."""
    every = {"active_day": "1d", "active_week": "7d", "active_month": "28d"}[metric]
    day = epoch_label(every, epoch_of(every, NOON) - back)
    reply = post(site, {"metrics": [metric], "verb": verb, "date_range": [day, day], **more})
    assert reply.status_code == 200, reply.text
    row: dict[str, Any] = reply.get_json()["rows"][0]
    return row


@pytest.fixture
def site(tmp_path: Path, text: str, storage: MemoryStorage) -> FlaskClient:
    for metric in counting(text):
        for back in range(EPOCHS):
            put(storage, metric, back)
    return site_of(tmp_path, storage, text)


def test_each_count_is_that_of_the_api_with_the_period_before_and_its_difference(
    site: FlaskClient,
) -> None:
    """Law: exact counts of whole periods; the running one is said to be in progress."""
    shown = cards(get(site))

    for title, metric in ROWS.items():
        running, whole, before = (
            int(asked(site, metric, "actives", back, dimensions=["time"])["value"])
            for back in range(3)
        )
        percent = f"{100 * (whole - before) / before:+.1f}"
        assert shown[title].startswith(f"{whole:,} ")
        assert re.search(rf"{whole - before:,} more \({re.escape(percent)} %\)", shown[title])
        assert f"before: {before:,} (" in shown[title]
        assert f"so far: {running:,}, in progress" in shown[title]


def test_new_devices_are_the_share_of_the_api_times_the_count_with_its_interval(
    site: FlaskClient,
) -> None:
    """Law: what is shown holds the interval of the share, and no difference that noise makes."""
    new = cards(get(site))["New devices"]

    row = asked(site, "active_week", "frequency", 1)
    count = asked(site, "active_week", "actives", 1, dimensions=["time"])["value"]
    match = re.match(r"([\d,]+) ± ([\d,]+)", new)
    assert match
    value, half = (int(digits.replace(",", "")) for digits in match.groups())
    assert value - half <= count * row["ci_low"] <= count * row["ci_high"] <= value + half
    assert 2 * half <= 1.5 * count * (row["ci_high"] - row["ci_low"])
    assert row["dimensions"]["item"] == "new"
    assert "no detectable change" in new
    assert re.search(r"before: [\d,]+ ± [\d,]+ \(16 to 22 Feb\)", new)


def test_more_new_devices_than_noise_are_shown_as_the_difference_of_the_api(
    tmp_path: Path, text: str, storage: MemoryStorage
) -> None:
    week = next(metric for metric in counting(text) if metric.every == "7d")
    put(storage, week, 2, share=0.1)
    put(storage, week, 1, share=0.6)
    site = site_of(tmp_path, storage, text)

    new = cards(get(site))["New devices"]

    more = {"against": "previous", "dimensions": ["time:period"], "options": {"item": "new"}}
    row = asked(site, "active_week", "compare", 1, **more)
    match = re.search(r"share \+([\d.]+) points ± ([\d.]+)", new)
    assert match
    assert float(match[1]) == pytest.approx(100 * row["value"], abs=1)
    assert float(match[2]) >= 50 * (row["ci_high"] - row["ci_low"])


def test_the_first_day_is_shown_as_running_and_not_compared(
    tmp_path: Path, text: str, storage: MemoryStorage
) -> None:
    """Law: the count of a period that has begun is never shown as that of a whole one."""
    day = next(metric for metric in counting(text) if metric.every == "1d")
    put(storage, day, 0)

    shown = cards(get(site_of(tmp_path, storage, text)))

    assert shown["Devices today"] == "700 in progress"
    assert "Devices yesterday" not in shown
    assert shown["Devices last week"] == "23 Feb to 1 Mar No reports yet."


def test_a_day_without_reports_after_days_with_some_is_said_to_be_a_fault(
    tmp_path: Path, text: str, storage: MemoryStorage
) -> None:
    day = next(metric for metric in counting(text) if metric.every == "1d")
    put(storage, day, 2)

    page = get(site_of(tmp_path, storage, text))

    assert '<p class="fault">No reports arrived in this period.</p>' in page
    assert cards(page)["Devices yesterday"].startswith("3 Mar No reports arrived")


def test_a_metric_that_does_not_count_devices_gives_no_card_but_the_lines_that_would(
    tmp_path: Path, storage: MemoryStorage
) -> None:
    """Law: reports are not called devices."""
    text = file_with({**BOOLEAN, "every": '"1d"'})
    put(storage, Registry.from_text(text).metric("m"), 1)

    page = get(site_of(tmp_path, storage, text))

    assert cards(page) == {}
    assert page.count("Not counted here") == 1
    for line in ("every = &#34;7d&#34;", "values = [&#34;new&#34;, &#34;returning&#34;]"):
        assert line in page
    told = re.sub(r"<details class=\"sure\">.*?</details>", "", page.partition("<main")[2])
    assert "devices" not in told.replace("of devices", "")  # of which a share is


def test_devices_of_several_apps_are_not_added_up(
    tmp_path: Path, text: str, storage: MemoryStorage
) -> None:
    """Law: a device may have both, so each app has numbers of its own."""
    other = re.sub(r"^app = .*$", 'app = { name = "other", separate = true }', text, flags=re.M)
    for metric in [*counting(text), *counting(other)]:
        put(storage, metric, 1)
    site = site_of(tmp_path, storage, text, other)

    assert cards(get(site)) == {}
    assert "Devices are counted in each app" in get(site)
    assert len(cards(get(site, "/apps/shop"))) == 4


def test_a_search_shows_what_was_searched_and_no_counts(site: FlaskClient) -> None:
    page = get(site, "/?search=daily")

    assert "Daily actives" in page
    assert cards(page) == {}


def test_new_devices_that_are_not_precise_enough_say_why(
    tmp_path: Path, text: str, storage: MemoryStorage
) -> None:
    """Law: where the API has no number, the card has none either, and the same reason."""
    needing = text.replace('title = "Weekly actives"', 'title = "Weekly actives"\nneed = 0.001')
    for metric in counting(needing):
        put(storage, metric, 1)
    site = site_of(tmp_path, storage, needing)

    new = cards(get(site))["New devices"]

    row = asked(site, "active_week", "frequency", 1)
    assert row["value"] is None
    assert new == f"23 Feb to 1 Mar {row['reason']['text']}"


def test_too_few_devices_for_a_share_are_progress(
    tmp_path: Path, text: str, storage: MemoryStorage
) -> None:
    week = next(metric for metric in counting(text) if metric.every == "7d")
    cell = Cell(week.digest, epoch_of("7d", NOON) - 1, segment_text(week, {}))
    storage.put({cell: [(0, 90), (1, 40), (2, 50)]})

    shown = cards(get(site_of(tmp_path, storage, text)))

    assert shown["New devices"] == f"23 Feb to 1 Mar 90 of {week.min_reports:,} reports"
    assert shown["Devices last week"].startswith("90 ")


@pytest.mark.parametrize("shown", ["set", "funnel"])
def test_a_value_of_another_type_that_is_called_new_is_no_new_device(
    tmp_path: Path, storage: MemoryStorage, shown: str
) -> None:
    steps = {"otherwise": '"none"', "aggregate": '"max"'} if shown == "funnel" else {}
    form = {**SET, **steps, "type": f'"{shown}"', "values": '["new", "paid"]', "show": '"count"'}
    text = file_with(form)
    metric = Registry.from_text(text).metric("m")
    cell = Cell(metric.digest, epoch_of("7d", NOON) - 1, segment_text(metric, {}))
    storage.put({cell: [(0, 900)]})

    assert list(cards(get(site_of(tmp_path, storage, text)))) == ["Devices last week"]
