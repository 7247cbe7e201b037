"""A process that outlives this one: started, handed all that it needs, and waited for by nobody.

The child gets its settings and all values through a pipe, and nothing of them by its arguments, its
environment or a file.  It has a session of its own and neither terminal nor open files of its
parent, so the parent's caller waits for it no more than the parent does.
"""

from __future__ import annotations

import marshal
import os
import sys

TYPE_CHECKING = False  # type checkers take it for true; loading typing costs more than all else

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, BinaryIO, Final, NoReturn

    from .handover_protocol import HandedValue

MAX_SECONDS: Final = 30  # seconds; after them the child ends, whatever it waits for
PIPE_MIN: Final = 1 << 12  # that a pipe holds on every system; on Windows no more
_PIPE_MAX: Final = 1 << 20  # bytes; Linux makes no pipe larger without asking root
IS_CHILD: Final = "HEARSAY_IS_CHILD"  # tells a bundled program that it was started as the child
_BEGIN: Final = (
    "import marshal,sys;f=sys.stdin.buffer;d=marshal.load(f);sys.path[:]=d['path'];"
    "from client_sdk.recording.detached import be_child;be_child(d,f)"
)
_ROOT: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_END: Final = marshal.dumps(None)  # after the last value: a copy of the pipe may stay open
_INTERPRETERS: Final = ("python", "pypy", "graalpy")  # the names of their files begin so
_STOP_SIGNALS: Final = (1, 2, 15)  # SIGHUP, SIGINT and SIGTERM, on every system that can block them


class _Bundle:
    """Whether this program was bundled, and is the child where that is asked of it."""

    asks = False


def start_child(document: Mapping[str, Any], values: list[bytes]) -> int:
    """Start a child and hand it *document* and *values*, as far as a pipe has room.  Never waits.

    Returns: how many values it has; -1 if there is no child.
    """
    command = _command()
    if command is None or os.getpid() == 1:  # a container ends with its first process
        return -1
    # the working folder is another one by now, perhaps somebody else's
    path = [os.fspath(entry) for entry in sys.path if os.path.isabs(entry)]
    head = marshal.dumps({"path": path if _ROOT in path else [*path, _ROOT], **document})
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)  # it may be for others by now; the child is told its path
    if getattr(sys, "frozen", False):
        # one file unpacks itself anew: what it unpacked for this process goes with it
        environment |= {IS_CHILD: "1", "PYINSTALLER_RESET_ENVIRONMENT": "1"}
    try:
        if hasattr(os, "posix_spawn"):
            return _spawn(command, environment, head, values)
        handed, count = _fitting(head, values, PIPE_MIN)
        return count if _spawn_on_windows(command, environment, handed) else -1
    except (OSError, ValueError, RuntimeError):
        return -1


def _command() -> list[str] | None:
    """Return what runs the child; None where nothing is known to."""
    if not sys.executable:
        return None
    if getattr(sys, "frozen", False):  # a bundle has no interpreter that runs our line
        return [sys.executable] if _Bundle.asks else None
    if not os.path.basename(sys.executable).lower().startswith(_INTERPRETERS):
        return None  # a program that embeds Python, which would open its windows
    isolated = ["-I"] if sys.flags.isolated else ["-E"] if sys.flags.ignore_environment else []
    return [sys.executable, "-S", *isolated, "-c", _BEGIN]


