"""A random life of two workers against an oracle: uploads, repeats, deaths, replays, rewinds."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from collector.storage import Cell, Claimed
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage

METRIC = b"\x01\x02\x03\x04\x05\x06"
CELL = Cell(METRIC, 0, "")
WORKERS = ("one", "two")


@dataclass
class FoldModel:
    """Drives *storage* and remembers which uploads were acknowledged."""

    storage: RedisStorage
    server: Connection
    keys: Keys
    chance: random.Random
    acknowledged: set[bytes] = field(default_factory=set)
    held: dict[tuple[str, int], list[Claimed]] = field(default_factory=dict)
    last_fold: tuple[int, list[str]] | None = None

    def live(self, steps: int) -> None:
        """Take *steps* random steps, then let one worker fold whatever is left."""
        weights = {
            self.upload: 8,
            self.claim: 6,
            self.fold: 6,
            self.die: 2,
            self.replay: 2,
            self.rewind: 1,
        }
        for move in self.chance.choices(list(weights), list(weights.values()), k=steps):
            move()
        for shard in range(self.storage.shards):
            while left := self.storage.claim(shard, "last", 100, 0):
                self.fold_ids(shard, [one.id for one in left])

    def upload(self) -> None:
        """Append a new upload or, one time in five, repeat an acknowledged one."""
        if self.acknowledged and self.chance.random() < 0.2:
            upload_id = self.chance.choice(sorted(self.acknowledged))
        else:
            upload_id = self.chance.randbytes(16)
        first = self.storage.append(upload_id, 30_000, b"entry")
        assert first == (upload_id not in self.acknowledged)
        self.acknowledged.add(upload_id)

    def claim(self) -> None:
        """Let a worker claim: also what its colleague still holds."""
        place = self._place()
        _, shard = place
        claimed = self.storage.claim(shard, place[0], self.chance.randint(1, 8), 0)
        self.held.setdefault(place, []).extend(claimed)

    def fold(self) -> None:
        """Let a worker fold what it holds."""
        place = self._place()
        held = self.held.pop(place, [])
        self.fold_ids(place[1], list(dict.fromkeys(one.id for one in held)))

    def fold_ids(self, shard: int, ids: list[str]) -> None:
        """Fold *ids* as a worker does: without those that are gone."""
        while ids:
            increments = {CELL: [(0, len(ids)), (1, 2 * len(ids))]}
            self.last_fold = shard, ids
            missing = self.storage.fold(shard, ids, increments)
            if not missing:
                return
            ids = [one for one in ids if one not in missing]

    def die(self) -> None:
        """Let a worker forget what it holds."""
        self.held.pop(self._place(), None)

    def replay(self) -> None:
        """Repeat the last fold, as after a lost answer."""
        if self.last_fold:
            self.fold_ids(*self.last_fold)

    def rewind(self) -> None:
        """Set the group back to the beginning, as failovers have done."""
        stream = self.keys.stream(self.chance.randrange(self.storage.shards))
        self.server.call("XGROUP", "SETID", stream, "workers", "0")

    def _place(self) -> tuple[str, int]:
        return self.chance.choice(WORKERS), self.chance.randrange(self.storage.shards)
