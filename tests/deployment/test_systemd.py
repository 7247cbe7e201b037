"""Laws of the units in deploy/systemd, as systemd reads them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from collector.core.config import STRICT, Config
from collector.core.credentials import ADMIN, GATEWAY, READ, WRITE
from collector.serving.stopping import GRACE_S
from tests.support.deployment import DEPLOY, NO_SYSTEMD, ROOT

UNITS: Final = DEPLOY / "systemd"
SERVICES: Final = sorted(path.name for path in UNITS.glob("*.service"))
OURS: Final = [name for name in SERVICES if name != "hearsay-store.service"]
MOST_EXPOSED: Final = 15  # tenths, as systemd-analyze has them; a unit that says nothing has 96
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason=NO_SYSTEMD)


def lines(name: str) -> list[tuple[str, str]]:
    """Return the settings of a unit, in its order."""
    text = (UNITS / name).read_text(encoding="utf-8")
    return re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE)


def values(name: str, key: str) -> list[str]:
    return [value for setting, value in lines(name) if setting == key]


def compose_of(name: str) -> dict[str, Any]:
    """Return the service of compose that does the same."""
    short = re.findall(r"hearsay-(\w+)", name)[0]
    more = ROOT / "examples" / f"compose-{short}.yml"
    services = yaml.safe_load(more.read_text("utf-8"))["services"] if more.exists() else {}
    service: dict[str, Any] = (COMPOSE["services"] | services)[short]
    return service


def environment(name: str, folder: Path) -> dict[str, str]:
    """Return what the process of a unit finds in its environment, with credentials in *folder*."""
    (file,) = values(name, "EnvironmentFile")
    assert file == "/etc/hearsay/settings"
    pairs = (UNITS / "settings").read_text(encoding="utf-8").splitlines()
    pairs = [line for line in pairs if line and not line.startswith("#")]
    pairs += [pair for value in values(name, "Environment") for pair in value.split()]
    given = dict(pair.replace("%d", str(folder)).split("=", 1) for pair in pairs)
    return given | {"HEARSAY_REGISTRY": str(ROOT / "examples" / "metrics.toml")}


def handed(name: str) -> list[str]:
    """Return the secrets that a unit is handed."""
    loaded = [value.split(":") for value in values(name, "LoadCredential")]
    assert all(path == f"/etc/hearsay/secrets/{secret}" for secret, path in loaded)
    return [secret for secret, _ in loaded]


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


@pytest.mark.parametrize("name", SERVICES)
def test_no_unit_runs_as_root_or_writes_outside_of_its_own_folder(name: str) -> None:
    settings = dict(lines(name))

    assert settings["DynamicUser"] == "yes"
    assert (settings["NoNewPrivileges"], settings["CapabilityBoundingSet"]) == ("yes", "")
    assert settings["ProtectSystem"] == "strict"
    assert not {"ReadWritePaths", "BindPaths", "PermissionsStartOnly"} & set(settings)
    assert "StateDirectory" in settings or name not in {
        "hearsay-store.service",
        "hearsay-archive.service",
        "hearsay-backup.service",
    }


@pytest.mark.parametrize("name", OURS)
def test_a_unit_is_handed_the_secrets_that_it_looks_for_and_no_other(name: str) -> None:
    """Law: as in compose, and by files that only it can read."""
    looked_for = [
        pair.partition("=")[2].removeprefix("%d/")
        for value in values(name, "Environment")
        for pair in value.split()
        if "_FILE=" in pair
    ]

    assert handed(name) == looked_for
    assert sorted(handed(name)) == sorted(compose_of(name)["secrets"])
    text = (UNITS / name).read_text(encoding="utf-8")
    assert not re.search(r"_(KEY|TOKEN|URL)=", text)


@pytest.mark.parametrize("name", OURS)
def test_the_settings_of_a_unit_start_what_it_runs(name: str, tmp_path: Path) -> None:
    for secret in handed(name):
        text = f"{secret}-of-at-least-24-characters"
        is_url = secret.endswith("_url")
        text = f"redis://u:{text}@127.0.0.1:6379/0" if is_url else text
        (tmp_path / secret).write_text(text + "\n", encoding="utf-8")

    config = Config.from_env(environment(name, tmp_path))

    assert config.profile == STRICT
    assert config.redis_url.endswith("@127.0.0.1:6379/0")
    kinds = sorted(credential.kind for credential in config.credentials.values())
    wanted = sorted([ADMIN, GATEWAY, READ, WRITE])
    assert kinds == (wanted if name == "hearsay-web.service" else [])
    assert config.host == "127.0.0.1"


@pytest.mark.parametrize("name", SERVICES)
def test_a_unit_has_the_memory_of_its_container(name: str) -> None:
    (most,) = values(name, "MemoryMax")

    assert most.removesuffix("M") == compose_of(name)["mem_limit"].removesuffix("m")
    assert values(name, "TasksMax") == [str(compose_of(name)["pids_limit"])]


@pytest.mark.parametrize("name", SERVICES)
def test_a_unit_runs_the_command_of_its_container(name: str) -> None:
    (start,) = values(name, "ExecStart")
    command = list(compose_of(name)["command"])
    if "--every" in command:  # a timer says when
        del command[command.index("--every") : command.index("--every") + 2]
        assert (UNITS / name.replace(".service", ".timer")).is_file()

    if name == "hearsay-store.service":
        given = start.replace("${CREDENTIALS_DIRECTORY}", "/run/secrets").split()
        assert set(command[1:]) <= set(given)
        assert values(name, "IPAddressDeny") == ["any"]
        assert values(name, "IPAddressAllow") == ["localhost"]
    else:
        folder = f"/var/lib/{dict(lines(name)).get('StateDirectory', '')}"
        assert start == "/opt/hearsay/bin/" + " ".join(command).replace("/backup", folder)


@pytest.mark.parametrize(
    "name", ["hearsay-web.service", "hearsay-worker@.service", "hearsay-watch.service"]
)
def test_what_lasts_comes_back_and_may_take_as_long_to_stop_as_it_does(name: str) -> None:
    assert values(name, "Restart") == ["always"]
    assert int(values(name, "TimeoutStopSec")[0]) >= GRACE_S + 2


def test_a_worker_writes_its_heartbeat_where_it_may() -> None:
    (folder,) = values("hearsay-worker@.service", "RuntimeDirectory")
    beats = [v for v in values("hearsay-worker@.service", "Environment") if "HEARTBEAT" in v]

    assert beats[0].endswith(f"HEARSAY_HEARTBEAT=/run/{folder}/heartbeat")


@pytest.mark.parametrize("name", sorted(path.name for path in UNITS.glob("*.timer")))
def test_what_a_timer_missed_while_the_machine_was_off_is_done_then(name: str) -> None:
    assert values(name, "Persistent") == ["yes"]
    assert len(values(name, "OnCalendar")) == 1
