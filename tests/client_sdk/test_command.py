"""A program that ends at once: its values reach a child, wherever it runs and however it ends."""

from __future__ import annotations

import ast
import marshal
import os
import shutil
import signal
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk.core.errors import InvalidParameterError
from client_sdk.core.limits import DATABASE_FILE, NOTES_FILE
from client_sdk.privacy.opt_outs import USER_FILE
from client_sdk.recording import detached, handover
from client_sdk.recording.detached import PIPE_MIN
from client_sdk.recording.handover_protocol import issue_permit
from tests.support.device.device import CANARY, KEY, metric_text, rows
from tests.support.device.device_transport import ScriptedTransport, reports_in
from tests.support.device.programs import (
    RECORDS,
    ROOT,
    TELLS,
    charges,
    children_of,
    environment,
    noting_collector,
    program,
    run,
    wait_for_no_children,
    wait_for_notes,
    write_registry,
)
from tests.support.device.short_runs import Week
from tests.support.device.small_disk import fill, remount, small_disk
from tests.support.patience import PATIENCE
from tests.support.store.processes import until_ended

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


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """A folder with a registry of two metrics."""
    write_registry(tmp_path, metric_text("plain"), metric_text("other"))
    return tmp_path


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_what_ends_a_group_or_a_service_does_not_end_the_child_before_it_has_written(
    pair: Path, number: int
) -> None:
    body = f"""
spawn = os.posix_spawn
def ended(*arguments, **options):
    child = spawn(*arguments, **options)
    os.kill(child, {int(number)})
    return child
os.posix_spawn = ended
{RECORDS}
"""
    run(pair, body)
    wait_for_no_children(pair)

    assert charges(pair) == 1


