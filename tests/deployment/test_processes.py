"""One table of laws for the processes that compose, systemd and Kubernetes start."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from collector.core.config import HA, STRICT, Config
from collector.core.credentials import ADMIN, GATEWAY, READ, WRITE
from collector.serving.stopping import GRACE_S
from tests.support.deployment import DEPLOY, OVERLAYS, ROOT, needs_kubectl, with_options
from tests.support.processes import (
    LOGINS,
    RELAY,
    Process,
    of_compose,
    of_kubernetes,
    of_systemd,
    without_schedule,
)

DISK: Final = {"store": "/data", "archive": "/archive", "backup": "/backup", "issuer": "/issuer"}
LASTING: Final = ("web", "worker", "watch")
PLACES: Final = [
    "compose",
    "systemd",
    *(pytest.param(name, marks=needs_kubectl) for name in OVERLAYS),
]


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def processes(place: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Process]:
    """Everything that can be started at a place, with all options."""
    if place == "compose":
        return of_compose()
    if place == "systemd":
        return of_systemd()
    return of_kubernetes(with_options(tmp_path_factory.mktemp("overlay"), place))


@pytest.fixture
def ours(processes: dict[str, Process]) -> dict[str, Process]:
    """Those that read the settings."""
    return {name: each for name, each in processes.items() if name in LOGINS}


def test_a_process_is_no_root_gains_no_right_and_writes_only_where_its_data_is(
    processes: dict[str, Process], place: str
) -> None:
    for name, process in processes.items():
        assert process.faults == (), name
        folder = f"/var/lib/hearsay-{name}" if place == "systemd" else DISK.get(name)
        assert process.disk == ((folder,) if name in DISK else ()), name


def test_a_process_has_the_command_the_memory_and_the_secrets_of_its_container_in_compose(
    processes: dict[str, Process],
) -> None:
    """Law: none of them has a second truth; where a schedule runs it, it does not go on."""
    compose = of_compose()

    assert compose.keys() - processes.keys() <= {"store", *RELAY}
    for name, process in processes.items():
        there = compose[name]
        given = tuple(
            word.replace("/var/lib/hearsay-backup", "/backup") for word in process.command
        )
        if name == "store":
            assert set(there.command) <= set(given)
        else:
            assert given in (there.command, without_schedule(there.command)), name
        assert process.memory == there.memory, name
        assert process.secrets == there.secrets, name


def test_a_process_is_handed_the_secrets_that_it_looks_for_and_no_other(
    processes: dict[str, Process],
) -> None:
    for name, process in processes.items():
        assert process.secrets == process.looked_for, name
        assert not [key for key in process.settings if re.search(r"_(KEY|TOKEN|URL)$", key)], name


def test_a_process_logs_in_as_the_user_that_can_do_its_work_and_no_more(
    ours: dict[str, Process],
) -> None:
    for name, process in ours.items():
        logins = {
            variable: Path(file).name
            for variable, file in process.settings.items()
            if variable.endswith("URL_FILE")
        }

        assert logins == LOGINS[name], name


def test_the_settings_of_a_process_are_known_and_start_it(
    ours: dict[str, Process], place: str, tmp_path: Path
) -> None:
    """Law: keys and tokens reach the web process alone, and a store that keeps what it takes."""
    for name, process in ours.items():
        config = Config.from_env(process.environment(tmp_path))

        kinds = sorted(credential.kind for credential in config.credentials.values())
        assert config.profile == (HA if place == "high-availability" else STRICT), name
        assert config.redis_url.endswith("@store:6379/0"), name
        assert kinds == (sorted([ADMIN, GATEWAY, READ, WRITE]) if name == "web" else []), name
        assert config.host == "127.0.0.1", name
        registry = process.settings["HEARSAY_REGISTRY"]
        assert registry == "/etc/hearsay/metrics.toml", name


def test_a_process_may_take_as_long_to_stop_as_it_does(processes: dict[str, Process]) -> None:
    for name in LASTING:
        assert processes[name].stop_s >= GRACE_S + 2, name


def test_a_worker_writes_its_heartbeat_to_memory(processes: dict[str, Process]) -> None:
    beat = processes["worker"].settings["HEARSAY_HEARTBEAT"]

    assert beat.startswith(("/tmp/", "/run/hearsay-worker-%i/"))  # noqa: S108  # in the container


def test_the_store_syncs_every_write_evicts_nothing_and_refuses_long_before_it_is_killed(
    processes: dict[str, Process], place: str
) -> None:
    assert ("store" in processes) is (place != "high-availability")
    if place == "high-availability":
        return
    store = processes["store"]
    options = dict(zip(store.command, store.command[1:], strict=False))

    assert options["--appendonly"] == "yes"
    assert options["--appendfsync"] == "always"
    assert options["--maxmemory-policy"] == "noeviction"
    assert 2 * int(options["--maxmemory"].removesuffix("mb")) <= store.memory


def test_no_file_of_a_deployment_holds_a_secret() -> None:
    files = [*DEPLOY.rglob("*.yaml"), *(DEPLOY / "systemd").iterdir(), *ROOT.glob("docker-*.yml")]

    for path in files:
        text = path.read_text(encoding="utf-8")
        assert "kind: Secret" not in text, path
        assert not re.search(r"redis(-cluster)?://|_(KEY|TOKEN|URL)[:=]", text), path
