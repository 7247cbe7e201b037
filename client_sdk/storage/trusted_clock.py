"""Trusted time: what caps are counted in.

The wall clock can be set.  So between two charges trusted time advances by the least of what the
wall clock and the time since boot allow, and never backward.  After a reboot it advances by the
time since it and by time off, within a credit that running earns: ``privacy.time_off`` says how
much, and what that allows anyone who sets the clock and reboots over and over.

Trusted dates begin where those of the wall clock do, so seven dates of an honest clock are never
more than seven trusted ones, however much time off was lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property

from ..core.dataclass import dataclass, replace
from ..core.epoch import DAY
from ..core.typing import TYPE_CHECKING, Final, TypeAlias
from ..privacy.time_off import MS, time_passed
from .schema import property_of, set_property

if TYPE_CHECKING:
    from .schema import Transaction

MAX_WALL: Final = 1 << 40  # seconds from 1970 either way; some 35,000 years

SAVE_EVERY: Final = 600  # seconds; what ran after it counts as time off

_KEY: Final = "clock"
_BOOT_FILE: Final = "/proc/sys/kernel/random/boot_id"
_DAY: Final = DAY * MS
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

    day: int  # trusted epoch day
    trusted: int  # milliseconds since 1970
    credit: int  # milliseconds of time off
    wall: int  # milliseconds since 1970
    up: int  # milliseconds since boot; negative: the clocks are not to be compared
    boot: str

    @classmethod
    def load(cls, tx: Transaction) -> _Reading | None:
        """Return the last reading; None before the first, and if it was damaged."""
        text = str(property_of(tx, _KEY) or "")
        body, _, checksum = text.rpartition(" ")
        if not body or checksum != _checksum(body):
            return None
        day, trusted, credit, wall, up, boot = body.split(" ", 5)
        return cls(int(day), int(trusted), int(credit), int(wall), int(up), boot)

    @classmethod
    def first(cls, tx: Transaction, wall: int, up: int, boot: str) -> _Reading:
        """Return the reading to begin with: of the wall clock, or after damage of the ledger."""
        (latest,) = tx.execute("SELECT max(last) FROM costs").fetchone()
        day = wall // _DAY if latest is None else latest  # charges without a reading: damage
        return cls(day, wall if latest is None else latest * _DAY, 0, wall, up, boot)

    def save(self, tx: Transaction) -> None:
        """Make this the last reading."""
        body = f"{self.day} {self.trusted} {self.credit} {self.wall} {self.up} {self.boot}"
        set_property(tx, _KEY, f"{body} {_checksum(body)}")


def day(tx: Transaction, wall: float, uptime: Uptime) -> int:
    """Return the trusted epoch day at Unix time *wall*, without writing anything."""
    return _read(tx, wall, uptime)[0].day


def advance(tx: Transaction, wall: float, uptime: Uptime) -> int:
    """Return the trusted epoch day at Unix time *wall*, and keep how far it has come.

    It is kept when either clock has moved by a SAVE_EVERY or the wall clock backward, when a day
    has begun, and after a reboot: what is refused should cost no writing to the disk.  A day that
    was charged is never followed by the day before: of weeks, only those to the present day are
    looked at.
    """
    now, is_worth_keeping = _read(tx, wall, uptime)
    if is_worth_keeping:
        now.save(tx)
    return now.day


def stop(tx: Transaction) -> None:
    """Let the time until the next reading count for nothing: it was spent elsewhere."""
    last = _Reading.load(tx)
    if last is not None:
        replace(last, credit=0, up=-1, boot="").save(tx)


def _read(tx: Transaction, seconds: float, uptime: Uptime) -> tuple[_Reading, bool]:
    """Return what the clocks show now, and whether it should be kept."""
    wall, up, boot = int(seconds * MS), int(uptime.seconds * MS), uptime.boot.replace(" ", "")
    last = _Reading.load(tx)
    if last is None or last.up < 0:
        last = last or _Reading.first(tx, wall, up, boot)
        return replace(last, wall=wall, up=up, boot=boot), True
    rebooted = boot != last.boot if boot and last.boot else up < last.up
    ran = up if rebooted else up - last.up
    shown = wall - last.wall
    passed, credit = time_passed(shown, ran, last.credit, rebooted=rebooted)
    # A correction of seconds is followed back, so that trusted time gets no further ahead
    trusted = last.trusted + (passed if passed > -MS * SAVE_EVERY else 0)
    # A date of the wall clock, as many before it as trusted time is days behind, a part for a whole
    today = max(last.day, wall // _DAY + (trusted - wall) // _DAY)
    moved = not 0 <= shown < MS * SAVE_EVERY or ran >= MS * SAVE_EVERY
    is_worth_keeping = rebooted or today > last.day or moved
    return _Reading(today, trusted, credit, wall, up, boot), is_worth_keeping


def _checksum(body: str) -> str:
    import zlib

    return f"{zlib.crc32(body.encode()):08x}"
