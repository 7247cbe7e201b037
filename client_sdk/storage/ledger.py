"""The ledger: what this device has spent, append-only, in whole nano-epsilon.

A charge is written in the transaction that draws and queues its report, so neither exists without
the other.  Charges are never taken back.  Days are those of ``trusted_clock``, which no setting of
the clock alone makes run faster.

A charge counts for the days that its report is about: the day on which a value was recorded, or all
days from the first value that was added up to the last day of the epoch.  A week is within its cap
if the reports that are about any of its seven days are, whenever they are made.

The caps of the application are published beside the ledger, for readers without the application.
They are only shown: what is enforced are the caps compiled into the application, never these.

The memo says which values of a metric this device has been charged for, and holds none of them.  A
row has a tag that only who holds the secret can connect to a value, and payloads are not stored at
all: they are drawn again from the secret.

Of a permanent or two-layer metric the first report of a value costs something, and later ones
nothing.  So the costs of each day say, without any noise, on which days a value was new.  While the
user agrees, this stays: the collector sees the same.  When it is to be forgotten, which epochs have
their report stays, and so does the sum; but all that the metric has cost is carried to the day of
its latest report.  There it counts no less, and longer towards the week.
"""

from __future__ import annotations

from ..core.dataclass import as_dict, dataclass
from ..core.errors import AlreadyReportedError, BudgetExhaustedError
from ..core.typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias
from ..privacy.caps import WEEK as WEEK
from ..privacy.caps import Caps, dearest_week
from .schema import property_of, remove_property, set_property

if TYPE_CHECKING:
    from .schema import Transaction

_KEY: Final = "caps"

_Cost: TypeAlias = tuple[bytes, int, int, int]  # digest, first and last day, nano-epsilon

DOUBT: Final = b""  # digest of a charge for what may have been spent elsewhere; of no metric

# What is about a day from :first on.  By way of totals, whose rows are as many as the metrics: so
# it takes no longer as the ledger grows.  A doubt concerns every device of a gateway, whose own
# keys are not empty.
_COSTS: Final = """
    SELECT costs.digest, costs.first, costs.last, costs.nano FROM totals JOIN costs
        ON costs.device = totals.device AND costs.digest = totals.digest AND costs.last >= :first
        WHERE totals.device = :device OR totals.device = x'' AND totals.digest = x''"""
_ADD: Final = (
    "INSERT INTO charges (device, digest, epoch) VALUES (:device, :digest, :epoch)",
    "INSERT INTO costs (device, digest, first, last, nano, delta)"
    " VALUES (:device, :digest, :first, :last, :nano, :delta)"
    " ON CONFLICT DO UPDATE SET nano = nano + excluded.nano, delta = delta + excluded.delta",
    "INSERT INTO totals (device, digest, nano, delta) VALUES (:device, :digest, :nano, :delta)"
    " ON CONFLICT DO UPDATE SET nano = nano + excluded.nano, delta = delta + excluded.delta",
)

TAG_SIZE: Final = 16  # bytes
MAX_REPORTS: Final = 2  # reports counted of a value; further ones cost nothing

_PURPOSE: Final = b"charge"

# A report of a fresh metric always costs something: a day that cost nothing had repeats alone.
_REPEATED: Final = """
    SELECT device, digest FROM memo UNION
    SELECT device, digest FROM costs WHERE digest <> x''
        GROUP BY device, digest HAVING min(nano) = 0"""


class Days(NamedTuple):
    """Trusted epoch days in a row, both ends included."""

    first: int
    last: int


@dataclass(frozen=True)
class Charge:
    """What one report costs: epsilon rounded up to nano-epsilon, delta to whole 1e-12."""

    digest: bytes
    epoch: int
    nano: int  # 0 for the repeat of a permanent response
    delta: int = 0
    device: bytes = b""  # one of a gateway's
    dearest: int = 0  # the most that another value would have cost: it must fit the caps as well
    days: Days | None = None  # that the report is about; None: the day of the charge


@dataclass(frozen=True)
class ChargeTotals:
    """What was charged as of *day*: nano-epsilon, and whole 1e-12 of delta."""

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
        days = charge.days or Days(day, day)
        self._require_room(tx, charge, days, day)
        _append(tx, charge, days)

    def day_with_room(self, tx: Transaction, charge: Charge, day: int) -> int | None:
        """Return the first trusted day, from *day* on, that *charge* would fit into; None: none.

        As the ledger is now: whatever is charged meanwhile makes it no sooner.
        """
        for later in range(day, day + WEEK + 1):
            try:
                self._require_room(tx, charge, Days(later, later), later)
            except BudgetExhaustedError:
                continue
            return later
        return None

    def _require_room(self, tx: Transaction, charge: Charge, days: Days, day: int) -> None:
        caps = self.caps
        costs = _costs(tx, days.first - WEEK + 1, charge.device)
        own = [cost for cost in costs if cost[0] == charge.digest]
        lifetime, delta = _for_life(tx, charge.device)
        dearest = max(charge.nano, charge.dearest)
        _require_within(caps, "report", 0, dearest)
        _require_within(caps, "metric_week", dearest_week(own, days, day), dearest)
        _require_within(caps, "week", dearest_week(costs, days, day), dearest)
        _require_within(caps, "lifetime", lifetime, dearest)
        _require_within(caps, "delta", delta, charge.delta)

    def begin(self, tx: Transaction, day: int) -> None:
        """Publish the caps; if the database is in doubt, charge the rest of the week."""
        _publish_caps(tx, self.caps)
        if property_of(tx, "doubt") is None:
            return
        rest = max(0, self.caps.week - totals_of(tx, day).week)
        (last,) = tx.execute(
            "SELECT max(epoch) FROM charges WHERE device = x'' AND digest = x''"
        ).fetchone()
        _append(tx, Charge(DOUBT, 0 if last is None else last + 1, rest), Days(day, day))
        remove_property(tx, "doubt")


