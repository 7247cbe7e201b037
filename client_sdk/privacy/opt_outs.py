"""Who may say no to all telemetry, above the application.  Loads nothing, so any program may ask.

From the strongest down.  Each can only say no; silence leaves the question to the next.

==================== ===================================================== =====================
environment          ``DO_NOT_TRACK``, anything but empty, 0 or false      every program
environment          ``HEARSAY_TELEMETRY``, anything but a yes (below)     every use of Hearsay
policy               a file of this machine with ``telemetry = false``     every use of Hearsay
user                 a file ``telemetry-off`` in the application's folder  this application
==================== ===================================================== =====================

A yes is empty, 1, true, yes or on: whoever writes anything else there did not write it to agree.

Below them stands what the application was told; where that was on a terminal, a file keeps it.
"""

from __future__ import annotations

import errno
import os
import stat
import sys

TYPE_CHECKING = False  # type checkers take it for true; loading typing costs more than all else

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from typing import Final, Literal, TypeAlias

    Answer: TypeAlias = Literal["granted", "denied", "unknown"]

ANSWER_FILE: Final = "telemetry-answer"  # in the data folder: what was answered when asked
ANSWERS: Final[tuple[Answer, ...]] = ("granted", "denied", "unknown")
USER_FILE: Final = "telemetry-off"  # in the application's data folder; its presence is the answer

DO_NOT_TRACK: Final = "DO_NOT_TRACK"
HEARSAY_TELEMETRY: Final = "HEARSAY_TELEMETRY"
POLICY: Final = "policy"
USER: Final = "user"

_NO_DO_NOT_TRACK: Final = ("", "0", "false")
YES: Final = ("", "1", "true", "yes", "on")  # the first is silence


def who_says_no(
    folder: str | PathLike[str] | None,
    environment: Mapping[str, str],
    policy: str | PathLike[str],
) -> str | None:
    """Return the strongest level that says no; None if nobody does.

    Args: folder: the application's data folder; None: it has none.
          policy: the file of the machine, at ``policy_path``.
    """
    if environment.get(DO_NOT_TRACK, "").strip().lower() not in _NO_DO_NOT_TRACK:
        return DO_NOT_TRACK
    if environment.get(HEARSAY_TELEMETRY, "").strip().lower() not in YES:
        return HEARSAY_TELEMETRY
    if forbids(policy):
        return POLICY
    if folder is not None and os.path.lexists(os.path.join(folder, USER_FILE)):
        return USER
    return None


def policy_path(environment: Mapping[str, str], platform: str = sys.platform) -> str:
    """Return the file in which the owner of a machine of *platform* may forbid telemetry."""
    if platform == "win32":
        return os.path.join(
            environment.get("PROGRAMDATA", r"C:\ProgramData"), "hearsay/policy.toml"
        )
    if platform == "darwin":
        return "/Library/Application Support/hearsay/policy.toml"
    return "/etc/hearsay/policy.toml"


def forbids(policy: str | PathLike[str]) -> bool:
    """Whether the file *policy* says ``telemetry = false``.

    One that is there but cannot be read, or is not understood, forbids too: somebody wanted to say
    something, and the only thing that can be said is no.
    """
    try:
        with open(policy, "rb") as file:
            text = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        # a process that may open no more files can still tell that nobody said anything
        return error.errno not in (errno.EMFILE, errno.ENFILE) or os.path.lexists(policy)
    import tomllib  # 3 ms that a machine without a policy must not pay

    try:
        return tomllib.loads(text.decode()).get("telemetry", True) is not True
    except (ValueError, RecursionError):
        return True


def answer_in(folder: str | PathLike[str]) -> Answer | None:
    """Return what was answered on the terminal; None if nobody was asked, or it is damaged."""
    try:
        text = read_file(os.path.join(folder, ANSWER_FILE), 16).strip()
    except OSError:
        return None
    return next((answer for answer in ANSWERS if answer.encode() == text), None)


def read_file(path: str | PathLike[str], most: int) -> bytes:
    """Return up to *most* bytes of the file at *path*, and wait for none.

    Raises: OSError: it cannot be read, or is a pipe, a device or a folder.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "must be a file", path)
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        return os.read(file, most)
    finally:
        os.close(file)
