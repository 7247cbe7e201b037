"""What was recorded in this process and is not yet written: one sum a metric and epoch, in memory.

Any thread, signal handler or finalizer may put a value down at any moment: it takes no lock and
does no I/O.  However fast values come, they take no more room than their metrics have epochs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from threading import RLock, current_thread, get_ident, main_thread

from ..core.dataclass import dataclass
from ..core.epoch import DAY, LENGTHS, day_of_date, epoch_of, epoch_start
from ..core.stats import Reason, Stats
from ..core.typing import TYPE_CHECKING, Any, Final, TypeAlias
from ..registry.metric import Metric

if TYPE_CHECKING:
    from ..privacy.consent import ConsentSwitch
    from ..registry.aggregates import Last
    from ..registry.encodings import Encoded
    from ..storage.ledger import Days

MAX_SLOTS: Final = 1_000  # metrics and epochs that wait; only a clock that jumps makes as many
PLAIN: Final = 1 << 53  # units; whole numbers and floats below are taken by their type alone
_FOLDED_AT: Final = 256  # values; adding up then costs each of them a part of a microsecond


@dataclass(frozen=True)
class ReportView:
    """What an application may look at before a report is queued: all that will leave."""

    metric: str
    epoch: int
    payload: bytes


OnReport: TypeAlias = Callable[[ReportView], bool]


def may_leave(report: ReportView, on_report: OnReport | None) -> bool:
    """Whether *on_report*, the application's hook, lets *report* out."""
    if on_report is None:
        return True
    try:
        return on_report(report) is not False
    except Exception:  # noqa: BLE001 - a hook that fails must not let the report out
        return False
    except BaseException:
        # on the main thread a signal may have raised it, to end the program and not the report
        if current_thread() is main_thread():
            raise
        return False


@dataclass(frozen=True, repr=False)
class Pending:
    """Checked values on their way to becoming a report.  Its repr says nothing of them."""

    metric: Metric
    encoded: Encoded | Any  # of several values, the first; of an aggregated metric, the state
    epoch: int
    now: float
    device: bytes = b""  # a gateway's key of one of its devices
    days: Days | None = None  # that an aggregated value is about, by the trusted clock
    count: int = 1  # calls of record
    label: Mapping[str, str] | None = None  # what the report says in the clear, by dimension


Settled: TypeAlias = tuple[Pending, Reason]  # and why there is no other of its slot


class Slot:
    """One metric in one of its epochs: what values it takes, and what several make."""

    __slots__ = (
        "_encode",
        "_numbers",
        "aggregate",
        "end",
        "epoch",
        "key",
        "metric",
        "settled",
        "start",
    )

    def __init__(self, metric: Metric, now: float, aggregate: Last | None) -> None:
        """Be of the epoch that holds Unix time *now*; *aggregate* is that of *metric*."""
        self.metric, self.aggregate = metric, aggregate
        self.epoch = epoch_of(metric.every, now)
        self.key = (metric.digest, self.epoch)
        expiry = (day_of_date(metric.expires) + 1) * DAY
        self.start, self.end = -float("inf"), float(expiry)  # Unix times
        if metric.every in LENGTHS:
            self.start = epoch_start(metric.every, self.epoch)
            self.end = min(epoch_start(metric.every, self.epoch + 1), expiry)
        # what becomes of any further value, if this process knows: it has its one report, or none
        self.settled: Reason | None = None
        self._encode = metric.domain.encode
        self._numbers = metric.domain.grid

    def check(self, value: object) -> object:
        """Return *value* as ``fold`` takes it.  Raises InvalidValueError."""
        if self._numbers is None:
            encoded = self._encode(value, self.metric.name)
            if not self.metric.domain.labelled:
                return encoded
            # together, as both are of one value
            return encoded, self.metric.domain.label_of(value, self.metric.name)
        # the same test as that of the domain, but cheap for what numbers are: it is encoded later
        if (type(value) is int or type(value) is float) and -PLAIN < value < PLAIN:
            return value
        return self._numbers.exact(value, self.metric.name)

    def fold(self, state: Any, values: list[Any]) -> Any:
        """Return what is pending after *values*; *state* is None before the first."""
        if self.aggregate is not None:
            return self.aggregate.fold(state, values)
        if state is not None:
            return state
        return values[0] if self._numbers is None else self.metric.encode(values[0])

    def pending(self, state: Any, now: float, count: int = 1) -> Pending:
        """Return *state*, which is of *count* values, as what becomes a report."""
        label = None
        if self.metric.domain.labelled:
            state, label = state
        return Pending(self.metric, state, self.epoch, now, count=count, label=label)


class _Sum:
    """What the values of a slot have become."""

    __slots__ = ("count", "now", "slot", "state")

    def __init__(self, slot: Slot) -> None:
        self.slot, self.state, self.count, self.now = slot, None, 0, 0.0

    def add(self, values: list[Any], now: float) -> None:
        self.state = self.slot.fold(self.state, values)
        self.count += len(values)
        self.now = now


