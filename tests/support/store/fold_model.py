"""A random life of three workers against an oracle: uploads, repeats, deaths, replays, rewinds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from collector.estimation.tally import merge
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.values import ClaimedEntry
from tests.support.store.stored import CELL, DAY, METRIC, Store, tallies

WORKERS = ("one", "two", "three")
ITEMS = 7  # cells of the tally; an entry names the one that it counts in


def rewinding(server: Connection, keys: Keys) -> Callable[[int], None]:
    """Return what sets the group of a shard back to its beginning, as failovers have done."""
    return lambda shard: server.call("XGROUP", "SETID", keys.stream(shard), "workers", "0")


@dataclass
class FoldModel:
    """Drives *storage* and remembers which uploads were acknowledged, and what they hold."""

    storage: Store
    chance: random.Random
    rewind_group: Callable[[int], None]
    acknowledged: dict[bytes, int] = field(default_factory=dict)
    ids: list[bytes] = field(default_factory=list)
    held: dict[tuple[str, int], list[ClaimedEntry]] = field(default_factory=dict)
    last_fold: tuple[int, list[ClaimedEntry]] | None = None

    def live(self, steps: int) -> None:
        """Take *steps* random steps, then let one worker fold whatever is left."""
        weights = {self.upload: 40, self.claim: 25, self.finish: 33, self.rewind: 2}
        for move in self.chance.choices(list(weights), list(weights.values()), k=steps):
            move()
        for shard in range(self.storage.shards):
            while left := self.storage.claim(shard, "last", 100, 0):
                self.fold(shard, left)

    def expected(self) -> list[int]:
        """Return n and the tally that the acknowledged uploads must give."""
        counts = Counter(self.acknowledged.values())
        return [len(self.acknowledged), *(counts[item] for item in range(ITEMS))]

    def found(self) -> list[int]:
        """Return n and the tally that the store holds."""
        n, tally = merge(tallies(self.storage, METRIC, [0]).get(CELL, []), ITEMS)
        return [n, *tally.tolist()]

    def upload(self) -> None:
        """Append a new upload or, one time in five, repeat an acknowledged one."""
        if self.ids and self.chance.random() < 0.2:
            upload_id = self.chance.choice(self.ids)
        else:
            upload_id = self.chance.randbytes(16)
        item = upload_id[15] % ITEMS
        first = self.storage.append(upload_id, DAY, bytes([item]), 1)
        assert first == (upload_id not in self.acknowledged)
        if first:
            self.ids.append(upload_id)
            self.acknowledged[upload_id] = item

    def claim(self) -> None:
        """Let a worker claim: also what its colleagues still hold."""
        place = self._place()
        _, shard = place
        claimed = self.storage.claim(shard, place[0], self.chance.randint(1, 8), 0)
        self.held.setdefault(place, []).extend(claimed)

    def finish(self) -> None:
        """Let a worker fold what it holds; 30 % die before, 30 % fold again after a lost answer."""
        place = self._place()
        held = {one.id: one for one in self.held.pop(place, [])}
        if not held or self.chance.random() < 0.3:
            return
        self.fold(place[1], list(held.values()))
        if self.last_fold and self.chance.random() < 0.3:
            self.fold(*self.last_fold)

    def fold(self, shard: int, claimed: list[ClaimedEntry]) -> None:
        """Fold *claimed* as a worker does: without those that are gone."""
        while claimed:
            counts = Counter(one.entry[0] for one in claimed)
            pairs = [(0, len(claimed)), *((item + 1, n) for item, n in counts.items())]
            self.last_fold = shard, claimed
            missing = self.storage.fold(shard, [one.id for one in claimed], {CELL: pairs})
            if not missing:
                return
            claimed = [one for one in claimed if one.id not in missing]

    def rewind(self) -> None:
        """Set the group of a shard back to the beginning."""
        self.rewind_group(self.chance.randrange(self.storage.shards))

    def _place(self) -> tuple[str, int]:
        return self.chance.choice(WORKERS), self.chance.randrange(self.storage.shards)