def totals_of(tx: Transaction, day: int, device: bytes = b"") -> ChargeTotals:
    """Return what the seven days that end with the trusted *day*, and all days, have cost."""
    week = sum(nano for *_, nano in _costs(tx, day - WEEK + 1, device))
    return ChargeTotals(day, week, *_for_life(tx, device))


def _costs(tx: Transaction, first: int, device: bytes) -> list[_Cost]:
    """Return what was charged for days from *first* on."""
    return tx.execute(_COSTS, {"first": first, "device": device}).fetchall()


def _for_life(tx: Transaction, device: bytes) -> tuple[int, int]:
    """Return the nano-epsilon and the delta of all that was ever charged."""
    nano, delta = tx.execute(
        "SELECT coalesce(sum(nano), 0), coalesce(sum(delta), 0) FROM totals"
        " WHERE device = ? OR device = x'' AND digest = x''",
        (device,),
    ).fetchone()
    return nano, delta


def _append(tx: Transaction, charge: Charge, days: Days) -> None:
    row = {"device": charge.device, "digest": charge.digest, "epoch": charge.epoch}
    cost = {"first": days.first, "last": days.last, "nano": charge.nano, "delta": charge.delta}
    for statement in _ADD:
        tx.execute(statement, row | cost)


def _require_first(tx: Transaction, charge: Charge) -> None:
    row = tx.execute(
        "SELECT 1 FROM charges WHERE device = ? AND digest = ? AND epoch = ?",
        (charge.device, charge.digest, charge.epoch),
    ).fetchone()
    if row is not None:
        raise AlreadyReportedError(f"epoch={charge.epoch}: has its one report of this metric")


def _require_within(caps: Caps, name: str, spent: int, cost: int) -> None:
    if spent + cost > getattr(caps, name):
        raise BudgetExhaustedError(f"caps.{name}={caps.decimals()[name]}: must not be passed")


def _publish_caps(tx: Transaction, caps: Caps) -> None:
    """Store *caps*, unless they are those that were published last."""
    import json  # it loads ``re``, which a start need not pay for

    text = json.dumps(as_dict(caps))
    if property_of(tx, _KEY) != text:
        set_property(tx, _KEY, text)


def published_caps(tx: Transaction) -> dict[str, int]:
    """Return the caps published last, in nano-epsilon by name; empty if none can be read."""
    import json

    try:
        caps = json.loads(str(property_of(tx, _KEY)))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(caps, dict) or any(type(cap) is not int for cap in caps.values()):
        return {}
    return caps


def tag_of(secret: bytes, device: bytes, digest: bytes, encoded: bytes) -> bytes:
    """Return the tag under which a value is remembered."""
    import hashlib  # it loads OpenSSL: 4 MB that a start need not pay for

    absorbed = secret + device + digest + _PURPOSE + encoded
    return hashlib.shake_256(absorbed).digest(TAG_SIZE)


def reports_of(tx: Transaction, device: bytes, digest: bytes, tag: bytes) -> int:
    """Return how many reports of the value of *tag* there were; MAX_REPORTS stands for any more."""
    row = tx.execute(
        "SELECT reports FROM memo WHERE device = ? AND digest = ? AND tag = ?",
        (device, digest, tag),
    ).fetchone()
    return 0 if row is None else int(row[0])


def set_reports(tx: Transaction, device: bytes, digest: bytes, tag: bytes, reports: int) -> None:
    """Set the number of reports of a value to *reports*, of which MAX_REPORTS are counted."""
    if reports <= MAX_REPORTS:
        tx.execute(
            "INSERT OR REPLACE INTO memo (device, digest, tag, reports) VALUES (?, ?, ?, ?)",
            (device, digest, tag, reports),
        )


def forget_changes(tx: Transaction) -> None:
    """Carry all that each repeated metric has cost to the day of its latest report."""
    for device, digest in tx.execute(_REPEATED).fetchall():
        tx.execute(
            "DELETE FROM costs WHERE device = ? AND digest = ? AND (last, first) < ("
            " SELECT last, first FROM costs WHERE device = ? AND digest = ?"
            " ORDER BY last DESC, first DESC LIMIT 1)",
            (device, digest, device, digest),
        )
