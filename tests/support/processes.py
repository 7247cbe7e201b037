"""The processes of a deployment, as compose, systemd and Kubernetes start them: one description."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from collector.storage.access import COPY

from .deployment import DEPLOY, ROOT, Things, pods

UNITS: Final = DEPLOY / "systemd"
OPTIONS: Final = ("archive", "backup", "prune", "watch")  # each a file next to compose's first
RELAY: Final = ("relay", "issuer")
DAILY: Final = ("--every", "86400")  # what a schedule of the cluster or a timer stands for
_REGISTRY: Final = str(ROOT / "examples" / "metrics.toml")
_RIGHTS: Final = {"cap_add", "privileged", "devices", "pid", "ipc", "network_mode"}


@dataclass(frozen=True)
class Process:
    """One process, whatever starts it."""

    command: tuple[str, ...]
    settings: Mapping[str, str]  # its environment
    secrets: frozenset[str]  # names of the files that it is handed
    memory: int  # MiB at most
    disk: tuple[str, ...]  # places that it may write to, memory apart
    faults: tuple[str, ...]  # in which way it is not confined
    stop_s: float  # seconds until it is killed

    @property
    def looked_for(self) -> frozenset[str]:
        """The names of the secret files that settings and command name."""
        files = [value for name, value in self.settings.items() if name.endswith("_FILE")]
        files += [word for word in self.command if "/secrets/" in word]
        return frozenset(Path(file).name for file in files)

    def environment(self, folder: Path) -> dict[str, str]:
        """Return its environment on this machine, with made-up secrets in *folder*."""
        values = dict(self.settings) | {"HEARSAY_REGISTRY": _REGISTRY}
        for name in [name for name in values if name.endswith("_FILE")]:
            secret = folder / Path(values[name]).name
            text = f"{secret.name}-of-at-least-24-characters"
            is_url = secret.name.endswith("_url")
            secret.write_text(f"redis://u:{text}@store:6379/0\n" if is_url else text, "utf-8")
            values[name] = str(secret)
        return {name: str(value) for name, value in values.items()}


def services() -> dict[str, dict[str, Any]]:
    """Return each service of compose, in the file that starts it."""
    files = [ROOT / f"examples/compose-{name}.yml" for name in (*OPTIONS, "relay")]
    texts = [yaml.safe_load(path.read_text("utf-8"))["services"] for path in files]
    more = {n: text[n] for text in texts for n in (*OPTIONS, *RELAY) if n in text}
    first = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
    return {**first, **more}


def of_compose() -> dict[str, Process]:
    """Return the processes of docker-compose.yml and of the files next to it."""
    return {name: _of_service(service) for name, service in services().items()}


def _of_service(service: dict[str, Any]) -> Process:
    mounts = [mount for mount in service.get("volumes", ()) if not mount.endswith(":ro")]
    expected = {
        "read_only": service["read_only"] is True,
        "cap_drop": service["cap_drop"] == ["ALL"],
        "security_opt": service["security_opt"] == ["no-new-privileges:true"],
        "user": min(map(int, service["user"].split(":"))) > 0,
        "tmpfs": [mount.split(":")[0] for mount in service["tmpfs"]] == ["/tmp"],  # noqa: S108
        "limits": {"mem_limit", "cpus", "pids_limit"} <= service.keys(),
        "rights": not _RIGHTS & service.keys(),
    }
    return Process(
        tuple(service["command"]),
        service.get("environment", {}),
        frozenset(service.get("secrets", ())),
        int(service["mem_limit"].removesuffix("m")),
        tuple(mount.split(":")[1] for mount in mounts),
        tuple(name for name, is_good in expected.items() if not is_good),
        float(service["stop_grace_period"].removesuffix("s")),
    )


def of_kubernetes(things: Things) -> dict[str, Process]:
    """Return the processes of what ``kubectl kustomize`` makes."""
    shared = things["ConfigMap", "hearsay-settings"]["data"]
    return {
        name.removeprefix("hearsay-"): _of_pod(things, name, template["spec"], shared)
        for name, template in pods(things).items()
    }


def _of_pod(things: Things, name: str, spec: dict[str, Any], shared: dict[str, str]) -> Process:
    (own,) = spec["containers"]
    inside, outside = own["securityContext"], spec["securityContext"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    stop = own.get("lifecycle", {}).get("preStop")
    own_settings = {each["name"]: each["value"] for each in own.get("env", ())}
    settings = own_settings | (shared if "envFrom" in own else {})
    names = [value for key, value in own_settings.items() if key.endswith("_FILE")]
    names += [word for word in own["args"] if "/secrets/" in word]
    expected = {
        "root": outside["runAsNonRoot"] is True and outside["runAsUser"] > 0,
        "seccomp": outside["seccompProfile"] == {"type": "RuntimeDefault"},
        "container": inside
        == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "token": spec["automountServiceAccountToken"] is False,
        "service links": spec["enableServiceLinks"] is False,
        "host": not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys(),
        "host path": not any("hostPath" in volume for volume in spec["volumes"]),
        "tmp": volumes["tmp"]["emptyDir"]["medium"] == "Memory",
        "secrets": volumes["secrets"]["secret"] == {"secretName": name, "defaultMode": 0o440},
    }
    mounts = [mount for mount in own["volumeMounts"] if not mount.get("readOnly")]
    return Process(
        tuple(own["args"]),
        settings,
        frozenset(Path(file).name for file in names),
        int(own["resources"]["limits"]["memory"].removesuffix("Mi")),
        tuple(mount["mountPath"] for mount in mounts if mount["name"] != "tmp"),
        tuple(key for key, is_good in expected.items() if not is_good),
        spec.get("terminationGracePeriodSeconds", 30.0)
        - (float(stop["exec"]["command"][1]) if stop else 0.0),
    )


def lines(name: str) -> list[tuple[str, str]]:
    """Return the settings of a unit, in its order."""
    text = (UNITS / name).read_text(encoding="utf-8")
    return re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE)


def values(name: str, key: str) -> list[str]:
    """Return each value of *key* in a unit."""
    return [value for setting, value in lines(name) if setting == key]


def of_systemd() -> dict[str, Process]:
    """Return the processes of the units in deploy/systemd."""
    found = (re.match(r"hearsay-(\w+)", path.name) for path in UNITS.glob("*.service"))
    return {match[1]: _of_unit(match.string) for match in found if match}


def _of_unit(name: str) -> Process:
    unit = dict(lines(name))
    loaded = [value.split(":") for value in values(name, "LoadCredential")]
    expected = {
        "root": unit["DynamicUser"] == "yes",
        "rights": (unit["NoNewPrivileges"], unit["CapabilityBoundingSet"]) == ("yes", ""),
        "disk": unit["ProtectSystem"] == "strict",
        "paths": not {"ReadWritePaths", "BindPaths", "PermissionsStartOnly"} & unit.keys(),
        "secrets": all(path == f"/etc/hearsay/secrets/{secret}" for secret, path in loaded),
        "tasks": values(name, "TasksMax") == ["128"],
    }
    start = unit["ExecStart"].replace("${CREDENTIALS_DIRECTORY}", "/run/secrets")
    return Process(
        tuple(start.replace("/opt/hearsay/bin/", "").replace("/usr/bin/", "").split()),
        dict(_environment(name)),
        frozenset(secret for secret, _ in loaded),
        int(unit["MemoryMax"].removesuffix("M")),
        tuple(f"/var/lib/{folder}" for folder in values(name, "StateDirectory")),
        tuple(key for key, is_good in expected.items() if not is_good),
        float(unit.get("TimeoutStopSec", 90)),
    )


def _environment(name: str) -> Iterator[tuple[str, str]]:
    texts = values(name, "Environment")
    if values(name, "EnvironmentFile") == ["/etc/hearsay/settings"]:
        settings = (UNITS / "settings").read_text(encoding="utf-8").splitlines()
        texts += [line for line in settings if line and not line.startswith("#")]
    for pair in " ".join(texts).split():
        variable, _, value = pair.partition("=")
        yield variable, value


def without_schedule(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return *command* without the pause that a schedule or a timer stands for."""
    if "--every" not in command:
        return command
    place = command.index("--every")
    return command[:place] + command[place + 2 :]


# By process, the variables that name an address of the store, and the user that it logs in as.
LOGINS: Final = {
    "init": {"REDIS_URL_FILE": "init_url"},
    "web": {"REDIS_URL_FILE": "ingest_url", "HEARSAY_QUERY_URL_FILE": "query_url"},
    **{name: {"REDIS_URL_FILE": f"{name}_url"} for name in ("worker", "archive", "prune", "watch")},
    "backup": {"REDIS_URL_FILE": f"{COPY}_url"},
}
