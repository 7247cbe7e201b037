"""The examples run as their first lines say, and report to a real collector."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from client_sdk.registry import Registry
from tests.support.patience import PATIENCE, wait_for
from tests.support.sites.site import Site, running_site
from tests.support.store.cluster import free_port
from tests.support.store.processes import until_ended
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

EXAMPLES = Path(__file__).parents[2] / "examples"
EDITOR, WIKI = EXAMPLES / "metrics.toml", EXAMPLES / "web_metrics.toml"
KEY, TOKEN = "a-write-key-of-your-own", "a-read-token-of-your-own"
UNDECIDED = {n: t for n, t in os.environ.items() if n not in ("DO_NOT_TRACK", "HEARSAY_TELEMETRY")}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    both = Path(os.pathsep.join((str(EDITOR), str(WIKI))))
    with running_site(tmp_path_factory.mktemp("site"), both, KEY, TOKEN) as running:
        yield running


def start_editor(site: Site, folder: Path, answer: str, **changes: str) -> str:
    """Run the editor once, answering its question, and return what it prints."""
    program = str(EXAMPLES / "desktop_app.py")
    options = [f"--endpoint={site.url}", f"--write-key={KEY}", f"--data-dir={folder}"]
    done = subprocess.run(
        [sys.executable, program, *options, "--theme=dark", "--send-now"],
        input=answer, env={**UNDECIDED, **changes}, text=True,
        capture_output=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    return done.stdout


def total(site: Site, registry: Path) -> int:
    return sum(site.reports(metric.name) for metric in Registry.from_file(registry))


def test_the_editor_reports_after_a_yes_and_only_once_a_week(site: Site, tmp_path: Path) -> None:
    """The question comes once; the second start finds its reports made, but for today's saves."""
    before = total(site, EDITOR)

    first = start_editor(site, tmp_path, "y\n")
    second = start_editor(site, tmp_path, "")

    assert "May this editor report" in first
    assert "{'recorded': 3, 'aggregated': 2, 'window_opened': 1, 'uploaded': 3}" in first
    assert second == "{'aggregated': 2, 'already_reported': 3}\n"
    site.wait_until_folded()
    assert total(site, EDITOR) == before + 3


@pytest.mark.parametrize(
    ("answer", "changes", "counted"),
    [("n\n", {}, "{'consent': 5}"), ("y\n", {"DO_NOT_TRACK": "1"}, "{'opted_out': 5}")],
)
def test_the_editor_reports_nothing_after_a_no(
    answer: str, changes: dict[str, str], counted: str, site: Site, tmp_path: Path
) -> None:
    """Neither the user's no nor that of the environment leaves a database behind."""
    before = total(site, EDITOR)

    assert start_editor(site, tmp_path, answer, **changes).endswith(f"{counted}\n")
    assert not list(tmp_path.glob("telemetry/*.sqlite3"))
    site.wait_until_folded()
    assert total(site, EDITOR) == before


@contextmanager
def running_wiki(environment: dict[str, str]) -> Iterator[str]:
    """Serve the wiki by Flask's own server until the block ends; yield its URL."""
    port = free_port()
    command = [*flask(), "run", f"--port={port}"]
    server = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    with until_ended(server, signal.SIGINT):
        yield f"http://127.0.0.1:{port}"


def flask() -> list[str]:
    return [sys.executable, "-m", "flask", f"--app={EXAMPLES / 'web_app.py'}"]


def page(url: str) -> str:
    """Return the page at *url*, waiting for its server to start."""
    return wait_for(
        lambda: requests.get(url, timeout=PATIENCE).text, despite=(requests.ConnectionError,)
    )


def test_the_wiki_reports_once_however_often_it_is_visited(site: Site, tmp_path: Path) -> None:
    """What a server recorded is on the disk when it ends, and another process sends it."""
    environment = {
        **UNDECIDED,
        "WIKI_COLLECTOR": site.url,
        "WIKI_WRITE_KEY": KEY,
        "WIKI_TELEMETRY": "granted",
        "WIKI_DATA": str(tmp_path),
    }

    with running_wiki(environment) as url:
        assert [page(f"{url}/home") for _ in range(3)] == ["Welcome."] * 3
    sent = subprocess.run(
        [*flask(), "send-telemetry"], env=environment, capture_output=True, text=True, check=True
    )

    assert sent.stdout == "{'uploaded': 3}\n"
    site.wait_until_folded()
    assert total(site, WIKI) == 3
