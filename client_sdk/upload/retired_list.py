"""The list of retired metrics: fetched after an upload that arrived, and obeyed if it is signed.

Only then, so that no other moment tells of this device.
"""

from __future__ import annotations

from ..core.stats import Reason, Stats
from ..core.typing import Any
from ..privacy.consent import ConsentSwitch
from ..storage import retired
from ..storage.store import Store
from .transport import OK, RETIRED_PATH, Transport


class RetiredList:
    """Asks a collector which metrics are retired, and stops them."""

    def __init__(
        self,
        key: str,
        store: Store,
        transport: Transport,
        consent: ConsentSwitch,
        stats: Stats,
    ) -> None:
        """Believe what is signed by *key*, in hexadecimal; some transports fetch nothing."""
        self._key, self._store, self._consent, self._stats = key, store, consent, stats
        self._fetch: Any = getattr(transport, "fetch", None)

    def fetch(self, timeout: float) -> None:
        """Fetch the list and obey it.  One of another key, or an older one, changes nothing."""
        if self._fetch is None or timeout <= 0 or not self._consent.may_send_now():
            return
        try:
            answer = self._fetch(RETIRED_PATH, timeout)
        except Exception as error:  # noqa: BLE001 - as of an upload; the next pass asks again
            self._stats.fail(error)
            return
        if answer.status != OK:
            return  # this collector has none
        from ..privacy.retirement import read

        retirement, dropped = read(answer.body, bytes.fromhex(self._key)), None
        if retirement is not None:
            with self._store.transaction() as tx:
                dropped = retired.keep(tx, retirement.issued, retirement.digests)
        if dropped is None:
            self._stats.add(Reason.LIST_REFUSED)
            return
        reports, windows = dropped
        self._stats.add(Reason.WITHDRAWN, reports)
        self._stats.add(Reason.WINDOW_DROPPED, windows)
        if windows:
            self._store.scrub()  # it overwrites what was true
