"""A simulated fleet is a real deployment: what its devices report is what its collector counts."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from client_sdk.core.epoch import DAY, HOUR
from client_sdk.core.errors import InvalidParameterError
from collector.core.errors import AnswerError
from collector.testing import Fleet, FleetDevice
from tests.support.device.device import metric_text

HEAD = 'schema = 1\napp = "demo"\n[segments]\nplatform = ["linux", "mac"]\n'


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A registry of a daily metric, a weekly one and one that adds up."""
    used = 'type = "boolean"\naggregate = "any"\notherwise = false'
    boolean = 'type = "boolean"\nsegments = ["platform"]\nmin_reports = 100'
    metrics = (
        metric_text("daily", boolean, epsilon="0.5"),
        metric_text("weekly", every="7d", epsilon="0.5"),
        metric_text("used", used, epsilon="0.5"),
    )
    file = tmp_path / "metrics.toml"
    file.write_text(HEAD + "".join(metrics), encoding="utf-8")
    return str(file)


def test_each_report_that_a_device_made_is_counted_once(path: str) -> None:
    """Law: the collector's n of each metric is the number of epochs that devices reported."""

    def behave(device: FleetDevice) -> None:
        for name in ("daily", "weekly", "used"):
            device.record(name, device.number % 3 == 0)

    with Fleet(path, devices=7, hours_on=9, days_on=5) as fleet:
        first = fleet.run(behave, weeks=1)
        counts = fleet.run(behave, weeks=1)
        n = {name: fleet.query(name, date_range="28d").meta["n"] for name in ("daily", "weekly")}
        fleet.run(lambda device: None, weeks=1)
        used = fleet.query("used", date_range="28d").meta["n"]

    assert first["recorded"] == 7 * (5 + 1 + 4)  # the fifth day adds up until the next begins
    assert counts["recorded"] == counts["uploaded"] == 7 * (10 + 2 + 9)
    assert n == {"daily": 70, "weekly": 14}
    assert used == 7 * 14  # of the third week's last day no device knows yet that it is over


def test_a_device_behaves_on_the_days_and_hours_that_it_runs(path: str) -> None:
    times: Counter[int] = Counter()

    def behave(device: FleetDevice) -> None:
        times[int(device.clock.now)] += 1

    with Fleet(path, devices=2, hours_on=3, days_on=2, begin=date(2026, 1, 5)) as fleet:
        fleet.run(behave, weeks=2, hourly=True)

    monday = 20_458 * DAY
    days = [monday + day * DAY for day in (0, 1, 7, 8)]
    assert times == dict.fromkeys([day + hour * HOUR for day in days for hour in (8, 9, 10)], 2)


def test_a_fleet_answers_by_segment_and_serves_its_pages(path: str) -> None:
    def segment(number: int) -> dict[str, str]:
        return {"platform": "mac" if number % 4 == 0 else "linux"}

    with Fleet(path, devices=60, segment=segment) as fleet:
        fleet.run(lambda device: device.record("daily", True), weeks=1)
        rows = fleet.query("daily", date_range="14d", dimensions=["platform"]).rows
        page = fleet.app.test_client().get("/livez")
        with pytest.raises(AnswerError, match="known are daily, weekly, used"):
            fleet.query("nonsense")

    assert {(row["dimensions"]["platform"], row["n"]) for row in rows} == {
        ("mac", 105),
        ("linux", 315),
    }
    assert page.status_code == 200


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"devices": 0}, "devices=0: must be at least 1"),
        ({"hours_on": 25}, "hours_on=25: must be from 1 to 24"),
        ({"days_on": 0}, "days_on=0: must be from 1 to 7"),
        ({"begin": date(2026, 1, 6)}, "begin=2026-01-06: must be a Monday"),
    ],
)
def test_a_fleet_that_cannot_be_is_refused_in_one_sentence(
    path: str, options: dict[str, int], says: str
) -> None:
    with pytest.raises(InvalidParameterError) as refused:
        Fleet(path, **{"devices": 1, **options})  # type: ignore[arg-type]

    assert str(refused.value) == says


def test_a_panel_that_includes_nothing_is_refused_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "metrics.toml"
    file.write_text(f'{HEAD}[panel]\nweek = "0.5"\n{metric_text("daily")}', encoding="utf-8")

    with pytest.raises(InvalidParameterError, match=r"panel\.week=.*must be at least 7, "):
        Fleet(str(file), devices=1)


def test_a_device_whose_clock_is_wrong_harms_no_answer(path: str) -> None:
    """Its reports are refused by the collector, and charged, as documented; the others count."""

    def behave(device: FleetDevice) -> None:
        if device.number == 0 and device.clock.now < 20_500 * DAY:
            device.clock.now += 400 * DAY
        device.record("daily", True)

    with Fleet(path, devices=3, begin=date(2026, 1, 5)) as fleet:
        counts = fleet.run(behave, weeks=1)

        assert fleet.query("daily", date_range="14d").meta["n"] == 14
    assert counts["rejected"] == 14
