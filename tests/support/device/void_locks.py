"""Locks as on a bad network share: refused, or granted to everyone, by a filter of system calls."""

from __future__ import annotations

import ctypes
import fcntl
import platform
import struct
import sys
from typing import Final

REFUSED: Final = 37  # ENOLCK
GRANTED: Final = 0  # whoever else has it

_FCNTL: Final = {"x86_64": 72, "aarch64": 25}  # the number of the call, by machine
_COMMANDS: Final = ("F_SETLK", "F_SETLKW", "F_OFD_SETLK", "F_OFD_SETLKW")
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # of classic BPF
_CALL, _COMMAND = 0, 24  # where they are in what a filter sees
_ALLOW, _ANSWER = 0x7FFF0000, 0x00050000
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def available() -> bool:
    """Whether this system filters calls, and it is known how."""
    return sys.platform == "linux" and platform.machine() in _FCNTL


def answer_locks(answer: int) -> None:
    """Have the system give *answer* to every lock that this process asks for.  Raises OSError."""
    commands = [getattr(fcntl, name) for name in _COMMANDS]
    last = len(commands)
    steps = [
        (_LOAD, 0, 0, _CALL),
        (_EQUAL, 0, last + 1, _FCNTL[platform.machine()]),
        (_LOAD, 0, 0, _COMMAND),
        *((_EQUAL, last - i, 0, command) for i, command in enumerate(commands)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ANSWER | answer),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    system = ctypes.CDLL(None, use_errno=True)
    program = ctypes.byref(_Program(len(steps), ctypes.addressof(code)))
    if system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or system.prctl(
        _SECCOMP, _FILTER, program, 0, 0
    ):
        raise OSError(ctypes.get_errno(), "no filter of system calls")
