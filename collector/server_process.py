"""One private Redis or Valkey server: durable settings, one socket, one folder, one owner."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path
from typing import IO, Final

from .core.errors import StorageUnavailableError
from .operations.parent_death import die_with_parent

_START_TIMEOUT: Final = 10.0  # seconds until the server must answer; loading its log included
_STOP_TIMEOUT: Final = 10.0  # seconds to write its log after being asked to stop
_POLL: Final = 0.01  # seconds
_TAIL: Final = 1_000  # characters of its last words in an error
_SETTINGS: Final = {
    "port": "0",  # no network: only who may open the socket's folder
    "unixsocketperm": "700",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "maxmemory-policy": "noeviction",
    "save": "",  # the append-only file is enough
    "daemonize": "no",
}


class ServerProcess:
    """A server child process; ``start`` and ``stop`` it once each."""

    def __init__(self, program: str, folder: Path, socket_path: Path) -> None:
        """Prepare to run *program* with its data in *folder*, listening on *socket_path* only."""
        self._program, self._folder, self._socket = program, folder, socket_path
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: IO[str] | None = None

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"unix://{self._socket}?db=0"

    def start(self) -> None:
        """Start the server and return when it answers.

        Raises: StorageUnavailableError: the folder is in use, or the server does not answer.
        """
        self._lock = _lock(self._folder)
        settings = {**_SETTINGS, "dir": str(self._folder), "unixsocket": str(self._socket)}
        options = [part for name, value in settings.items() for part in (f"--{name}", value)]
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(
                die_with_parent([self._program, *options]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches only us, and we stop it in good order
                pass_fds=[self._lock.fileno()],  # the folder is in use as long as the server runs
            )
        self._wait_until_it_answers()

    def stop(self) -> None:
        """Stop the server, if it runs, and return when it has ended."""
        if self._process:
            self._process.terminate()
            try:
                self._process.wait(_STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._lock:
            self._lock.close()

    @property
    def _log_path(self) -> Path:
        return self._folder / "server.log"

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT
        while not _answers(self._socket):
            if self._process and self._process.poll() is not None:
                raise self._failure(f"ended with status {self._process.returncode}")
            if time.monotonic() > deadline:
                raise self._failure(f"did not answer within {_START_TIMEOUT:.0f} s")
            time.sleep(_POLL)

    def _failure(self, what: str) -> StorageUnavailableError:
        words = self._log_path.read_text(encoding="utf-8", errors="replace")[-_TAIL:]
        return StorageUnavailableError(f"store={self._program}: {what}\n{words}")


def _answers(path: Path) -> bool:
    """Return whether a server on *path* is ready: not merely listening, and not loading."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(5) == b"+PONG"
        except OSError:
            return False


def _lock(folder: Path) -> IO[str]:
    """Return an open file that marks *folder* as used: two servers would write one log."""
    import fcntl  # not on Windows, where there is no server to start either

    lock = (folder / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise StorageUnavailableError(f"data_dir={folder}: is used by another store") from error
    return lock
