"""Consent: the first gate of every value and of every upload."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

from .core.errors import ConsentError, InvalidParameterError, OptedOutError
from .opt_out import Level, NoOptOuts, OptOuts


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


class ConsentSwitch:
    """The present consent, shared by those who record, send and erase.

    ``consent`` is what the application was told.  Where somebody has opted out above it, that
    counts as denied.
    """

    def __init__(self, consent: Consent, opt_outs: OptOuts | None = None) -> None:
        """Begin with *consent* and the *opt_outs* as they are now; without any, none counts."""
        self.consent = consent
        self.erasures_requested = 0  # denials that found something to erase
        self.erasures_done = 0  # of these
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
