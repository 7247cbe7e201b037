"""Opting out above the application: each level can only say no, and a no wipes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from client_sdk.privacy.consent import (
    Consent,
    ConsentLike,
    Level,
    OptOuts,
    set_user_opt_out,
)
from client_sdk.privacy.opt_outs import USER_FILE, policy_path
from tests.support.device.clock import FakeClock
from tests.support.device.device import ENDPOINT, KEY, changed, make_client, metric_text, rows
from tests.support.device.device_transport import ScriptedTransport
from tests.support.enumeration.enumeration import Untouchable
from tests.support.patience import PATIENCE

NOES = ("0", "off", "False", "no", "n", "f", "00", "none", "never", "disabled", "0.0", "2", "-")
WAITING = "SELECT (SELECT count(*) FROM reports), (SELECT count(*) FROM uploads)"


def opt_outs(
    folder: Path | None, environment: Mapping[str, str] | None = None, policy: str | None = None
) -> OptOuts:
    """Return opt-outs that know nothing of this machine."""
    path = Path(os.devnull) / "none"
    if policy is not None and folder is not None:
        path = folder / "policy.toml"
        path.write_text(policy)
    return OptOuts(folder, environment or {}, path)


@pytest.mark.parametrize(
    ("environment", "level"),
    [
        ({}, None),
        ({"DO_NOT_TRACK": ""}, None),
        ({"DO_NOT_TRACK": "0"}, None),
        ({"DO_NOT_TRACK": "false"}, None),
        ({"DO_NOT_TRACK": "False"}, None),
        ({"DO_NOT_TRACK": "1"}, Level.DO_NOT_TRACK),
        ({"DO_NOT_TRACK": "true"}, Level.DO_NOT_TRACK),
        ({"DO_NOT_TRACK": "please"}, Level.DO_NOT_TRACK),
        *(({"HEARSAY_TELEMETRY": yes}, None) for yes in ("", "1", "true", "Yes", " on ")),
        *(({"HEARSAY_TELEMETRY": no}, Level.HEARSAY_TELEMETRY) for no in NOES),
        ({"HEARSAY_TELEMETRY": "1", "DO_NOT_TRACK": "1"}, Level.DO_NOT_TRACK),
        ({"HEARSAY_TELEMETRY": "0", "DO_NOT_TRACK": "0"}, Level.HEARSAY_TELEMETRY),
    ],
)
def test_the_environment_is_read_as_people_write_it(
    environment: Mapping[str, str], level: Level | None
) -> None:
    """Law: DO_NOT_TRACK says no unless it is empty, 0 or false; the other unless it says yes."""
    assert opt_outs(None, environment).said_by() is level


@pytest.mark.parametrize(
    ("policy", "level"),
    [
        ("telemetry = false", Level.POLICY),
        ("telemetry = true", None),
        ("", None),
        ("other = 1", None),
        ("telemetry = 0", Level.POLICY),
        ('telemetry = "false"', Level.POLICY),
        ("telemetry = ", Level.POLICY),
        ("\x00", Level.POLICY),
    ],
)
def test_a_policy_that_is_not_understood_says_no(
    tmp_path: Path, policy: str, level: Level | None
) -> None:
    """Law: the owner of a machine can only forbid, and a slip of the pen forbids too."""
    assert opt_outs(tmp_path, policy=policy).said_by() is level


def test_a_policy_that_cannot_be_read_says_no(tmp_path: Path) -> None:
    """Law: what is there but closed to us was not put there to allow."""
    assert OptOuts(None, {}, tmp_path).said_by() is Level.POLICY


def test_the_strongest_level_is_named(tmp_path: Path) -> None:
    """Law: environment, then policy, then user, as far as they say anything."""
    set_user_opt_out(tmp_path, off=True)
    policy = "telemetry = false"

    named = [
        opt_outs(tmp_path, {"DO_NOT_TRACK": "1", "HEARSAY_TELEMETRY": "0"}, policy).said_by(),
        opt_outs(tmp_path, {"HEARSAY_TELEMETRY": "0"}, policy).said_by(),
        opt_outs(tmp_path, {}, policy).said_by(),
        opt_outs(tmp_path).said_by(),
    ]

    assert named == [Level.DO_NOT_TRACK, Level.HEARSAY_TELEMETRY, Level.POLICY, Level.USER]


def test_the_user_can_say_no_and_take_it_back(tmp_path: Path) -> None:
    """Law: the setting is a file in the application's folder, made if it must be."""
    folder = tmp_path / "data"
    set_user_opt_out(folder, off=False)
    set_user_opt_out(folder, off=True)
    set_user_opt_out(folder, off=True)
    off = opt_outs(folder).said_by()

    set_user_opt_out(folder, off=False)

    assert (off, opt_outs(folder).said_by()) == (Level.USER, None)


