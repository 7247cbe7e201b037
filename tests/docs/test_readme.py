"""The README: its snippets run, its tables are what the commands print."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.lib.page import part
from benchmarks.tables.epsilon_table import table
from benchmarks.tables.operate_pages import parts
from collector.cli import main
from tests.docs.pages import ROOT, blocks, commands, text_of
from tests.support.curl import needs_curl
from tests.support.device.device import rows
from tests.support.device.programs import wait_for_notes
from tests.support.patience import PATIENCE
from tests.support.sites.site import Site, running_site

KEY, TOKEN = "a-write-key-of-your-own", "a-read-token-of-your-own"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    registry = ROOT / "examples" / "metrics.toml"
    with running_site(tmp_path_factory.mktemp("site"), registry, KEY, TOKEN) as running:
        yield running


def run(command: str, site: Site) -> str:
    here = command.replace("http://127.0.0.1:8000", site.url)
    done = subprocess.run(  # the README's own line, as a shell reads it
        ["sh", "-c", here], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return done.stdout.strip()


def snippet(number: int, site: Site) -> str:
    """Return a Python block of the README, for this *site*."""
    _, text = blocks("README.md", "python")[number]
    here = text.replace("http://127.0.0.1:8000", site.url)
    return here.replace("examples/metrics.toml", str(ROOT / "examples" / "metrics.toml"))


def test_the_first_snippet_of_the_readme_reports_to_a_collector(site: Site, tmp_path: Path) -> None:
    here = snippet(0, site).replace("my-app-data", str(tmp_path / "data"))
    before = site.reports("theme")

    subprocess.run([sys.executable, "-c", here], check=True, cwd=tmp_path, timeout=PATIENCE)

    assert site.wait_for_reports("theme", before + 1) == before + 1


def test_the_second_snippet_of_the_readme_is_a_program_of_five_lines(
    site: Site, tmp_path: Path
) -> None:
    """It ends at once, and its child keeps the report for a pass some hours later."""
    program = snippet(1, site)

    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path, timeout=PATIENCE)

    assert sum(bool(line) for line in program.splitlines()) == 5
    wait_for_notes(tmp_path, data="my-cli-data")
    assert rows(tmp_path / "my-cli-data", "SELECT count(*) FROM reports") == [(1,)]


@needs_curl
def test_the_report_and_the_question_of_the_readme_print_what_the_readme_shows(
    site: Site,
) -> None:
    """A window ends today, so its dates are not compared."""
    (_, (ingest, accepted), (query, shown)) = commands("README.md")

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
    assert table() in text_of("README.md")


def test_the_lists_of_the_pages_for_operators_are_what_their_command_prints() -> None:
    """Law: so every command, option, setting and metric is in them."""
    for page, texts in parts():
        for name, text in texts.items():
            assert part(page, name).strip() == text, "python -m benchmarks operate_pages --write"