class Inbox:
    """The values of one process that wait to be written."""

    def __init__(
        self, slot_of: Callable[[object, float], Slot], switch: ConsentSwitch, stats: Stats
    ) -> None:
        """Begin empty.

        Args: slot_of: where values of the metric of this name go, at this Unix time; raises if it
              takes none.
              switch: says whether any value may be taken.
        """
        self._slot_of, self._switch, self._stats = slot_of, switch, stats
        self._slots: dict[object, Slot] = {}  # by the name of their metric; the latest of each
        # put down, and not yet added up; without a slot: forget all that came before
        self._values: deque[tuple[Slot | None, Any, float]] = deque()
        self._sums: dict[tuple[bytes, int], _Sum] = {}
        self._taken: list[_Sum] = []  # of these, by ``take``, which may have to forget them
        # held by who adds up, never while anything is awaited; a signal may come between two lines
        self._lock = RLock()
        self._holder = 0  # the thread that does
        self._forget = False  # whether a signal's handler has asked for that since the last fold

    def put(self, name: object, value: object, now: float) -> bool:
        """Take *value* of the metric called *name*; return whether there is anything to write.

        Raises: as ``slot_of``, and InvalidValueError.
        """
        slot = self._slots.get(name) if type(name) is str else None
        if slot is None or not slot.start <= now < slot.end or not self._switch.granted:
            slot = self._slots[name] = self._slot_of(name, now)
        self._values.append((slot, slot.check(value), now))
        if len(self._values) >= _FOLDED_AT:
            self.fold(wait=False)
        return slot.settled is None

    def fold(self, *, wait: bool = True) -> bool:
        """Add up what was put down; return False if another does, or this thread further out."""
        if self._holder == get_ident() or not self._lock.acquire(blocking=wait):
            return False
        try:
            self._holder = get_ident()
            self._forget = False
            self._fold()
        finally:
            self._holder = 0
            self._lock.release()
        return True

    def take(self, most: int) -> list[Pending]:
        """Remove and return up to *most* of what waits."""
        if not self.fold():
            return []
        with self._lock:
            taken = self._taken = []
            self._holder = get_ident()
            try:
                while self._sums and len(taken) < most:
                    taken.append(self._sums.pop(next(iter(self._sums))))
            finally:
                self._holder = 0
            if self._forget:
                self.fold()  # this empties ``taken`` too
                if not taken:
                    return self.take(most)
            self._taken = []
        return [total.slot.pending(total.state, total.now, total.count) for total in taken]

    def settle(self, pendings: list[Settled]) -> None:
        """Remember why all others of the slots of *pendings* are refused."""
        for pending, reason in pendings:
            slot = self._slots.get(pending.metric.name)
            if reason is Reason.BUDGET:
                continue  # a day may free some
            if slot is not None and slot.key == (pending.metric.digest, pending.epoch):
                slot.settled = reason

    def clear(self) -> int:
        """Forget all that waits, and what a secret drew; return how many values that were."""
        for slot in tuple(self._slots.values()):
            if slot.settled is Reason.NOT_IN_PANEL:
                slot.settled = None
        if self._holder == get_ident():  # a signal came while this thread was adding up
            self._values.append((None, None, 0.0))
            self._forget = True
            return 0
        count = 0
        for waiting in iter(lambda: self.take(MAX_SLOTS), []):
            count += sum(pending.count for pending in waiting)
        return count

    def __len__(self) -> int:
        """Return how many reports and windows wait to be written."""
        self.fold()
        return len(self._sums)

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self._values or self._sums)

    def _fold(self) -> None:
        groups: dict[Slot, list[Any]] = {}
        times: dict[Slot, float] = {}
        for _ in range(len(self._values)):
            slot, value, now = self._values.popleft()
            if slot is None:
                added = sum(total.count for total in (*self._taken, *self._sums.values()))
                self._stats.add(Reason.CONSENT, added + sum(map(len, groups.values())))
                for forgotten in (self._taken, self._sums, groups, times):
                    forgotten.clear()
                continue
            groups.setdefault(slot, []).append(value)
            times.setdefault(slot, now)
        for slot, values in groups.items():
            try:
                self._add(slot, values, times[slot])
            except Exception as error:  # noqa: BLE001 - one metric must not cost the others
                self._stats.fail(error, len(values))

    def _add(self, slot: Slot, values: list[Any], now: float) -> None:
        total = self._sums.get(slot.key)
        if slot.settled is not None:
            self._stats.add(slot.settled, len(values))
        elif total is None and len(self._sums) >= MAX_SLOTS:
            self._stats.add(Reason.QUEUE_FULL, len(values))
        else:
            total = total or _Sum(slot)
            total.add(values, now)
            self._sums[slot.key] = total
