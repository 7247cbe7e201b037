"""docs/guide: the code of embed.md runs in its order, in an empty folder; so does gateway.md's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from client_sdk.core.epoch import HOUR
from client_sdk.core.limits import (
    MAX_GATEWAY_BODY,
    MAX_GATEWAY_PENDING,
    MAX_GATEWAY_REPORTS,
    MAX_GATEWAY_SIZE,
    MAX_REPORT_AGE,
)
from client_sdk.gateway import GROUP
from client_sdk.upload.schedule import UPLOAD_EVERY
from tests.docs.pages import ROOT, blocks, flowing, only
from tests.support.patience import PATIENCE
from tests.support.sites.site import Site, running_site

KEY, TOKEN = "a-write-key-of-your-own", "a-read-token-of-your-own"
BLOCKS = blocks("docs/guide/embed.md")
GATEWAY = "docs/guide/gateway.md"
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
            command, capture_output=True, text=True, cwd=folder, env=ENVIRONMENT, timeout=PATIENCE
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


def test_the_snippet_of_the_gateway_sends_nothing_before_it_is_time(
    tmp_path: Path,
) -> None:
    """Law: as it stands on the page, beside a registry called metrics.toml."""
    snippet = only(GATEWAY, "python")
    shutil.copy(ROOT / "examples" / "gateway_metrics.toml", tmp_path / "metrics.toml")
    undecided = {n: t for n, t in os.environ.items() if n != "DO_NOT_TRACK"}

    done = subprocess.run(
        [sys.executable, "-c", f"{snippet}print(gateway.stats())"],
        env={**undecided, "PYTHONPATH": str(ROOT)}, cwd=tmp_path,
        capture_output=True, text=True, timeout=PATIENCE, check=True,
    )  # fmt: skip

    assert "'recorded': 3" in done.stdout
    assert "'network': 0" in done.stdout


def test_the_limits_on_the_page_of_the_gateway_are_those_of_the_code() -> None:
    """Law: whoever changes a limit finds it here."""
    for said in (
        f"{GROUP:,} reports in one transaction",
        "every two to six hours",
        f"up to {MAX_GATEWAY_BODY >> 20} MiB and {MAX_GATEWAY_REPORTS:,} reports",
        f"{MAX_GATEWAY_PENDING:,}, or {MAX_GATEWAY_SIZE >> 20} MiB of payloads",
        f"| {MAX_REPORT_AGE} days; older",
    ):
        assert said in flowing(GATEWAY)
    assert (UPLOAD_EVERY / 2, UPLOAD_EVERY * 1.5) == (2 * HOUR, 6 * HOUR)
