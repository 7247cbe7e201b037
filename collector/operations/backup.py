"""``hearsay backup``: copies of the whole store in folders from which a server can be started.

A copy is taken as a replica takes it: the server forks, and sends what it held at that moment as
one stream, while it goes on working.  So each shard is whole, with its entries, tallies, counts,
and the ids that keep an upload from being counted twice.  Shards on other servers are of a moment
later, which harms nothing: no step and no law is about two of them.

A copy appears whole, by a rename, after it is on disk, and is readable by its owner only.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import unquote, urlsplit

from ..core.errors import ConfigError, StorageUnavailableError
from ..storage.cluster import is_cluster
from ..storage.connect import open_connection

PATIENCE: Final = (
    60.0  # seconds without a byte after which the server is given up; forking takes some
)
PART: Final = 1 << 20  # bytes that are held at a time
NAME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ")  # of a copy: when it was begun, in UTC
_UNFINISHED: Final = ".unfinished-"
_BASE: Final = "appendonly.aof.1.base.rdb"  # as the server itself calls the beginning of its file
_MANIFEST: Final = f"file {_BASE} seq 1 type b\n"


@dataclass(frozen=True)
class Server:
    """Where one server is, and the user that asks it."""

    name: str  # of its folder in a copy
    path: str  # of its socket; "" for host and port
    host: str
    port: int
    user: str
    password: str
    tls: bool

    @contextmanager
    def connected(self) -> Iterator[socket.socket]:
        """Connect.  Raises OSError."""
        if self.path:
            plain = socket.socket(socket.AF_UNIX)
            plain.settimeout(PATIENCE)
            plain.connect(self.path)
        else:
            plain = socket.create_connection((self.host, self.port), PATIENCE)
        context = ssl.create_default_context()
        with (
            context.wrap_socket(plain, server_hostname=self.host)
            if self.tls
            else plain as connection
        ):
            yield connection


def servers(url: str) -> list[Server]:
    """Return the server at *url*, or each primary of the cluster there.

    Raises: ConfigError: *url* is no address.  StorageUnavailableError.
    """
    if not is_cluster(url):
        return [_server(url, "store")]
    scheme, _, rest = url.partition("://")
    user, at, seeds = rest.rpartition("@")
    connection = open_connection(url)
    try:
        slots = connection.call("CLUSTER", "SLOTS")
    finally:
        connection.close()
    first = seeds.split(",")[0].rpartition(":")[0]
    addresses = {f"{primary[0].decode() or first}:{primary[1]}" for _, _, primary, *_ in slots}
    single = scheme.removesuffix("-cluster")
    return [
        _server(f"{single}://{user}{at}{address}/0", address.replace(":", "-"))
        for address in sorted(addresses)
    ]


def _server(url: str, name: str) -> Server:
    try:
        parts = urlsplit(url)
        is_known = parts.scheme in ("redis", "rediss", "unix")
        port = (parts.port or 6379) if parts.scheme != "unix" else 0
    except ValueError:  # not even as a cause: the address may hold a password
        is_known, port = False, 0
    if not is_known:
        rule = "must begin with redis://, rediss://, unix:// or redis-cluster://"
        raise ConfigError("REDIS_URL", "***", rule) from None
    return Server(
        name=name,
        path=parts.path if parts.scheme == "unix" else "",
        host=parts.hostname or "127.0.0.1",
        port=port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        tls=parts.scheme == "rediss",
    )


def back_up(url: str, folder: Path, now: float) -> tuple[Path, int]:
    """Write a copy of the store at *url* below *folder*; return its path and its bytes.

    The folder is made where its parent is: a parent that is missing may be an unmounted disk.

    Raises: ConfigError: the folder cannot be made.
            StorageUnavailableError: a server sent no copy, and none is kept.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        rule = f"cannot be made: {error.strerror}"
        raise ConfigError("FOLDER", folder, rule) from error
    name = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime(now))
    for old in folder.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(old)
    unfinished = folder / f"{_UNFINISHED}{name}"
    size = 0
    for server in servers(url):
        data = unfinished / server.name / "appendonlydir"
        data.mkdir(parents=True, mode=0o700)
        size += _copy(server, data / _BASE)
        _write(data / "appendonly.aof.manifest", _MANIFEST.encode())
        _sync(data)
    unfinished.chmod(0o700)
    finished = folder / name
    unfinished.rename(finished)
    _sync(folder)
    return finished, size


def keep(folder: Path, most: int) -> int:
    """Delete all but the newest *most* copies in *folder*; return how many went."""
    copies = sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name))
    for path in copies[:-most]:
        shutil.rmtree(path)
    return len(copies[:-most])


def _copy(server: Server, path: Path) -> int:
    """Write what *server* holds now to *path*.  Raises StorageUnavailableError."""
    try:
        with server.connected() as connection, connection.makefile("rb") as replies:
            if server.password:
                user = (server.user,) if server.user else ()
                _ask(connection, "AUTH", *user, server.password)
                _line(replies, b"+OK")
            _ask(connection, "PSYNC", "?", "-1")
            _line(replies, b"+FULLRESYNC ")
            size = int(_line(replies, b"$"))
            with open(path, "xb", opener=_private) as file:
                left = size
                while left:
                    part = replies.read(min(PART, left))
                    if not part:
                        raise ConnectionError("it hung up in the middle of the copy")
                    left -= len(part)
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
            return size
    except (OSError, ValueError) as error:
        raise StorageUnavailableError(f"store: no copy of {server.name}: {error}") from error


def _ask(connection: socket.socket, *words: str) -> None:
    parts = [word.encode() for word in words]
    head = b"*%d\r\n" % len(parts)
    connection.sendall(head + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts))


def _line(replies: BinaryIO, beginning: bytes) -> bytes:
    """Return the rest of the next line; a server that prepares a copy sends empty ones meanwhile.

    Raises: ConnectionError: it begins otherwise.
    """
    while (line := replies.readline()) == b"\n":
        pass
    if not line.startswith(beginning):
        code = line[1:].split(b" ")[0][:40]  # the rest of an error may hold what we sent
        raise ConnectionError(f"it answered {code.decode('ascii', 'replace')!r}")
    return line.removeprefix(beginning).strip()


def _write(path: Path, content: bytes) -> None:
    with open(path, "xb", opener=_private) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
