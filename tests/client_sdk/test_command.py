"""Programs that end at once: a child records and sends, and nothing but a pipe tells it values."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk.core.errors import InvalidParameterError
from client_sdk.core.limits import NOTES_FILE
from client_sdk.privacy.opt_outs import USER_FILE
from client_sdk.recording import handover
from client_sdk.recording.handover_protocol import issue_permit
from tests.support.device.device import CANARY, KEY, metric_text, rows
from tests.support.device.device_transport import ScriptedTransport, reports_in
from tests.support.device.programs import (
    noting_collector,
    run,
    wait_for_notes,
    write_registry,
)
from tests.support.device.short_runs import Week

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="looks into /proc and forks")

CHARGES: Final = "SELECT count(*) FROM charges WHERE digest <> x''"
NOT_LOADED: Final = ("sqlite3", "tomllib", "subprocess", "typing", "json", "requests")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a registry of three metrics."""
    canary = f'type = "category"\nvalues = ["plain", "{CANARY}"]'
    counted = 'type = "count"\nmin = 0\nmax = 1000\nstep = 1\nunit = "files"\naggregate = "sum"'
    write_registry(
        tmp_path,
        metric_text("plain"),
        metric_text("canary", canary),
        metric_text("files", counted),
    )
    return tmp_path


def test_a_value_of_a_program_that_ends_at_once_is_charged_and_waits(folder: Path) -> None:
    run(folder, "command.record('plain', True); command.record('files', 7)")
    wait_for_notes(folder)

    assert rows(folder / "data", CHARGES) == [(1,)]
    assert rows(folder / "data", "SELECT count(*) FROM reports") == [(1,)]
    assert rows(folder / "data", "SELECT count(*) FROM windows") == [(1,)]


def test_the_parent_loads_neither_registry_nor_database_nor_subprocess(folder: Path) -> None:
    """But in its first run, which makes the data folder."""
    issue_permit(str(folder / "data"))
    body = f"""
before = set(sys.modules)
command.record('plain', True)
command._end()
print(sorted(set({NOT_LOADED!r}) & (set(sys.modules) - before)))
print(sorted(name for name in sys.modules if name.startswith('client_sdk.')))
print(dict(command.counts()))
"""
    loaded, ours, counts = run(folder, body).splitlines()

    assert loaded == "[]"
    light = [
        "command",
        "core",
        "core.limits",
        "privacy",
        "privacy.automation",
        "privacy.opt_outs",
        "recording",
        "recording.detached",
        "recording.handover",
        "recording.handover_protocol",
    ]
    assert ours == str([f"client_sdk.{name}" for name in light])
    assert counts == "{'handed_over': 1}"


def test_no_value_is_in_arguments_environment_or_files(folder: Path) -> None:
    """The child is stopped as soon as it exists, and looked at; then it goes on."""
    body = f"""
command.record('canary', '{CANARY}')
import signal
from client_sdk.recording import handover
spawn = os.posix_spawn
def stopped(*arguments, **options):
    child = spawn(*arguments, **options)
    os.kill(child, signal.SIGSTOP)
    for kind in ('cmdline', 'environ'):
        with open(f'/proc/{{child}}/{{kind}}', 'rb') as file:
            print({CANARY!r}.encode() in file.read())
    os.kill(child, signal.SIGCONT)
os.posix_spawn = stopped
"""
    assert run(folder, body).split() == ["False", "False"]
    wait_for_notes(folder)

    for path in (folder / "data").iterdir():
        assert CANARY.encode() not in path.read_bytes(), path.name


@pytest.mark.parametrize(
    ("consent", "environment"),
    [
        ("unknown", {}),
        ("denied", {}),
        ("granted", {"DO_NOT_TRACK": "1"}),
        ("granted", {"HEARSAY_TELEMETRY": "0"}),
    ],
)
def test_without_consent_there_is_no_child(
    folder: Path, consent: str, environment: dict[str, str]
) -> None:
    body = """
command.record('plain', True)
os.posix_spawn = lambda *arguments, **options: print('a child')
"""
    assert run(folder, body, consent=consent, **environment) == ""
    assert not (folder / "data").exists()


def test_a_users_own_no_is_heeded_and_erases_what_waits(folder: Path) -> None:
    run(folder, "command.record('plain', True)")
    wait_for_notes(folder)
    (folder / "data" / USER_FILE).touch()

    run(folder, "command.record('canary', 'plain')")

    assert rows(folder / "data", "SELECT count(*) FROM reports") == [(0,)]
    assert rows(folder / "data", CHARGES) == [(1,)]


