"""What a program that ends at once hands over: nothing of its surroundings changes what arrives."""

from __future__ import annotations

import marshal
import os
import signal
import sys
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.core.errors import InvalidValueError
from client_sdk.core.limits import MAX_LABEL, NOTES_FILE
from client_sdk.inspection import purge
from client_sdk.mechanisms import MAX_LENGTH
from client_sdk.recording import child
from client_sdk.recording.detached import MAX_SECONDS
from client_sdk.recording.handover import MOST_BYTES, Handover
from client_sdk.recording.handover_protocol import MOST_TEXT, Notes, to_plain
from client_sdk.registry import Registry
from tests.support.device.device import metric_text, rows
from tests.support.device.programs import run, wait_for_no_children, wait_for_notes, write_registry

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="makes pipes with names")

LABELS: Final = 'values = ["light", "dark"]'
KINDS: Final = {
    "boolean": "",
    "category": f'{LABELS}\nother = "rest"',
    "set": f'{LABELS}\nother = "rest"',
    "funnel": LABELS,
    "retention": 'periods = ["light", "dark"]',
    "string": "length = 8",
    "number": 'min = 0\nmax = 10\nstep = 1\nunit = "s"',
    "key_value": f'{LABELS}\nmin = 0\nmax = 10\nunit = "s"',
}


class Theme(StrEnum):
    """A text of an application's own."""

    DARK = "dark"