def _spawn(
    command: list[str], environment: Mapping[str, str], head: bytes, values: list[bytes]
) -> int:
    reader, writer = os.pipe()  # neither is inherited
    try:
        room = _room(writer, len(head) + sum(map(len, values)) + len(_END))
        handed, count = _fitting(head, values, room)
        os.set_blocking(writer, False)
        if os.write(writer, handed) != len(handed):
            return -1
        files = [
            (os.POSIX_SPAWN_DUP2, reader, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            *((os.POSIX_SPAWN_CLOSE, number) for number in _inherited()),
        ]
        # what ends the parent's group or session waits until the child has written its values
        own: dict[str, Any] = {"file_actions": files, "setsigmask": _STOP_SIGNALS}
        try:
            os.posix_spawn(command[0], command, environment, setsid=True, **own)
        except NotImplementedError:  # a group of its own, and be_child makes the session
            os.posix_spawn(command[0], command, environment, setpgroup=0, **own)
    finally:
        os.close(reader)
        os.close(writer)
    return count


def _fitting(head: bytes, values: list[bytes], room: int) -> tuple[bytes, int]:
    """Return *head* and as many of *values* as *room* bytes hold, and how many these are."""
    handed, count = bytearray(head), 0
    while count < len(values) and len(handed) + len(values[count]) + len(_END) <= room:
        handed += values[count]
        count += 1
    return bytes(handed + _END), count


def _room(writer: int, wanted: int) -> int:
    """Return how many bytes the empty pipe takes, after making it as large as *wanted*."""
    if wanted <= PIPE_MIN:
        return PIPE_MIN
    import fcntl

    if not hasattr(fcntl, "F_SETPIPE_SZ"):
        return 4 * PIPE_MIN  # macOS; it makes more of it if it can
    room = fcntl.fcntl(writer, fcntl.F_GETPIPE_SZ)
    if wanted <= room:
        return room
    try:
        return fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, min(wanted, _PIPE_MAX))
    except OSError:  # more than this user may have
        return room


def _inherited() -> Iterator[int]:
    """Yield the descriptors beyond the standard streams that a child would get."""
    try:
        names = os.listdir("/dev/fd")
    except OSError:
        return
    for name in names:
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                yield int(name)
        except OSError:  # that of the folder, which is closed again
            continue


def _spawn_on_windows(command: list[str], environment: Mapping[str, str], handed: bytes) -> bool:
    """Return whether a child was started that reads."""
    import subprocess

    flags = [
        getattr(subprocess, name, 0)
        for name in ("DETACHED_PROCESS", "CREATE_NEW_PROCESS_GROUP", "CREATE_BREAKAWAY_FROM_JOB")
    ]
    options: dict[str, Any] = {
        "env": environment,
        "stdin": subprocess.PIPE,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "close_fds": True,
    }
    try:
        child = subprocess.Popen(command, creationflags=sum(flags), **options)
    except PermissionError:  # a job that nobody may leave: the child ends with it
        child = subprocess.Popen(command, creationflags=sum(flags[:2]), **options)
    child.returncode = 0  # nobody waits for it, and Python need not warn of that
    if child.stdin is None:
        return False
    with child.stdin:
        child.stdin.write(handed)
    return True


def be_child(document: Mapping[str, Any], handed: BinaryIO) -> NoReturn:
    """Be the child: do what *document* and *handed* values say, and end within MAX_SECONDS."""
    import signal

    if hasattr(signal, "alarm"):  # a thread ends nothing that holds the interpreter's lock
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, _STOP_SIGNALS)
        signal.alarm(MAX_SECONDS)
    else:
        from threading import Timer

        Timer(MAX_SECONDS, os._exit, (1,)).start()
    try:
        if hasattr(os, "setsid") and os.getpid() != os.getsid(0):
            os.setsid()
        os.chdir(os.path.abspath(os.sep))  # no folder of its parent's is held
    except OSError:
        pass
    try:
        values = []
        while (entry := _next(handed)) is not None:
            values.append(entry)
        from .child import serve_noting
        from .handover_protocol import unpacked_here

        settings = unpacked_here(document["settings"])
        permit, sends = document["permit"], document["sends"]
        serve_noting(values, settings, permit=permit, sends=sends, recorded=_may_end)
    finally:
        os._exit(0)  # nobody is there to be told


def _next(handed: BinaryIO) -> HandedValue | None:
    """Return the next value; None after the last.

    What a thread of the parent forked meanwhile, without another program, holds the pipe open.
    """
    try:
        return marshal.load(handed)  # type: ignore[no-any-return]  # noqa: S302 - from our parent
    except EOFError:
        return None


def _may_end() -> None:
    """Let whoever ends a group, a session or a service end the child, now that all is written."""
    import signal

    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, ())


def begin_bundle() -> None:
    """In a bundled program, before all else: be the child, if it was started as one."""
    _Bundle.asks = True
    if os.environ.pop(IS_CHILD, "") == "1":
        handed = sys.stdin.buffer
        be_child(marshal.load(handed), handed)  # noqa: S302 - from our parent, by a pipe
