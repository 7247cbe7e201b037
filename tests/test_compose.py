"""Laws of docker-compose.yml: what people start in production is the safe way."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from client_sdk.registry import Registry
from collector.config import DEVICE, GATEWAY, STRICT, Config

ROOT = Path(__file__).parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("web", "worker")

every_service = pytest.mark.parametrize("name", sorted(SERVICES))
our_services = pytest.mark.parametrize("name", OURS)


class RecordedReads(dict[str, str]):
    """An environment that remembers which names were asked for."""

    def __init__(self, values: dict[str, str]) -> None:
        super().__init__(values)
        self.names: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.names.add(key)
        return super().get(key, default)


def environment(name: str, folder: Path) -> RecordedReads:
    """Return what service *name* finds in its environment, with mounted files as they are here."""
    values = {key: str(value) for key, value in SERVICES[name]["environment"].items()}
    values["HEARSAY_REGISTRY"] = str(ROOT / registry_mount(name)[0])
    for key in [key for key in values if key.endswith("_FILE")]:
        secret = folder / Path(values[key]).name
        secret.write_text(f"{secret.name}-of-at-least-16-characters\n", encoding="utf-8")
        values[key] = str(secret)
    return RecordedReads(values)


def registry_mount(name: str) -> list[str]:
    """Return source, target and mode under which service *name* sees its registry."""
    (mount,) = SERVICES[name]["volumes"]
    return str(mount).split(":")


@every_service
def test_a_container_runs_as_a_numbered_user_that_is_not_root(name: str) -> None:
    user, group = SERVICES[name]["user"].split(":")

    assert int(user) > 0
    assert int(group) > 0


@every_service
def test_a_container_can_write_nowhere_but_to_memory_and_the_store_volume(name: str) -> None:
    writable = [mount for mount in SERVICES[name]["volumes"] if not mount.endswith(":ro")]

    assert SERVICES[name]["read_only"] is True
    assert [mount.split(":")[0] for mount in SERVICES[name]["tmpfs"]] == ["/tmp"]  # noqa: S108  # in the container
    assert writable == (["store:/data"] if name == "store" else [])


@every_service
def test_a_container_has_no_capability_and_can_gain_none(name: str) -> None:
    service = SERVICES[name]

    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"cap_add", "privileged", "devices", "pid", "ipc"} & set(service)


@every_service
def test_a_container_has_limits_of_memory_processors_and_processes(name: str) -> None:
    assert {"mem_limit", "cpus", "pids_limit"} <= set(SERVICES[name])


@every_service
def test_an_image_has_a_tag_that_is_not_latest(name: str) -> None:
    image, _, tag = SERVICES[name]["image"].rpartition(":")

    assert image
    assert tag not in {"", "latest"}


@every_service
def test_a_service_has_a_health_check_and_comes_back_after_a_crash(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
    assert SERVICES[name]["restart"] == "unless-stopped"


@our_services
def test_our_services_wait_for_a_healthy_store(name: str) -> None:
    assert SERVICES[name]["depends_on"] == {"store": {"condition": "service_healthy"}}


def test_the_store_syncs_every_write_and_evicts_nothing() -> None:
    command = SERVICES["store"]["command"]
    settings = dict(zip(command[1::2], command[2::2], strict=True))

    assert settings["--appendonly"] == "yes"
    assert settings["--appendfsync"] == "always"
    assert settings["--maxmemory-policy"] == "noeviction"


def test_the_store_refuses_writes_long_before_it_would_be_killed() -> None:
    command = SERVICES["store"]["command"]
    most = command[command.index("--maxmemory") + 1]

    assert 2 * int(most.removesuffix("mb")) <= int(SERVICES["store"]["mem_limit"].removesuffix("m"))


def test_the_store_keeps_its_data_in_a_named_volume() -> None:
    assert SERVICES["store"]["volumes"] == ["store:/data"]
    assert "store" in COMPOSE["volumes"]


def test_only_the_web_process_is_published_and_only_on_this_machine() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}

    assert published == {"web": ["127.0.0.1:8000:8000"]}


@our_services
def test_the_registry_is_an_existing_valid_file_mounted_read_only(name: str) -> None:
    source, target, mode = registry_mount(name)

    assert mode == "ro"
    assert SERVICES[name]["environment"]["HEARSAY_REGISTRY"] == target
    assert list(Registry.from_file(ROOT / source))


@our_services
def test_every_setting_is_one_that_the_collector_reads(name: str, tmp_path: Path) -> None:
    found = environment(name, tmp_path)
    Config.from_env(found)
    cli = (ROOT / "collector" / "cli.py").read_text(encoding="utf-8")
    known = found.names | set(re.findall(r'environ\.get\("(\w+)"\)', cli))

    assert set(found) - known == set()


@our_services
def test_the_profile_of_the_settings_is_the_one_that_the_store_is_started_with(
    name: str, tmp_path: Path
) -> None:
    config = Config.from_env(environment(name, tmp_path))

    assert config.profile == STRICT
    assert config.redis_url == "redis://store:6379/0"


def test_keys_and_tokens_come_from_files_and_only_to_the_web_process(tmp_path: Path) -> None:
    config = Config.from_env(environment("web", tmp_path))
    others = [name for name in SERVICES if "secrets" in SERVICES[name]]
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")

    assert sorted(config.write_keys.values()) == [DEVICE, GATEWAY]
    assert len(config.read_tokens) == 1
    assert others == ["web"]
    assert not re.search(r"_(KEY|TOKEN):", text)


def test_every_secret_file_is_mounted_where_the_settings_look_for_it() -> None:
    files = {
        value for key, value in SERVICES["web"]["environment"].items() if key.endswith("_FILE")
    }

    assert files == {f"/run/secrets/{secret}" for secret in SERVICES["web"]["secrets"]}
    assert set(SERVICES["web"]["secrets"]) == set(COMPOSE["secrets"])


def test_the_worker_is_asked_for_the_heartbeat_that_it_writes_to_memory() -> None:
    (memory,) = SERVICES["worker"]["tmpfs"]

    assert SERVICES["worker"]["healthcheck"]["test"] == ["CMD", "hearsay", "worker", "--check"]
    assert SERVICES["worker"]["environment"]["HEARSAY_HEARTBEAT"].startswith(memory.split(":")[0])


def test_our_services_run_one_image_that_is_built_once() -> None:
    built = {name: service["build"] for name, service in SERVICES.items() if "build" in service}

    assert built == {"web": {"context": ".", "dockerfile": "collector/Dockerfile"}}
    assert len({SERVICES[name]["image"] for name in OURS}) == 1
    assert all(SERVICES[name]["command"][0] == "hearsay" for name in OURS)
