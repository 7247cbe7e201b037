"""Which file on which machine: how a copied or restored database is told from the one it was.

A copy shows by its identity, which stays in the database: nothing of it is ever sent.

A rollback shows by the generation file beside the database.  The database counts its charges, and
the count is repeated there after every commit, so a database that knows of fewer was put back to an
earlier state, or lost its log.  The file never runs ahead: it is written after the commit is
durable, and losing it loses only this one sign.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from ..core.paths import create_or_open
from ..core.typing import Final

_IDENTITY_SIZE: Final = 16  # bytes

_MACHINE_FILES: Final = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_UUID_SIZE: Final = 16  # bytes
_GET_VERSION: Final = 0x80087601  # FS_IOC_GETVERSION of Linux on 64 bits

GENERATION_FILE: Final = "generation"

_DIGITS: Final = 20  # always written, so that no crash leaves a shorter number


def identity_of(path: str) -> bytes:
    """Return what tells the file at *path* from its copies, and this machine from others.

    Raises: OSError: there is no such file.
    """
    import hashlib  # it loads OpenSSL: 4 MB that a start need not pay for

    inode = f"{os.stat(path).st_ino}:{_inode_version(path)}"
    parts = (b"hearsay identity", _machine_id(), inode.encode("ascii"))
    return hashlib.shake_256(b"\0".join(parts)).digest(_IDENTITY_SIZE)


def _machine_id() -> bytes:
    """Return what the operating system calls this installation of it; empty if it does not."""
    try:
        if sys.platform == "win32":
            return _windows_id()
        return _mac_id() if sys.platform == "darwin" else _linux_id()
    except (OSError, AttributeError, ImportError):
        return b""


def _linux_id() -> bytes:
    for path in _MACHINE_FILES:
        if os.path.exists(path):
            with open(path, "rb") as file:
                return file.read(64).strip()
    return b""


def _windows_id() -> bytes:
    import winreg

    with winreg.OpenKey(  # type: ignore[attr-defined]  # Windows only
        winreg.HKEY_LOCAL_MACHINE,  # type: ignore[attr-defined]  # Windows only
        r"SOFTWARE\Microsoft\Cryptography",
    ) as key:
        return str(winreg.QueryValueEx(key, "MachineGuid")[0]).encode()  # type: ignore[attr-defined]  # Windows only


def _mac_id() -> bytes:
    import ctypes

    uuid, no_wait = ctypes.create_string_buffer(_UUID_SIZE), ctypes.create_string_buffer(16)
    if ctypes.CDLL(None).gethostuuid(uuid, no_wait) != 0:
        return b""
    return uuid.raw


def _inode_version(path: str) -> int:
    """Return which use of its inode number a file is; 0 where the file system does not tell.

    A number is used again soon after its file was deleted, so a restored file may have the old one.
    """
    try:
        import fcntl

        descriptor = _descriptor_of(path)
        if descriptor is not None:
            answer = fcntl.ioctl(descriptor, _GET_VERSION, bytes(8))
        else:
            with open(path, "rb") as file:
                answer = fcntl.ioctl(file, _GET_VERSION, bytes(8))
    except (OSError, ImportError):
        return 0
    return int.from_bytes(answer[:4], sys.byteorder)


def _descriptor_of(path: str) -> int | None:
    """Return a descriptor that this process has of the file at *path*; None if it has none.

    Closing one of our own would drop all locks that SQLite holds on the file in this process, and
    another process could then delete the log under our hands.
    """
    status = os.stat(path)
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), status):
                return descriptor
    return None


def read_generation(folder: str) -> int:
    """Return the number in *folder*; 0 if there is none that can be read."""
    try:
        with open(_path(folder), "rb") as file:
            return int(file.read(_DIGITS))
    except (OSError, ValueError):
        return 0


def write_generation(folder: str, generation: int) -> None:
    """Write *generation* to *folder*, if that is possible."""
    with suppress(OSError), open(create_or_open(_path(folder)), "wb") as file:
        file.write(f"{generation:0{_DIGITS}d}".encode())


def _path(folder: str) -> str:
    return os.path.join(folder, GENERATION_FILE)
