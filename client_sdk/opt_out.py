"""Who may say no to all telemetry beside the application, and above it.

From the strongest down.  Each level can only say no; silence leaves the question to the next, and
in the end to the consent that the application was given.

==================== ===================================================== =====================
environment          ``DO_NOT_TRACK``, anything but empty, 0 or false      every program
environment          ``HEARSAY_TELEMETRY``, anything but a yes (below)     every use of Hearsay
policy               a file of this machine with ``telemetry = false``     every use of Hearsay
user                 a file ``telemetry-off`` in the application's folder  this application
==================== ===================================================== =====================

A yes is empty, 1, true, yes or on: whoever writes anything else there did not write it to agree.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from os import PathLike
from typing import Final

from .core.paths import create, make_folder

USER_FILE: Final = "telemetry-off"  # in the application's data folder; its presence is the answer

_NO_DO_NOT_TRACK: Final = ("", "0", "false")
_YES: Final = ("", "1", "true", "yes", "on")


class Level(StrEnum):
    """Who decides, from the strongest down."""

    DO_NOT_TRACK = "DO_NOT_TRACK"
    HEARSAY_TELEMETRY = "HEARSAY_TELEMETRY"
    POLICY = "policy"
    USER = "user"
    APPLICATION = "application"


class OptOuts:
    """The places where somebody may have said no.  Looked at again each time, as people change."""

    def __init__(
        self,
        folder: str | PathLike[str] | None,
        environment: Mapping[str, str] | None = None,
        policy: str | PathLike[str] | None = None,
    ) -> None:
        """Look into *folder*, *environment* and *policy*.

        Args: folder: the application's data folder; None: it has none.
              environment: the process's own if None.  policy: the system's own file if None.
        """
        self._folder = folder
        self._environment = os.environ if environment is None else environment
        self._policy = policy_path(self._environment) if policy is None else policy

    def said_by(self) -> Level | None:
        """Return the strongest level that says no; None if nobody does."""
        if self._environment.get("DO_NOT_TRACK", "").strip().lower() not in _NO_DO_NOT_TRACK:
            return Level.DO_NOT_TRACK
        if self._environment.get("HEARSAY_TELEMETRY", "").strip().lower() not in _YES:
            return Level.HEARSAY_TELEMETRY
        if forbids(self._policy):
            return Level.POLICY
        if self._folder is not None and os.path.lexists(os.path.join(self._folder, USER_FILE)):
            return Level.USER
        return None


class NoOptOuts(OptOuts):
    """For simulated people, who have no environment and no settings: nobody says no."""

    def __init__(self) -> None:
        """Look nowhere."""
        super().__init__(None, {})

    def said_by(self) -> None:
        """Return that nobody says no."""


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
    except OSError:
        return True
    import tomllib  # 3 ms that a machine without a policy must not pay

    try:
        return tomllib.loads(text.decode()).get("telemetry", True) is not True
    except (ValueError, RecursionError):
        return True


def set_user_opt_out(folder: str | PathLike[str], *, off: bool) -> None:
    """Write, or remove, the user's own no in *folder*.

    Raises: OSError: the folder cannot be written.
    """
    path = os.path.join(folder, USER_FILE)
    if off:
        make_folder(os.fspath(folder))
        if not os.path.lexists(path):
            os.close(create(path))
    elif os.path.lexists(path):
        os.remove(path)