@pytest.mark.parametrize(
    ("end", "handed"),
    [
        ("import signal; signal.signal(15, lambda *_: sys.exit(3)); os.kill(os.getpid(), 15)", 1),
        ("sys.exit(3)", 1),
        ("raise ValueError('wrong')", 1),
        ("os._exit(3)", 0),
        ("os.kill(os.getpid(), 15)", 0),
        ("os.kill(os.getpid(), 9)", 0),
    ],
)
def test_a_program_that_ends_without_a_word_hands_nothing_over(
    pair: Path, end: str, handed: int
) -> None:
    done = subprocess.run(
        program(f"{RECORDS}{end}"),
        cwd=pair,
        env=environment(pair),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode != 0
    if handed:
        wait_for_notes(pair)
        assert charges(pair) == 1
    else:
        wait_for_no_children(pair)
        assert not (pair / "data").exists()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_of_multiprocessing_hand_over_what_they_recorded(pair: Path, method: str) -> None:
    (pair / "tool.py").write_text(
        f"""
import multiprocessing
from client_sdk import command
command.configure("http://127.0.0.1:9", "{KEY}", "metrics.toml", data_dir="data",
    consent="granted")
def work():
    command.record("other", True)
if __name__ == "__main__":
    command.record("plain", True)
    multiprocessing.set_start_method({method!r})
    worker = multiprocessing.Process(target=work)
    worker.start()
    worker.join()
"""
    )
    subprocess.run(
        [sys.executable, "tool.py"],
        cwd=pair,
        env=environment(pair),
        timeout=PATIENCE,
        check=True,
    )
    wait_for_notes(pair)
    wait_for_no_children(pair)

    assert charges(pair) == 2


SPAWNING: Final = """
spawn = os.posix_spawn
def spawned(*arguments, setsid=False, **options):
    {instead}
    return spawn(*arguments, **options)
os.posix_spawn = spawned
"""
HANDED_OVER, NO_CHILD = "{'handed_over': 1}", "{'no_child': 1}"
# what a program does, what it prints, and how many reports are charged for in the end
PROGRAMS: Final = {
    "an interpreter that nothing names": ("sys.executable = ''", NO_CHILD, 1),
    "one that is gone": ("sys.executable = '/nowhere/python3'", NO_CHILD, 1),
    "another program": ("sys.executable = '/bin/true'", NO_CHILD, 1),
    "one that embeds Python": ("sys.executable = '/usr/sbin/uwsgi'", NO_CHILD, 1),
    # it would run the application once more
    "a bundle that cannot be its own child": ("sys.frozen = True", NO_CHILD, 1),
    "a system without sessions": (
        SPAWNING.format(instead="if setsid: raise NotImplementedError"),
        HANDED_OVER,
        1,
    ),
    "Ctrl-C at the end": (SPAWNING.format(instead="raise KeyboardInterrupt"), "{'internal': 1}", 0),
    "a working folder that is gone": (
        "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')",
        HANDED_OVER,
        1,
    ),
    "a fork that hands over what it recorded": (
        """
command.record('plain', True)
if os.fork() == 0:
    command.record('other', True)
    command._end()
    os.write(1, str(dict(command.counts())).encode())
    os._exit(0)
os.wait()
""",
        HANDED_OVER + "{'handed_over': 2}",
        2,
    ),
    "a fork that ends by itself": (
        f"{RECORDS}if os.fork() == 0: sys.exit()\nos.wait()",
        "{'handed_over': 2}",
        1,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_value_is_charged_for_once_or_counted(pair: Path, name: str) -> None:
    body, printed, charged = PROGRAMS[name]

    assert run(pair, f"{body}\n{RECORDS}{TELLS}") == printed
    wait_for_no_children(pair)

    assert (charges(pair) if (pair / "data" / DATABASE_FILE).exists() else 0) == charged


def test_an_interpreter_that_was_replaced_costs_the_values_only(pair: Path) -> None:
    (pair / "python3").write_text("#!/bin/sh\nexit 1\n")
    (pair / "python3").chmod(0o755)

    body = f"sys.executable = {str(pair / 'python3')!r}\n{RECORDS}{TELLS}"

    assert run(pair, body) == "{'handed_over': 1}"


@pytest.mark.parametrize("closed", [c for c in product((False, True), repeat=3) if any(c)])
def test_closed_streams_of_the_parent_change_nothing(pair: Path, closed: tuple[bool, ...]) -> None:
    ends = " ".join(e for e, gone in zip(("<&-", ">&-", "2>&-"), closed, strict=True) if gone)

    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {ends}', "sh", *program(RECORDS)],
        cwd=pair,
        env=environment(pair),
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode == 0
    wait_for_notes(pair)
    assert charges(pair) == 1


def test_a_parent_that_may_open_no_more_files_ends_as_it_would(pair: Path) -> None:
    body = f"""
import resource
{RECORDS}
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
{TELLS}
"""
    printed = run(pair, body)

    assert "handed_over" not in printed
    assert "opted_out" not in printed


def test_a_program_without_a_home_hands_over(pair: Path) -> None:
    homeless = {name: text for name, text in environment(pair).items() if name != "HOME"}

    subprocess.run(program(RECORDS), cwd=pair, env=homeless, timeout=PATIENCE, check=True)

    wait_for_notes(pair)
    assert charges(pair) == 1


@pytest.mark.parametrize("place", ["a file", "a folder of the system"])
def test_a_data_folder_that_cannot_be_written_costs_the_values_only(pair: Path, place: str) -> None:
    if place == "a file":
        (pair / "data").write_text("taken")
    else:
        (pair / "data").symlink_to("/proc/sys")

    assert run(pair, RECORDS + TELLS) == "{'handed_over': 1}"
    wait_for_no_children(pair)

    assert run(pair, f"sys.executable = ''\n{RECORDS}{TELLS}") == "{'no_child': 1}"


@pytest.mark.parametrize("wrong", ["full", "read only"])
def test_on_a_wrong_disk_there_is_no_report_without_its_charge(pair: Path, wrong: str) -> None:
    with small_disk(pair / "data") as disk:
        if wrong == "full":
            filling = fill(disk)
        else:
            remount(disk, "ro")
        assert run(pair, RECORDS + TELLS) == "{'handed_over': 1}"
        wait_for_no_children(pair)

        if wrong == "full":
            filling.unlink()
        else:
            remount(disk, "rw")
        run(pair, RECORDS)
        wait_for_notes(pair)
        wait_for_no_children(pair)
        assert charges(pair) == 1


def test_an_isolated_parent_has_an_isolated_child(pair: Path) -> None:
    """What a variable would make of the child's standard library does not reach it."""
    (pair / "trap" / "encodings").mkdir(parents=True)
    (pair / "trap" / "encodings" / "__init__.py").write_text("raise SystemExit(1)")
    interpreter, *rest = program(RECORDS)
    rest[-1] = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{rest[-1]}"

    subprocess.run(
        [interpreter, "-I", *rest],
        cwd=pair,
        env={**environment(pair), "PYTHONPATH": str(pair / "trap")},
        timeout=PATIENCE,
        check=True,
    )

    wait_for_notes(pair)
    assert charges(pair) == 1


def _may_unshare() -> bool:
    """Whether a process here may be the first of a container."""
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run(["unshare", "-pf", "true"], capture_output=True, check=False)
    return tried.returncode == 0


@pytest.mark.skipif(not _may_unshare(), reason="needs unshare and the right to use it")
def test_the_first_process_of_a_container_writes_its_values_itself(pair: Path) -> None:
    """With it everything ends: a child would be killed before it has begun."""
    done = subprocess.run(
        ["unshare", "-pf", *program(RECORDS + TELLS)],
        cwd=pair,
        env=environment(pair),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )

    assert done.stdout == "{'no_child': 1}"
    assert charges(pair) == 1


WINDOWS: Final = """
import subprocess
del os.posix_spawn
subprocess.DETACHED_PROCESS, subprocess.CREATE_NEW_PROCESS_GROUP = 8, 512
subprocess.CREATE_BREAKAWAY_FROM_JOB = 1 << 24
popen, flags = subprocess.Popen, []
def opened(*arguments, creationflags, **options):
    flags.append(creationflags)
    if creationflags >> 24 and {in_a_job}:
        raise PermissionError(5, "Access is denied")
    return popen(*arguments, **options)
subprocess.Popen = opened
{records}{tells}
os.write(1, str(flags).encode())
"""


@pytest.mark.parametrize(("in_a_job", "flags"), [(False, 1), (True, 2)])
def test_on_windows_the_child_is_detached_and_leaves_a_job_if_it_may(
    pair: Path, in_a_job: bool, flags: int
) -> None:
    """The branch is that of Windows, on this system: its flags are taken off before the start."""
    body = WINDOWS.format(in_a_job=in_a_job, records=RECORDS, tells=TELLS)

    assert run(pair, body, PYTHONWARNINGS="error") == (
        "{'handed_over': 1}" + str([(1 << 24) + 520, 520][:flags])
    )
    wait_for_notes(pair)
    assert charges(pair) == 1


def test_on_windows_no_more_is_handed_over_than_a_pipe_holds(pair: Path) -> None:
    """Law: the end of a process waits for no child that reads."""
    body = WINDOWS.format(in_a_job=False, records=RECORDS * 1_000, tells=TELLS)

    counts = ast.literal_eval(run(pair, body).partition("}")[0] + "}")

    assert sum(counts.values()) == 1_000
    assert 0 < counts["handed_over"] < PIPE_MIN / len("plain")
    wait_for_notes(pair)
    assert charges(pair) == 1


def test_no_inheritable_file_reaches_the_child(pair: Path) -> None:
    """Whoever reads a pipe of the parent to its end waits for the parent only."""
    body = f"""
import signal
spawn = os.posix_spawn
def stopped(*arguments, **options):
    child = spawn(*arguments, **options)
    os.kill(child, signal.SIGSTOP)
    os.write(1, str(child).encode())
    return child
os.posix_spawn = stopped
{RECORDS}
"""
    reader, writer = os.pipe()
    parent = subprocess.Popen(
        program(body),
        cwd=pair,
        env=environment(pair),
        pass_fds=(writer,),
        stdout=subprocess.PIPE,
    )
    os.close(writer)
    printed, _ = parent.communicate(timeout=PATIENCE)
    os.set_blocking(reader, False)
    try:
        assert children_of(pair) == [int(printed)]
        assert os.read(reader, 1) == b""  # if the child held the other end, this would raise
    finally:
        os.kill(int(printed), signal.SIGCONT)
        os.close(reader)
    wait_for_notes(pair)


def test_a_child_that_hangs_is_ended_by_the_system() -> None:
    """Its parent died in the middle of writing, or the disk never answers."""
    begin = detached._BEGIN.replace(
        "from client_sdk.recording.detached import be_child;be_child(d,f)",
        "import client_sdk.recording.detached as m;m.MAX_SECONDS=1;m.be_child(d,f)",
    )
    child = subprocess.Popen([sys.executable, "-S", "-c", begin], stdin=subprocess.PIPE)
    with until_ended(child, signal.SIGKILL):
        assert child.stdin is not None
        path = [str(ROOT), *sys.path]
        child.stdin.write(marshal.dumps({"path": path, "settings": {}, "sends": True}))
        child.stdin.flush()

        assert child.wait(PATIENCE) == -signal.SIGALRM
