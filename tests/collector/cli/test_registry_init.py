"""``hearsay registry init``: a registry that can be used as it is, and shows good practice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from client_sdk.privacy.budget import costs_together
from client_sdk.privacy.caps import Caps
from client_sdk.registry import Registry
from collector.analytics.verb import Slice, load
from collector.cli import main
from tests.support.crowds.asking import ask

OWNER = 'the "product" team, $1 München'


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["registry", *arguments])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that was written for an application."""
    path = tmp_path / "metrics.toml"
    result = run("init", "--app", "editor", "--owner", OWNER, "-o", str(path))
    assert result.exit_code == 0, result.output
    return path


def test_the_file_passes_the_strict_check_within_the_default_caps(path: Path) -> None:
    """Law: nothing to mend first, and a device with the SDK's own caps reports all of it."""
    checked = run("check", str(path), "--strict", "--expires-within", "365")
    registry = Registry.from_file(str(path))

    assert checked.exit_code == 0, checked.output
    assert costs_together(registry).week <= Caps().week
    assert {metric.owner for metric in registry} == {OWNER}
    assert registry.app == "editor"


@pytest.mark.parametrize(
    ("name", "every"), [("active_day", "1d"), ("active_week", "7d"), ("active_month", "28d")]
)
def test_actives_of_a_day_a_week_and_a_month_are_counted(path: Path, name: str, every: str) -> None:
    """Law: an epoch of each is an exact number, which needs the metric's own length."""
    metric = Registry.from_file(str(path)).metric(name)
    tally: Any = np.zeros(metric.mechanism.tally_size, dtype=np.int64)

    (row, *_) = ask("actives", [Slice(metric, {"time": "2026-11-02"}, 123, tally, (0,))]).rows

    assert metric.every == every
    assert (row.value, row.ci_low, row.ci_high) == (123, 123, 123)


def test_start_up_times_tell_quantiles(path: Path) -> None:
    """As their comment says."""
    metric = Registry.from_file(str(path)).metric("startup_ms")

    assert load("quantile").refusal(metric) is None


def test_no_file_is_written_over_and_no_wrong_name_written(path: Path, tmp_path: Path) -> None:
    """What is there may be in use."""
    before = path.read_text(encoding="utf-8")

    again = run("init", "--app", "other", "--owner", "x", "-o", str(path))
    wrong = run("init", "--app", "Two Words", "--owner", "x", "-o", str(tmp_path / "new.toml"))

    assert again.exit_code == 2
    assert "is there already" in again.output
    assert path.read_text(encoding="utf-8") == before
    assert wrong.exit_code == 1
    assert "must be a name of 1 to 64" in wrong.output
    assert not (tmp_path / "new.toml").exists()
