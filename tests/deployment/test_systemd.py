"""Laws of the units in deploy/systemd, as systemd reads them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.deployment import NO_SYSTEMD
from tests.support.processes import UNITS, of_compose, of_systemd, values

SERVICES: Final = sorted(path.name for path in UNITS.glob("*.service"))
MOST_EXPOSED: Final = 15  # tenths, as systemd-analyze has them; a unit that says nothing has 96

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason=NO_SYSTEMD)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The units, with programs that this machine has."""
    for path in UNITS.iterdir():
        text = path.read_text(encoding="utf-8")
        for program in ("/opt/hearsay/bin/hearsay", "/usr/bin/valkey-server"):
            text = text.replace(program, sys.executable)
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    return tmp_path


def verified(folder: Path) -> str:
    """Return what ``systemd-analyze verify`` has against the units of *folder*."""
    units = [str(path) for path in folder.iterdir() if path.suffix in {".service", ".timer"}]
    done = subprocess.run(
        ["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False
    )
    return "".join(line for line in done.stderr.splitlines(True) if str(folder) in line)


@needs_systemd
def test_systemd_has_nothing_against_a_unit(here: Path) -> None:
    assert verified(here) == ""


@needs_systemd
def test_a_setting_that_systemd_does_not_know_is_seen(here: Path) -> None:
    """The planted bug of the test above."""
    unit = here / "hearsay-web.service"
    unit.write_text(unit.read_text("utf-8").replace("ProtectHome=", "ProtectHomes="), "utf-8")

    assert "ProtectHomes" in verified(here)


@needs_systemd
@pytest.mark.parametrize("name", SERVICES)
def test_a_unit_is_hardly_exposed(here: Path, name: str) -> None:
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}"]

    done = subprocess.run(
        [*command, "--no-pager", str(here / name)], capture_output=True, text=True, check=False
    )

    assert "Overall exposure level" in done.stdout, done.stderr
    assert done.returncode == 0, done.stdout


@needs_systemd
def test_a_unit_that_is_not_confined_is_seen(here: Path) -> None:
    """The planted bug of the test above."""
    unit = here / "hearsay-web.service"
    text = re.sub(
        r"^# What it may do.*?(?=^\[Install)", "", unit.read_text("utf-8"), flags=re.S | re.M
    )
    unit.write_text(text, "utf-8")
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}"]

    done = subprocess.run([*command, str(unit)], capture_output=True, text=True, check=False)

    assert done.returncode != 0


@pytest.mark.parametrize(
    "name", ["hearsay-web.service", "hearsay-worker@.service", "hearsay-watch.service"]
)
def test_what_lasts_comes_back(name: str) -> None:
    assert values(name, "Restart") == ["always"]


def test_the_store_is_reached_from_this_machine_only() -> None:
    assert values("hearsay-store.service", "IPAddressDeny") == ["any"]
    assert values("hearsay-store.service", "IPAddressAllow") == ["localhost"]


def test_a_process_without_its_pause_has_a_timer() -> None:
    compose = of_compose()
    paused = {name for name, unit in of_systemd().items() if unit.command != compose[name].command}

    timers = {path.stem.removeprefix("hearsay-") for path in UNITS.glob("*.timer")}
    assert paused - {"store"} == timers


@pytest.mark.parametrize("name", sorted(path.name for path in UNITS.glob("*.timer")))
def test_what_a_timer_missed_while_the_machine_was_off_is_done_then(name: str) -> None:
    assert values(name, "Persistent") == ["yes"]
    assert len(values(name, "OnCalendar")) == 1
