"""Collectors that try to learn which uploads are of one device, without an address or a header."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import groupby

from client_sdk.core.epoch import DAY
from client_sdk.testing import answer_of
from client_sdk.upload.transport import Answer

REFUSED_DAYS = (8, 9)  # of every ten: no upload is taken, so that new ones lie behind old ones


class Links:
    """Groups of upload ids that the collector takes for those of one device."""

    def __init__(self) -> None:
        self._group: dict[str, set[str]] = {}

    def join(self, one: str, other: str) -> None:
        """Take two uploads for those of one device."""
        merged = self._group.setdefault(one, {one}) | self._group.setdefault(other, {other})
        for upload_id in merged:
            self._group[upload_id] = merged

    def largest(self) -> int:
        """Return how many uploads the largest group holds; 1 if nothing was linked."""
        return max(map(len, self._group.values()), default=1)

    def groups(self) -> list[set[str]]:
        """Return each group once."""
        return [set(ids) for ids in {frozenset(ids) for ids in self._group.values()}]


class LinkingCollector:
    """Answers 503 to one upload of a device for days: whatever comes beside it is of that device.

    To be sure of a next one it refuses all for two days of ten, takes the old one back, and refuses
    what comes after it on the same connection.
    """

    def __init__(self, begin: float) -> None:
        self._begin = begin
        self._refused: dict[str, int] = {}  # upload id to the day
        self.links = Links()
        self.accepted: list[str] = []

    def connection(self, clock: Callable[[], float]) -> Connection:
        """Return the end of a device's transport."""
        return Connection(self, clock)

    def answer(self, connection: Connection, upload_id: str, now: float) -> int:
        """Return the status for an upload."""
        day = int((now - self._begin) // DAY)
        if connection.last:
            self.links.join(upload_id, connection.last)
        is_first, connection.last = not connection.last, upload_id
        if upload_id in self._refused:
            if day % 10 != max(REFUSED_DAYS) or day - self._refused[upload_id] < 3:
                return 503
            del self._refused[upload_id]
            connection.swaps = True
            return 202
        if connection.swaps or (is_first and (day % 10 in REFUSED_DAYS or day == 0)):
            self._refused[upload_id] = day
            return 503
        self.accepted.append(upload_id)
        return 202


class Connection:
    """A transport of one device: uploads share a connection until it hangs up."""

    def __init__(self, collector: LinkingCollector, clock: Callable[[], float]) -> None:
        self._collector, self._clock = collector, clock
        self.last, self.swaps = "", False

    def send(self, body: bytes, timeout: float) -> Answer:
        """Ask the collector."""
        upload_id = str(json.loads(body)["id"])
        return answer_of(self._collector.answer(self, upload_id, self._clock()))

    def hang_up(self) -> None:
        """End the connection."""
        self.last, self.swaps = "", False


class KeptConnection(Connection):
    """The planted bug: a connection that lasts as long as its pass."""

    def hang_up(self) -> None:
        """Keep it."""

    def end_pass(self) -> None:
        """End it after all."""
        super().hang_up()


def best_guess(delays: Iterable[float], width: float) -> int:
    """Return how often whoever guesses one delay, to within *width* seconds in all, is right."""
    bins = sorted(int(delay // width) for delay in delays)
    return max(len(list(same)) for _, same in groupby(bins))
