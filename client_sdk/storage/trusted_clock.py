"""Trusted time: what caps are counted in.  It never runs faster than true time.

The wall clock can be set.  So between two charges trusted time advances by the least of what the
wall clock and the time since boot allow, and never backward; after a reboot, by no more than the
time since it.  Over any history of jumps and reboots it is therefore at most the true time that
has passed, and caps a week apart are a true week apart.  The price: while a machine is switched
off, no trusted time passes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property

from ..core.dataclass import dataclass, replace
from ..core.epoch import DAY
from ..core.typing import TYPE_CHECKING, Final, TypeAlias
from .schema import property_of, set_property

if TYPE_CHECKING:
    from .schema import Transaction

MAX_WALL: Final = 1 << 40  # seconds from 1970 either way; some 35,000 years

SAVE_EVERY: Final = 600  # seconds; what a machine that is switched off loses at most

_KEY: Final = "clock"
_BOOT_FILE: Final = "/proc/sys/kernel/random/boot_id"
_MS: Final = 1_000
# Linux's monotonic clock stops in sleep, its boot time does not; elsewhere monotonic goes on too.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


@dataclass(frozen=True)
class Uptime:
    """How long the machine has run."""

    boot: str  # names the boot; empty if the system does not
    seconds: float  # since the boot, sleep included


Uptimes: TypeAlias = Callable[[], Uptime]


class SystemUptime:
    """The uptime of this machine."""

    def __call__(self) -> Uptime:
        """Read it now."""
        seconds = time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)
        return Uptime(self._boot, seconds)

    @cached_property
    def _boot(self) -> str:
        try:
            with open(_BOOT_FILE, encoding="ascii") as file:
                return file.read(64).strip()
        except (OSError, UnicodeDecodeError):
            return ""


@dataclass(frozen=True)
class _Reading:
    """Trusted time, and the clocks by which it was read."""

    trusted: int  # milliseconds since 1970
    wall: int  # milliseconds since 1970
    up: int  # milliseconds since boot; negative: the clocks are not to be compared
    boot: str

    @classmethod
    def of(cls, wall: float, uptime: Uptime) -> _Reading:
        """Return what the clocks show; trusted time is not known yet."""
        boot = uptime.boot.replace(" ", "")
        return cls(0, int(wall * _MS), int(uptime.seconds * _MS), boot)

    @classmethod
    def load(cls, tx: Transaction) -> _Reading | None:
        """Return the last reading; None before the first, and if it was damaged."""
        text = str(property_of(tx, _KEY) or "")
        body, _, checksum = text.rpartition(" ")
        if not body or checksum != _checksum(body):
            return None
        trusted, wall, up, boot = body.split(" ", 3)
        return cls(int(trusted), int(wall), int(up), boot)

    def save(self, tx: Transaction) -> None:
        """Make this the last reading."""
        body = f"{self.trusted} {self.wall} {self.up} {self.boot}"
        set_property(tx, _KEY, f"{body} {_checksum(body)}")


def day(tx: Transaction, wall: float, uptime: Uptime) -> int:
    """Return the trusted epoch day at Unix time *wall*, without writing anything."""
    return int(seconds(tx, wall, uptime) // DAY)


def seconds(tx: Transaction, wall: float, uptime: Uptime) -> float:
    """Return trusted Unix time at Unix time *wall*, without writing anything."""
    last, now = _Reading.load(tx), _Reading.of(wall, uptime)
    passed = 0 if last is None else max(0, _passed(last, now))
    return (_begin(tx, last, now) + passed) / _MS


def advance(tx: Transaction, wall: float, uptime: Uptime) -> int:
    """Return the trusted epoch day at Unix time *wall*, and keep how far it has come.

    It is kept when a SAVE_EVERY has passed, when a day has begun, and when a clock went backward:
    what is refused should cost no writing to the disk.  A day that was charged is never followed by
    the day before: of weeks, only those to the present day are looked at.
    """
    last, now = _Reading.load(tx), _Reading.of(wall, uptime)
    passed = 0 if last is None else _passed(last, now)
    before = _begin(tx, last, now)
    trusted = before + max(0, passed)
    today = trusted // (_MS * DAY)
    is_new = today > before // (_MS * DAY)
    if last is None or last.up < 0 or is_new or not 0 <= passed < _MS * SAVE_EVERY:
        replace(now, trusted=trusted).save(tx)
    return today


def stop(tx: Transaction) -> None:
    """Let the time until the next reading count for nothing: it was spent elsewhere."""
    last = _Reading.load(tx)
    if last is not None:
        _Reading(last.trusted, last.wall, -1, "").save(tx)


def _begin(tx: Transaction, last: _Reading | None, now: _Reading) -> int:
    """Return the trusted time from which to go on, in milliseconds."""
    if last is not None:
        return last.trusted
    (latest,) = tx.execute("SELECT max(last) FROM costs").fetchone()
    return now.wall if latest is None else latest * _MS * DAY  # charges without a reading: damage


def _passed(last: _Reading, now: _Reading) -> int:
    """Return the milliseconds that surely passed; negative if a clock went backward."""
    if last.up < 0:
        return 0
    unnamed_reboot = not now.boot and now.up < last.up
    ran = now.up - last.up if now.boot == last.boot and not unnamed_reboot else now.up
    return min(now.wall - last.wall, ran)


def _checksum(body: str) -> str:
    import zlib

    return f"{zlib.crc32(body.encode()):08x}"
