"""A web process that is killed is started again, and its siblings go on."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Final

import pytest

from tests.support.attacked_site import attacked_site, today
from tests.support.hostile_bodies import good
from tests.support.processes import descendants
from tests.support.servers import needs_real

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