def test_a_metric_that_has_its_report_needs_no_further_child(folder: Path) -> None:
    run(folder, "command.record('plain', True)")
    noted = wait_for_notes(folder)

    body = "command.record('plain', False); command._end(); print(dict(command.counts()))"
    assert run(folder, body) == "{'already_reported': 1}\n"

    for damage in (b"", b"\xff", b"1 2\nnever\n", (folder / "data" / NOTES_FILE).read_bytes()[1:]):
        (folder / "data" / NOTES_FILE).write_bytes(damage)
        noted = (folder / "data" / NOTES_FILE).stat().st_mtime_ns
        assert run(folder, body) == "{'handed_over': 1}\n"
        noted = wait_for_notes(folder, after=noted)
    assert rows(folder / "data", CHARGES) == [(1,)]


@pytest.mark.parametrize(
    ("pipe", "least"),
    [
        ("pass", 30_000),
        # what a user has who holds too many pipes already
        ("import fcntl; fcntl.F_SETPIPE_SZ = -1", 1_500),
        ("import fcntl; del fcntl.F_SETPIPE_SZ", 300),  # macOS
    ],
)
def test_many_values_are_bounded_and_the_rest_is_counted(
    folder: Path, pipe: str, least: int
) -> None:
    body = f"""
{pipe}
for i in range(60_000):
    command.record('files', 0)
command._end()
print(*(command.counts().get(reason, 0) for reason in ('handed_over', 'queue_full')))
"""
    handed, refused = map(int, run(folder, body).split())

    assert handed + refused == 60_000
    assert least < handed < 60_000
    wait_for_notes(folder)
    (window,) = rows(folder / "data", "SELECT count(*) FROM windows")
    assert window == (1,)


def test_the_first_values_of_a_program_are_those_that_are_kept(folder: Path) -> None:
    """A metric with one report an epoch takes its first value; a loop must not push it out."""
    run(folder, "command.record('plain', True)\nfor i in range(60_000): command.record('files', 1)")
    wait_for_notes(folder)

    assert rows(folder / "data", CHARGES) == [(1,)]


def test_a_week_of_short_runs_delivers_what_it_recorded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred runs a day: a day after a report's first due pass, at least 95 % have arrived."""
    names = [f"metric_{i}" for i in range(4)]
    write_registry(folder, *(metric_text(name, epsilon="0.25") for name in names))
    transport = ScriptedTransport()
    week = Week(folder, monkeypatch, transport)
    recorded_before_last_day = 0
    for run_number in range(700):
        if run_number == 560:  # 24 hours, and the longest time to a pass, before the end
            (recorded_before_last_day,) = rows(folder / "data", CHARGES)[0]
        week.run(**dict.fromkeys(names, True))
        week.clock.advance(days=0.01)

    assert recorded_before_last_day >= 4 * 5
    assert sum(map(reports_in, transport.sent)) >= 0.95 * recorded_before_last_day
    assert rows(folder / "data", CHARGES) == [(4 * 8,)]  # from noon on, so eight days
    assert week.children < 150  # most runs had nothing to hand over


def test_which_run_takes_a_due_pass_is_drawn(folder: Path) -> None:
    """Of runs that find a pass due, a half takes it: of 200 outside 50 to 150 once in 1e12."""
    taken = 0
    for _ in range(200):
        taken += handover.flip_coin()

    assert 50 < taken < 150


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(("endpoint", b"text"), ("write_key", b"text"), ("consent", True)),
        *(("data_dir", ""), ("registry", "a\0b")),
    ],
)
def test_a_wrong_argument_is_refused_at_once(folder: Path, name: str, wrong: object) -> None:
    from client_sdk import command

    right = {"endpoint": "http://127.0.0.1:9", "write_key": KEY, "registry": "r"}
    settings: dict[str, Any] = {**right, "data_dir": folder, "consent": "granted", name: wrong}

    with pytest.raises(InvalidParameterError):
        command.configure(**settings)


def test_a_flush_of_the_light_path_sends_at_once(folder: Path) -> None:
    """For whoever develops: the schedule alone would send hours later."""
    with noting_collector() as (url, arrivals):
        body = f"""
command.configure("{url}", "key", "metrics.toml", data_dir="data", consent="granted")
command.record('plain', True)
print({{reason: count for reason, count in command.flush().items() if count}})
"""
        assert run(folder, body) == "{'recorded': 1, 'uploaded': 1}\n"

    assert list(arrivals.reports().values()) == [1]


def test_a_denial_is_paid_for_once(folder: Path) -> None:
    """The first run erases; later ones load nothing, until something is there again."""
    run(folder, "command.record('plain', True)")
    wait_for_notes(folder)
    body = "command._end(); print('sqlite3' in sys.modules)"

    assert run(folder, body, consent="denied") == "True\n"
    assert rows(folder / "data", "SELECT count(*) FROM reports") == [(0,)]
    assert run(folder, body, consent="denied") == "False\n"

    write_registry(folder, metric_text("plain", epsilon="0.5"))
    noted = (folder / "data" / NOTES_FILE).stat().st_mtime_ns
    run(folder, "command.record('plain', True)")
    wait_for_notes(folder, after=noted)
    assert run(folder, body, consent="denied") == "True\n"
    assert rows(folder / "data", "SELECT count(*) FROM reports") == [(0,)]