VALUES: Final[tuple[object, ...]] = (
    *(None, True, 1, 0.5, float("inf"), float("nan"), 10**500, -(10**500)),
    *(Decimal(3), Decimal("inf"), Decimal("nan"), Decimal("1e400"), Decimal("1e401")),
    *("dark", "none", "other", "ä" * 9, "x" * 100, "x" * 101, "dark" + "x" * 10**5, "\ud800"),
    *(Theme.DARK, np.str_("dark"), np.float64(2), np.longdouble(2), np.bool_(True), b"dark"),
    *([], ["dark"], ("dark", "dark"), {"light"}, ["x" * 10**5], [None], [Theme.DARK]),
    *(1j, object(), {"dark": [b"dark"]}),
    *({"dark": 1}, {Theme.DARK: np.int64(1)}, MappingProxyType({"dark": 1}), {"dark": None}),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a registry that has a segment."""
    path = write_registry(tmp_path, metric_text("plain"))
    segments = '[segments]\ntheme = ["light", "dark"]\n'
    path.write_text(path.read_text().replace("[metrics", f"{segments}[metrics", 1))
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_metric_takes_reaches_it_through_the_pipe(kind: str) -> None:
    """Law: whether there is a report never depends on the way that a value took."""
    text = metric_text("m", f'type = "{kind}"\n{KINDS[kind]}')
    metric = Registry.from_text(f'schema = 1\napp = "demo"\n{text}').metric("m")

    def encoded(value: object) -> Any:
        try:
            return metric.encode(value)
        except InvalidValueError:
            return InvalidValueError

    taken = 0
    for value in VALUES:
        try:
            passed = child.from_plain(marshal.loads(marshal.dumps(to_plain(value))))  # noqa: S302 - ours
        except (TypeError, ValueError, OverflowError):
            assert encoded(value) is InvalidValueError
            continue
        assert encoded(passed) == encoded(value)
        taken += encoded(value) is not InvalidValueError
    assert taken


def test_a_long_text_takes_no_more_room_than_counts() -> None:
    assert max(MAX_LABEL, MAX_LENGTH) < MOST_TEXT
    assert len(marshal.dumps(to_plain("x" * 10**6))) < 200
    assert len(marshal.dumps(to_plain(["x" * 10**6]))) < 200


def test_a_number_that_fills_the_memory_is_refused_at_once() -> None:
    for number in ("1e999999999", "1e-999999999"):
        with pytest.raises(TypeError):
            to_plain(Decimal(number))


@pytest.mark.parametrize(
    ("trapped", "end"),
    [
        # a program that was started by -c has its working folder, whichever it is, on its path
        (
            ("client_sdk/__init__", "sqlite3", "tomllib", "requests", "hashlib"),
            "assert '' in sys.path; os.chdir({trap!r})",
        ),
        # as a tool does that runs somebody's code, and says where that is
        (("encodings/__init__",), "os.environ['PYTHONPATH'] = {trap!r}"),
    ],
    ids=["working folder", "environment"],
)
def test_the_child_loads_nothing_that_is_not_its_parents(
    folder: Path, trapped: tuple[str, ...], end: str
) -> None:
    trap = folder / "trap"
    for name in trapped:
        (trap / name).parent.mkdir(parents=True, exist_ok=True)
        (trap / f"{name}.py").write_text(f"open({str(folder / 'sprung')!r}, 'w')\n")

    run(folder, f"command.record('plain', True); {end.format(trap=str(trap))}")
    wait_for_no_children(folder)

    assert not (folder / "sprung").exists()
    assert rows(folder / "data", "SELECT count(*) FROM reports") == [(1,)]


def test_a_segment_of_an_enumeration_reaches_the_child(folder: Path) -> None:
    body = """
from enum import StrEnum
class Theme(StrEnum):
    DARK = "dark"
command.configure("http://127.0.0.1:9", "key-of-the-application", "metrics.toml",
    data_dir="data", consent="granted", segment={"theme": Theme.DARK})
command.record("plain", True)
"""
    run(folder, body)
    wait_for_notes(folder)

    assert rows(folder / "data", "SELECT count(*) FROM reports") == [(1,)]


def test_what_was_drawn_by_a_secret_is_forgotten_with_it(folder: Path) -> None:
    """Else metrics that the panel left out would stay so, whatever the next secret draws."""
    run(folder, "command.record('plain', True)")
    wait_for_notes(folder)
    wait_for_no_children(folder)

    purge(folder / "data")

    assert not (folder / "data" / NOTES_FILE).exists()


def test_notes_that_are_no_file_stop_nobody(tmp_path: Path) -> None:
    """A pipe of that name would be waited for, until somebody writes to it."""
    registry = write_registry(tmp_path, metric_text("plain"))
    os.mkfifo(tmp_path / NOTES_FILE)

    assert Notes.read(str(tmp_path), str(registry), 0.0).due is None
    os.mkfifo(tmp_path / f"{NOTES_FILE}.new")
    with pytest.raises(OSError, match=NOTES_FILE):
        child._write({"data_dir": str(tmp_path), "registry": str(registry)}, Notes(), 0.0)


def test_a_fork_of_another_thread_that_holds_the_pipe_delays_nothing(folder: Path) -> None:
    """It is made while the pipe is open, runs no other program, and outlives the child."""
    body = """
import signal
spawn = os.posix_spawn
def spawned(*arguments, **options):
    fork = os.fork()
    if fork == 0:
        os.close(1), os.close(2)
        signal.pause()
    print(fork)
    return spawn(*arguments, **options)
os.posix_spawn = spawned
command.record('plain', True)
"""
    fork = int(run(folder, body))
    try:
        wait_for_no_children(folder, MAX_SECONDS / 2)  # its alarm ends a child that reads on
        held = os.readlink(f"/proc/{fork}/cwd")
    finally:
        os.kill(fork, signal.SIGKILL)

    assert held == str(folder)
    assert rows(folder / "data", "SELECT count(*) FROM reports") == [(1,)]


def test_as_many_bytes_of_values_are_kept_as_may_be_and_not_one_more(folder: Path) -> None:
    names = ("endpoint", "write_key", "data_dir", "registry", "caps")
    handover = Handover(dict.fromkeys(names, str(folder / "none")), lambda: None)
    handover.put("metric", True, 0.0)
    size = len(handover.take()[0])
    for _ in range(MOST_BYTES // size - 1):
        assert handover.put("metric", True, 0.0) is None

    last = "metric" + "s" * (MOST_BYTES % size)
    assert handover.put(f"{last}s", True, 0.0) == "queue_full"
    assert handover.put(last, True, 0.0) is None
