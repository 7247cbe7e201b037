"""Web and worker processes of an operator: their tokens, their lives and their good order."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.operations.processes import is_fresh
from tests.support.crowds.uploads import bearer, registry_text
from tests.support.patience import PATIENCE, wait_for
from tests.support.sites.attacked_site import AttackedSite, attacked_site, today
from tests.support.sites.hostile_bodies import good
from tests.support.store.processes import descendants, until_ended
from tests.support.store.servers import needs_real, real_server

pytestmark = [pytest.mark.real, needs_real]


def status_of_an_upload(site: AttackedSite) -> int:
    site.close()  # the connection may have been that of a process that was killed
    return site.report(good("application/json", today())).status


def test_a_web_process_that_is_killed_is_started_again(tmp_path: Path) -> None:
    """Its sibling is the same process as before, and uploads are taken."""
    with attacked_site(tmp_path, processes=2) as site:
        before = descendants(site.serve)
        killed = min(before)

        os.kill(killed, signal.SIGKILL)

        wait_for(lambda: len(descendants(site.serve) - {killed}) == 2, site.log.read_text)
        assert len(before) == 2
        assert len(before & descendants(site.serve)) == 1
        status = wait_for(lambda: status_of_an_upload(site), despite=(ConnectionRefusedError,))
        assert status == 202


def test_a_web_process_that_hangs_is_ended_and_started_again(tmp_path: Path) -> None:
    """It would keep its share of the connections for ever; its sibling stays."""
    with attacked_site(tmp_path, processes=2) as site:
        before = descendants(site.serve)
        hanging = min(before)
        places = Path(tempfile.gettempdir())
        wait_for(lambda: [*places.glob(f"hearsay-*/{hanging}")], site.log.read_text)  # has started

        os.kill(hanging, signal.SIGSTOP)

        wait_for(lambda: len(descendants(site.serve) - {hanging}) == 2, site.log.read_text)
        assert len(before & descendants(site.serve)) == 1
        assert f"web process {hanging} has not answered" in site.log.read_text(encoding="utf-8")
        status = wait_for(lambda: status_of_an_upload(site), despite=(ConnectionRefusedError,))
        assert status == 202


def test_pages_that_are_open_are_so_by_a_link_of_this_start(tmp_path: Path) -> None:
    """Every web process knows its token; the API is opened by it as by that of an operator."""
    with attacked_site(tmp_path, settings={"HEARSAY_OPEN_DASHBOARD": "1"}, processes=2) as site:
        said = site.log.read_text(encoding="utf-8")
        [link] = re.findall(r"^pages: (\S+)$", said, re.MULTILINE)
        address, _, token = link.partition("/login#token=")

        assert address == site.url
        assert len(token) == 43
        for _ in range(10):
            site.close()
            assert site.ask("GET", "/operations").status == 401
            assert site.ask("GET", "/operations", bearer(token)).status == 200


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Settings of a worker on a real, empty store."""
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(), encoding="utf-8")
    with real_server() as store:
        yield {
            **{name: value for name, value in os.environ.items() if "HEARSAY" not in name},
            "HEARSAY_REGISTRY": str(path),
            "HEARSAY_HEARTBEAT": str(tmp_path / "beat"),
            "REDIS_URL": store.url,
        }


def hearsay(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "collector", *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def test_a_worker_beats_while_it_runs_and_ends_well_when_asked(
    environment: dict[str, str],
) -> None:
    before = hearsay(environment, "worker", "--check").returncode
    command = [sys.executable, "-m", "collector", "worker"]
    with until_ended(subprocess.Popen(command, env=environment)) as process:
        wait_for(lambda: is_fresh(Path(environment["HEARSAY_HEARTBEAT"])), running=(process,))
        during = hearsay(environment, "worker", "--check").returncode

    assert (before, during, process.returncode) == (1, 0, 0)
