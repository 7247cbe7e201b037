"""What a program that ends at once hands to a process of its own, so that it waits for nothing.

The child gets its settings and all values through a pipe, and nothing of them by its arguments, its
environment or a file.  It has a session of its own and neither terminal nor open files of its
parent, so the parent's caller waits for it no more than the parent does.

Loads nothing but what every interpreter has loaded: a process lives for 0.2 s and pays for it all.
"""

from __future__ import annotations

import marshal
import os
import sys

TYPE_CHECKING = False  # type checkers take it for true; loading typing costs more than all else

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final, TypeAlias

    HandedValue: TypeAlias = tuple[str, object, float]  # name, value of a plain type, Unix time

MOST_VALUES: Final = 10_000  # of one process
MOST_BYTES: Final = 1 << 20  # of a document; no pipe can be made larger without asking root
NOTES: Final = "command-notes"  # what the last child told of reports and times; never of values
MOST_NOTES: Final = 1 << 16  # bytes that are read of them
RATIO: Final = b"ratio"  # before two whole numbers; no metric takes bytes, so it is nobody's value

IS_CHILD: Final = "HEARSAY_IS_CHILD"  # tells a bundled program that it was started as the child
_BEGIN: Final = (
    "import marshal,sys;d=marshal.loads(sys.stdin.buffer.read());sys.path[:]=d['path'];"
    "from client_sdk.recording.child import main;main(d)"
)
_ROOT: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def plain(value: object) -> Any:
    """Return *value* as one of Python's own types, which alone pass through the pipe.

    Raises: TypeError: it is none of those that a metric can take.
    """
    if type(value) in (bool, int, float, str):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (list, tuple)):
        return tuple(map(plain, value))
    if isinstance(value, (set, frozenset)):
        return frozenset(map(plain, value))
    if isinstance(value, dict):
        return {plain(key): plain(entry) for key, entry in value.items()}
    if callable(item := getattr(value, "item", None)):  # numpy's numbers
        return plain(item())
    if (exact := getattr(value, "as_integer_ratio", None)) is not None:  # decimals and fractions
        return (RATIO, *exact())
    raise TypeError(type(value).__name__)


class Notes:
    """What need not be handed over: metrics that have their report, and passes that are not due."""

    def __init__(self, due: float = 0.0, settled: Mapping[str, float] | None = None) -> None:
        """Say when the next pass is due, and up to when each metric has its report (Unix times)."""
        self.due, self.settled = due, dict(settled or {})

    @classmethod
    def read(cls, folder: str, registry: str) -> Notes:
        """Return what the last child of this *registry* noted in *folder*; damage reads as none."""
        try:
            with open(os.path.join(folder, NOTES), encoding="ascii") as file:
                lines = file.read(MOST_NOTES).splitlines()
            if lines[0] != fingerprint(registry):
                return cls()
            rows = (line.split(" ") for line in lines[2:])
            return cls(float(lines[1]), {name: float(until) for name, until in rows})
        except (OSError, ValueError, IndexError):
            return cls()

    def text(self, registry: str) -> str:
        """Return them as they are written."""
        rows = (f"{name} {until}" for name, until in sorted(self.settled.items()))
        return "\n".join((fingerprint(registry), str(self.due), *rows)) + "\n"


def fingerprint(registry: str) -> str:
    """Return what changes when the file of the *registry* does.  Raises OSError."""
    status = os.stat(registry)
    return f"{status.st_size} {status.st_mtime_ns}"


def document(settings: Mapping[str, Any], values: list[HandedValue], *, sends: bool) -> bytes:
    """Return what the child is given.

    Args: settings: keyword arguments of ``child.serve``, of plain types.
          values: of (name, value, Unix time) each.
          sends: whether this process takes the pass, if one is due.
    """
    path = [os.path.abspath(entry) for entry in sys.path]
    whole = {
        "path": path if _ROOT in path else [*path, _ROOT],
        "settings": dict(settings),
        "values": values,
        "sends": sends,
    }
    return marshal.dumps(whole)


