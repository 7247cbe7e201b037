"""docs/guide/embed.md: its code runs in the order of the page, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.site import Site, running_site

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "guide" / "embed.md").read_text(encoding="utf-8")
KEY, TOKEN = "a-write-key-of-your-own", "a-read-token-of-your-own"
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
ASK = "\nprint(create_app().test_client().get('/').text)"
RUN = {"toml", "console", "python"}  # sh blocks install, and start servers
ENVIRONMENT = {
    **{n: t for n, t in os.environ.items() if n not in ("DO_NOT_TRACK", "HEARSAY_TELEMETRY")},
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # faster, and not what the page is about
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder with the registry of the page."""
    ((_, registry),) = [block for block in BLOCKS if block[0] == "toml"]
    (tmp_path / "metrics.toml").write_text(registry, encoding="utf-8")
    return tmp_path


@pytest.fixture
def site(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    store = tmp_path_factory.mktemp("store")
    with running_site(store, folder / "metrics.toml", KEY, TOKEN) as running:
        yield running


def command_of(language: str, text: str) -> tuple[list[str], str]:
    """Return how to run a block, and the output that stands below it."""
    if language == "python" and "test_app.py" in text:
        return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_app.py"], ""
    if language == "python":
        return [sys.executable, "-c", text + ASK * ("create_app" in text)], ""
    line, _, output = text.removeprefix("$ ").partition("\n")
    line = re.sub(r"^hearsay ", f"{sys.executable} -m collector ", line)
    return ["sh", "-c", re.sub(r"^python ", f"{sys.executable} ", line)], output


def test_every_block_runs_in_the_order_of_the_page_and_prints_what_it_shows(
    folder: Path, site: Site
) -> None:
    """One reader, who copies block after block, gets to the end; a report arrives."""
    printed: dict[str, str] = {}
    for language, text in BLOCKS:
        if language not in RUN - {"toml"}:
            continue
        if "test_app.py" in text:
            (folder / "test_app.py").write_text(text, encoding="utf-8")
        command, shown = command_of(language, text.replace("http://127.0.0.1:8000", site.url))
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=folder, env=ENVIRONMENT, timeout=60
        )
        printed[text] = done.stdout
        assert (done.returncode, text) == (0, text), done.stdout + done.stderr
        assert shown in ("", done.stdout)
        if "client.flush()" in text:
            site.wait_until_folded()

    assert "1 report is with the collector\n" in printed.values()
    assert any('"n":1,' in output for output in printed.values())
    assert any("2 passed" in output for output in printed.values())
    assert "Welcome.\n" in printed.values()


def test_no_block_of_the_page_is_of_an_unknown_kind() -> None:
    """A block that no test looks at would grow wrong unseen."""
    assert {language for language, _ in BLOCKS} == RUN | {"sh"}


def test_every_link_of_the_page_leads_to_a_file() -> None:
    """Examples and other pages are where it says."""
    links = re.findall(r"\]\((?!http)([^)#]+)\)", PAGE)

    assert links
    assert [link for link in links if not (DOCS / "guide" / link).exists()] == []
