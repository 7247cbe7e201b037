"""Wrong clocks: of devices, of the collector between two tries, and of a machine's time zone."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from client_sdk.core.epoch import DAY, HOUR, day_of
from client_sdk.core.limits import MAX_CLOCK_SKEW, MAX_REPORT_AGE
from collector.core.catalog import Catalog
from collector.core.config import Config
from collector.intake.validation import Rejection, judge
from collector.intake.wire import JSON, decode
from collector.web import create_app
from tests.faults.conftest import Tell
from tests.support.crowds.uploads import WRITE_KEY
from tests.support.device.clock import NOON, FakeClock
from tests.support.faults.fleet import post
from tests.support.faults.reports import REGISTRY, registry_text, upload_of
from tests.support.faults.site import fault_site
from tests.support.patience import PATIENCE
from tests.support.sites.posting import post as post_to
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage
from tests.support.store.servers import needs_real

YEARS = 3_652  # days, ten years
DAYS = (-YEARS, -100, -15, -14, -7, -1, 0, 1, 2, 7, YEARS)
SKEW = 300  # seconds
# Changes of summer time in Berlin and Sydney, a leap second, a new year, a leap day.
MOMENTS = (1_711_846_800, 1_712_419_200, 1_483_228_799, 1_735_689_600, 1_709_164_800)
ZONES = ("UTC", "Europe/Berlin", "Australia/Sydney", "America/St_Johns", "Pacific/Kiritimati")


def status_of(days: int) -> int:
    if days < -MAX_REPORT_AGE:
        return 410
    return 202 if days <= MAX_CLOCK_SKEW else 422


@pytest.mark.faults
@pytest.mark.real
@needs_real
def test_devices_whose_clocks_are_off_are_counted_or_told_why_not(
    seed: int, chance: random.Random, tmp_path: Path, tell: Tell
) -> None:
    """Up to ten years, either way; what is refused is refused for good, by its own code."""
    with fault_site(tmp_path, collectors=1) as site:
        counted: dict[bytes, bytes] = {}
        wrong = []
        for serial, days in enumerate(DAYS * 3):
            upload_id, body = upload_of(serial, chance, now=time.time() + days * DAY)
            status, _ = post(site.ports[0], body)
            if status != status_of(days):
                wrong.append((days, status))
            if status == 202:
                counted[upload_id] = body
        found = site.compared(counted)

    tell(f"device clocks off by {min(DAYS)} to {max(DAYS)} days: {found}; {len(wrong)} wrong codes")
    assert wrong == []
    assert found.equal, found


def test_a_device_that_is_five_minutes_off_loses_no_report_at_any_hour(
    chance: random.Random,
) -> None:
    """Also around midnight, when device and collector disagree about the day."""
    catalog, midnight = Catalog([REGISTRY]), 20_000 * DAY
    refused: list[Rejection] = []

    for serial, hour in enumerate(range(48)):
        for skew in range(-SKEW, SKEW + 1, 30):
            now = midnight + hour * HOUR
            _, body = upload_of(serial, chance, now=now + skew)
            verdict = judge(decode(body, JSON), catalog, day_of(now))
            refused += verdict.rejected

    assert refused == []


def test_a_collector_whose_clock_steps_counts_a_repeated_upload_once(
    chance: random.Random, tmp_path: Path
) -> None:
    """Whatever the clock says in between, the next try finds the upload known."""
    (tmp_path / "metrics.toml").write_text(registry_text(), encoding="utf-8")
    config = Config.from_env(
        {"HEARSAY_REGISTRY": str(tmp_path / "metrics.toml"), "HEARSAY_WRITE_KEY": WRITE_KEY}
    )
    clock, storage = FakeClock(NOON), MemoryStorage()
    client = create_app(config, storage, clock, MemoryCredentials()).test_client()
    _, body = upload_of(0, chance, now=NOON)

    answers = []
    for step in (0, HOUR, -2 * HOUR, YEARS * DAY, -2 * YEARS * DAY, YEARS * DAY, DAY):
        clock.advance(seconds=step)
        answer = post_to(client, body)
        answers.append((answer.status_code, (answer.json or {}).get("duplicate")))

    again = (202, True)
    assert answers == [(202, False), again, again, (410, None), (422, None), again, again]
    assert storage.backlog() == 1


def test_epochs_do_not_depend_on_the_time_zone() -> None:
    """Neither do the hours that a change of summer time repeats or leaves out."""
    program = (
        "import sys; from client_sdk.core.epoch import epoch_of, day_of\n"
        "for t in map(int, sys.argv[1:]):\n"
        "    print([epoch_of(e, t + s) for e in ('1h', '1d', '7d') for s in (-3600, -1, 0, 3600)],"
        " day_of(t))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program, *map(str, MOMENTS)],
            env={**os.environ, "TZ": zone},
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        ).stdout
        for zone in ZONES
    }

    assert len(told) == 1
