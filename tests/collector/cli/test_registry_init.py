"""``hearsay registry init`` and ``lock``: what they write, keep and say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from client_sdk.privacy.budget import costs_together
from client_sdk.privacy.caps import Caps
from client_sdk.registry import Registry
from client_sdk.registry.lock import lock_text
from collector.analytics.verb import Slice, load
from collector.cli import main
from tests.support.crowds.asking import ask
from tests.support.device.registries import NUMBER, file_with, table

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


AUTO = file_with({**NUMBER, "type": '"duration"', "mechanism": '"auto"'})
BEFORE = file_with({**NUMBER, "type": '"duration"', "mechanism": '"hybrid"'})
SECOND = table("ui.wait", NUMBER, type='"duration"', mechanism='"auto"')


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.toml"
    path.write_text(AUTO, encoding="utf-8")
    return path


def test_check_advises_a_lock_until_there_is_one(registry: Path) -> None:
    """Advice is no warning: --strict passes."""
    before = run("check", str(registry), "--strict")
    locked = run("lock", str(registry))
    after = run("check", str(registry), "--strict")

    assert (before.exit_code, locked.exit_code, after.exit_code) == (0, 0, 0)
    assert "advice: there is no metrics.lock, so another release" in before.output
    assert "advice" not in after.output
    assert registry.with_suffix(".lock").read_text("utf-8") == lock_text(
        Registry.from_file(registry).metrics
    )


def test_a_registry_that_leaves_no_choice_needs_no_lock(registry: Path) -> None:
    registry.write_text(file_with(NUMBER, mechanism='"duchi"'), encoding="utf-8")

    assert "advice" not in run("check", str(registry)).output


def test_lines_that_fit_are_kept_and_all_others_are_chosen_anew(registry: Path) -> None:
    """Law: a new metric changes no old one; a line that is removed is chosen anew."""
    lock = registry.with_suffix(".lock")
    old = Registry.from_text(BEFORE)
    lock.write_text(lock_text(old.metrics), encoding="utf-8")
    registry.write_text(AUTO + SECOND, encoding="utf-8")
    stale = run("check", str(registry))

    done = run("lock", str(registry))

    assert stale.exit_code == 1
    assert "metrics.ui.wait: is not in metrics.lock" in stale.output
    assert done.output.startswith('ui.wait: mechanism = "minimax"')
    assert done.output.endswith("metrics.lock: 2 metrics, 1 chosen anew\n")
    read = Registry.from_file(registry)
    assert read.metric("m").digest == old.metric("m").digest
    assert read.metric("ui.wait").mechanism_name == "minimax"

    lock.write_text(lock.read_text("utf-8").replace("\nm = ", "\n# m = "), encoding="utf-8")
    again = run("lock", str(registry))

    assert "metrics.lock: 2 metrics, 1 chosen anew" in again.output
    assert Registry.from_file(registry).metric("m").mechanism_name == "minimax"


def test_a_metric_that_is_gone_is_removed_from_the_lock(registry: Path) -> None:
    registry.write_text(AUTO + SECOND, encoding="utf-8")
    run("lock", str(registry))
    registry.write_text(AUTO, encoding="utf-8")

    assert run("lock", str(registry)).output == (
        "ui.wait: removed\nmetrics.lock: 1 metric, 0 chosen anew\n"
    )


def test_a_lock_that_cannot_be_read_is_not_written_over(registry: Path) -> None:
    """What it kept would be lost with it."""
    registry.with_suffix(".lock").write_text("{", encoding="utf-8")

    done = run("lock", str(registry))

    assert done.exit_code == 1
    assert "metrics.lock: is not TOML" in done.output
    assert registry.with_suffix(".lock").read_text("utf-8") == "{"


def test_a_registry_that_init_writes_has_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    run("init", "--app", "a", "--owner", "o", "-o", str(path))

    assert path.with_suffix(".lock").exists()
    assert "0 chosen anew" in run("lock", str(path)).output


def test_a_compiled_registry_has_no_choices_to_lock(registry: Path) -> None:
    run("compile", str(registry), "-o", str(registry.with_suffix(".json")))

    assert "is compiled" in run("lock", str(registry.with_suffix(".json"))).output
    assert not registry.with_suffix(".lock").exists()


def test_a_panel_that_is_fitted_keeps_the_lock_of_its_registry(
    registry: Path, tmp_path: Path
) -> None:
    registry.with_suffix(".lock").write_text(
        lock_text(Registry.from_text(BEFORE).metrics), encoding="utf-8"
    )
    fitted = tmp_path / "fitted.toml"

    done = run("plan", str(registry), "--cap", "8", "-o", str(fitted))

    assert done.exit_code == 0, done.output
    assert Registry.from_file(fitted).metric("m").mechanism_name == "hybrid"


def test_both_languages_record_by_the_lock(registry: Path) -> None:
    registry.with_suffix(".lock").write_text(
        lock_text(Registry.from_text(BEFORE).metrics), encoding="utf-8"
    )
    digest = Registry.from_text(BEFORE).metric("m").digest.hex()

    for language in ("python", "typescript"):
        assert digest in run("codegen", str(registry), "--language", language).output
