"""Laws of docker-compose.yml: what people start in production is the safe way."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from client_sdk.registry import Registry
from collector.cli import main
from collector.core.config import STRICT, Config
from collector.core.credentials import ADMIN, GATEWAY, READ, WRITE
from collector.storage.access import COPY, INGEST, INIT, QUERY, USERS, WORKER, acl_lines, name_of

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
SECOND = (ROOT / "examples" / "compose-archive.yml").read_text(encoding="utf-8")
ARCHIVE: dict[str, dict[str, Any]] = yaml.safe_load(SECOND)["services"]
MORE_SECRETS: dict[str, dict[str, Any]] = yaml.safe_load(SECOND)["secrets"]
WATCH: dict[str, Any] = yaml.safe_load((ROOT / "examples/compose-watch.yml").read_text("utf-8"))
PRUNE: dict[str, Any] = yaml.safe_load((ROOT / "examples/compose-prune.yml").read_text("utf-8"))
HA: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.ha.yml").read_text("utf-8"))
BACKUP: dict[str, Any] = yaml.safe_load((ROOT / "examples/compose-backup.yml").read_text("utf-8"))
RELAY: dict[str, Any] = yaml.safe_load((ROOT / "examples/compose-relay.yml").read_text("utf-8"))
OURS = ("init", "web", "worker")
# By service, the variable that names an address of the store, and the user it should log in as.
LOGINS = {
    "init": {"REDIS_URL_FILE": INIT},
    "web": {"REDIS_URL_FILE": INGEST, "HEARSAY_QUERY_URL_FILE": QUERY},
    "worker": {"REDIS_URL_FILE": WORKER},
}

every_service = pytest.mark.parametrize("name", sorted(SERVICES))
our_services = pytest.mark.parametrize("name", OURS)
lasting_services = pytest.mark.parametrize("name", sorted(set(SERVICES) - {"init"}))


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
    values["HEARSAY_REGISTRY"] = str(ROOT / registry_mounts(name)[0][0])
    for key in [key for key in values if key.endswith("_FILE")]:
        secret = folder / Path(values[key]).name
        text = f"{secret.name}-of-at-least-16-characters"
        is_url = secret.name.endswith("_url")
        secret.write_text(f"redis://u:{text}@store:6379/0\n" if is_url else text, encoding="utf-8")
        values[key] = str(secret)
    return RecordedReads(values)


def registry_mounts(name: str) -> list[list[str]]:
    """Return source, target and mode of the registry of service *name*, and of its lock."""
    return [str(mount).split(":") for mount in SERVICES[name]["volumes"]]


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


@lasting_services
def test_a_service_has_a_health_check_and_comes_back_after_a_crash(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
    assert SERVICES[name]["restart"] == "unless-stopped"


def test_the_store_is_healthy_before_it_is_prepared_and_prepared_before_it_is_used() -> None:
    waits = {name: SERVICES[name]["depends_on"] for name in OURS}

    assert waits["init"] == {"store": {"condition": "service_healthy"}}
    assert waits["web"] == {"init": {"condition": "service_completed_successfully"}}
    assert waits["worker"] == waits["web"]


def test_the_store_is_prepared_once_and_not_again_and_again() -> None:
    assert SERVICES["init"]["command"] == ["hearsay", "init"]
    assert SERVICES["init"]["restart"] == "no"


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
def test_the_registry_and_its_lock_are_valid_files_mounted_read_only(name: str) -> None:
    """Without the lock the image would choose, and another image otherwise."""
    registry, lock = registry_mounts(name)

    assert (registry[2], lock[2]) == ("ro", "ro")
    assert SERVICES[name]["environment"]["HEARSAY_REGISTRY"] == registry[1]
    assert list(Registry.from_file(ROOT / registry[0]))
    for beside, file in ((lock[0], registry[0]), (lock[1], registry[1])):
        assert Path(beside) == Path(file).with_suffix(".lock")


@our_services
def test_every_setting_is_one_that_the_collector_reads(name: str, tmp_path: Path) -> None:
    found = environment(name, tmp_path)
    Config.from_env(found)
    commands = "".join(p.read_text("utf-8") for p in (ROOT / "collector" / "cli").glob("*.py"))
    known = found.names | set(re.findall(r'environ\.get\("(\w+)"\)', commands))

    assert set(found) - known == set()


@our_services
def test_the_profile_of_the_settings_is_the_one_that_the_store_is_started_with(
    name: str, tmp_path: Path
) -> None:
    config = Config.from_env(environment(name, tmp_path))

    assert config.profile == STRICT
    assert config.redis_url.endswith("@store:6379/0")


@our_services
def test_each_service_logs_in_as_the_user_that_can_do_its_work_and_no_more(name: str) -> None:
    addresses = {k: v for k, v in SERVICES[name]["environment"].items() if "URL" in k}

    assert addresses == {
        variable: f"/run/secrets/{user}_url" for variable, user in LOGINS[name].items()
    }


def test_the_store_lets_in_nobody_but_the_users_of_the_file() -> None:
    command = SERVICES["store"]["command"]
    file = command[command.index("--aclfile") + 1]
    users = [line.split()[1] for line in acl_lines("hearsay", dict.fromkeys(USERS, "x"))]

    assert file == f"/run/secrets/{SERVICES['store']['secrets'][0]}"
    assert users[-1] == "default"
    assert SERVICES["store"]["healthcheck"]["test"][3] == users[0]
    assert users[1:-1] == [name_of(user, "hearsay") for user in USERS]


def test_make_secrets_makes_every_secret_and_no_command_shows_one(tmp_path: Path) -> None:
    for name in ("Makefile", "collector", "client_sdk"):
        (tmp_path / name).symlink_to(ROOT / name)

    made = subprocess.run(
        ["make", "-C", str(tmp_path), "secrets"], capture_output=True, text=True, check=True
    )

    folder = tmp_path / "secrets"
    texts = {path.name: path.read_text("utf-8").strip() for path in folder.iterdir()}
    assert {f"./secrets/{name}" for name in texts} == {
        secret["file"]
        for secrets in (
            COMPOSE["secrets"],
            MORE_SECRETS,
            PRUNE["secrets"],
            WATCH["secrets"],
            BACKUP["secrets"],
            HA["secrets"],
        )
        for secret in secrets.values()
    }
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(set(texts.values())) == len(texts)
    users = (*USERS, COPY)
    replication = texts.pop("replication_conf").splitlines()
    addresses = {user: urlsplit(texts[f"{user}_url"]) for user in users}
    assert {a.username for a in addresses.values()} == {name_of(u, "hearsay") for u in users}
    passwords = [str(address.password) for address in addresses.values()]
    assert min(map(len, passwords)) >= 43
    assert not [secret for secret in (*passwords, texts["write_key"]) if secret in made.stdout]
    copy = addresses["copy"]
    assert replication == [f"masteruser {copy.username}", f"masterauth {copy.password}"]
    assert texts["users_acl"].splitlines() == list(
        acl_lines("hearsay", {u: str(a.password) for u, a in addresses.items()})
    )


def test_make_secrets_keeps_what_is_there_and_makes_the_users_anew_when_one_has_changed(
    tmp_path: Path,
) -> None:
    """Law: whatever the dates of the files say, the store's users are those of this release."""
    for name in ("Makefile", "collector", "client_sdk"):
        (tmp_path / name).symlink_to(ROOT / name)
    folder = tmp_path / "secrets"

    def made() -> list[str]:
        command = ["make", "--silent", "--no-print-directory", "-C", str(tmp_path), "secrets"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    first = made()
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    again = made()
    unchanged = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "users_acl").chmod(0o600)
    (folder / "users_acl").write_text("user of an older release\n", encoding="utf-8")
    mended = made()

    assert len(first) == 2 * len(kept)
    assert (again, unchanged) == ([], kept)
    assert mended == ["made", "secrets/users_acl"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept


def test_keys_and_tokens_come_from_files_and_only_to_the_web_process(tmp_path: Path) -> None:
    config = Config.from_env(environment("web", tmp_path))
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")

    kinds = sorted(credential.kind for credential in config.credentials.values())
    assert kinds == sorted([ADMIN, GATEWAY, READ, WRITE])
    assert not any("key" in s or "token" in s for n in ("init", "worker") for s in secrets_of(n))
    assert not re.search(r"_(KEY|TOKEN|URL):", text)


@every_service
def test_a_service_is_handed_the_secrets_that_it_looks_for_and_no_other(name: str) -> None:
    command = [word for word in SERVICES[name].get("command", ()) if "/secrets/" in word]
    settings = SERVICES[name].get("environment", {})
    files = [value for key, value in settings.items() if key.endswith("_FILE")]

    assert sorted(command + files) == sorted(f"/run/secrets/{one}" for one in secrets_of(name))
    assert set(secrets_of(name)) <= set(COMPOSE["secrets"])


def secrets_of(name: str) -> list[str]:
    """Return the secrets that service *name* is handed."""
    handed: list[str] = SERVICES[name]["secrets"]
    return handed


def test_the_worker_is_asked_for_the_heartbeat_that_it_writes_to_memory() -> None:
    (memory,) = SERVICES["worker"]["tmpfs"]

    assert SERVICES["worker"]["healthcheck"]["test"] == ["CMD", "hearsay", "worker", "--check"]
    assert SERVICES["worker"]["environment"]["HEARSAY_HEARTBEAT"].startswith(memory.split(":")[0])


def test_our_services_run_one_image_that_is_built_once() -> None:
    built = {name: service["build"] for name, service in SERVICES.items() if "build" in service}

    assert built == {"web": {"context": ".", "dockerfile": "collector/Dockerfile"}}
    assert len({SERVICES[name]["image"] for name in OURS}) == 1
    assert all(SERVICES[name]["command"][0] == "hearsay" for name in OURS)


def test_the_service_that_archives_is_as_confined_as_the_others() -> None:
    """Law: the second file opens nothing but a folder of its own."""
    archive, worker = ARCHIVE["archive"], SERVICES["worker"]
    confined = ("restart", "user", "read_only", "cap_drop", "security_opt", "pids_limit", "tmpfs")

    assert [archive[name] for name in confined] == [worker[name] for name in confined]
    assert archive["volumes"] == [*worker["volumes"], "./archive:/archive"]
    assert {"mem_limit", "cpus"} <= set(archive)
    assert not {"ports", "cap_add", "privileged", "network_mode"} & set(archive)
    assert archive["depends_on"] == worker["depends_on"]


def test_the_service_that_prunes_is_as_confined_as_the_others_and_has_settings_that_work(
    tmp_path: Path,
) -> None:
    prune, worker = PRUNE["services"]["prune"], SERVICES["worker"]
    confined = ("restart", "user", "read_only", "cap_drop", "security_opt", "pids_limit", "tmpfs")
    values = prune["environment"] | {"HEARSAY_REGISTRY": str(ROOT / "examples/metrics.toml")}
    address = tmp_path / "prune_url"
    address.write_text("redis://u:a-password@store:6379/0\n", encoding="utf-8")

    config = Config.from_env(values | {"REDIS_URL_FILE": str(address)})

    assert [prune[name] for name in confined] == [worker[name] for name in confined]
    assert (prune["volumes"], prune["image"]) == (worker["volumes"], worker["image"])
    assert {"mem_limit", "cpus"} <= set(prune)
    assert not {"ports", "cap_add", "privileged", "network_mode"} & set(prune)
    assert prune["secrets"] == list(PRUNE["secrets"]) == ["prune_url"]
    assert config.keep_days == 400


def test_the_service_that_watches_is_as_confined_as_the_others_and_has_settings_that_work(
    tmp_path: Path,
) -> None:
    watch, worker = WATCH["services"]["watch"], SERVICES["worker"]
    confined = ("restart", "user", "read_only", "cap_drop", "security_opt", "pids_limit", "tmpfs")
    values = watch["environment"] | {"HEARSAY_REGISTRY": str(ROOT / "examples/metrics.toml")}
    address = tmp_path / "watch_url"
    address.write_text("redis://u:a-password@store:6379/0\n", encoding="utf-8")

    config = Config.from_env(values | {"REDIS_URL_FILE": str(address)})

    assert [watch[name] for name in confined] == [worker[name] for name in confined]
    file = f"./examples/watches.toml:{config.watches}:ro"
    assert watch["volumes"] == [*worker["volumes"], file]
    assert watch["image"] == worker["image"]
    assert {"mem_limit", "cpus"} <= set(watch)
    assert not {"ports", "cap_add", "privileged", "network_mode"} & set(watch)
    assert watch["secrets"] == list(WATCH["secrets"]) == ["watch_url"]


def test_the_service_that_copies_is_as_confined_as_the_others_and_has_settings_that_work(
    tmp_path: Path,
) -> None:
    backup, worker = BACKUP["services"]["backup"], SERVICES["worker"]
    confined = ("restart", "user", "read_only", "cap_drop", "security_opt", "pids_limit", "tmpfs")
    values = backup["environment"] | {"HEARSAY_REGISTRY": str(ROOT / "examples/metrics.toml")}
    address = tmp_path / "copy_url"
    address.write_text("redis://u:a-password@store:6379/0\n", encoding="utf-8")

    config = Config.from_env(values | {"REDIS_URL_FILE": str(address)})

    assert [backup[name] for name in confined] == [worker[name] for name in confined]
    assert backup["volumes"] == [*worker["volumes"], "./backup:/backup"]
    assert backup["command"][:3] == ["hearsay", "backup", "/backup"]
    assert {"mem_limit", "cpus"} <= set(backup)
    assert not {"ports", "cap_add", "privileged", "network_mode"} & set(backup)
    assert backup["secrets"] == list(BACKUP["secrets"]) == ["copy_url"]
    assert config.profile == STRICT


def test_the_service_that_archives_has_settings_that_work_and_one_secret(tmp_path: Path) -> None:
    archive = ARCHIVE["archive"]
    values = archive["environment"] | {"HEARSAY_REGISTRY": str(ROOT / "examples/metrics.toml")}
    address = tmp_path / "archive_url"
    address.write_text("redis://u:a-password@store:6379/0\n", encoding="utf-8")

    config = Config.from_env(values | {"REDIS_URL_FILE": str(address)})

    assert values["REDIS_URL_FILE"] == f"/run/secrets/{archive['secrets'][0]}"
    assert archive["secrets"] == list(MORE_SECRETS) == ["archive_url"]
    assert config.profile == STRICT
    assert config.archive == archive["volumes"][-1].split(":")[1]


def test_the_worker_of_an_archive_keeps_what_it_folds_and_gets_nothing_else() -> None:
    """Law: a worker that lacks the setting would fold past the archive."""
    folder = ARCHIVE["archive"]["environment"]["HEARSAY_ARCHIVE"]

    assert set(ARCHIVE) == {"worker", "archive"}
    assert ARCHIVE["worker"] == {"environment": {"HEARSAY_ARCHIVE": folder}}


def test_the_image_that_archives_is_built_from_the_file_that_names_what_it_needs() -> None:
    build = ARCHIVE["archive"]["build"]
    dockerfile = (ROOT / build["dockerfile"]).read_text(encoding="utf-8")

    assert (ROOT / build["args"]["REQUIREMENTS"]).is_file()
    assert "ARG REQUIREMENTS=collector/requirements.txt\n" in dockerfile
    assert ARCHIVE["archive"]["image"] != SERVICES["worker"]["image"]


def test_the_networks_of_relay_and_issuer_show_who_can_reach_whom() -> None:
    """Law: of the others the relay reaches the collector's web process, and the issuer nobody."""
    networks = {name: set(service["networks"]) for name, service in RELAY["services"].items()}

    reached = {
        name: {other for other in networks if other != name and networks[other] & own}
        for name, own in networks.items()
    }

    assert reached == {
        "store": {"init", "web", "worker"},
        "init": {"store", "web", "worker"},
        "worker": {"store", "init", "web"},
        "web": {"store", "init", "worker", "relay"},
        "relay": {"web"},
        "issuer": set(),
    }
    assert set(RELAY["networks"]) == set().union(*networks.values())
    assert {name for name, own in RELAY["networks"].items() if own} == {"inside", "between"}
    assert networks["store"] == networks["worker"] == {"inside"}


def test_relay_and_issuer_are_as_confined_as_the_others_and_start_by_their_profile() -> None:
    worker = SERVICES["worker"]
    confined = ("restart", "user", "read_only", "cap_drop", "security_opt", "pids_limit", "tmpfs")

    for name in ("relay", "issuer"):
        service = RELAY["services"][name]
        assert service["profiles"] == ["relay"]
        assert [service[key] for key in confined] == [worker[key] for key in confined]
        assert {"mem_limit", "cpus", "healthcheck"} <= set(service)
        assert not {"cap_add", "privileged", "network_mode", "environment", "secrets"} & set(
            service
        )
        assert [port.partition(":")[0] for port in service["ports"]] == ["127.0.0.1"]


def test_the_relay_is_handed_no_file_and_no_option_but_where_to_send() -> None:
    relay = RELAY["services"]["relay"]
    words = relay["command"][2:]

    assert "volumes" not in relay
    assert relay["image"] == SERVICES["web"]["image"]
    command = main.commands["relay"]
    with command.make_context("relay", list(words)) as context:
        assert context.params["to"] == "http://web:8000"
        assert context.params["port"] == 8100


def test_the_issuer_is_handed_its_keys_and_the_collector_their_public_halves() -> None:
    issuer, web = RELAY["services"]["issuer"], RELAY["services"]["web"]
    command = main.commands["issuer"]
    there = [mount.split(":")[1] for mount in issuer["volumes"]]
    with command.make_context("issuer", list(issuer["command"][2:])) as context:
        named = " ".join(str(value) for value in context.params.values())

    assert all(path in named for path in there)
    assert list(web["environment"].values()) == [mount.split(":")[1] for mount in web["volumes"]]
    assert not {mount.split(":")[0] for mount in issuer["volumes"]} & {
        mount.split(":")[0] for mount in web["volumes"]
    }
    mounts = [*issuer["volumes"], *web["volumes"]]
    assert all(mount.startswith("./secrets/") for mount in mounts)  # which git ignores
    build = issuer["build"]
    assert (ROOT / build["args"]["REQUIREMENTS"]).is_file()
