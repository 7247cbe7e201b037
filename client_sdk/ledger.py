"""The ledger: what this device has spent, append-only, in whole nano-epsilon.

A charge is written in the transaction that draws and queues its report, so neither exists without
the other.  Charges are never taken back.  Days never go backward: after a clock was set back,
charges count as made on the latest day the ledger has seen, so no week ends early.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .errors import AlreadyReportedError, BudgetExhaustedError, InvalidParameterError
from .limits import DEFAULT_CAP_LIFETIME, DEFAULT_CAP_REPORT, DEFAULT_CAP_WEEK

if TYPE_CHECKING:
    from .store import Transaction

WEEK: Final = 7  # days
_CAP: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,9})?", re.ASCII)


@dataclass(frozen=True, init=False)
class Caps:
    """The most epsilon this application ever spends on a person, over all metrics together.

    Compiled into the application: no registry and no answer of a server can raise them.
    """

    report: int  # nano-epsilon of one report
    week: int  # nano-epsilon of any seven days
    lifetime: int  # nano-epsilon of the ledger's life

    def __init__(
        self,
        report: str = DEFAULT_CAP_REPORT,
        week: str = DEFAULT_CAP_WEEK,
        lifetime: str = DEFAULT_CAP_LIFETIME,
    ) -> None:
        """Take decimals of epsilon, in nats.

        Raises: InvalidParameterError: not a positive decimal in quotes of at most 9 decimals.
        """
        for name, cap in (("report", report), ("week", week), ("lifetime", lifetime)):
            object.__setattr__(self, name, _nano(f"caps.{name}", cap))


@dataclass(frozen=True)
class Charge:
    """What one report costs: the exact epsilon of its channel, rounded up to nano-epsilon."""

    digest: bytes
    epoch: int
    nano: int
    day: int  # epoch day by the device's clock


@dataclass(frozen=True)
class Spent:
    """What was spent, in nano-epsilon, as of *day*."""

    day: int  # the later of the clock's day and the last charged day
    week: int
    lifetime: int


@dataclass(frozen=True)
class Ledger:
    """Appends charges within *caps*."""

    caps: Caps

    def charge(self, tx: Transaction, charge: Charge) -> None:
        """Append *charge*; if it is refused, nothing was written.

        Raises: AlreadyReportedError: this metric has its report for this epoch.
                BudgetExhaustedError: a cap would be passed.
        """
        _require_first(tx, charge)
        spent = spent_by(tx, charge.day)
        _require_within("report", self.caps.report, charge.nano)
        _require_within("week", self.caps.week, spent.week + charge.nano)
        _require_within("lifetime", self.caps.lifetime, spent.lifetime + charge.nano)
        tx.execute(
            "INSERT INTO charges (digest, epoch, nano, day) VALUES (?, ?, ?, ?)",
            (charge.digest, charge.epoch, charge.nano, spent.day),
        )


def spent_by(tx: Transaction, day: int) -> Spent:
    """Return what the seven days that end with *day*, and all days, have cost."""
    (latest,) = tx.execute("SELECT max(day) FROM charges").fetchone()
    today = day if latest is None else max(day, latest)
    week, lifetime = tx.execute(
        "SELECT coalesce(sum(nano) FILTER (WHERE day > ?), 0), coalesce(sum(nano), 0) FROM charges",
        (today - WEEK,),
    ).fetchone()
    return Spent(today, week, lifetime)


def _require_first(tx: Transaction, charge: Charge) -> None:
    known = tx.execute(
        "SELECT 1 FROM charges WHERE digest = ? AND epoch = ?", (charge.digest, charge.epoch)
    ).fetchone()
    if known is not None:
        raise AlreadyReportedError(f"epoch={charge.epoch}: has its one report of this metric")


def _require_within(name: str, cap: int, total: int) -> None:
    if total > cap:
        raise BudgetExhaustedError(f"caps.{name}={cap}: must not be passed, in nano-epsilon")


def _nano(name: str, cap: object) -> int:
    """Return the decimal *cap* as nano-epsilon, without passing through a float."""
    if not isinstance(cap, str) or not _CAP.fullmatch(cap) or not cap.strip("0."):
        rule = 'must be a positive decimal in quotes, such as "8.5", at most 999999'
        raise InvalidParameterError(name, cap, rule)
    whole, _, decimals = cap.partition(".")
    return int(whole + decimals.ljust(9, "0"))
