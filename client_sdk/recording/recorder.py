"""From a value to a charged, perturbed and queued report: one transaction, all of it or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, partial

from ..core.dataclass import dataclass, field
from ..core.epoch import day_of, day_of_date
from ..core.errors import (
    AlreadyReportedError,
    BudgetExhaustedError,
    ConsentError,
    ExpiredMetricError,
    InvalidParameterError,
    NotInPanelError,
    UnknownMetricError,
)
from ..core.limits import EXPIRES_SOON
from ..core.randomness import Randomness
from ..core.stats import Reason, reason_of
from ..core.typing import TYPE_CHECKING, Final, cast
from ..privacy.consent import ConsentSwitch
from ..registry.contract import Registry
from ..registry.metric import Metric
from ..storage import retired, trusted_clock
from ..storage.ledger import Charge, Ledger, reports_of, set_reports, tag_of
from ..storage.outbox import Outbox
from ..storage.store import Store
from ..storage.trusted_clock import MAX_WALL, SystemUptime, Uptimes
from ..wire.reports import Report
from .inbox import OnReport, Pending, ReportView, Settled, Slot, may_leave

if TYPE_CHECKING:
    from ..privacy.panel import Panel
    from ..registry.longitudinal import Longitudinal
    from ..storage.schema import Transaction
    from .aggregation import Windows
    from .history import History

_REFUSALS: Final = (*(ConsentError, AlreadyReportedError, BudgetExhaustedError, NotInPanelError),)
_SETTLING: Final = (Reason.ALREADY_REPORTED, Reason.NOT_IN_PANEL, Reason.BUDGET)
_CLOSED_AT_ONCE: Final = 1_000  # windows of one transaction; a gateway may have many


@dataclass(frozen=True)
class Recorder:
    """Makes reports.  Knows no thread, no network and no wall clock.

    *on_report* sees each report before it is queued, and drops it by returning False or raising.
    It can drop only: the payload is drawn, and the charge stays.
    """

    registry: Registry
    store: Store
    ledger: Ledger
    outbox: Outbox
    randomness: Randomness
    consent: ConsentSwitch
    uptime: Uptimes = field(default_factory=SystemUptime)
    on_report: OnReport | None = None
    history: History | None = None  # of what *on_report* saw
    advise: Callable[[str, str], None] | None = None  # tells a developer, once about each thing
    own: bool = True  # whether it reports of itself, and not only of a gateway's devices

    @cached_property
    def panel(self) -> Panel | None:
        """What draws of which metrics this device may report; None: of all."""
        if self.registry.panel_week is None:
            return None
        from ..privacy.panel import panel_within  # few registries have one

        return panel_within(self.registry, self.registry.panel_week)

    def require_panel(self) -> None:
        """Refuse a panel that is too small.  Raises InvalidParameterError."""
        if self.registry.seats is None:
            _ = self.panel

    def slot(self, name: object, now: float) -> Slot:
        """Return where values of the metric called *name* of Unix time *now* go.

        Raises: ConsentError, UnknownMetricError, ExpiredMetricError;
                InvalidParameterError: *now* is no time.
        """
        self.consent.require()
        if not isinstance(name, str):
            raise UnknownMetricError(type(name).__name__)
        metric = self.registry.metric(name)
        if not abs(now) < MAX_WALL:  # nan would stop all that wait beside it
            raise InvalidParameterError("clock", now, f"must be below {MAX_WALL} seconds")
        days = day_of_date(metric.expires) - day_of(now)
        if days < 0:
            raise ExpiredMetricError(metric.name, metric.expires)
        if days <= EXPIRES_SOON and self.advise is not None:
            rule = "is near, and nothing is recorded after it: renew or remove it"
            place = f"metrics.{metric.name}.expires"
            self.advise(place, f"{place}={metric.expires}: {rule}")
        return Slot(metric, now, self.windows.aggregate(metric) if metric.aggregate else None)

    def prepare(self, name: object, value: object, now: float) -> Pending:
        """Check *value* of the metric called *name* at Unix time *now*.  No I/O, nothing drawn.

        Raises: InvalidValueError, and as ``slot``.
        """
        slot = self.slot(name, now)
        return slot.pending(slot.fold(None, [slot.check(value)]), now)

    def commit(
        self,
        pendings: Sequence[Pending],
        settled: list[Settled] | None = None,
    ) -> Counter[Reason]:
        """Turn *pendings* into reports, in one transaction, and count what became of them.

        A refused one does not stop the others.  A ledger found in doubt is counted under STORE.
        Args:   settled: takes those whose metric and epoch have their one report, or get none now.
        Raises: StoreError, EntropyError: nothing of the group happened.
        """
        counts: Counter[Reason] = Counter()
        if not pendings:
            return counts
        done: list[Settled] = []
        with self._transaction(pendings) as tx:
            day = self._begin(tx, max(p.now for p in pendings))
            active = self._not_retired(tx, pendings, counts)
            single = [p for p in active if not p.metric.aggregate]
            counts += self._report_each(tx, single, day, done)
            if added := [p for p in active if p.metric.aggregate]:
                counts += self._aggregate(tx, added, day, done)
        self._warn_of(done)
        if settled is not None:
            settled += done
        counts[Reason.STORE] += self.store.take_doubts()
        return +counts

    @cached_property
    def windows(self) -> Windows:
        """What is added up until its epoch is over."""
        from .aggregation import Windows  # most registries aggregate nothing, and need not load it

        return Windows(self.registry, self.store.secret, self.randomness)

    def wait(self, now: float) -> float:
        """Return the seconds from Unix time *now* until an epoch ends for which values add up."""
        return self.windows.wait(now) if self.registry.aggregated else float("inf")

    def keep_time(self, now: float) -> None:
        """Keep how far trusted time has come by Unix time *now*, if anything was reported here.

        What this machine runs after the last time counts as time off.  Raises StoreError.
        """
        if self.store.is_open and self.consent.granted:
            with self.store.transaction() as tx:
                trusted_clock.advance(tx, now, self.uptime())

    def is_due(self, now: float) -> bool:
        """Whether ``tick`` would do anything at Unix time *now*."""
        if not self.registry.aggregated or not abs(now) < MAX_WALL:
            return False
        if not self.consent.granted:
            self.windows.forget()  # a denial erases
            return False
        return self.windows.is_due(now) and (self.windows.scheduled or self.store.exists)

    def tick(self, now: float) -> Counter[Reason]:
        """Report the windows that ended by Unix time *now*, and open those that are scheduled.

        No more than CLOSED_AT_ONCE are closed: call it again while ``is_due``.
        Raises: StoreError, EntropyError: nothing happened.
        """
        counts: Counter[Reason] = Counter()
        if not self.is_due(now):
            return counts
        pendings: list[Pending] = []
        done: list[Settled] = []
        with self._transaction(pendings) as tx:
            # consent is checked again, as a denial erases under the same lock
            if not self.consent.granted:
                return counts
            day = self._begin(tx, now)
            ended, dropped = self.windows.take(tx, now, day, _CLOSED_AT_ONCE)
            whole = len(ended) + dropped < _CLOSED_AT_ONCE
            pendings += ended
            counts += self._report_each(tx, self._not_retired(tx, pendings, counts), day, done)
            if whole and self.own:
                counts[Reason.WINDOW_OPENED] += self.windows.open_scheduled(
                    tx, [b""], now, day, partial(self._may_open, tx)
                )
        self._warn_of(done)
        if whole:
            self.windows.seen_to(now)
        counts[Reason.WINDOW_CLOSED] += len(ended)
        counts[Reason.WINDOW_DROPPED] += dropped
        counts[Reason.STORE] += self.store.take_doubts()
        return +counts

    def watch(self, devices: Sequence[bytes], now: float) -> Counter[Reason]:
        """Open the scheduled windows of a gateway's *devices* at Unix time *now*.

        Raises: ConsentError, StoreError, EntropyError: nothing happened.
        """
        self.consent.require()
        opened = 0
        if self.registry.aggregated and abs(now) < MAX_WALL:
            with self.store.transaction(growing=True) as tx:
                self.consent.refresh()
                self.consent.require()
                day = trusted_clock.day(tx, now, self.uptime())
                may_report = partial(self._may_open, tx)
                opened = self.windows.open_scheduled(tx, devices, now, day, may_report)
        return +Counter({Reason.WINDOW_OPENED: opened, Reason.STORE: self.store.take_doubts()})

    @contextmanager
    def _transaction(self, pendings: Sequence[Pending]) -> Iterator[Transaction]:
        """Run the block as one transaction; the history keeps *pendings* once that is over."""
        with (
            nullcontext() if self.history is None else self.history.transaction(pendings),
            self.store.transaction(growing=True) as tx,
        ):
            self.consent.refresh()  # whoever denies erases under the same lock, or later
            yield tx

    def _begin(self, tx: Transaction, now: float) -> int:
        """Return the trusted day, with the ledger ready for it."""
        day = trusted_clock.advance(tx, now, self.uptime())
        self.ledger.begin(tx, day)
        return day

    def _report_each(
        self,
        tx: Transaction,
        pendings: Sequence[Pending],
        day: int,
        done: list[Settled],
    ) -> Counter[Reason]:
        """Report each of *pendings*; *done* takes those of which there will be no other."""
        counts: Counter[Reason] = Counter()
        for pending in pendings:
            try:
                counts.update(self._report(tx, pending, day))
                others = Reason.ALREADY_REPORTED
            except _REFUSALS as refusal:
                others = reason_of(refusal)
                counts[others] += 1
            if others in _SETTLING:
                done.append((pending, others))
            counts[others] += pending.count - 1
        return counts

    def _warn_of(self, done: Sequence[Settled]) -> None:
        """Tell a developer of metrics that are never reported, or only if others are not."""
        refused = {p.metric.digest: p.metric for p, reason in done if reason is Reason.BUDGET}
        if refused and self.advise is not None:
            from ..privacy.budget import why_refused  # most registries fit

            for metric in refused.values():
                if (why := why_refused(metric, self.registry, self.ledger.caps)) is not None:
                    self.advise(*why)

    def _aggregate(
        self, tx: Transaction, pendings: Sequence[Pending], day: int, done: list[Settled]
    ) -> Counter[Reason]:
        """Add values to their windows, those of one window together; *done* as above."""
        from .aggregation import Key, Today

        try:
            self.consent.require()  # consent is checked again, as a denial erases under this lock
        except ConsentError as refusal:
            return Counter({reason_of(refusal): sum(p.count for p in pendings)})
        additions: dict[Key, list[tuple[object, int]]] = {}
        counts: Counter[Reason] = Counter()
        for pending in pendings:
            if not self._is_in_panel(tx, pending.metric, pending.epoch, pending.device):
                counts[Reason.NOT_IN_PANEL] += pending.count
                done.append((pending, Reason.NOT_IN_PANEL))
                continue
            key = Key(pending.device, pending.metric.digest, pending.epoch)
            additions.setdefault(key, []).append((pending.encoded, pending.count))
        today = Today(day, day_of(max(p.now for p in pendings)))
        return counts + self.windows.add(tx, additions, today)

    def _not_retired(
        self, tx: Transaction, pendings: Sequence[Pending], counts: Counter[Reason]
    ) -> Sequence[Pending]:
        """Return those of *pendings* whose metric is not retired; count values of the others."""
        stopped = retired.digests(tx)
        if not stopped:
            return pendings
        counts[Reason.RETIRED] += sum(p.count for p in pendings if p.metric.digest in stopped)
        return [pending for pending in pendings if pending.metric.digest not in stopped]

    def _may_open(self, tx: Transaction, metric: Metric, epoch: int, device: bytes) -> bool:
        """Whether a scheduled window of *metric* may be opened for a *device*."""
        if metric.digest in retired.digests(tx):
            return False
        return self._is_in_panel(tx, metric, epoch, device)

    def _is_in_panel(self, tx: Transaction, metric: Metric, epoch: int, device: bytes) -> bool:
        """Whether a *device* may report of *metric*, by a draw that knows no value."""
        panel = self.panel
        return panel is None or panel.includes(metric, epoch, self.store.secret.get(tx), device)

    def _report(self, tx: Transaction, pending: Pending, day: int) -> dict[Reason, int]:
        """Charge, perturb and queue on the trusted *day*; return what became of the report."""
        self.consent.require()  # consent is checked again, as a denial erases under this lock
        metric = pending.metric
        if not self._is_in_panel(tx, metric, pending.epoch, pending.device):
            raise NotInPanelError(f"{metric.name}: is not in the panel of this device now")
        if metric.policy is None:
            charge = Charge(
                digest=metric.digest,
                epoch=pending.epoch,
                nano=metric.mechanism.spent_nano,
                delta=metric.whole_delta,
                device=pending.device,
                days=pending.days,
            )
            self.ledger.charge(tx, charge, day)
            payload = metric.mechanism.randomize(pending.encoded, self.randomness)
        else:
            payload = self._repeat(tx, pending, metric.policy, day)
        if not may_leave(ReportView(metric.name, pending.epoch, payload), self.on_report):
            return {Reason.DROPPED: 1}
        report = Report(metric.digest, pending.epoch, payload)
        dropped = self.outbox.put(tx, report, day_of(pending.now), metric.segments, pending.label)
        return {Reason.RECORDED: 1, Reason.OUTBOX_FULL: dropped}

    def _repeat(self, tx: Transaction, pending: Pending, policy: Longitudinal, day: int) -> bytes:
        """Return the payload of a value that may have been reported before, charged as such."""
        from ..registry.longitudinal import encode_item, permanent_randomness  # few need it

        digest, device = pending.metric.digest, pending.device
        item = cast("int", pending.encoded)  # the registry lets only items have a policy
        encoded = encode_item(item)
        secret = self.store.secret.get(tx)
        tag = tag_of(secret, device, digest, encoded)
        reports = reports_of(tx, device, digest, tag)
        charge = Charge(
            digest=digest,
            epoch=pending.epoch,
            nano=policy.nano_after(reports),
            device=device,
            dearest=pending.metric.most_nano,
            days=pending.days,
        )
        self.ledger.charge(tx, charge, day)
        set_reports(tx, device, digest, tag, reports + 1)
        permanent = permanent_randomness(secret, device + digest, encoded)
        return policy.randomize(item, permanent, self.randomness)
