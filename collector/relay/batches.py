"""Messages that wait for one another, leave in an order of chance, and are answered together.

Why: an observer of a device who also sees the collector's log could match the two by their times.
A batch makes a device one of those whose messages left with its own.

- A batch leaves when messages of so many *networks* wait, or at the next beat of a clock.  A sender
  that floods the relay from one network makes no batch leave early.
- The clock's beats do not depend on messages: the time at which a batch that is not full leaves
  reveals nothing of when its messages came.  A full one reveals when its last message came.
- The order is drawn from the operating system's entropy.
- No answer leaves before all are there, so a collector that is slow with one message, or keeps one
  back, marks no device.
- A message of a device that has gone is carried all the same: the upload counts once, however often
  it comes, and a batch from which people leave would be smaller than it looks.

Source: Chaum 1981 (mixes); Serjantov, Dingledine, Syverson 2002, "From a Trickle to a Flood" (what
floods do to mixes that leave when full, and to those that leave by a clock).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from .networks import mark_of, new_salt

Carry: TypeAlias = Callable[[Sequence[bytes], float], list[bytes | None]]
Shuffle: TypeAlias = Callable[[list["_Waiting"]], None]

CONNECTIONS: Final = 8  # at once to the gateway; each carries its share of a batch
CARRY_S: Final = 5.0  # seconds until a batch that has left must be answered
MOST_WAITING: Final = 8_192  # messages here at once, waiting or on their way
MOST_BYTES: Final = 64 * 1024 * 1024  # bytes of them, and of messages that have come in part
SHARES: Final = 8  # of those bytes a network may have one: so many are needed to fill them
_HELD_S: Final = 60.0  # seconds after which networks are counted under another salt


@dataclass(frozen=True, eq=False)
class _Waiting:
    message: bytes = field(repr=False)
    answer: asyncio.Future[bytes | None]


class Room:
    """The bytes of one message, while it comes or waits: of all, and of its network."""

    def __init__(self, batches: Batches, held: Counter[bytes], mark: bytes) -> None:
        """Claim nothing yet of *batches*; *held* are bytes by network."""
        self._batches, self._held, self._mark = batches, held, mark
        self._size = 0

    def claim(self, size: int) -> bool:
        """Return whether there is room for *size* more bytes, and count them until released."""
        if not self._batches.claim(size, self._held[self._mark]):
            return False
        self._held[self._mark] += size
        self._size += size
        return True

    def release(self) -> None:
        """Count the bytes no more that were claimed."""
        self._held[self._mark] -= self._size
        self._batches.release(self._size)
        self._size = 0


@dataclass
class Counts:
    """What passed since the last report; numbers only."""

    messages: int = 0
    batches: int = 0
    smallest: int = 0  # messages of the smallest batch
    unanswered: int = 0  # messages that were carried in vain
    refused: int = 0  # messages for which there was no room, or whose network sent too many

    def left(self, size: int) -> None:
        """Count a batch of *size* messages."""
        self.smallest = min(size, self.smallest) if self.batches else size
        self.messages += size
        self.batches += 1


class Batches:
    """The batch that gathers, and those on their way.  Lives on one event loop."""

    def __init__(
        self,
        carry: Carry,
        size: int,
        within: float,
        shuffle: Shuffle,
        *,
        connections: int = CONNECTIONS,
        most_waiting: int = MOST_WAITING,
        most_bytes: int = MOST_BYTES,
        shares: int = SHARES,
    ) -> None:
        """Let a batch leave with messages of *size* networks, or at a beat each *within* seconds.

        Args: carry: blocks, and is called in threads.  shuffle: by the system's entropy.
        """
        self._carry, self._size, self._within, self._shuffle = carry, size, within, shuffle
        self._connections = connections
        self._most_waiting, self._most_bytes = most_waiting, most_bytes
        self._share = most_bytes // shares
        self._held: Counter[bytes] = Counter()  # bytes by network, of all batches
        self._held_salt, self._held_since = new_salt(), time.monotonic()
        self._threads = ThreadPoolExecutor(connections, "carrier")
        self._gathering: list[_Waiting] = []
        self._marks: set[bytes] = set()
        self._salt = new_salt()
        self._leaving: set[asyncio.Task[None]] = set()
        self._here = self._bytes = 0
        self._open = False
        self.counts = Counts()

    def start(self) -> None:
        """Begin the beats; to be called on the event loop."""
        self._loop = asyncio.get_running_loop()
        self._beat = self._loop.call_later(self._within, self._on_beat)
        self._open = True

    def stop(self) -> None:
        """Send those that wait away without an answer; what is on its way is still answered."""
        if self._open:
            self._open = False
            self._beat.cancel()
        for waiting in self._gathering:
            if not waiting.answer.done():
                waiting.answer.set_result(None)
        self._gathering = []

    def close(self) -> None:
        """Stop, and end the threads."""
        self.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def take_counts(self) -> Counts:
        """Return what passed since this was last called."""
        counts, self.counts = self.counts, Counts()
        return counts

    def room(self, network: bytes) -> Room:
        """Return the room for a message from *network*."""
        if not self._bytes or time.monotonic() - self._held_since >= _HELD_S:
            self._held, self._held_salt = Counter(), new_salt()
            self._held_since = time.monotonic()
        return Room(self, self._held, mark_of(network, self._held_salt))

    def claim(self, size: int, held: int = 0) -> bool:
        """Return whether there is room for *size* more bytes, and count them until released.

        Args: held: bytes of the same network.
        """
        is_full = self._bytes + size > self._most_bytes or held + size > self._share
        if not self._open or is_full:
            self.counts.refused += 1
            return False
        self._bytes += size
        return True

    def release(self, size: int) -> None:
        """Count *size* bytes no more that were claimed."""
        self._bytes -= size

    async def pass_on(self, message: bytes, network: bytes) -> bytes | None:
        """Return the gateway's answer to *message*; None if there is none: it is to be sent again.

        Args: network: that it came from.
        """
        if self._here >= self._most_waiting:
            self.counts.refused += 1
            return None
        room = self.room(network)
        if not room.claim(len(message)):
            return None
        waiting = _Waiting(message, self._loop.create_future())
        self._here += 1
        try:
            self._gathering.append(waiting)
            self._marks.add(mark_of(network, self._salt))
            if len(self._marks) >= self._size:
                self._leave()
            return await waiting.answer
        finally:
            self._here -= 1
            room.release()

    def _on_beat(self) -> None:
        self._beat = self._loop.call_later(self._within, self._on_beat)
        if self._gathering:
            self._leave()

    def _leave(self) -> None:
        """Let the batch that gathers leave, and begin another."""
        came, self._gathering = self._gathering, []
        self._marks, self._salt = set(), new_salt()
        self.counts.left(len(came))
        task = self._loop.create_task(self._deliver(came))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _deliver(self, came: list[_Waiting]) -> None:
        """Carry a batch over several connections; answer all when the last answer is there.

        Args: came: in the order in which they came.  They are carried in one of chance, and
              answered in the first, which reveals nothing of the second.
        """
        until = time.monotonic() + CARRY_S
        batch = [*came]
        self._shuffle(batch)
        ways = min(self._connections, len(batch))
        shares = [batch[way::ways] for way in range(ways)]
        carried = await asyncio.gather(
            *(
                self._loop.run_in_executor(
                    self._threads, self._carry, [waiting.message for waiting in share], until
                )
                for share in shares
            ),
            return_exceptions=True,  # the threads have been ended
        )
        answers: dict[_Waiting, bytes | None] = {}
        for share, given in zip(shares, carried, strict=True):
            if not isinstance(given, BaseException):
                answers.update(zip(share, given, strict=True))
        for waiting in came:
            answer = answers.get(waiting)
            self.counts.unanswered += answer is None
            if not waiting.answer.done():
                waiting.answer.set_result(answer)
