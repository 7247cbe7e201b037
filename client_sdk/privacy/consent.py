"""Consent: the first gate of every value and of every upload.

Above the consent that the application was given, others may say no to all telemetry, from the
strongest down.  Each level can only say no; silence leaves the question to the next.

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
from typing import Final, Literal, TypeAlias

from ..core.errors import ConsentError, InvalidParameterError, OptedOutError
from ..core.paths import create, make_folder

USER_FILE: Final = "telemetry-off"  # in the application's data folder; its presence is the answer

_NO_DO_NOT_TRACK: Final = ("", "0", "false")
_YES: Final = ("", "1", "true", "yes", "on")


class Consent(StrEnum):
    """What the user has said.  Only GRANTED lets anything be recorded or sent."""

    GRANTED = "granted"
    DENIED = "denied"  # also erases what waits to be sent
    UNKNOWN = "unknown"  # not asked yet: nothing is recorded, nothing is erased

    @classmethod
    def of(cls, answer: object) -> Consent:
        """Return *answer* as a Consent.

        Raises: InvalidParameterError: none of the three; a bool is refused too, since it hides
                whether the user was asked.
        """
        if not isinstance(answer, str) or answer not in tuple(cls):
            raise InvalidParameterError("consent", answer, f"must be one of {', '.join(cls)}")
        return cls(answer)


ConsentLike: TypeAlias = Consent | Literal["granted", "denied", "unknown"]


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


class ConsentSwitch:
    """The present consent, shared by those who record, send and erase.

    ``consent`` is what the application was told.  Where somebody has opted out above it, that
    counts as denied.
    """

    def __init__(self, consent: Consent, opt_outs: OptOuts | None = None) -> None:
        """Begin with *consent* and the *opt_outs* as they are now; without any, none counts."""
        self.consent = consent
        self.erasures_requested = 0  # denials that found something to erase
        self.erasures_done = 0  # denials that were carried out
        self._opt_outs = NoOptOuts() if opt_outs is None else opt_outs
        self._opted_out = self._opt_outs.said_by()

    def refresh(self) -> None:
        """Look again whether somebody has opted out.  Reads files, so not for every value."""
        self._opted_out = self._opt_outs.said_by()

    @property
    def said_by(self) -> Level:
        """Whose word is in force."""
        return self._opted_out or Level.APPLICATION

    @property
    def in_force(self) -> Consent:
        """The consent that counts."""
        return self.consent if self._opted_out is None else Consent.DENIED

    @property
    def granted(self) -> bool:
        """Whether the user agrees now."""
        return self.consent is Consent.GRANTED and self._opted_out is None

    @property
    def erasure_due(self) -> bool:
        """Whether a denial is still to be carried out."""
        return self.erasures_done != self.erasures_requested

    @property
    def may_send(self) -> bool:
        """Whether the user agrees now, and no earlier denial takes what waits away."""
        return self.granted and not self.erasure_due

    def require(self) -> None:
        """Raise ConsentError unless the user agrees now; OptedOutError if a level above says no."""
        if self._opted_out is not None:
            raise OptedOutError(f"consent={Consent.DENIED}: by {self._opted_out}")
        if self.consent is not Consent.GRANTED:
            raise ConsentError(f"consent={self.consent}: must be {Consent.GRANTED}")


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
