"""Mechanisms over strings of an open vocabulary: nobody lists them beforehand."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import Final

from ..errors import InvalidValueError
from ._base import Mechanism
from ._exact import require_ratio, spent_by
from ._supports import Channel

MAX_LENGTH: Final = 128  # bytes of a string


class TextMechanism(Mechanism[bytes]):
    """A mechanism over strings of up to domain_size bytes, of which any may occur.

    A report tells of one of many hashed cells.  Debiased are the devices of each cell; which
    strings they hold is for the collector to find out.
    """

    @property
    @abstractmethod
    def channel(self) -> Channel:
        """The exact probabilities that a report supports its cell, and another of the same row."""

    @property
    @abstractmethod
    def likelihood_ratio(self) -> Fraction:
        """The largest Pr[payload | v] / Pr[payload | w] over all payloads and strings: e^spent."""

    @abstractmethod
    def agrees(self, payload: bytes, text: bytes) -> bool:
        """Return whether a valid payload supports the cell that *text* has in it."""

    def validate(self) -> None:
        """Refuse a channel without 0 < q < p < 1, or one that spends more than epsilon."""
        channel = self.channel
        if not 0 < channel.q < channel.p < 1:
            raise self.no_channel()
        require_ratio(self.likelihood_ratio, self.epsilon)

    @cached_property
    def spent(self) -> Fraction:
        """The logarithm of the likelihood ratio, rounded up; never above epsilon."""
        return spent_by(self.likelihood_ratio, self.epsilon)

    def require_text(self, value: bytes) -> None:
        """Raise InvalidValueError unless *value* is such a string.  It is never shown."""
        if type(value) is not bytes or len(value) > self.domain_size:
            raise InvalidValueError(self.name, f"must be bytes, at most {self.domain_size}")
