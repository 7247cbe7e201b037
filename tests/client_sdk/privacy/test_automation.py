"""Machines that run an application by themselves: they are no people, and nothing is erased."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from client_sdk.core.errors import AutomatedError, RegistryError
from client_sdk.inspection import status
from client_sdk.privacy import automation
from client_sdk.privacy.automation import CONTAINER, is_disposable, sign_of_automation
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.consent import Consent, Level, OptOuts
from client_sdk.privacy.wording import explain, notice
from client_sdk.registry import Registry
from client_sdk.registry.metric import DIMENSION
from client_sdk.storage.schema import FILE_NAME
from tests.support.device.clock import FakeClock
from tests.support.device.device import (
    changed,
    make_client,
    metric_text,
    registry_of,
    rows,
)
from tests.support.device.device_transport import ScriptedTransport
from tests.support.enumeration.enumeration import Untouchable

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
