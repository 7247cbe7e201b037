"""Laws of docker-compose.yml: what people start in production is the safe way."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from client_sdk.registry import Registry
from collector.cli import main
from collector.core.config import Config
from collector.storage.access import COPY, USERS, acl_lines, name_of
from tests.support.processes import of_compose, services

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
# What each further service mounts next to the registry and its lock.
MOUNTS = {
    "archive": ["./archive:/archive"],
    "backup": ["./backup:/backup"],
    "prune": [],
    "watch": ["./examples/watches.toml:/etc/hearsay/watches.toml:ro"],
}

every_service = pytest.mark.parametrize("name", sorted(SERVICES))
our_services = pytest.mark.parametrize("name", OURS)
lasting_services = pytest.mark.parametrize("name", sorted(set(SERVICES) - {"init"}))


def registry_mounts(name: str) -> list[list[str]]:
    """Return source, target and mode of the registry of service *name*, and of its lock."""
    return [str(mount).split(":") for mount in SERVICES[name]["volumes"]]


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


def test_the_worker_is_asked_for_its_heartbeat() -> None:
    assert SERVICES["worker"]["healthcheck"]["test"] == ["CMD", "hearsay", "worker", "--check"]


def test_our_services_run_one_image_that_is_built_once() -> None:
    built = {name: service["build"] for name, service in SERVICES.items() if "build" in service}

    assert built == {"web": {"context": ".", "dockerfile": "collector/Dockerfile"}}
    assert len({SERVICES[name]["image"] for name in OURS}) == 1
    assert all(SERVICES[name]["command"][0] == "hearsay" for name in OURS)


@pytest.mark.parametrize("name", MOUNTS)
def test_a_further_service_has_the_files_of_the_worker_its_own_and_one_secret(
    name: str, tmp_path: Path
) -> None:
    """Law: it opens no port, starts again after a crash, and its settings name what it mounts."""
    further, worker = services()[name], SERVICES["worker"]
    config = Config.from_env(of_compose()[name].environment(tmp_path))

    assert further["volumes"] == [*worker["volumes"], *MOUNTS[name]]
    assert (further["restart"], further["depends_on"]) == (worker["restart"], worker["depends_on"])
    assert (further["image"] == worker["image"]) is (name != "archive")
    assert "ports" not in further
    assert len(further["secrets"]) == 1
    assert (config.archive, config.watches, config.keep_days) == (
        "/archive" if name == "archive" else "",
        "/etc/hearsay/watches.toml" if name == "watch" else "",
        400 if name == "prune" else 0,
    )


def test_relay_and_issuer_start_by_their_profile_and_are_reached_from_this_machine() -> None:
    for name in ("relay", "issuer"):
        service = RELAY["services"][name]
        assert service["profiles"] == ["relay"]
        assert service["restart"] == SERVICES["worker"]["restart"]
        assert "healthcheck" in service
        assert not {"environment", "secrets"} & set(service)
        assert [port.partition(":")[0] for port in service["ports"]] == ["127.0.0.1"]


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
