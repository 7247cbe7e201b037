"""Carrying out a denial: what waits is deleted, if not now then as soon as the database lets us."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .stats import Reason, Stats
from .wiping import open_windows, wipe

if TYPE_CHECKING:
    from .consent import ConsentSwitch
    from .store import Store

FIRST_WAIT: Final = 5.0  # seconds; whoever holds a database, holds it for less
MAX_WAIT: Final = 300.0  # seconds; a disk that was made read-only needs no oftener


class Denial:
    """Wipes the database once for each denial that the switch has heard.

    Until that is done nothing may be written or sent, even if consent was given anew meanwhile:
    the wipe would take it for what is to be forgotten.
    """

    def __init__(self, store: Store, switch: ConsentSwitch, stats: Stats) -> None:
        """Do nothing yet."""
        self._store, self._switch, self._stats = store, switch, stats
        self._scrub_due = False
        self._failures = 0  # in a row

    @property
    def done(self) -> bool:
        """Whether nothing is to be wiped any more."""
        return not self._switch.wipe_due and not self._scrub_due

    @property
    def wait(self) -> float:
        """The seconds after which to try again."""
        return float(min(MAX_WAIT, FIRST_WAIT * 2 ** min(max(self._failures - 1, 0), 10)))

    def carry_out(self, *, closed: bool) -> None:
        """Wipe what is to be wiped.

        Args:   closed: whether the store was closed, and is to be closed again.
        Raises: StoreError: it is still to be done, or deleted rows are still to be overwritten.
        """
        if closed:
            self._store.open()
        self._failures += 1
        try:
            if self._switch.wipe_due:
                self._scrub_due = True
                self._wipe()
            self._store.scrub()
        finally:
            if closed:
                self._store.close()
        self._scrub_due, self._failures = False, 0

    def _wipe(self) -> None:
        with self._store.transaction() as tx:
            heard = self._switch.denials
            if heard == self._switch.wiped:
                return  # another thread was faster, and what is here now came later
            windows = open_windows(tx)
            wiped = wipe(tx, self._store)
        self._switch.wiped = heard
        self._stats.add(Reason.WINDOW_DROPPED, windows)
        self._stats.add(Reason.REVOKED, wiped)
