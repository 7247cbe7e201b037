"""When to upload: at chance times, so that neither an app's use nor a collector's return shows.

Each upload has a time of its own: whoever sends another one waits some hours by chance, and only
the same bytes may be repeated sooner.  So no two uploads of a device are known by their times to be
of one device.

The times are kept in the database.  A restart neither forgets what a collector asked for, nor makes
an upload of its own, and of several processes one makes the pass.  Who makes it *claims* it: until
an answer is known, the claim names the upload that may be on its way.
"""

from __future__ import annotations

from ..core.epoch import DAY, HOUR
from ..core.randomness import Randomness
from ..core.typing import TYPE_CHECKING, Final
from ..storage.schema import property_of, remove_property, set_property

if TYPE_CHECKING:
    from ..storage.schema import Transaction

UPLOAD_EVERY: Final = 4 * HOUR  # seconds on average; few enough wake-ups for a battery
MOST_LOTS: Final = 4  # uploads that may wait before each more no longer shortens the time between
CLAIM: Final = 120  # seconds after which an upload of which nothing was heard may be repeated
FIRST_BACKOFF: Final = 30  # seconds; the ceiling after one failure, doubled by each further one
# Passes of the schedule have a ceiling of their own after two failures: it is no blip, and a fleet
# that waits for its collector must not return within a minute.
FIRST_SPREAD: Final = 2 * HOUR  # seconds
MAX_BACKOFF: Final = 6 * HOUR  # seconds; a collector that returns is found the same day
MAX_RETRY_AFTER: Final = 18 * HOUR  # seconds; what is added by chance makes it a day at most
# A pass that fell due while nothing ran must not show the start of the application: it waits a
# random part of FIRST_REST, of half of it if the application ended before that, and so on.
FIRST_REST: Final = HOUR  # seconds
SHORTEST_REST: Final = 60  # seconds; applications that live shorter send at their end

_LONGEST: Final = DAY  # seconds; no collector can silence a device for longer
_SHARE: Final = 4  # a quarter of what was asked for is added by chance

_LATEST: Final = 1 << 40  # Unix time; a number beyond it is none that was ever planned
_KEYS: Final = ("next_upload", "not_before", "repeat_after", "failures", "rests")
_CLAIM: Final = "claim"
_REFUSAL: Final = "refusal"  # the status that turned the last try away, or 0


