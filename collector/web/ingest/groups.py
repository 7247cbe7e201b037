"""What the event loop asks of a store whose calls block: many questions by one round trip.

Group commit: uploads that come while one round trip runs are appended together in the next.  So the
store's disk is waited for once a group, and a busy process sends few, large commands; a lone upload
does not wait for others.  Each server of a cluster has groups of its own.  Health is answered
likewise, without a place in any queue: it decides over the process.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Final, TypeAlias

from msgspec import Struct

from ...core.errors import CollectorError, RefusedByStoreError, StorageUnavailableError
from ...intake.backpressure import Pressure
from ...intake.tally_quota import Beginning
from ...storage.connection import ANSWER_TIMEOUT, RETRIES
from ...storage.protocols import Intake
from ...storage.values import SealedUpload

MAX_GROUP: Final = 256  # uploads a round trip
MAX_ASKED: Final = 2_048  # tallies that a group asks for; uploads beyond wait for the next group
MAX_GROUP_SIZE: Final = 8 * 1024 * 1024  # bytes a round trip; an upload may be larger, alone
PATIENCE_S: Final = 4.0  # seconds for a store that is asked whether it is there

# Seconds for all that an upload asks of the store: what one command that hangs takes.
DEADLINE_S: Final = ANSWER_TIMEOUT * (1 + RETRIES)
_KEPT_GROUPS: Final = 64  # idle groups of servers that are kept with their threads

_Outcome: TypeAlias = bool | Exception
_Ready: TypeAlias = dict[str, object]
_Refusals: TypeAlias = Callable[[Sequence[Beginning]], Sequence[Exception | None]]


class _Waiting(Struct, frozen=True):
    sealed: SealedUpload
    beginning: Beginning | None  # None if it begins no tally
    since: float  # by the clock of the loop
    on_stored: Callable[[bool], None]  # called with whether it is the first
    future: asyncio.Future[bool]


class Groups:
    """Carries uploads from an event loop to a store whose calls block.  Used by that loop only."""

    def __init__(
        self,
        storage: Intake,
        loop: asyncio.AbstractEventLoop,
        largest: int = MAX_GROUP,
        refusals: _Refusals = lambda beginnings: [None] * len(beginnings),
    ) -> None:
        """Append to *storage* from a thread of its own, at most *largest* uploads at once.

        Args: refusals: says, in that thread, which uploads begin more tallies than they may.
        """
        self._storage, self._loop, self._largest = storage, loop, largest
        self._refusals = refusals
        self._waiting: deque[_Waiting] = deque()
        self._sent: Sequence[_Waiting] = ()  # the group on its way
        self._is_sending = False
        self._groups: SimpleQueue[list[_Waiting] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="append", daemon=True)
        self._thread.start()

    def append(
        self,
        sealed: SealedUpload,
        beginning: Beginning | None = None,
        on_stored: Callable[[bool], None] = lambda first: None,
    ) -> asyncio.Future[bool]:
        """Append an upload, durably; await whether its id was seen for the first time.

        Args:   beginning: the upload once more, if it may begin tallies.
                on_stored: called with the result, even if the caller no longer waits.
        Raises: StorageUnavailableError, StorageFullError, ManyTalliesError.
        """
        future: asyncio.Future[bool] = self._loop.create_future()
        self._waiting.append(_Waiting(sealed, beginning, self._loop.time(), on_stored, future))
        if not self._is_sending:
            self._is_sending = True
            self._loop.call_soon(self._send)  # after all that is ready now has joined
        return future

    def give_up(self, before: float) -> None:
        """Refuse the uploads that have waited since *before*, whatever the store does with them.

        So an upload has one deadline for all that the store is asked.  One that is stored
        nevertheless is counted when it is, and is a duplicate when the device sends it again.
        """
        for waiting in (*self._sent, *self._waiting):
            if waiting.since < before and not waiting.future.done():
                error = StorageUnavailableError(f"store: no answer within {DEADLINE_S} s")
                waiting.future.set_exception(error)
        while self._waiting and self._waiting[0].since < before:
            self._waiting.popleft()

    @property
    def is_idle(self) -> bool:
        """Whether no upload waits or is on its way."""
        return not (self._waiting or self._is_sending)

    def close(self) -> None:
        """Let the thread end after what it was given."""
        self._groups.put(None)

    def _send(self) -> None:
        group: list[_Waiting] = []
        later: list[_Waiting] = []
        size = tallies = 0
        while self._waiting and len(group) < self._largest:
            beginning = self._waiting[0].beginning
            needed = 0 if beginning is None else len(beginning.columns)
            if group and needed and tallies + needed > MAX_ASKED:
                later.append(self._waiting.popleft())
                continue
            size += len(self._waiting[0].sealed.entry)
            if group and size > MAX_GROUP_SIZE:
                break
            group.append(self._waiting.popleft())
            tallies += needed
        self._waiting.extendleft(reversed(later))
        self._sent, self._is_sending = group, bool(group)
        if group:
            self._groups.put(group)

    def _run(self) -> None:
        while group := self._groups.get():
            outcomes = self._store(group)
            try:
                self._loop.call_soon_threadsafe(self._settle, group, outcomes)
            except RuntimeError:  # the loop is closed: no caller waits any more
                return

    def _store(self, group: Sequence[_Waiting]) -> Sequence[_Outcome]:
        try:
            refused = self._refused(group)
            taken = [each.sealed for place, each in enumerate(group) if place not in refused]
            stored = iter(store(self._storage, taken) if taken else ())
        except Exception as error:  # noqa: BLE001  # a dead thread would let everybody wait for ever
            return [error] * len(group)
        places = range(len(group))
        return [refused[place] if place in refused else next(stored) for place in places]

    def _refused(self, group: Sequence[_Waiting]) -> dict[int, _Outcome]:
        """Return the places in *group* of the uploads that are not to be appended, and why."""
        beginnings = {
            place: waiting.beginning
            for place, waiting in enumerate(group)
            if waiting.beginning is not None
        }
        if not beginnings:
            return {}
        refusals = self._refusals([*beginnings.values()])
        if all(waiting.future.done() for waiting in group):  # do not wait twice for a store that
            return dict.fromkeys(range(len(group)), TimeoutError())  # hangs if no caller waits
        judged = zip(beginnings, refusals, strict=True)
        return {place: refusal for place, refusal in judged if refusal is not None}

    def _settle(self, group: Sequence[_Waiting], outcomes: Sequence[_Outcome]) -> None:
        settled = [*zip(group, outcomes, strict=True)]
        if outcomes and _is_away(outcomes[-1]):  # the others would wait as long again for the same
            settled += [(waiting, outcomes[-1]) for waiting in self._waiting]
            self._waiting.clear()
        self._send()  # first, so that the store works while the answers are written
        for waiting, outcome in settled:
            future = waiting.future
            if not isinstance(outcome, Exception):  # the loop calls each apart, before who waits
                self._loop.call_soon(waiting.on_stored, outcome)
            if future.done():  # who asked has gone, or it is too late
                continue
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


def store(storage: Intake, group: Sequence[SealedUpload]) -> Sequence[_Outcome]:
    """Append *group* and return what became of each.

    An error of one is raised for all.  If the store still answers, each is tried alone, so that
    one shard's trouble does not refuse the uploads of the others.
    """
    try:
        return storage.append_many(group)
    except CollectorError as error:
        if len(group) == 1 or _is_away(error):
            return [error] * len(group)
    outcomes: list[_Outcome] = []
    for sealed in group:  # if the store goes away meanwhile, each would wait for a time-out
        is_away = bool(outcomes) and _is_away(outcomes[-1])
        outcomes.append(outcomes[-1] if is_away else store(storage, [sealed])[0])
    return outcomes


def _is_away(outcome: _Outcome) -> bool:
    """Return whether the store did not answer: then it would not answer the next upload either."""
    away = isinstance(outcome, StorageUnavailableError)
    return away and not isinstance(outcome, RefusedByStoreError)


class ServerGroups:
    """Groups for each server of the store: one that hangs holds up no other's uploads."""

    def __init__(
        self, storage: Intake, loop: asyncio.AbstractEventLoop, refusals: _Refusals
    ) -> None:
        """Append to *storage*; see ``Groups`` for *refusals*."""
        self._storage, self._loop, self._refusals = storage, loop, refusals
        self._groups: dict[str, Groups] = {}

    def append(
        self, sealed: SealedUpload, beginning: Beginning | None, on_stored: Callable[[bool], None]
    ) -> asyncio.Future[bool]:
        """Append an upload together with others for the same server; see ``Groups.append``."""
        server = self._storage.server_of(sealed.upload_id)
        groups = self._groups.pop(server, None)
        if groups is None:
            self._end_idle()
            groups = Groups(self._storage, self._loop, refusals=self._refusals)
        self._groups[server] = groups  # the latest is the last
        return groups.append(sealed, beginning, on_stored)

    def give_up(self, before: float) -> None:
        """Refuse the uploads that have waited since *before*."""
        for groups in self._groups.values():
            groups.give_up(before)

    def _end_idle(self) -> None:
        """End idle groups but the latest: a cluster may no longer have the addresses of others."""
        idle = [name for name, groups in self._groups.items() if groups.is_idle]
        for server in idle[:-_KEPT_GROUPS]:
            self._groups.pop(server).close()

    def close(self) -> None:
        """Let the threads end after what they were given."""
        for groups in self._groups.values():
            groups.close()


