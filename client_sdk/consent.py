"""Consent: the first gate of every value and of every upload."""

from __future__ import annotations

from enum import StrEnum

from .errors import ConsentError, InvalidParameterError


class Consent(StrEnum):
    """What the user has said.  Only GRANTED lets anything be recorded or sent."""

    GRANTED = "granted"
    DENIED = "denied"  # also wipes what waits to be sent
    UNKNOWN = "unknown"  # not asked yet: nothing is recorded, nothing is wiped

    @classmethod
    def of(cls, answer: Consent | str) -> Consent:
        """Return *answer* as a Consent.

        Raises: InvalidParameterError: none of the three; a bool is refused too, since it hides
                whether the user was asked.
        """
        if not isinstance(answer, str) or answer not in tuple(cls):
            raise InvalidParameterError("consent", answer, f"must be one of {', '.join(cls)}")
        return cls(answer)


class ConsentSwitch:
    """The present consent, shared by those who record, send and wipe."""

    def __init__(self, consent: Consent) -> None:
        """Begin with *consent*."""
        self.consent = consent

    @property
    def granted(self) -> bool:
        """Whether the user agrees now."""
        return self.consent is Consent.GRANTED

    def require(self) -> None:
        """Raise ConsentError unless the user agrees now."""
        if not self.granted:
            raise ConsentError(f"consent={self.consent}: must be {Consent.GRANTED}")
