"""The names of all keys.  Keys of shard s carry the hash tag ``{s}``: one step, one slot."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.cells import Cell
from ..core.errors import ConfigError

_PREFIX = re.compile(
    r"[A-Za-z0-9_.-]{1,64}"
)  # nothing that ends a prefix, tags a slot or matches in SCAN
_INDEX = re.compile(r":\{(\d+)\}:cells:([0-9a-f]+):(-?\d+)")
_DAY = re.compile(r":\{(\d+)\}:seen:(\d+)")
_TALLY = re.compile(r":\{(\d+)\}:tally:([0-9a-f]+):(-?\d+):(\d+:.*)", re.DOTALL)


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
    def checked_profile(self) -> str:
        """The key that records the profile for which the store's settings were last read."""
        return f"{self.prefix}:profile"

    @property
    def generation(self) -> str:
        """The hash of the store's generation: its id, and how often its tallies were restored."""
        return f"{self.prefix}:generation"

    @property
    def archive_name(self) -> str:
        """The key that records which archive belongs to this store."""
        return f"{self.prefix}:archive"

    @property
    def marks(self) -> str:
        """Of each metric, the epoch before which all is pruned: what queries read."""
        return f"{self.prefix}:pruned"

    @property
    def exclusions(self) -> str:
        """The hash of what operators have taken out of answers, by id: what queries read."""
        return f"{self.prefix}:exclusions"

    @property
    def definitions(self) -> str:
        """The hash of what each digest means."""
        return f"{self.prefix}:definitions"

    @property
    def pattern(self) -> str:
        """The SCAN pattern of everything that is ours."""
        return f"{self.prefix}:*"

    @property
    def tally_pattern(self) -> str:
        """The SCAN pattern of tallies and their index sets; buckets of ids are many more."""
        return f"{self.prefix}:{{*}}:[tc]*"

    @property
    def day_pattern(self) -> str:
        """The SCAN pattern of days of ids, from 1997 to 2243; their buckets have longer names."""
        return f"{self.prefix}:{{*}}:seen:?????"

    def stream(self, shard: int) -> str:
        """Entries appended but not folded."""
        return f"{self.prefix}:{{{shard}}}:stream"

    def quarantine(self, shard: int) -> str:
        """Entries set aside."""
        return f"{self.prefix}:{{{shard}}}:quarantine"

    def state(self, shard: int) -> str:
        """The hash of the shard's generation, and of the days that its ids have reached."""
        return f"{self.prefix}:{{{shard}}}:state"

    def seen(self, shard: int, sealed_day: int) -> str:
        """What is known of the upload ids sealed on one day.

        A hash; each bucket of ids is a set under this name, a colon and its number.
        """
        return f"{self.prefix}:{{{shard}}}:seen:{sealed_day}"

    def counters(self, shard: int) -> str:
        """The counts of uploads and reports, by what became of them."""
        return f"{self.prefix}:{{{shard}}}:counters"

    def pruned(self, shard: int) -> str:
        """Of each metric, the epoch before which all of this shard is pruned; as in hearsay.lua."""
        return f"{self.prefix}:{{{shard}}}:pruned"

    def archive(self, shard: int) -> str:
        """What was folded and waits to be written to the archive."""
        return f"{self.prefix}:{{{shard}}}:archive"

    def restored(self, shard: int) -> str:
        """The set of what was restored from an archive."""
        return f"{self.prefix}:{{{shard}}}:restored"

    def tally(self, shard: int, cell: Cell) -> str:
        """The packed counters of one cell."""
        return self.tallies(shard, cell.metric, cell.epoch) + member_of(cell)

    def tallies(self, shard: int, metric: bytes, epoch: int) -> str:
        """What the keys of all tallies of a metric and epoch begin with; the member follows."""
        return f"{self.prefix}:{{{shard}}}:tally:{metric.hex()}:{epoch}:"

    def cells(self, shard: int, metric: bytes, epoch: int) -> str:
        """The set of classes and segments that have a tally."""
        return f"{self.prefix}:{{{shard}}}:cells:{metric.hex()}:{epoch}"

    def place_of(self, key: str) -> tuple[int, Cell] | None:
        """Return shard and cell of the key of a tally, None of any other key."""
        match = _TALLY.fullmatch(key.removeprefix(self.prefix))
        if match is None:
            return None
        shard, metric, epoch, member = match.groups()
        return int(shard), cell_of(bytes.fromhex(metric), int(epoch), member)

    def index_of(self, key: str) -> tuple[int, bytes, int] | None:
        """Return shard, metric and epoch of the key of an index set, None of any other key."""
        match = _INDEX.fullmatch(key.removeprefix(self.prefix))
        if match is None:
            return None
        shard, metric, epoch = match.groups()
        return int(shard), bytes.fromhex(metric), int(epoch)

    def day_of(self, key: str) -> tuple[int, int] | None:
        """Return shard and day of a day of ids, None of any other key."""
        match = _DAY.fullmatch(key.removeprefix(self.prefix))
        return (int(match[1]), int(match[2])) if match else None


def member_of(cell: Cell) -> str:
    """Return how a cell is named within its metric and epoch: class and segment."""
    return f"{cell.lateness}:{cell.segment}"


def cell_of(metric: bytes, epoch: int, member: str) -> Cell:
    """Return the cell that :func:`member_of` named."""
    lateness, _, segment = member.partition(":")
    return Cell(metric, epoch, segment, int(lateness))