class Readiness:
    """Asks the store in one thread of its own, once for all who ask meanwhile."""

    def __init__(self, pressure: Pressure) -> None:
        """Ask the store of *pressure*, unless *pressure* already refuses all uploads."""
        self._pressure = pressure
        self._thread = ThreadPoolExecutor(1, "ready")
        self._running: asyncio.Future[_Ready] | None = None
        self._next: asyncio.Future[_Ready] | None = None

    async def look(self) -> _Ready:
        """Return what the store said at some moment after this was called.

        Raises: CollectorError: no upload would be taken.
        """
        self._pressure.require_room()
        if self._next is None:  # the one that runs may have looked before we were asked
            self._next = asyncio.ensure_future(self._look(self._running))
            self._next.add_done_callback(_heed)
        return await asyncio.shield(self._next)

    async def _look(self, earlier: asyncio.Future[_Ready] | None) -> _Ready:
        if earlier is not None:
            await asyncio.wait([earlier])
        self._running, self._next = self._next, None
        look = asyncio.get_running_loop().run_in_executor(self._thread, self._pressure.ready)
        try:
            return await asyncio.wait_for(look, PATIENCE_S)
        except TimeoutError:
            raise StorageUnavailableError("store: no answer to a look at its backlog") from None


def _heed(look: asyncio.Future[_Ready]) -> None:
    """Retrieve the exception of *look*, as its caller may have gone."""
    if not look.cancelled():
        look.exception()
