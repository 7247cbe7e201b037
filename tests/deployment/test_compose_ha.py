"""Laws of docker-compose.ha.yml over docker-compose.yml: more of the same, and a store of three."""

from __future__ import annotations

from typing import Any, Final

import pytest
import yaml

from collector.core.config import HA
from tests.support.deployment import ROOT

BASE: Final[dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
OVER: Final[dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.ha.yml").read_text("utf-8"))
FIRST: Final = {"web-2": "web", "worker-2": "worker"}
REPLICAS: Final = ("replica-1", "replica-2")


@pytest.mark.parametrize("name", FIRST)
def test_the_second_is_as_the_first(name: str) -> None:
    """Law: all but what is built, the port of this machine and the profile."""
    second, first = dict(OVER["services"][name]), dict(BASE["services"][FIRST[name]])
    environment = dict(second.pop("environment"))
    profile = environment.pop("HEARSAY_PROFILE")
    ports = second.pop("ports", [])
    wanted = {k: v for k, v in first.items() if k not in {"build", "ports", "environment"}}

    assert second == wanted
    assert profile == HA
    assert environment == {k: v for k, v in first["environment"].items() if k != "HEARSAY_PROFILE"}
    assert ports == (["127.0.0.1:8001:8000"] if name == "web-2" else [])


@pytest.mark.parametrize("name", ["init", "web", "worker"])
def test_who_is_there_already_waits_for_a_replica_before_it_acknowledges(name: str) -> None:
    service = OVER["services"][name]

    assert service["environment"]["HEARSAY_PROFILE"] == HA
    waits = service.get("depends_on", {})
    assert set(waits) == (set(REPLICAS) if name == "init" else set())


@pytest.mark.parametrize("name", REPLICAS)
def test_a_replica_is_as_the_store_and_keeps_its_own_file(name: str) -> None:
    replica, store = dict(OVER["services"][name]), dict(BASE["services"]["store"])
    command = list(replica.pop("command"))

    assert command[:4] == [
        "valkey-server",
        "/run/secrets/replication_conf",
        "--replicaof",
        "store 6379",
    ]
    assert command[4:] == store.pop("command")[1:]
    assert replica.pop("volumes") == [f"{name}:/data"]
    assert name in OVER["volumes"]
    assert replica.pop("secrets") == [*store.pop("secrets"), "replication_conf"]
    assert replica.pop("depends_on") == {"store": {"condition": "service_healthy"}}
    del store["volumes"]
    assert replica == store


def test_no_two_write_into_one_volume_and_none_is_published() -> None:
    volumes = [OVER["services"][name]["volumes"] for name in REPLICAS]

    assert len({str(one) for one in volumes}) == len(REPLICAS)
    published = [n for n, s in OVER["services"].items() if "ports" in s]
    assert published == ["web-2"]
