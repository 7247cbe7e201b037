"""A dry run: everything happens but the sending, and what would be sent can be read."""

from __future__ import annotations

from collections import deque
from typing import Final

from .upload.transport import ACCEPTED, Answer

MAX_WITHHELD: Final = 100  # uploads; a developer reads the last few


class WithheldUploads:
    """A transport that keeps the last uploads and says that they have arrived."""

    def __init__(self) -> None:
        """Begin empty."""
        self._bodies: deque[bytes] = deque(maxlen=MAX_WITHHELD)

    def send(self, body: bytes, timeout: float) -> Answer:
        """Keep *body*; nothing leaves."""
        self._bodies.append(body)
        return Answer(ACCEPTED, None, b'{"accepted": 0}')  # read as nothing rejected

    def uploads(self) -> tuple[bytes, ...]:
        """Return the bodies that would have been sent, oldest first."""
        return tuple(self._bodies)
