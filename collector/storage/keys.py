"""The names of all keys.  Those of shard s carry the hash tag ``{s}``: one step, one slot."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import ConfigError
from . import Cell

_PREFIX = re.compile(
    r"[A-Za-z0-9_.-]{1,64}"
)  # nothing that ends a prefix, tags a slot or matches in SCAN


@dataclass(frozen=True)
class Keys:
    """The key names under ``prefix`` for a number of ``shards``."""

    prefix: str
    shards: int

    def __post_init__(self) -> None:
        """Raise ConfigError if the prefix could move a hash tag, or there is no shard."""
        if not _PREFIX.fullmatch(self.prefix):
            raise ConfigError("prefix", self.prefix, "must be letters, digits and _ . -")
        if self.shards < 1:
            raise ConfigError("shards", self.shards, "must be at least 1")

    def shard_of(self, upload_id: bytes) -> int:
        """Return the shard of an upload: its id is random, so uploads spread evenly."""
        return int.from_bytes(upload_id[:8], "big") % self.shards

    @property
    def shard_count(self) -> str:
        """The key that records the number of shards."""
        return f"{self.prefix}:shards"

    @property
    def pattern(self) -> str:
        """The SCAN pattern of everything that is ours."""
        return f"{self.prefix}:*"

    def stream(self, shard: int) -> str:
        """Entries appended but not folded."""
        return f"{self.prefix}:{{{shard}}}:stream"

    def quarantine(self, shard: int) -> str:
        """Entries set aside."""
        return f"{self.prefix}:{{{shard}}}:quarantine"

    def seen(self, shard: int, sealed_day: int) -> str:
        """The set of upload ids sealed on one day."""
        return f"{self.prefix}:{{{shard}}}:seen:{sealed_day}"

    def tally(self, shard: int, cell: Cell) -> str:
        """The packed counters of one cell."""
        return f"{self.prefix}:{{{shard}}}:tally:{cell.metric.hex()}:{cell.epoch}:{cell.segment}"

    def cells(self, shard: int, metric: bytes, epoch: int) -> str:
        """The set of segments that have a tally."""
        return f"{self.prefix}:{{{shard}}}:cells:{metric.hex()}:{epoch}"
