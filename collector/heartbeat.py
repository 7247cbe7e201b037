"""A file whose age says that a worker is alive; for health checks of a process without a port."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from .core.errors import ConfigError

STALE_AFTER: Final = 30  # seconds; a worker beats before every round, and rests at most 5 s


class Heartbeat:
    """Touches *path* at every beat."""

    def __init__(self, path: Path) -> None:
        """Beat on *path*, whose folder must exist."""
        self._path = path

    def beat(self) -> None:
        """Say: still here.  Raises ConfigError: there is no folder for the file."""
        try:
            self._path.touch()
        except OSError as error:
            raise ConfigError(
                "HEARSAY_HEARTBEAT", self._path, f"cannot be touched: {error}"
            ) from None


def is_fresh(path: Path) -> bool:
    """Return whether *path* was touched within STALE_AFTER seconds."""
    try:
        return time.time() - path.stat().st_mtime < STALE_AFTER
    except OSError:
        return False
