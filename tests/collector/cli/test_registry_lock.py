"""``hearsay registry lock``: what it writes, keeps and says."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from client_sdk.registry import Registry
from client_sdk.registry.lock import lock_text
from collector.cli import main
from tests.support.device.registries import NUMBER, file_with, table

AUTO = file_with({**NUMBER, "type": '"duration"', "mechanism": '"auto"'})
BEFORE = file_with({**NUMBER, "type": '"duration"', "mechanism": '"hybrid"'})
SECOND = table("ui.wait", NUMBER, type='"duration"', mechanism='"auto"')


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["registry", *arguments])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.toml"
    path.write_text(AUTO, encoding="utf-8")
    return path


def test_check_advises_a_lock_until_there_is_one(path: Path) -> None:
    """Advice is no warning: --strict passes."""
    before = run("check", str(path), "--strict")
    locked = run("lock", str(path))
    after = run("check", str(path), "--strict")

    assert (before.exit_code, locked.exit_code, after.exit_code) == (0, 0, 0)
    assert "advice: there is no metrics.lock, so another release" in before.output
    assert "advice" not in after.output
    assert path.with_suffix(".lock").read_text("utf-8") == lock_text(
        Registry.from_file(path).metrics
    )


def test_a_registry_that_leaves_no_choice_needs_no_lock(path: Path) -> None:
    path.write_text(file_with(NUMBER, mechanism='"duchi"'), encoding="utf-8")

    assert "advice" not in run("check", str(path)).output


def test_lines_that_fit_are_kept_and_all_others_are_chosen_anew(path: Path) -> None:
    """Law: a new metric changes no old one; a line that is removed is chosen anew."""
    lock = path.with_suffix(".lock")
    old = Registry.from_text(BEFORE)
    lock.write_text(lock_text(old.metrics), encoding="utf-8")
    path.write_text(AUTO + SECOND, encoding="utf-8")
    stale = run("check", str(path))

    done = run("lock", str(path))

    assert stale.exit_code == 1
    assert "metrics.ui.wait: is not in metrics.lock" in stale.output
    assert done.output.startswith('ui.wait: mechanism = "minimax"')
    assert done.output.endswith("metrics.lock: 2 metrics, 1 chosen anew\n")
    read = Registry.from_file(path)
    assert read.metric("m").digest == old.metric("m").digest
    assert read.metric("ui.wait").mechanism_name == "minimax"

    lock.write_text(lock.read_text("utf-8").replace("\nm = ", "\n# m = "), encoding="utf-8")
    again = run("lock", str(path))

    assert "metrics.lock: 2 metrics, 1 chosen anew" in again.output
    assert Registry.from_file(path).metric("m").mechanism_name == "minimax"


def test_a_metric_that_is_gone_is_removed_from_the_lock(path: Path) -> None:
    path.write_text(AUTO + SECOND, encoding="utf-8")
    run("lock", str(path))
    path.write_text(AUTO, encoding="utf-8")

    assert run("lock", str(path)).output == (
        "ui.wait: removed\nmetrics.lock: 1 metric, 0 chosen anew\n"
    )


def test_a_lock_that_cannot_be_read_is_not_written_over(path: Path) -> None:
    """What it kept would be lost with it."""
    path.with_suffix(".lock").write_text("{", encoding="utf-8")

    done = run("lock", str(path))

    assert done.exit_code == 1
    assert "metrics.lock: is not TOML" in done.output
    assert path.with_suffix(".lock").read_text("utf-8") == "{"


def test_a_registry_that_init_writes_has_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    run("init", "--app", "a", "--owner", "o", "-o", str(path))

    assert path.with_suffix(".lock").exists()
    assert "0 chosen anew" in run("lock", str(path)).output


def test_a_compiled_registry_has_no_choices_to_lock(path: Path) -> None:
    run("compile", str(path), "-o", str(path.with_suffix(".json")))

    assert "is compiled" in run("lock", str(path.with_suffix(".json"))).output
    assert not path.with_suffix(".lock").exists()


def test_a_panel_that_is_fitted_keeps_the_lock_of_its_registry(path: Path, tmp_path: Path) -> None:
    path.with_suffix(".lock").write_text(
        lock_text(Registry.from_text(BEFORE).metrics), encoding="utf-8"
    )
    fitted = tmp_path / "fitted.toml"

    done = run("plan", str(path), "--cap", "8", "-o", str(fitted))

    assert done.exit_code == 0, done.output
    assert Registry.from_file(fitted).metric("m").mechanism_name == "hybrid"


def test_both_languages_record_by_the_lock(path: Path) -> None:
    path.with_suffix(".lock").write_text(
        lock_text(Registry.from_text(BEFORE).metrics), encoding="utf-8"
    )
    digest = Registry.from_text(BEFORE).metric("m").digest.hex()

    for language in ("python", "typescript"):
        assert digest in run("codegen", str(path), "--language", language).output
