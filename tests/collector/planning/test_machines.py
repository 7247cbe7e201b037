"""Machines that are off, before any data exist: which share of what is planned arrives."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from client_sdk.privacy.time_off import DAYS_ON, HOURS_ON
from client_sdk.registry import Registry
from client_sdk.storage import trusted_clock
from client_sdk.storage.store import Store
from client_sdk.testing import FrozenClock
from collector.cli import main
from collector.planning.machines import ALWAYS, Hours, arrival
from tests.support.device.device import metric_text

HEAD = 'schema = 1\napp = "demo"\n'
DAILY = "".join(metric_text(f"daily_{i}", epsilon="0.5") for i in range(2))


def command(*words: str) -> Result:
    """Return what ``hearsay registry`` prints."""
    return CliRunner().invoke(main, ["registry", *words])


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "metrics.toml"
    file.write_text(HEAD + DAILY, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("hours", [ALWAYS, Hours(16, 7), Hours(8, 5), Hours(3, 6), Hours(1, 1)])
def test_a_planned_machine_counts_the_days_that_a_ledger_counts(hours: Hours) -> None:
    """Law: hour by hour the trusted days of the device's own clock."""
    moments = list(hours.moments)
    clock, store, days = FrozenClock(moments[0][0]), Store(None), []
    ends = {end for _, end in hours.sessions(moments[0][0] // 86_400 * 86_400, 12)}
    for now, _, booted in moments:
        if booted and clock.now < now:
            if (end := min((e for e in ends if e > clock.now), default=now)) < now:
                clock.advance(seconds=end - clock.now)
                with store.transaction() as tx:
                    trusted_clock.advance(tx, clock.now, clock.uptime())
            clock.turn_off(seconds=now - clock.now)
        clock.advance(seconds=now - clock.now)
        with store.transaction() as tx:
            days.append(trusted_clock.advance(tx, clock.now, clock.uptime()))

    begin = days[0] - moments[0][1]
    assert [day - begin for day in days] == [today for _, today, _ in moments]


def test_the_hours_that_answers_name_make_a_whole_week() -> None:
    assert Hours(HOURS_ON, DAYS_ON).is_whole
    assert not Hours(HOURS_ON - 1, DAYS_ON).is_whole
    assert not Hours(HOURS_ON, DAYS_ON - 1).is_whole


def test_the_fewer_hours_a_machine_runs_the_less_arrives(path: str) -> None:
    registry = Registry.from_file(path)
    shares = [
        min(arrival(registry, Hours(hours, 7)).values(), default=1.0) for hours in range(1, 25)
    ]

    assert shares == sorted(shares)
    assert shares[0] < 0.3
    assert shares[5:] == [1.0] * 19


def test_a_check_and_a_plan_count_the_hours_that_machines_run(path: str) -> None:
    plain, whole, part = (
        command("check", path),
        command("check", path, "--hours-on", "8"),
        command("check", path, "--hours-on", "2", "--strict"),
    )
    plan = command("plan", path, "--cap", "7", "--hours-on", "2", "--days-on", "7")

    assert whole.output == plain.output
    assert "of the devices report" in part.output
    assert (
        "machines that run 2 hours a day on 5 days a week do not have their budget" in part.output
    )
    assert part.exit_code == 1
    assert (
        "machines that run 2 hours a day on 7 days a week do not have their budget" in plan.output
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["check", "--hours-on", "0"], "0 is not in the range 1<=x<=24"),
        (["check", "--hours-on", "25"], "25 is not in the range 1<=x<=24"),
        (["check", "--hours-on", "8", "--days-on", "8"], "8 is not in the range 1<=x<=7"),
        (["check", "--days-on", "3"], "--days-on goes with --hours-on"),
        (["plan", "--hours-on", "8"], "--devices, --output and --hours-on go with --cap"),
    ],
)
def test_hours_that_cannot_be_are_refused_in_one_sentence(
    path: str, words: list[str], says: str
) -> None:
    refused = command(*words, path)

    assert refused.exit_code == 2
    assert says in refused.output


def test_a_panel_that_includes_nothing_is_refused_in_one_sentence(path: str) -> None:
    Path(path).write_text(f'{HEAD}[panel]\nweek = "0.5"\n{DAILY}', encoding="utf-8")

    refused = command("check", path, "--hours-on", "8")

    assert refused.exit_code == 1
    assert refused.output.count("\n") == 1
    assert "panel.week" in refused.output
