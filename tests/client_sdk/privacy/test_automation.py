"""Machines that run an application by themselves: they are no people, and nothing is erased."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from client_sdk.core.errors import AutomatedError, RegistryError
from client_sdk.gateway import Gateway
from client_sdk.inspection import status
from client_sdk.privacy import automation
from client_sdk.privacy.automation import CONTAINER, is_disposable, sign_of_automation
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.consent import Consent, Level, OptOuts
from client_sdk.privacy.wording import explain, notice
from client_sdk.registry import Registry
from client_sdk.registry.metric import DIMENSION
from client_sdk.storage.schema import FILE_NAME
from client_sdk.testing import MemoryClient
from collector.planning.compilation import compiled
from tests.support.device.clock import FakeClock
from tests.support.device.device import (
    ENDPOINT,
    KEY,
    changed,
    make_client,
    metric_text,
    registry_of,
    rows,
)
from tests.support.device.device_transport import ScriptedTransport
from tests.support.enumeration.enumeration import Untouchable
from tests.support.patience import PATIENCE

# What each service documents that it sets in every build.
VENDORS: Final = {
    "GitHub Actions": {"CI": "true", "GITHUB_ACTIONS": "true"},
    "GitLab": {"CI": "true", "GITLAB_CI": "true"},
    "Azure Pipelines": {"TF_BUILD": "True"},
    "Buildkite": {"CI": "true", "BUILDKITE": "true"},
    "Jenkins": {"JENKINS_URL": "https://jenkins.example.org/"},
    "TeamCity": {"TEAMCITY_VERSION": "2024.12 (build 174331)"},
    "CircleCI": {"CI": "true", "CIRCLECI": "true"},
    "Travis": {"CI": "true", "TRAVIS": "true"},
    "AppVeyor": {"CI": "True", "APPVEYOR": "True"},
    "Bitbucket": {"CI": "true", "BITBUCKET_BUILD_NUMBER": "7"},
    "AWS CodeBuild": {"CODEBUILD_BUILD_ID": "demo-project:b1e6661e-e4f2-4156-9ab9-82a19EXAMPLE"},
    "Drone": {"CI": "true", "DRONE": "true"},
    "Woodpecker": {"CI": "woodpecker"},
    "Bamboo": {"bamboo_buildKey": "PROJ-PLAN-JOB1"},
    "Cirrus": {"CI": "true", "CIRRUS_CI": "true"},
    "Semaphore": {"CI": "true", "SEMAPHORE": "true"},
    "Netlify": {"CI": "true", "NETLIFY": "true"},
    "GoCD": {"GO_PIPELINE_NAME": "main"},
    "Vercel": {"CI": "1"},
    "Xcode Cloud": {"CI": "TRUE"},
}
OVERLAY: Final = b"overlay / overlay rw,lowerdir=/a 0 0\nproc /proc proc rw 0 0\n"
LEFT: Final = ("SELECT * FROM charges", "SELECT * FROM reports", "SELECT * FROM costs")
APART: Final = 'schema = 1\napp = { name = "demo", automation = "segment" }\n'


def on(folder: Path | None, **environment: str) -> OptOuts:
    """Return opt-outs of a machine of which nothing but its *environment* is known."""
    return OptOuts(folder, environment, Path(os.devnull) / "none")


def machine(root: Path, mounts: bytes = OVERLAY, identity: bytes | None = None) -> str:
    """Write the files of a machine below *root*, and return it as a path."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mounts").write_bytes(mounts)
    if identity is not None:
        (root / "etc").mkdir()
        (root / "etc/machine-id").write_bytes(identity)
    return str(root)


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_builds_of_each_service_are_known(vendor: str) -> None:
    """Law: with what a service documents, and with each of its own variables alone."""
    variables = VENDORS[vendor]

    assert sign_of_automation(None, variables) in variables
    for name, text in variables.items():
        assert sign_of_automation(None, {name: text}) == name


@pytest.mark.parametrize("name", automation.VARIABLES)
@pytest.mark.parametrize("text", ["", "0", "false", "False", " 0 "])
def test_a_variable_that_says_no_is_no_sign(name: str, text: str) -> None:
    assert sign_of_automation(None, {name: text}) is None