def start_child(handed: bytes) -> bool:
    """Start the child and give it *handed*; return whether both were possible.  Never waits."""
    if not sys.executable or len(handed) > MOST_BYTES:
        return False
    environment, command = dict(os.environ), [sys.executable, "-S", "-c", _BEGIN]
    if getattr(sys, "frozen", False):  # a bundle has no interpreter that runs our line
        environment[IS_CHILD], command = "1", [sys.executable]
    try:
        if hasattr(os, "posix_spawn"):
            return _spawn(command, environment, handed)
        return _spawn_on_windows(command, environment, handed)
    except (OSError, ValueError, RuntimeError):
        return False


def _spawn(command: list[str], environment: Mapping[str, str], handed: bytes) -> bool:
    reader, writer = os.pipe()  # neither is inherited
    try:
        if not _fill(writer, handed):
            return False
        streams = [
            (os.POSIX_SPAWN_DUP2, reader, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        try:
            os.posix_spawn(command[0], command, environment, file_actions=streams, setsid=True)
        except NotImplementedError:  # the child makes a session itself
            os.posix_spawn(command[0], command, environment, file_actions=streams)
    finally:
        os.close(reader)
        os.close(writer)
    return True


def _fill(writer: int, handed: bytes) -> bool:
    """Write *handed* into the empty pipe; return whether it had room for all."""
    try:
        import fcntl

        if len(handed) > fcntl.fcntl(writer, fcntl.F_GETPIPE_SZ):
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, len(handed))
    except (ImportError, AttributeError, OSError):  # only Linux can
        pass
    os.set_blocking(writer, False)
    try:
        return os.write(writer, handed) == len(handed)
    except BlockingIOError:
        return False


def _spawn_on_windows(command: list[str], environment: Mapping[str, str], handed: bytes) -> bool:
    import subprocess

    flags = sum(
        getattr(subprocess, name, 0)
        for name in ("DETACHED_PROCESS", "CREATE_NEW_PROCESS_GROUP", "CREATE_BREAKAWAY_FROM_JOB")
    )
    child = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        creationflags=flags,
        close_fds=True,
    )
    if child.stdin is None:
        return False
    with child.stdin:
        child.stdin.write(handed)
    return True


def toss() -> bool:
    """Return heads or tails of a fair coin of the system's."""
    return bool(os.urandom(1)[0] & 1)


class Handover:
    """What one process has to hand over.  A child of fork begins with nothing."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Begin empty; *settings* are those of ``document``, with a path as ``registry``."""
        self._settings = dict(settings)
        self._values: list[HandedValue] = []
        self._notes: Notes | None = None
        self._pid = os.getpid()

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the child is told beside values."""
        return self._settings

    def put(self, name: str, value: object, now: float) -> str | None:
        """Keep *value* of Unix time *now*; return the reason if it need not, or cannot, be kept."""
        if self._pid != os.getpid():
            self._pid, self._values = os.getpid(), []
        if now < self.notes.settled.get(name, 0.0):
            return "already_reported"
        if len(self._values) >= MOST_VALUES:
            return "queue_full"
        self._values.append((name, value, now))
        return None

    @property
    def notes(self) -> Notes:
        """What the last child noted, read once."""
        if self._notes is None:
            folder, registry = self._settings["data_dir"], self._settings["registry"]
            self._notes = Notes.read(folder, registry)
        return self._notes

    def take(self) -> list[HandedValue]:
        """Remove and return the values of this process."""
        values = self._values if self._pid == os.getpid() else []
        self._values = []
        return values

    def start(self, values: list[HandedValue], now: float) -> bool:
        """Hand *values* to a child, if there are any or a pass is due at Unix time *now*.

        Returns: False if a child was needed and could not be started.
        """
        sends = now >= self.notes.due and toss()
        if not values and not sends:
            return True
        return start_child(document(self._settings, values, sends=sends))
