"""From a value to a charged, perturbed and queued report: one transaction, all of it or nothing."""

from __future__ import annotations

from dataclasses import dataclass

from .consent import ConsentSwitch
from .epoch import day_of, day_of_date, epoch_of
from .errors import ExpiredMetricError, UnknownMetricError
from .ledger import Charge, Ledger
from .metric import Metric
from .outbox import Outbox
from .randomness import Randomness
from .registry import Registry
from .report import Report
from .store import Store


@dataclass(frozen=True)
class Recorder:
    """Makes reports.  Knows no thread, no network and no clock."""

    registry: Registry
    store: Store
    ledger: Ledger
    outbox: Outbox
    randomness: Randomness
    consent: ConsentSwitch

    def record(self, name: str, value: object, now: float) -> int:
        """Report *value* of the metric called *name* at Unix time *now*.

        Returns: how many older reports were dropped to make room.
        Raises:  ConsentError, UnknownMetricError, InvalidValueError, ExpiredMetricError,
                 AlreadyReportedError, BudgetExhaustedError, EntropyError, StoreError: there is no
                 report and no charge.
        """
        self.consent.require()
        metric = self._metric(name)
        encoded = metric.encode(value)
        day, epoch = day_of(now), epoch_of(metric.every, now)
        if day > day_of_date(metric.expires):
            raise ExpiredMetricError(f"expires={metric.expires}: has passed")
        charge = Charge(metric.digest, epoch, metric.mechanism.spent_nano, day)
        with self.store.transaction() as tx:
            self.consent.require()  # again: a revocation wipes the outbox under the same lock
            self.ledger.charge(tx, charge)
            payload = metric.mechanism.randomize(encoded, self.randomness)
            return self.outbox.put(tx, Report(metric.digest, epoch, payload), day)

    def _metric(self, name: object) -> Metric:
        if not isinstance(name, str):
            raise UnknownMetricError(type(name).__name__)
        return self.registry.metric(name)
