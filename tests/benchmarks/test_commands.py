"""``python -m benchmarks``: what it lists, runs and refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import ROOMS, listing, main, rooms, summary
from benchmarks.lib.page import PAGES, README, ROOT, mark, part, write

FOLDER = ROOT / "benchmarks"


def test_every_benchmark_has_a_name_of_its_own_in_one_of_the_rooms() -> None:
    files = [path for room in ROOMS for path in (FOLDER / room).glob("[!_]*.py")]

    assert len(rooms()) == len(files) >= 25
    assert {path.name for path in FOLDER.iterdir() if (path / "__init__.py").is_file()} == {
        *ROOMS,
        "lib",
    }


@pytest.mark.parametrize("name", rooms())
def test_a_benchmark_says_what_it_measures_and_has_a_main(name: str) -> None:
    source = (FOLDER / rooms()[name] / f"{name}.py").read_text("utf-8")

    assert "\ndef main() -> None:\n" in source
    assert f"  {name:16} {summary(name)}\n" in listing()
    assert len(summary(name)) > 20


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_nothing_runs_without_a_name(words: list[str]) -> None:
    command = [sys.executable, "-m", "benchmarks", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)

    assert done.stdout == listing() + "\n"
    assert done.stderr == ""


def test_a_wrong_name_is_answered_with_those_that_exist() -> None:
    with pytest.raises(SystemExit) as refused:
        main(["exactness", "speeed"])

    text = str(refused.value)
    assert text.startswith("benchmarks=speeed: known are ")
    assert set(text.partition("known are ")[2].split(", ")) == set(rooms())


def test_a_wrong_flag_is_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="option=--wirte: known are --write and --help"):
        main(["exactness", "--wirte"])

    assert capsys.readouterr().out == ""


def test_a_named_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    main(["epsilon_table"])

    shown = capsys.readouterr().out
    assert shown.startswith("## epsilon_table\n\n|")
    assert shown.removeprefix("## epsilon_table\n\n").strip() in README.read_text("utf-8")


def test_every_command_of_a_page_names_a_benchmark() -> None:
    pages = [README, *PAGES.rglob("*.md")]
    prefix = "python -m benchmarks "
    named = {
        rest.split("`")[0].split()[0]
        for page in pages
        for rest in page.read_text("utf-8").split(prefix)[1:]
    }

    assert named <= set(rooms())
    assert len(named) > 15


def test_a_part_is_written_between_its_marks_only(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{mark('a')}\nold\n{mark('a')}\nafter\n", "utf-8")

    write(page, a="new")

    assert page.read_text("utf-8") == f"before\n{mark('a')}\nnew\n{mark('a')}\nafter\n"
    assert part(page, "a") == "\nnew\n"


def test_a_page_without_the_marks_is_refused_and_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n", "utf-8")

    with pytest.raises(ValueError, match=r"page=page\.md: must have <!-- a --> twice"):
        write(page, a="new")

    assert page.read_text("utf-8") == "before\n"
