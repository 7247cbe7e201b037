"""Child processes of the demo: started together, stopped together, explained if they die."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from types import TracebackType
from typing import Final

from ..core.errors import ChildError
from ..operations.parent_death import die_with_parent

_GRACE: Final = 5.0  # seconds between a request to stop and the end
_TAIL: Final = 2_000  # characters of a dead child's last words


class Children:
    """A set of ``hearsay`` processes that do not outlive this one."""

    def __init__(self) -> None:
        """Begin with no process."""
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the set

    def __enter__(self) -> Children:
        """Return the set; leaving stops it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop whatever still runs."""
        self.stop()
        self._log.close()

    def start(self, command: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start ``hearsay`` *command* in a session of its own, so that Ctrl-C reaches only us."""
        process = subprocess.Popen(
            die_with_parent([sys.executable, "-m", "collector", command]),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self._running.append((command, process))
        return process

    def require_alive(self) -> None:
        """Raise ChildError if a process has ended."""
        for command, process in self._running:
            if process.poll() is not None:
                raise self.failure(f"hearsay {command} ended with status {process.returncode}")

    def failure(self, what: str) -> ChildError:
        """Return an error that says *what* happened and what the processes last wrote."""
        self._log.seek(0)
        return ChildError(f"{what}\n{self._log.read().decode(errors='replace')[-_TAIL:]}")

    def stop(self) -> None:
        """Ask every process to stop, the last started first, and end those that do not."""
        for _, process in reversed(self._running):
            process.terminate()
        for _, process in self._running:
            try:
                process.wait(timeout=_GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()


def free_port(wanted: int) -> int:
    """Return *wanted* if nobody listens there, otherwise a free port of this machine."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise ChildError("no port of this machine is free")
