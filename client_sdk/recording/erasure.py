"""Erasure: what a denial or a purge deletes, if not now then as soon as the database lets us.

What was spent stays.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from ..core.errors import StoreError
from ..core.limits import NOTES_FILE, PERMIT_FILE
from ..core.stats import Reason, Stats
from ..core.typing import TYPE_CHECKING, Final
from ..privacy.consent import Consent
from ..storage import outbox
from ..storage.ledger import forget_changes
from ..upload.schedule import forget_claim

if TYPE_CHECKING:
    from ..privacy.consent import ConsentSwitch
    from ..storage.schema import Transaction
    from ..storage.store import Store

_ERASED_TABLES: Final = ("windows", "memo", "sent")

FIRST_WAIT: Final = 5.0  # seconds; whoever holds a database, holds it for less
MAX_WAIT: Final = 300.0  # seconds; a disk that was made read-only needs no oftener


class Erasure:
    """Erases what waits, once for each denial.  Raises nothing: failures are counted.

    Until that is done nothing may be written or sent, even if consent was given anew meanwhile:
    the erasure would take it for what is to be forgotten.
    """

    def __init__(
        self,
        store: Store,
        switch: ConsentSwitch,
        stats: Stats,
        *,
        forget: Callable[[Reason], None],
        wake: Callable[[], bool],
    ) -> None:
        """Do nothing yet.

        Args: forget: empties the memory of this process, and counts its values under a reason.
              wake: has a thread call ``run``; False if there is none.
        """
        self._store, self._switch, self._stats = store, switch, stats
        self._forget, self._wake = forget, wake
        self.store_closed = False  # a closed store is opened to erase, and closed again
        self._scrub_due = False
        self._failures = 0  # failures in a row
        self._applied = switch.in_force  # the consent that was last acted upon

    @property
    def done(self) -> bool:
        """Whether nothing is to be erased any more."""
        return not self._switch.erasure_due and not self._scrub_due

    @property
    def wait(self) -> float:
        """The seconds after which to try again."""
        return float(min(MAX_WAIT, FIRST_WAIT * 2 ** min(max(self._failures - 1, 0), 10)))

    def refresh(self) -> None:
        """Look whether somebody has opted out, or in again, since."""
        with self._stats.counting():
            self._switch.refresh()
            if self._switch.in_force is not self._applied:
                self.apply()

    def apply(self) -> None:
        """If consent is denied, forget all that waits; the database is left to the thread.

        First no child may write any more what it was handed before: what it wrote until then is
        erased, and what was handed to it stays unreported, whatever the user says later.
        """
        self._applied = self._switch.in_force
        with self._stats.counting():
            if self._applied is not Consent.DENIED:
                return
            self._forget(self._switch.refusal)
            with suppress(StoreError):  # the erasure tries again
                self._store.remove(PERMIT_FILE)
            if self._store.has_traces:
                self._switch.erasures_requested += 1
                if not self._wake():
                    self.run()

    def run(self) -> bool:
        """Erase what is due; return False if that could not be done."""
        if not self.done:
            with self._stats.counting():
                self._run()
        return not self._switch.erasure_due

    def _run(self) -> None:
        """Erase, and overwrite deleted rows.  Raises StoreError: it is still to be done."""
        if self.store_closed:
            self._store.open()
        self._failures += 1
        try:
            if self._switch.erasure_due:
                self._scrub_due = True
                self._erase()
            self._store.scrub()
        finally:
            if self.store_closed:
                self._store.close()
        self._scrub_due, self._failures = False, 0

    def _erase(self) -> None:
        self._store.remove(PERMIT_FILE)
        with self._store.transaction() as tx:
            requested = self._switch.erasures_requested
            if requested == self._switch.erasures_done:
                return  # another thread erased it, and what is here now came later
            windows = open_windows(tx)
            reports = erase(tx, self._store)
        self._switch.erasures_done = requested
        self._stats.add(Reason.WINDOW_DROPPED, windows)
        self._stats.add(Reason.REVOKED, reports)


def erase(tx: Transaction, store: Store) -> int:
    """Delete what waits, ids of uploads, acknowledged reports, the memo, the secret, damaged files.

    Returns: how many reports waited.
    Raises:  StoreError: a file cannot be removed; then nothing was deleted from the database.
    """
    waiting = outbox.clear(tx)
    forget_changes(tx)
    forget_claim(tx)
    for table in _ERASED_TABLES:
        tx.execute(f"DELETE FROM {table}")  # noqa: S608 - names from above
    store.remove_damaged()
    store.remove(NOTES_FILE)  # they tell what the secret drew
    # the secret goes last: should the commit fail, the memo's tags match nothing more
    store.secret.delete(tx)
    return waiting


def open_windows(tx: Transaction) -> int:
    """Return how many windows ``erase`` would take away."""
    (count,) = tx.execute("SELECT count(*) FROM windows").fetchone()
    return int(count)
