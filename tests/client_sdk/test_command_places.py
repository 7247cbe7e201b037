"""Programs that end at once, in wrong places: they go on, and nothing is left behind."""

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
from typing import Final

import pytest

from client_sdk.core.limits import DATABASE_FILE
from client_sdk.recording import detached
from client_sdk.recording.detached import PIPE_MIN
from tests.support.device.device import metric_text
from tests.support.device.programs import (
    RECORDS,
    ROOT,
    TELLS,
    charges,
    children_of,
    environment,
    program,
    run,
    wait_for_no_children,
    wait_for_notes,
    write_registry,
)
from tests.support.device.small_disk import fill, remount, small_disk
from tests.support.patience import PATIENCE
from tests.support.store.processes import until_ended

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="looks into /proc and forks")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a registry of two metrics."""
    write_registry(tmp_path, metric_text("plain"), metric_text("other"))
    return tmp_path


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
def test_each_value_is_charged_for_once_or_counted(folder: Path, name: str) -> None:
    body, printed, charged = PROGRAMS[name]

    assert run(folder, f"{body}\n{RECORDS}{TELLS}") == printed
    wait_for_no_children(folder)

    assert (charges(folder) if (folder / "data" / DATABASE_FILE).exists() else 0) == charged


def test_an_interpreter_that_was_replaced_costs_the_values_only(folder: Path) -> None:
    (folder / "python3").write_text("#!/bin/sh\nexit 1\n")
    (folder / "python3").chmod(0o755)

    body = f"sys.executable = {str(folder / 'python3')!r}\n{RECORDS}{TELLS}"

    assert run(folder, body) == "{'handed_over': 1}"


@pytest.mark.parametrize("closed", [c for c in product((False, True), repeat=3) if any(c)])
def test_closed_streams_of_the_parent_change_nothing(
    folder: Path, closed: tuple[bool, ...]
) -> None:
    ends = " ".join(e for e, gone in zip(("<&-", ">&-", "2>&-"), closed, strict=True) if gone)

    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {ends}', "sh", *program(RECORDS)],
        cwd=folder,
        env=environment(folder),
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode == 0
    wait_for_notes(folder)
    assert charges(folder) == 1


def test_a_parent_that_may_open_no_more_files_ends_as_it_would(folder: Path) -> None:
    body = f"""
import resource
{RECORDS}
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
{TELLS}
"""
    printed = run(folder, body)

    assert "handed_over" not in printed
    assert "opted_out" not in printed


def test_a_program_without_a_home_hands_over(folder: Path) -> None:
    homeless = {name: text for name, text in environment(folder).items() if name != "HOME"}

    subprocess.run(program(RECORDS), cwd=folder, env=homeless, timeout=PATIENCE, check=True)

    wait_for_notes(folder)
    assert charges(folder) == 1


@pytest.mark.parametrize("place", ["a file", "a folder of the system"])
def test_a_data_folder_that_cannot_be_written_costs_the_values_only(
    folder: Path, place: str
) -> None:
    if place == "a file":
        (folder / "data").write_text("taken")
    else:
        (folder / "data").symlink_to("/proc/sys")

    assert run(folder, RECORDS + TELLS) == "{'handed_over': 1}"
    wait_for_no_children(folder)

    assert run(folder, f"sys.executable = ''\n{RECORDS}{TELLS}") == "{'no_child': 1}"


@pytest.mark.parametrize("wrong", ["full", "read only"])
def test_on_a_wrong_disk_there_is_no_report_without_its_charge(folder: Path, wrong: str) -> None:
    with small_disk(folder / "data") as disk:
        if wrong == "full":
            filling = fill(disk)
        else:
            remount(disk, "ro")
        assert run(folder, RECORDS + TELLS) == "{'handed_over': 1}"
        wait_for_no_children(folder)

        if wrong == "full":
            filling.unlink()
        else:
            remount(disk, "rw")
        run(folder, RECORDS)
        wait_for_notes(folder)
        wait_for_no_children(folder)
        assert charges(folder) == 1


def test_an_isolated_parent_has_an_isolated_child(folder: Path) -> None:
    """What a variable would make of the child's standard library does not reach it."""
    (folder / "trap" / "encodings").mkdir(parents=True)
    (folder / "trap" / "encodings" / "__init__.py").write_text("raise SystemExit(1)")
    interpreter, *rest = program(RECORDS)
    rest[-1] = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{rest[-1]}"

    subprocess.run(
        [interpreter, "-I", *rest],
        cwd=folder,
        env={**environment(folder), "PYTHONPATH": str(folder / "trap")},
        timeout=PATIENCE,
        check=True,
    )

    wait_for_notes(folder)
    assert charges(folder) == 1


def _may_unshare() -> bool:
    """Whether a process here may be the first of a container."""
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run(["unshare", "-pf", "true"], capture_output=True, check=False)
    return tried.returncode == 0


@pytest.mark.skipif(not _may_unshare(), reason="needs unshare and the right to use it")
def test_the_first_process_of_a_container_writes_its_values_itself(folder: Path) -> None:
    """With it everything ends: a child would be killed before it has begun."""
    done = subprocess.run(
        ["unshare", "-pf", *program(RECORDS + TELLS)],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )

    assert done.stdout == "{'no_child': 1}"
    assert charges(folder) == 1


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
    folder: Path, in_a_job: bool, flags: int
) -> None:
    """The branch is that of Windows, on this system: its flags are taken off before the start."""
    body = WINDOWS.format(in_a_job=in_a_job, records=RECORDS, tells=TELLS)

    assert run(folder, body, PYTHONWARNINGS="error") == (
        "{'handed_over': 1}" + str([(1 << 24) + 520, 520][:flags])
    )
    wait_for_notes(folder)
    assert charges(folder) == 1


def test_on_windows_no_more_is_handed_over_than_a_pipe_holds(folder: Path) -> None:
    """Law: the end of a process waits for no child that reads."""
    body = WINDOWS.format(in_a_job=False, records=RECORDS * 1_000, tells=TELLS)

    counts = ast.literal_eval(run(folder, body).partition("}")[0] + "}")

    assert sum(counts.values()) == 1_000
    assert 0 < counts["handed_over"] < PIPE_MIN / len("plain")
    wait_for_notes(folder)
    assert charges(folder) == 1


def test_no_inheritable_file_reaches_the_child(folder: Path) -> None:
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
        cwd=folder,
        env=environment(folder),
        pass_fds=(writer,),
        stdout=subprocess.PIPE,
    )
    os.close(writer)
    printed, _ = parent.communicate(timeout=PATIENCE)
    os.set_blocking(reader, False)
    try:
        assert children_of(folder) == [int(printed)]
        assert os.read(reader, 1) == b""  # if the child held the other end, this would raise
    finally:
        os.kill(int(printed), signal.SIGCONT)
        os.close(reader)
    wait_for_notes(folder)


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