@pytest.mark.parametrize(
    ("answer", "sign"),
    [("1", None), ("yes", None), (" TRUE ", None), ("on", None), ("", "CI"), ("0", "CI")],
)
def test_a_person_can_say_to_be_there(answer: str, sign: str | None) -> None:
    """Law: only a written yes does it, and silence does not."""
    assert sign_of_automation(None, {"CI": "true", "HEARSAY_TELEMETRY": answer}) == sign


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux writes")
@pytest.mark.parametrize(
    ("mounts", "identity", "sign"),
    [
        (OVERLAY, None, CONTAINER),
        (OVERLAY, b"", CONTAINER),
        (OVERLAY, b"uninitialized\n", CONTAINER),
        (OVERLAY, b"3d1219c7c4c5404aaa1f6d2a48adfda4\n", None),
        (b"/dev/sda1 / ext4 rw 0 0\n", None, None),
        (b"rootfs / rootfs rw 0 0\n" + OVERLAY, None, CONTAINER),
        (OVERLAY + b"/dev/sda1 / ext4 rw 0 0\n", None, None),
        (b"", None, None),
        (b"\xff\n/\n", None, None),
    ],
)
def test_a_container_that_keeps_nothing_is_known_by_its_files(
    tmp_path: Path, mounts: bytes, identity: bytes | None, sign: str | None
) -> None:
    """Law: no machine id and a root of layers; whatever else is there, a person may be."""
    root = machine(tmp_path, mounts, identity)

    assert sign_of_automation(tmp_path / "home/me/data", {}, root) == sign
    assert sign_of_automation(tmp_path / "home/me/data", {}, None) is None
    assert sign_of_automation(None, {}, root) is None


def test_a_container_with_a_ledger_or_a_volume_keeps_something(tmp_path: Path) -> None:
    """Law: an earlier run that left its ledger, or another file system, shows a home."""
    root = machine(tmp_path)
    (tmp_path / FILE_NAME).touch()
    volumes = (path for path in ("/proc", "/sys") if os.path.isdir(path))
    here = os.stat(tmp_path).st_dev
    volume = next((path for path in volumes if os.stat(path).st_dev != here), None)

    assert not is_disposable(tmp_path, root)
    assert is_disposable(tmp_path / "data", root)
    assert volume is None or not is_disposable(Path(volume), root)


def test_where_nobody_is_nothing_is_drawn_and_no_file_made(tmp_path: Path) -> None:
    """Law: each value is counted as automated; consent and level stay as they are."""
    client = make_client(
        tmp_path / "data", opt_outs=on(tmp_path, CI="true"), randomness=Untouchable()
    )

    client.record("dark_mode", True)
    client.set_consent("granted")
    client.flush()
    client.close()

    assert changed(client) == {"automated": 1}
    assert (client.consent, client.consent_level) == (Consent.GRANTED, Level.APPLICATION)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("mode", ["manual", "background"])
def test_what_waits_is_neither_sent_nor_erased_where_nobody_is(tmp_path: Path, mode: str) -> None:
    """Law: a build changes no byte of what a person left, and a later run sends it."""
    clock, transport = FakeClock(), ScriptedTransport()
    make_client(tmp_path, clock=clock).record("dark_mode", True)
    tables = [rows(tmp_path, query) for query in LEFT]
    clock.advance(days=1)

    client = make_client(
        tmp_path, clock=clock, transport=transport, mode=mode, opt_outs=on(tmp_path, CI="1")
    )
    client.watch()
    client.record("dark_mode", True)
    client.flush()
    client.close()

    assert changed(client) == {"automated": 1}
    assert [rows(tmp_path, query) for query in LEFT] == tables
    assert transport.sent == []

    later = make_client(tmp_path, clock=clock, transport=transport)
    later.flush()
    later.close()
    assert changed(later) == {"uploaded": 1}


def test_a_no_erases_where_nobody_is_too(tmp_path: Path) -> None:
    """Law: who says no is obeyed everywhere, and is counted before the machine is."""
    make_client(tmp_path).record("dark_mode", True)

    client = make_client(tmp_path, opt_outs=on(tmp_path, CI="1", DO_NOT_TRACK="1"))
    client.record("dark_mode", True)
    client.close()

    assert changed(client) == {"revoked": 1, "opted_out": 1}


