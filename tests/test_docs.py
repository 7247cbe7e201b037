"""The README tells the truth: its snippets run, its tables are what the commands print."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks.tables.epsilon_table import table
from collector.cli import main
from tests.support.site import Site, running_site

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
KEY, TOKEN = "a-write-key-of-your-own", "a-read-token-of-your-own"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    registry = ROOT / "examples" / "metrics.toml"
    with running_site(tmp_path_factory.mktemp("site"), registry, KEY, TOKEN) as running:
        yield running


def commands_with_output(marker: str) -> tuple[str, str]:
    """Return the console command of the README that contains *marker*, and the output below it."""
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL):
        command, _, output = block.partition("\n")
        if marker in command:
            return command.removeprefix("$ "), output.strip()
    raise AssertionError(f"no console block with {marker}")


def run(command: str, site: Site) -> str:
    here = command.replace("http://127.0.0.1:8000", site.url)
    done = subprocess.run(  # the README's own line, as a shell reads it
        ["sh", "-c", here], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return done.stdout.strip()


def test_the_registry_check_of_the_readme_prints_what_the_readme_shows() -> None:
    command, shown = commands_with_output("registry check")
    words = command.replace("hearsay", f"{sys.executable} -m collector", 1)

    printed = subprocess.run(words.split(), capture_output=True, text=True, cwd=ROOT, check=True)

    assert printed.stdout.strip() == shown


def test_the_python_snippet_of_the_readme_reports_to_a_collector(
    site: Site, tmp_path: Path
) -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    here = (
        snippet.replace("http://127.0.0.1:8000", site.url)
        .replace("examples/metrics.toml", str(ROOT / "examples" / "metrics.toml"))
        .replace("my-app-data", str(tmp_path / "data"))
    )
    before = site.reports("theme")

    subprocess.run([sys.executable, "-c", here], check=True, cwd=tmp_path, timeout=60)

    assert site.wait_for_reports("theme", before + 1) == before + 1


def test_the_report_and_the_question_of_the_readme_print_what_the_readme_shows(
    site: Site,
) -> None:
    """A window ends today, so its dates are not compared."""
    ingest, accepted = commands_with_output("/v1/reports")
    query, shown = commands_with_output("hearsay query")

    first = json.loads(run(ingest, site))
    again = json.loads(run(ingest, site))
    site.wait_for_reports("uses_plugins", 1)
    asked = CliRunner().invoke(
        main,
        query.split()[1:],
        env={"HEARSAY_URL": site.url, "HEARSAY_READ_TOKEN": TOKEN},
    )

    assert first == json.loads(accepted)
    assert again == {**json.loads(accepted), "duplicate": True}
    assert asked.exit_code == 0, asked.output
    assert undated(asked.output) == undated(shown)


def undated(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d", "<date>", text).strip()


def test_the_table_of_epsilon_is_what_its_command_prints() -> None:
    assert table() in README


def test_every_command_is_in_the_docs_and_has_help() -> None:
    docs = README + "".join(p.read_text(encoding="utf-8") for p in (ROOT / "docs").rglob("*.md"))

    for path, command in walk(main, "hearsay"):
        assert command.help, path
        assert path in docs, path


def walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from walk(child, f"{path} {name}")
    else:
        yield path, command


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README)

    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
