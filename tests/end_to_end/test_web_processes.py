"""What `hearsay serve` does for its web processes: their token of a start, and their lives."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import Final

import pytest

from tests.support.crowds.uploads import bearer
from tests.support.sites.attacked_site import attacked_site, today
from tests.support.sites.hostile_bodies import good
from tests.support.store.processes import descendants
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

PATIENCE: Final = 30.0  # seconds


def test_a_web_process_that_is_killed_is_started_again(tmp_path: Path) -> None:
    """Its sibling is the same process as before, and uploads are taken."""
    with attacked_site(tmp_path, processes=2) as site:
        before = descendants(site.serve)
        killed = min(before)

        os.kill(killed, signal.SIGKILL)

        deadline = time.monotonic() + PATIENCE
        while killed in (now := descendants(site.serve)) or len(now) < len(before):
            assert time.monotonic() < deadline, site.log.read_text(encoding="utf-8")
            time.sleep(0.02)
        assert len(before) == 2
        assert len(before & now) == 1
        site.close()  # the connection may have been that of the killed one
        assert site.report(good("application/json", today())).status == 202


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