def test_the_refusal_names_the_variable_and_the_way_out() -> None:
    """Law: never what the variable says."""
    client = make_client(opt_outs=on(None, JENKINS_URL="https://secret.example"))

    with pytest.raises(AutomatedError) as refusal:
        client._engine.switch.require()

    rule = "no person is present, so nothing is recorded; if one is, set HEARSAY_TELEMETRY=1"
    assert str(refusal.value) == f"automation=JENKINS_URL: {rule}"


def registry_apart() -> Registry:
    """Return a registry that keeps machines and people apart."""
    segments = '[segments]\nplatform = ["linux", "mac"]\n'
    split = metric_text("theme").replace("owner", 'segments = ["platform"]\nowner')
    return Registry.from_text(APART + segments + metric_text("dark_mode") + split)


@pytest.mark.parametrize(("environment", "said"), [({"CI": "true"}, "automated"), ({}, "people")])
def test_a_registry_can_keep_machines_and_people_apart(
    tmp_path: Path, environment: Mapping[str, str], said: str
) -> None:
    """Law: the device fills the dimension of every metric by itself."""
    transport = ScriptedTransport()
    client = make_client(
        tmp_path,
        registry=registry_apart(),
        transport=transport,
        segment={"platform": "mac"},
        opt_outs=on(tmp_path, **environment),
    )

    client.record("dark_mode", True)
    client.record("theme", True)
    client.flush()
    client.close()

    segments = [json.loads(body)["segment"] for body in transport.sent]
    assert {json.dumps(segment, sort_keys=True) for segment in segments} <= {
        json.dumps({DIMENSION: said}),
        json.dumps({DIMENSION: said, "platform": "mac"}),
    }
    assert segments
    assert all(segment[DIMENSION] == said for segment in segments)


def test_the_dimension_changes_no_digest_and_is_told() -> None:
    """Law: reports mean the same, and people read what goes beside them."""
    apart, plain = registry_apart(), registry_of(metric_text("dark_mode"), metric_text("theme"))
    caps = Caps()

    assert [metric.digest for metric in apart] == [metric.digest for metric in plain]
    assert list(apart.metric("theme").segments) == ["automation", "platform"]
    assert apart.segments["automation"] == ("people", "automated")
    assert apart.app == plain.app
    words = " ".join(notice(apart, caps).split())
    assert "whether a machine runs it by itself, your platform, and" in words
    assert "whether a machine runs it by itself" in explain(apart.metric("theme"), caps)


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (
            'app = { name = "demo", automation = "count" }',
            "app.automation: must be one of ignore, seg",
        ),
        ('app = { name = "demo", other = 1 }', "app.other"),
        ("app = { }", "app.name"),
        (
            'app = { name = "demo", automation = "segment" }\n[segments]\nautomation = ["a", "b"]',
            "segments.automation: is what app.automation=segment declares",
        ),
        ("app = 3", "app: "),
    ],
)
def test_a_wrong_application_is_refused_by_field(head: str, problem: str) -> None:
    with pytest.raises(RegistryError) as refusal:
        Registry.from_text(f"schema = 1\n{head}\n" + metric_text("dark_mode"))

    assert problem in str(refusal.value)


def test_a_dimension_of_that_name_stays_valid_where_machines_are_ignored() -> None:
    """Law: registries of before mean what they meant."""
    text = 'schema = 1\napp = "demo"\n[segments]\nautomation = ["a", "b"]\n'

    registry = Registry.from_text(text + metric_text("dark_mode"))

    assert (registry.app, registry.automation) == ("demo", "ignore")
    assert registry.metric("dark_mode").segments == {}


def test_a_table_without_automation_is_its_name() -> None:
    registry = Registry.from_text('schema = 1\napp = { name = "demo" }\n' + metric_text("m"))

    assert (registry.app, registry.automation, registry.segments) == ("demo", "ignore", {})


def test_status_says_what_shows_it_and_what_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: in words, with the way out; of a registry that keeps them apart, what it does."""
    monkeypatch.delenv("HEARSAY_TELEMETRY", raising=False)
    monkeypatch.setenv("TF_BUILD", "True")

    assert status(tmp_path)[1] == (
        "automation: the environment variable TF_BUILD is set, so nothing is recorded or sent;"
        " HEARSAY_TELEMETRY=1 says that a person is here"
    )
    assert "reports say that no person" in status(tmp_path, registry_apart())[1]
    monkeypatch.setenv("HEARSAY_TELEMETRY", "1")
    assert not any("automation" in line for line in status(tmp_path))


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
