"""Whether a client has a thread of its own."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

from .core.errors import InvalidParameterError


class Mode(StrEnum):
    """Who writes values down and sends reports."""

    BACKGROUND = "background"  # a thread, on a schedule
    MANUAL = "manual"  # the caller of record and flush; there is no thread

    @classmethod
    def of(cls, mode: object) -> Mode:
        """Return *mode* as a Mode.  Raises InvalidParameterError."""
        if not isinstance(mode, str) or mode not in tuple(cls):
            raise InvalidParameterError("mode", mode, f"must be one of {', '.join(cls)}")
        return cls(mode)


ModeLike: TypeAlias = Mode | Literal["background", "manual"]
