"""Consent: the first gate of every value and of every upload.

Above the consent that the application was given, others may say no: see ``opt_outs``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from enum import StrEnum
from os import PathLike

from ..core.errors import AutomatedError, ConsentError, InvalidParameterError, OptedOutError
from ..core.paths import create, make_folder
from ..core.stats import Reason
from ..core.typing import Literal, TypeAlias
from . import opt_outs
from .automation import sign_of_automation
from .opt_outs import USER_FILE, policy_path, who_says_no


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


ConsentLike: TypeAlias = "Consent | Literal['granted', 'denied', 'unknown']"


class Level(StrEnum):
    """Who decides, from the strongest down."""

    DO_NOT_TRACK = opt_outs.DO_NOT_TRACK
    HEARSAY_TELEMETRY = opt_outs.HEARSAY_TELEMETRY
    POLICY = opt_outs.POLICY
    USER = opt_outs.USER
    APPLICATION = "application"


class OptOuts:
    """The places where somebody may have said no.  Looked at again each time, as people change."""

    def __init__(
        self,
        folder: str | PathLike[str] | None,
        environment: Mapping[str, str] | None = None,
        policy: str | PathLike[str] | None = None,
        *,
        heeds_automation: bool = True,
    ) -> None:
        """Look into *folder*, *environment* and *policy*.

        Args: folder: the application's data folder; None: it has none.
              environment: the process's own if None, and only then are the machine's files read
              that tell a container.  policy: the system's own file if None.
              heeds_automation: whether it matters that a machine may run the application by itself.
        """
        self._heeds_automation = heeds_automation
        self._root = "/" if environment is None else None
        self._folder = folder
        self._environment = os.environ if environment is None else environment
        self._policy = policy_path(self._environment) if policy is None else policy

    def said_by(self) -> Level | None:
        """Return the strongest level that says no; None if nobody does."""
        level = who_says_no(self._folder, self._environment, self._policy)
        return None if level is None else Level(level)

    def automation(self) -> str | None:
        """Return what shows that no person is here; None if nothing does, or it does not matter."""
        if not self._heeds_automation:
            return None
        return sign_of_automation(self._folder, self._environment, self._root)


class NoOptOuts(OptOuts):
    """For simulated people, who have no environment and no settings: nobody says no."""

    def __init__(self) -> None:
        """Look nowhere."""
        super().__init__(None, {}, heeds_automation=False)

    def said_by(self) -> None:
        """Return that nobody says no."""


class ConsentSwitch:
    """The present consent, shared by those who record, send and erase.

    ``consent`` is what the application was told.  Where somebody has opted out above it, that
    counts as denied.  Where nobody is, it stays as it is, and still nothing is recorded or sent.
    """

    def __init__(
        self,
        consent: Consent,
        opt_outs: OptOuts | None = None,
        automation: str | None = None,
        withdrawn: Callable[[], bool] | None = None,
    ) -> None:
        """Begin with *consent* and the *opt_outs* as they are now; without any, none counts.

        Args: automation: what shows that a machine runs the application by itself, for good.
              withdrawn: whether the user has said no since *consent* was given, and whoever was
              told so has erased what there was.
        """
        self._withdrawn = withdrawn
        self.consent, self._automation = consent, automation
        self.erasures_requested = 0  # denials that found something to erase
        self.erasures_done = 0  # denials that were carried out
        self._opt_outs = NoOptOuts() if opt_outs is None else opt_outs
        self.refresh()

    def refresh(self) -> None:
        """Look again whether somebody has said no.  Reads files, so not for every value."""
        self._opted_out = self._opt_outs.said_by()
        if self._withdrawn is not None and self._withdrawn():
            self.consent = Consent.UNKNOWN  # what is there now may be of a later consent

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
        """Whether there is a user, who agrees now."""
        agreed = self.consent is Consent.GRANTED and self._opted_out is None
        return agreed and self._automation is None

    @property
    def erasure_due(self) -> bool:
        """Whether a denial is still to be carried out."""
        return self.erasures_done != self.erasures_requested

    @property
    def may_send(self) -> bool:
        """Whether the user agrees now, and no earlier denial takes what waits away."""
        return self.granted and not self.erasure_due

    def may_send_now(self) -> bool:
        """Look again, as another process may have been told, and return ``may_send``."""
        self.refresh()
        return self.may_send

    @property
    def refusal(self) -> Reason:
        """Why values are refused, where they are."""
        if self._opted_out is not None:
            return Reason.OPTED_OUT
        automated = self.consent is Consent.GRANTED and self._automation is not None
        return Reason.AUTOMATED if automated else Reason.CONSENT

    def require(self) -> None:
        """Raise ConsentError unless the user agrees now.

        Raises: OptedOutError: a level above says no.  AutomatedError: nobody is here.
        """
        if self._opted_out is not None:
            raise OptedOutError(f"consent={Consent.DENIED}: by {self._opted_out}")
        if self.consent is not Consent.GRANTED:
            raise ConsentError(f"consent={self.consent}: must be {Consent.GRANTED}")
        if self._automation is not None:
            raise AutomatedError(self._automation)


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
