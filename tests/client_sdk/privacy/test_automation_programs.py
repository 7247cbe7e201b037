"""Programs and gateways that a machine runs by itself, as processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from client_sdk.gateway import Gateway
from client_sdk.privacy import automation
from client_sdk.privacy.consent import OptOuts
from client_sdk.registry import Registry
from client_sdk.registry.metric import DIMENSION
from client_sdk.testing import MemoryClient
from collector.planning.compilation import compiled
from tests.support.device.device import (
    ENDPOINT,
    KEY,
    metric_text,
    registry_of,
)
from tests.support.device.device_transport import ScriptedTransport
from tests.support.patience import PATIENCE

APART: Final = 'schema = 1\napp = { name = "demo", automation = "segment" }\n'


def on(folder: Path | None, **environment: str) -> OptOuts:
    """Return opt-outs of a machine of which nothing but its *environment* is known."""
    return OptOuts(folder, environment, Path(os.devnull) / "none")


PROGRAM: Final = """
import os, client_sdk
from client_sdk import command
from client_sdk.gateway import Gateway
from client_sdk.testing import MemoryClient
place = {endpoint!r}, {key!r}, "metrics.toml"
with client_sdk.Client(*place, consent="granted", data_dir="data", mode={mode!r}) as client:
    client.record("dark_mode", True)
dry = client_sdk.Client(*place, consent="granted", data_dir="dry", mode="manual", dry_run=True)
dry.record("dark_mode", True)
gateway = Gateway(*place, consent="granted", data_dir="many")
gateway.record("pump", "dark_mode", True)
memory = MemoryClient("metrics.toml")
memory.record("dark_mode", True)
print(client.stats()["automated"], *(c.stats()["recorded"] for c in (dry, gateway, memory)))
def spawned(*arguments, **options):
    print("a child")
    return 0
os.posix_spawn = spawned
command.configure(*place, data_dir="light", consent="granted")
command.record("dark_mode", True)
command._end()
files = [os.path.exists(f"{{folder}}/hearsay.sqlite3") for folder in ("data", "light")]
print(dict(command.counts()), *files)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="spawns as POSIX does")
@pytest.mark.parametrize("mode", ["background", "manual"])
@pytest.mark.parametrize(
    ("head", "override", "printed"),
    [
        ('app = "demo"\n', "", "1 1 1 1\n{'automated': 1} False False\n"),
        ('app = "demo"\n', "1", "0 1 1 1\na child\n{'handed_over': 1} True False\n"),
        (APART.partition("\n")[2], "", "0 1 1 1\na child\n{'handed_over': 1} True False\n"),
    ],
)
def test_a_process_on_a_build_machine_records_nothing_by_itself(
    tmp_path: Path, mode: str, head: str, override: str, printed: str
) -> None:
    """Law: no client, and no child; gateways, tests of applications and dry runs go on."""
    (tmp_path / "metrics.toml").write_text("schema = 1\n" + head + metric_text("dark_mode"))
    program = PROGRAM.format(endpoint=ENDPOINT, key=KEY, mode=mode)

    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "CI": "true", "HEARSAY_TELEMETRY": override},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )

    assert run.stdout == printed
    assert run.stderr == ""


COUNTS: Final = """
import os
from client_sdk import command
os.posix_spawn = lambda *arguments, **options: 0
place = {{"endpoint": {endpoint!r}, "write_key": {key!r}, "registry": "metrics.toml"}}
command.configure(**place, consent={consent!r}, data_dir="data")
command.record("dark_mode", True)
command.record("dark_mode", True)
command._end()
print(dict(command.counts()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="spawns as POSIX does")
@pytest.mark.parametrize(
    ("consent", "environment", "counted"),
    [
        ("granted", {"CI": "true"}, "automated"),
        ("granted", {"CI": "true", "HEARSAY_TELEMETRY": "1"}, "handed_over"),
        ("granted", {"CI": "true", "DO_NOT_TRACK": "1"}, "opted_out"),
        ("unknown", {"CI": "true"}, "consent"),
        ("denied", {"CI": "true"}, "consent"),
        ("denied", {"DO_NOT_TRACK": "1"}, "opted_out"),
    ],
)
def test_a_program_that_ends_at_once_counts_why_it_hands_nothing_over(
    tmp_path: Path, consent: str, environment: dict[str, str], counted: str
) -> None:
    (tmp_path / "metrics.toml").write_text('schema = 1\napp = "demo"\n' + metric_text("dark_mode"))

    run = subprocess.run(
        [sys.executable, "-c", COUNTS.format(endpoint=ENDPOINT, key=KEY, consent=consent)],
        cwd=tmp_path,
        env={**os.environ, "CI": "", "HEARSAY_TELEMETRY": "", "DO_NOT_TRACK": "", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )

    assert run.stdout.splitlines() == [str({counted: 2})]
    assert run.stderr == ""


@pytest.mark.parametrize(("head", "apart"), [('app = "demo"\n', False), (APART, True)])
def test_the_light_path_tells_from_bytes_whether_a_child_must_decide(
    tmp_path: Path, head: str, apart: bool
) -> None:
    """Law: of both forms of a registry; a compiled one always names the key."""
    text = f"schema = 1\n{head.removeprefix('schema = 1')}" + metric_text("dark_mode")
    plain, whole = tmp_path / "metrics.toml", tmp_path / "metrics.json"
    plain.write_text(text)
    whole.write_text(compiled(Registry.from_text(text)))

    assert [automation.may_be_told_apart(path) for path in (plain, whole)] == [apart, apart]
    assert automation.may_be_told_apart(tmp_path / "nothing.toml")


def test_a_gateway_speaks_for_people_unless_it_is_told_otherwise(tmp_path: Path) -> None:
    """Law: the machine it runs on says nothing of its devices; who knows better, says so."""
    said = []
    for segment in ({}, {DIMENSION: "automated"}):
        transport = ScriptedTransport()
        gateway = Gateway(
            ENDPOINT,
            KEY,
            Registry.from_text(APART + metric_text("dark_mode")),
            consent="granted",
            data_dir=None,
            segment=segment,
            transport=transport,
        )
        gateway.record("pump", "dark_mode", True)
        gateway.flush()
        gateway.close()
        (body,) = transport.sent
        said.append([word for word in (b"people", b"automated") if word in body])

    assert said == [[b"people"], [b"automated"]]


def test_tests_of_applications_record_on_build_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.delenv("HEARSAY_TELEMETRY", raising=False)
    client = MemoryClient(registry_of(metric_text("dark_mode")))

    client.record("dark_mode", True)

    assert client.recorded == [("dark_mode", True)]
