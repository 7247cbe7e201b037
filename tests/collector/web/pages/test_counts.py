"""A metric whose answer is how many devices reported shows that number wherever it is asked."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient

from client_sdk.core.epoch import epoch_of
from client_sdk.core.errors import RegistryError
from client_sdk.registry import Registry
from client_sdk.registry.metric import COUNT, Metric
from collector.analytics.rows import GOOD, Row
from collector.cli import main
from collector.core.catalog import Catalog
from collector.rendering.numbers import change_of
from collector.storage.records import WatchState
from collector.workspace.watch.report import report
from tests.support.crowds.asked import post, store
from tests.support.crowds.uploads import NOON
from tests.support.device.registries import BOOLEAN, file_with
from tests.support.sites.in_memory import browser_of, in_memory
from tests.support.sites.page import Page
from tests.support.store.memory_storage import MemoryStorage

FORM: Final = {**BOOLEAN, "show": f'"{COUNT}"'}
EPOCHS: Final = 70  # of days with reports, and of weeks and months as many as begin in them
PLATFORMS: Final = {"linux": 0.25, "macos": 0.75}


def devices(every: str, epoch: int) -> int:
    """Return how many devices reported in an epoch; in the running one fewer."""
    behind = epoch_of(every, NOON) - epoch
    return 400 if behind == 0 else 2_400 - 20 * behind


@pytest.fixture(scope="module")
def text() -> str:
    """The registry that ``hearsay registry init`` writes."""
    made = CliRunner().invoke(main, ["registry", "init", "--app", "shop", "--owner", "us"])
    assert made.exit_code == 0, made.output
    return made.output


@pytest.fixture(scope="module")
def storage(text: str) -> MemoryStorage:
    storage = MemoryStorage()
    for metric in Registry.from_text(text):
        if metric.show == COUNT:
            now = epoch_of(metric.every, NOON)
            for epoch in range(now - EPOCHS, now + 1):
                for platform, part in PLATFORMS.items():
                    n = round(devices(metric.every, epoch) * part)
                    store(storage, metric, epoch, n, platform=platform)
    return storage


@pytest.fixture(scope="module")
def site(
    text: str, storage: MemoryStorage, tmp_path_factory: pytest.TempPathFactory
) -> FlaskClient:
    return browser_of(in_memory(tmp_path_factory.mktemp("counts"), text, storage=storage))


def shown(site: FlaskClient, address: str) -> str:
    """Return what the page at *address* says, in one line."""
    reply = site.get(address, headers={"Accept": "text/html"})
    assert reply.status_code == 200, reply.text
    return re.sub(r"\s+", " ", Page(reply.text).text)


def asked(site: FlaskClient, metric: str, **fields: Any) -> list[dict[str, Any]]:
    reply = post(site, {"metrics": [metric], **fields})
    assert reply.status_code == 200, reply.text
    rows: list[dict[str, Any]] = reply.get_json()["rows"]
    return rows


@pytest.mark.parametrize(
    ("title", "when", "before"),
    [
        ("Daily actives", "on 2026-03-03", "on 2026-03-02"),
        ("Weekly actives", "in the week of 2026-02-23", "in the week of 2026-02-16"),
        (
            "Monthly actives",
            "in the four weeks from 2026-01-12",
            "in the four weeks from 2025-12-15",
        ),
    ],
)
def test_a_tile_shows_the_devices_of_the_last_whole_period(
    site: FlaskClient, title: str, when: str, before: str
) -> None:
    """Law: a number of devices with the one before it, and no share of those that say yes."""
    text = shown(site, "/")

    assert f"{title} 2,380 devices {when} {before} 2,360 devices" in text
    assert "% " not in text[text.index(title) :].split("reports")[0]
    assert " yes " not in text


def test_the_own_question_is_how_many_reported_in_each_period_and_on_average(
    site: FlaskClient,
) -> None:
    """Law: exact in each, exact on average of those that are over, and no bound where both are."""
    rows = asked(site, "active_day", date_range=["2026-02-24", "2026-03-04"])
    *days, whole = rows

    assert [row["value"] for row in days] == [2_240 + 20 * day for day in range(8)] + [400]
    assert [row["is_open"] for row in days] == [False] * 8 + [True]
    assert (whole["value"], whole["ci_low"], whole["ci_high"]) == (2_310, 2_310, 2_310)
    assert whole["notes"][0]["text"].startswith("average of 8 periods")
    assert {row["unit"] for row in rows} == {"devices"}


@pytest.mark.parametrize(
    ("metric", "words", "days"),
    [
        ("active_day", "day", ["2026-03-03", "2026-03-04"]),
        ("active_week", "7d", ["2026-02-23", "2026-03-02"]),
        ("active_month", "month", ["2026-01-12", "2026-02-09"]),
    ],
)
def test_a_short_range_holds_a_whole_period_beside_the_running_one(
    site: FlaskClient, metric: str, words: str, days: list[str]
) -> None:
    """Law: the count of a period that has begun is no answer to how many there are."""
    *each, whole = asked(site, metric, date_range=words)

    assert [row["dimensions"]["time"] for row in each] == days
    assert [row["is_open"] for row in each] == [False, True]
    assert whole["value"] == each[0]["value"] == 2_380


def test_the_share_stays_to_be_had_by_its_verb(site: FlaskClient) -> None:
    rows = asked(site, "active_day", verb="frequency")

    assert {row["unit"] for row in rows} == {"share"}


@pytest.mark.parametrize(
    ("metric", "address", "said"),
    [
        ("active_day", "&range=7d", "A day on average from 25 Feb to 3 Mar: 2,320 devices against"
                                    " 2,180: 140 more (+6.4 %), exact"),
        ("active_week", "&range=7d", "In the week of 2026-02-23: 2,380 devices against 2,360: 20"
                                     " more (+0.8 %), exact"),
        ("active_month", "&range=28d", "In the four weeks from 2026-01-12: 2,380 devices against"
                                       " 2,360: 20 more (+0.8 %), exact"),
    ],
)  # fmt: skip
def test_a_comparison_says_how_many_more_devices_there_were(
    site: FlaskClient, metric: str, address: str, said: str
) -> None:
    """Law: of equal stretches of whole periods, and called exact."""
    text = shown(site, f"/compare?metric={metric}{address}")

    assert said in text
    assert "between" not in text.partition("Compare one number")[2].partition("segments")[2]


def test_a_typed_comparison_of_counts_is_answered_once(site: FlaskClient) -> None:
    text = shown(site, "/ask?find=active+day+devices+reported+this+week+vs+last")

    said = "A day on average from 25 Feb to 3 Mar: 2,320 devices against 2,180: 140 more"
    assert text.count(said) == 1


@pytest.mark.parametrize(
    ("now", "before", "said"),
    [
        (3438.143, 3432.119, "6 more (+0.2 %)"),
        (12.5, 12.25, "0.25 more (+2.0 %)"),
        (3432.4, 3432.1, "no change"),
        (2_380, 2_360, "20 more (+0.8 %)"),
    ],
)
def test_a_difference_of_averages_has_the_digits_that_they_are_read_with(
    now: float, before: float, said: str
) -> None:
    rows = [Row({}, value, value, value, 0.0, 1, 0.05, GOOD) for value in (now, before)]

    assert change_of(*rows) == said


def test_the_page_of_a_metric_begins_with_its_count_and_has_no_share_of_yes(
    site: FlaskClient,
) -> None:
    day, week = shown(site, "/metric/active_day?range=7d"), shown(site, "/metric/active_week")

    assert "On 2026-03-03: 2,380 devices against 2,360: 20 more (+0.8 %), exact." in day
    assert "Devices that reported, by platform" in day
    assert "Share of devices" not in day
    assert "Experiment" not in day
    assert "Over time" in week  # which part is new
    assert "Over time" not in day


def test_the_report_of_a_week_says_how_many_devices_there_were(
    text: str, storage: MemoryStorage
) -> None:
    """Law: of the week that ended, against its own period before."""
    week = report(Catalog([Registry.from_text(text)]), storage, WatchState(), NOON)

    assert "Weekly actives: 2,380 devices against 2,360: 20 more (+0.8 %), exact" in week.text
    assert "true" not in week.text.partition("Crashed")[0]


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"show": '"share"'}, "must be count"),
        ({"every": '"once"'}, "metrics.m.show: must not be once"),
    ],
)
def test_what_cannot_be_counted_is_not_shown_as_a_count(fields: dict[str, str], rule: str) -> None:
    with pytest.raises(RegistryError, match=rule):
        Registry.from_text(file_with({**FORM, **fields}))


@pytest.mark.parametrize(("panel", "is_good"), [("", False), ("panel = false", True)])
def test_a_sample_of_devices_is_no_count_of_them(panel: str, is_good: bool) -> None:
    """Law: as the verb refuses it, so does the registry, beforehand."""
    text = file_with({**FORM, **({"panel": "false"} if panel else {})})
    text = text.replace("[metrics", '[panel]\nweek = "8"\n[metrics', 1)

    if is_good:
        assert isinstance(Registry.from_text(text).metric("m"), Metric)
        return
    with pytest.raises(RegistryError, match=r"show: must not be .* panel"):
        Registry.from_text(text)


def test_what_is_shown_changes_no_report() -> None:
    """Law: digests stay, so a registry may begin to show a count at any time."""
    shown, plain = (Registry.from_text(file_with(form)).metric("m") for form in (FORM, BOOLEAN))

    assert shown.digest == plain.digest
