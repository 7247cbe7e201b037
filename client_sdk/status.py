"""What telemetry has cost the user of this device so far, and who may have switched it off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from .privacy.budget import epsilon
from .privacy.consent import USER_FILE, Level, OptOuts
from .privacy.wording import counted
from .registry.registry import Registry
from .storage import outbox, trusted_clock
from .storage.ledger import DOUBT, WEEK, published_caps, totals_of

if TYPE_CHECKING:
    from .storage.schema import Transaction

SAYS_NO: Final = {
    Level.DO_NOT_TRACK: "the environment variable DO_NOT_TRACK",
    Level.HEARSAY_TELEMETRY: "the environment variable HEARSAY_TELEMETRY",
    Level.POLICY: "the policy file of this machine",
    Level.USER: f"your own setting, the file {USER_FILE}",
}


def consent_line(opt_outs: OptOuts) -> str:
    """Return whether telemetry is off, and who says so."""
    level = opt_outs.said_by()
    if level is None:
        return "telemetry: no opt-out found; your choice in the application applies"
    return f"telemetry: off, says {SAYS_NO[level]}"


def ledger_lines(tx: Transaction, registry: Registry | None, now: float) -> Iterator[str]:
    """Yield what was spent: over all, a metric, and what waits.

    Args: registry: gives metrics their names; None: they are shown by digest.
          now: Unix time.
    """
    day = trusted_clock.day(tx, now, trusted_clock.SystemUptime()())
    caps, totals = published_caps(tx), totals_of(tx, day)
    yield f"spent in the last seven days: {_of(totals.week, caps.get('week'))}"
    yield f"spent for life: {_of(totals.lifetime, caps.get('lifetime'))}"
    yield from _metric_lines(tx, registry, caps.get("metric_week"), day)
    yield from _gateway_lines(tx, day)
    yield f"waiting to be sent: {counted(outbox.waiting(tx), 'report')}"
    yield "show prints each report that waits or was sent lately, in words"


def _metric_lines(
    tx: Transaction, registry: Registry | None, cap: int | None, day: int
) -> Iterator[str]:
    rows = tx.execute(
        "SELECT digest,"
        " (SELECT sum(nano) FROM costs WHERE costs.device = x'' AND costs.digest = totals.digest"
        " AND last > ?), nano,"
        " (SELECT count(*) FROM charges WHERE charges.device = x''"
        " AND charges.digest = totals.digest)"
        " FROM totals WHERE device = x'' ORDER BY digest",
        (day - WEEK,),
    )
    for digest, week, lifetime, reports in rows:
        yield (
            f"  {name_of(digest, registry)}: {_of(week or 0, cap)} in seven"
            f" days, ε {epsilon(lifetime)} for life, {counted(reports, 'report')}"
        )


def _gateway_lines(tx: Transaction, day: int) -> Iterator[str]:
    """Say how many devices a gateway speaks for, and what the one that spent most has spent."""
    devices, most = tx.execute(
        "SELECT count(*), max(week) FROM (SELECT coalesce(sum(nano) FILTER (WHERE last > ?), 0)"
        " AS week FROM costs WHERE device <> x'' GROUP BY device)",
        (day - WEEK,),
    ).fetchone()
    if devices:
        yield (
            f"  ledgers of {counted(devices, 'device')}; the most that one of them spent in"
            f" seven days is ε {epsilon(most)}"
        )


def name_of(digest: bytes, registry: Registry | None) -> str:
    """Return what the metric of *digest* is called, as far as that is known."""
    if digest == DOUBT:
        return "set aside, as a copy of this database may have spent it"
    if registry is None or digest not in registry.by_digest:
        return f"metric {digest.hex()}"
    return registry.by_digest[digest].name


def _of(nano: int, cap: int | None) -> str:
    return f"ε {epsilon(nano)}" + ("" if cap is None else f" of {epsilon(cap)}")
