"""The ledger: what this device has spent, append-only, in whole nano-epsilon.

A charge is written in the transaction that draws and queues its report, so neither exists without
the other.  Charges are never taken back.  Days are those of ``trusted_clock``, which no setting of
the clock makes run faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import meta, noted_caps
from .caps import Caps
from .dataclass import dataclass
from .errors import AlreadyReportedError, BudgetExhaustedError

if TYPE_CHECKING:
    from .store import Transaction

WEEK: Final = 7  # days
DOUBT: Final = b""  # digest of a charge for what may have been spent elsewhere; of no metric

# A doubt concerns every device of a gateway, whose own keys are not empty.
_CHARGES: Final = """(
    SELECT digest, nano, delta, day FROM charges WHERE device = :device
    UNION ALL
    SELECT digest, nano, delta, day FROM charges
        WHERE :device <> x'' AND device = x'' AND digest = x''
)"""


@dataclass(frozen=True)
class Charge:
    """What one report costs: epsilon rounded up to nano-epsilon, delta to whole 1e-12."""

    digest: bytes
    epoch: int
    nano: int  # 0 for the repeat of a permanent response
    delta: int = 0
    device: bytes = b""  # one of a gateway's
    dearest: int = 0  # the most that another value would have cost: it must fit the caps as well


@dataclass(frozen=True)
class Spent:
    """What was spent as of *day*: nano-epsilon, and whole 1e-12 of delta."""

    day: int  # trusted epoch day
    week: int
    lifetime: int
    delta: int  # of the ledger's life


@dataclass(frozen=True)
class Ledger:
    """Appends charges within *caps*."""

    caps: Caps

    def charge(self, tx: Transaction, charge: Charge, day: int) -> None:
        """Append *charge* as made on the trusted *day*; if it is refused, nothing was written.

        What decides is the dearest that the report could be, whatever its value: else it would
        depend on the value whether there is a report at all.
        Raises: AlreadyReportedError: this metric has its report for this epoch.
                BudgetExhaustedError: a cap would be, or for another value might be, passed.
        """
        _require_first(tx, charge)
        caps, spent = self.caps, spent_by(tx, day, charge.device)
        of_metric = spent_on(tx, day, charge.digest, charge.device)
        dearest = max(charge.nano, charge.dearest)
        _require_within("report", caps.report, 0, dearest)
        _require_within("metric_week", caps.metric_week, of_metric, dearest)
        _require_within("week", caps.week, spent.week, dearest)
        _require_within("lifetime", caps.lifetime, spent.lifetime, dearest)
        _require_within("delta", caps.delta, spent.delta, charge.delta)
        _append(tx, charge, day)

    def settle(self, tx: Transaction, day: int) -> None:
        """Note the caps; if the database is in doubt, charge the rest of the week, as if spent."""
        noted_caps.note(tx, self.caps)
        if meta.get(tx, "doubt") is None:
            return
        rest = max(0, self.caps.week - spent_by(tx, day).week)
        (last,) = tx.execute(
            "SELECT max(epoch) FROM charges WHERE device = x'' AND digest = x''"
        ).fetchone()
        _append(tx, Charge(DOUBT, 0 if last is None else last + 1, rest), day)
        meta.remove(tx, "doubt")


def spent_by(tx: Transaction, day: int, device: bytes = b"") -> Spent:
    """Return what the seven days that end with the trusted *day*, and all days, have cost."""
    week, lifetime, delta = tx.execute(
        "SELECT coalesce(sum(nano) FILTER (WHERE day > :day), 0), coalesce(sum(nano), 0),"  # noqa: S608 - a constant
        f" coalesce(sum(delta), 0) FROM {_CHARGES}",
        {"day": day - WEEK, "device": device},
    ).fetchone()
    return Spent(day, week, lifetime, delta)


def spent_on(tx: Transaction, day: int, digest: bytes, device: bytes = b"") -> int:
    """Return the nano-epsilon that one metric has cost in the seven days that end with *day*."""
    (week,) = tx.execute(
        "SELECT coalesce(sum(nano), 0) FROM charges WHERE device = ? AND digest = ? AND day > ?",
        (device, digest, day - WEEK),
    ).fetchone()
    return int(week)


def _append(tx: Transaction, charge: Charge, day: int) -> None:
    tx.execute(
        "INSERT INTO charges (device, digest, epoch, nano, delta, day) VALUES (?, ?, ?, ?, ?, ?)",
        (charge.device, charge.digest, charge.epoch, charge.nano, charge.delta, day),
    )


def _require_first(tx: Transaction, charge: Charge) -> None:
    known = tx.execute(
        "SELECT 1 FROM charges WHERE device = ? AND digest = ? AND epoch = ?",
        (charge.device, charge.digest, charge.epoch),
    ).fetchone()
    if known is not None:
        raise AlreadyReportedError(f"epoch={charge.epoch}: has its one report of this metric")


def _require_within(name: str, cap: int, spent: int, cost: int) -> None:
    if spent + cost > cap:
        unit = "1e-12" if name == "delta" else "nano-epsilon"
        raise BudgetExhaustedError(f"caps.{name}={cap}: must not be passed, in {unit}")
