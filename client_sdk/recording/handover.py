"""What a program that ends at once keeps for its child, and what it need not keep.

Loads nothing but what every interpreter has loaded: a process lives for 0.2 s and pays for it all.
"""

from __future__ import annotations

import marshal
import os
import sys

from .handover_protocol import (
    Notes,
    collector_checksum,
    issue_permit,
    permit_in,
    portable,
    settings_checksum,
    to_plain,
)

TYPE_CHECKING = False  # type checkers take it for true; loading typing costs more than all else

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final

MOST_BYTES: Final = 1 << 20  # of values that are kept; a pipe may have room for fewer


class Handover:
    """What one process has to hand over.  A child of fork begins with nothing."""

    def __init__(self, settings: Mapping[str, Any], end: Callable[[], None]) -> None:
        """Begin empty.

        Args: settings: ``Options`` of plain types, with a path as ``registry``.
              end: hands over; children of multiprocessing call it at their end.
        """
        self._settings, self._end = dict(settings), end
        self._values: list[bytes] = []  # each as the child reads it
        self._bytes = 0
        self._notes: Notes | None = None
        self._permit = b""
        self._maker = self._pid = os.getpid()
        self._begun = False  # whether this process has put anything down

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the child is told beside values."""
        return self._settings

    def put(self, name: str, value: object, now: float) -> str | None:
        """Keep *value* of Unix time *now*; return the reason if it need not, or cannot, be kept."""
        if not self._begun or self._pid != os.getpid():
            self._begin()
        until, reason = self.notes(now).settled.get(name, (0.0, ""))
        if now < until:
            return reason
        entry = marshal.dumps((name, to_plain(value), now))
        if self._bytes + len(entry) > MOST_BYTES:
            return "queue_full"
        self._values.append(entry)
        self._bytes += len(entry)
        return None

    def _begin(self) -> None:
        self._pid, self._values, self._bytes, self._begun = os.getpid(), [], 0, True
        if not self._permit:  # a denial from here on is one of these values
            self._permit = permit_in(self._settings["data_dir"])
        if "multiprocessing" in sys.modules or "billiard" in sys.modules:
            from .background import at_end_of_child

            at_end_of_child(self._end)

    def notes(self, now: float) -> Notes:
        """Return what the last child noted, read once."""
        if self._notes is None:
            notes = Notes.read(self._settings["data_dir"], self._settings["registry"], now)
            self._notes = notes
            if notes.place != collector_checksum(self._settings):
                notes.settled = {}  # other settings may be wrong ones, and a child is to say so
            refused, why = notes.refused
            if why and refused == settings_checksum(portable(self._settings)):
                from ..core.stats import warn

                warn(f"{why}; so nothing that this program records is reported")
        return self._notes

    def permit(self) -> bytes:
        """Return the permit that the child must find; one is issued if there was none."""
        if not self._permit:
            self._permit = issue_permit(self._settings["data_dir"])
        return self._permit

    def take(self) -> list[bytes]:
        """Remove and return the values of this process, as ``values_of`` reads them."""
        values = self._values if self._pid == os.getpid() else []
        self._values, self._bytes = [], 0
        return values

    def start(self, values: list[bytes], now: float) -> int:
        """Hand *values* to a child, if there are any or a pass is due at Unix time *now*.

        Returns: how many it was handed; -1 if a child was needed and could not be started.
        """
        due = self.notes(now).due
        if not values and (due is None or now < due or os.getpid() != self._maker):
            return 0
        sends = (due is None or now >= due) and flip_coin()
        if not values and not sends:
            return 0
        from .detached import start_child

        document = {
            "settings": portable(self._settings),
            "sends": sends,
            "permit": self.permit(),
        }
        return start_child(document, values)


def flip_coin() -> bool:
    """Return heads or tails of a fair coin of the system's."""
    return bool(os.urandom(1)[0] & 1)
