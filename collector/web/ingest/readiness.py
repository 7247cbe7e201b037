"""Answers to /livez and /readyz, without a place in any queue: they decide over the process."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ...core.errors import StorageUnavailableError
from ...intake.backpressure import Pressure
from ...storage.protocols import Gauge

PATIENCE_S: Final = 4.0  # seconds for a store that is asked whether it is there


def backlog(pressure: Pressure, storage: Gauge) -> int:
    """Return how many entries wait to be folded, if an upload would be taken now.

    Raises: CollectorError: why none would be.
    """
    pressure.require_room()
    storage.ping()
    return storage.backlog()


class Readiness:
    """Asks the store in one thread of its own, once for all who ask meanwhile."""

    def __init__(self, pressure: Pressure, storage: Gauge) -> None:
        """Ask *storage*, unless *pressure* knows already that no upload is taken."""
        self._pressure, self._storage = pressure, storage
        self._thread = ThreadPoolExecutor(1, "ready")
        self._running: asyncio.Future[int] | None = None
        self._next: asyncio.Future[int] | None = None

    async def backlog(self) -> int:
        """Return how many entries waited at some moment after this was called.

        Raises: CollectorError: no upload would be taken.
        """
        self._pressure.require_room()
        if self._next is None:  # the one that runs may have looked before we were asked
            self._next = asyncio.ensure_future(self._look(self._running))
            self._next.add_done_callback(_heed)
        return await asyncio.shield(self._next)

    async def _look(self, earlier: asyncio.Future[int] | None) -> int:
        if earlier is not None:
            await asyncio.wait([earlier])
        self._running, self._next = self._next, None
        look = asyncio.get_running_loop().run_in_executor(
            self._thread, backlog, self._pressure, self._storage
        )
        try:
            return await asyncio.wait_for(look, PATIENCE_S)
        except TimeoutError:
            raise StorageUnavailableError("store: no answer to a look at its backlog") from None


def _heed(look: asyncio.Future[int]) -> None:
    """Take note of how *look* ended: whoever asked may have gone."""
    if not look.cancelled():
        look.exception()