def test_each_system_has_its_place_for_a_policy() -> None:
    """Law: the paths are those that the documentation names."""
    paths = [policy_path({}, "linux"), policy_path({}, "darwin")]
    windows = policy_path({"PROGRAMDATA": "D:"}, "win32")

    assert paths == ["/etc/hearsay/policy.toml", "/Library/Application Support/hearsay/policy.toml"]
    assert windows == os.path.join("D:", "hearsay", "policy.toml")


@pytest.mark.parametrize("consent", ["granted", "unknown", "denied"])
def test_who_opted_out_is_never_recorded_whatever_the_application_says(
    tmp_path: Path, consent: ConsentLike
) -> None:
    """Law: an opt-out counts as denied; nothing is drawn, no file is made, and stats say why."""
    said = opt_outs(tmp_path / "data", {"DO_NOT_TRACK": "1"})
    client = make_client(
        tmp_path / "data", consent=consent, opt_outs=said, randomness=Untouchable()
    )

    client.record("dark_mode", True)
    client.set_consent(consent)
    client.flush()
    client.close()

    assert changed(client) == {"opted_out": 1}
    assert (client.consent, client.consent_level) == (Consent.DENIED, Level.DO_NOT_TRACK)
    assert not (tmp_path / "data").exists()


def test_without_an_opt_out_the_application_has_the_word(tmp_path: Path) -> None:
    """Law: silence above leaves the consent as it was given."""
    client = make_client(tmp_path, consent="unknown", opt_outs=opt_outs(tmp_path))

    assert (client.consent, client.consent_level) == (Consent.UNKNOWN, Level.APPLICATION)
    client.close()


def test_an_opt_out_before_the_start_wipes_what_an_earlier_run_left(tmp_path: Path) -> None:
    """Law: the no of any level deletes what waits."""
    make_client(tmp_path).record("dark_mode", True)

    client = make_client(tmp_path, opt_outs=opt_outs(tmp_path, policy="telemetry = false"))

    client.close()
    assert changed(client) == {"revoked": 1}
    assert rows(tmp_path, WAITING) == [(0, 0)]


@pytest.mark.parametrize("mode", ["manual", "background"])
def test_an_opt_out_while_the_application_runs_is_obeyed_at_the_next_write(
    tmp_path: Path, mode: str
) -> None:
    """Law: nothing is written or sent after the user's file is there, and what waits is wiped."""
    transport, clock = ScriptedTransport(), FakeClock()
    client = make_client(
        tmp_path, mode=mode, transport=transport, clock=clock, opt_outs=opt_outs(tmp_path)
    )
    client.record("dark_mode", True)
    client._engine._state().background.drain(20)

    set_user_opt_out(tmp_path, off=True)
    client.record("theme", "plain")
    client.flush()

    client.close()
    assert (transport.sent, rows(tmp_path, WAITING)) == ([], [(0, 0)])
    assert changed(client) == {"recorded": 1, "opted_out": 1, "revoked": 1}
    assert client.consent_level is Level.USER


def test_an_opt_out_taken_back_lets_values_through_again(tmp_path: Path) -> None:
    """Law: after a no is taken back, the consent of the application counts from the next write."""
    (tmp_path / USER_FILE).touch()
    client = make_client(tmp_path, opt_outs=opt_outs(tmp_path))
    client.record("dark_mode", True)

    set_user_opt_out(tmp_path, off=False)
    client.flush()
    client.record("dark_mode", True)

    assert changed(client) == {"opted_out": 1, "recorded": 1}
    client.close()


_PROGRAM = """
import client_sdk
arguments = {endpoint!r}, {key!r}, {registry!r}
client = client_sdk.Client(*arguments, consent="granted", data_dir={data!r})
client.record("dark_mode", True)
client.close()
print(client.stats()["recorded"], client.consent_level)
"""


@pytest.mark.parametrize(
    ("variable", "told"),
    [("DO_NOT_TRACK", "0 DO_NOT_TRACK"), ("HEARSAY_TELEMETRY", "1 application"), ("X", "1 app")],
)
def test_the_variables_of_the_process_count_where_nothing_else_is_said(
    tmp_path: Path, variable: str, told: str
) -> None:
    """Law: an application does nothing to honour DO_NOT_TRACK, and can do nothing by accident."""
    registry = tmp_path / "metrics.toml"
    registry.write_text('schema = 1\napp = "demo"\n' + metric_text("dark_mode"))
    program = _PROGRAM.format(
        endpoint=ENDPOINT, key=KEY, registry=str(registry), data=str(tmp_path / "data")
    )
    known = ("DO_NOT_TRACK", "HEARSAY_TELEMETRY")
    environment = {name: value for name, value in os.environ.items() if name not in known}

    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, variable: "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )

    assert run.stdout.startswith(told)