class Schedule:
    """The time of the next pass, and the waiting time after failures."""

    def __init__(self, randomness: Randomness) -> None:
        """Know nothing until ``load``; *randomness* draws the times."""
        self._randomness = randomness
        self._next = 0.0  # Unix time; 0: never planned
        self._not_before = 0.0  # Unix time
        self._repeat_after = 0.0  # Unix time from which what is claimed may be sent again
        self._failures = 0  # failures in a row
        self._rests = 0  # starts since the last pass that found one overdue
        self.claimed = b""  # the id of an upload without an answer that settles it

    @property
    def failing(self) -> bool:
        """Whether the last try must be repeated."""
        return self._failures > 0

    @property
    def planned(self) -> bool:
        """Whether there is a time for the next pass."""
        return self._next > 0

    def load(self, tx: Transaction) -> None:
        """Take over what this or another process has planned."""
        self._next, self._not_before, self._repeat_after, failures, rests = (
            number_of(property_of(tx, key)) for key in _KEYS
        )
        self._failures, self._rests = int(failures), int(rests)
        claimed = property_of(tx, _CLAIM)
        self.claimed = claimed if isinstance(claimed, bytes) else b""

    def due(self, now: float) -> float:
        """Return when the next pass is due, in Unix time: of another upload, or of the same."""
        departure = _sane(self._next, now)
        if self.claimed:
            departure = min(departure, _sane(self._repeat_after, now))
        return max(departure, _sane(self._not_before, now))

    def wait(self, now: float) -> float:
        """Return the seconds until the next pass is due."""
        return max(0.0, self.due(now) - now)

    def backoff(self, now: float) -> float:
        """Return the seconds for which nothing at all may be sent."""
        return max(0.0, _sane(self._not_before, now) - now)

    def may_depart(self, now: float) -> bool:
        """Whether the time of another upload has come, and not only of what is claimed."""
        return max(_sane(self._next, now), _sane(self._not_before, now)) <= now

    def plan(self, tx: Transaction, now: float, lots: int = 1) -> None:
        """Put the next pass between a half and one and a half of UPLOAD_EVERY ahead.

        Args: lots: uploads that wait for a time of their own, which come so much the closer.
        """
        hours = UPLOAD_EVERY // 2 + self._chance(UPLOAD_EVERY)
        self._next = now + hours / min(max(lots, 1), MOST_LOTS)
        self._rests = 0
        self._save(tx)

    def claim(self, tx: Transaction, now: float, upload_id: bytes) -> None:
        """Note that an upload is on its way; without an answer it is due again."""
        self.claimed, self._repeat_after, self._rests = upload_id, now + CLAIM, 0
        self._save(tx)

    def release(self, tx: Transaction) -> None:
        """Forget the failures, and the upload that was answered for good."""
        if self._failures or self.claimed:
            self._failures, self._not_before, self.claimed = 0, 0.0, b""
            set_property(tx, _REFUSAL, 0)
            self._save(tx)

    def postpone(
        self,
        tx: Transaction,
        now: float,
        retry_after: float,
        *,
        unseen: bool = False,
        refusal: int = 0,
    ) -> None:
        """Wait *retry_after* and a random part of a time that grows with each failure.

        Devices that came back to the second could be told apart by what each was asked to wait.
        The next pass of the schedule may be later than the next that an application asks for.

        Args: unseen: nobody saw the upload, so another one may follow as soon as the same.
              refusal: the status that turned it away; 0: none did.
        """
        requested = min(retry_after, MAX_RETRY_AFTER) if retry_after > 0 else 0.0
        ceiling = _doubled(FIRST_BACKOFF, self._failures)
        self._not_before = now + requested + self._chance(max(ceiling, int(requested) // _SHARE))
        self._repeat_after = self._not_before
        if self._failures:
            spread = self._chance(_doubled(FIRST_SPREAD, self._failures - 1))
            self._repeat_after = max(self._repeat_after, now + spread)
        if unseen:
            self._next, self.claimed = self._repeat_after, b""
        self._failures += 1
        set_property(tx, _REFUSAL, refusal)
        self._save(tx)

    def rest(self, tx: Transaction, now: float) -> float:
        """Return until when a process waits that found a pass overdue, in Unix time."""
        longest = max(SHORTEST_REST, FIRST_REST >> min(self._rests, 16))
        self._rests += 1
        self._save(tx)
        return now + self._chance(longest)

    def _chance(self, ceiling: int) -> float:
        return self._randomness.uniform(1_000 * ceiling + 1) / 1_000

    def _save(self, tx: Transaction) -> None:
        values = self._next, self._not_before, self._repeat_after, self._failures, self._rests
        for key, value in zip(_KEYS, values, strict=True):
            set_property(tx, key, value)
        set_property(tx, _CLAIM, self.claimed)


def refusal_of(tx: Transaction) -> int:
    """Return the status that turned the last try away; 0 if none did."""
    return int(number_of(property_of(tx, _REFUSAL)))


def forget_claim(tx: Transaction) -> None:
    """Delete the id of the upload that may be on its way: the collector knows it."""
    remove_property(tx, _CLAIM)


def _doubled(first: int, times: int) -> int:
    return min(MAX_BACKOFF, first << min(times, 16))


def number_of(value: object) -> float:
    """Return *value*, or 0 if it is missing or damaged."""
    if isinstance(value, int | float) and 0 <= value < _LATEST:
        return value
    return 0.0


def _sane(until: float, now: float) -> float:
    """Return *until*; *now* if that is later than anything that is ever planned."""
    # a longer wait was computed before the clock was set back
    return until if until - now <= _LONGEST else now
