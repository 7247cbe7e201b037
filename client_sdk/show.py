"""What this device has told the collector, and why it can be denied, report by report.

What was true is not here: it is kept nowhere once a report is drawn.  Until then, and while values
add up, this device can read what it keeps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from .core.epoch import ONCE, epoch_label
from .core.limits import MAX_ACKNOWLEDGED
from .core.randomness import system_randomness
from .core.wire import Report, from_base64url
from .privacy.wording import what_was_sent, why_deniable
from .registry.registry import Registry
from .status import name_of
from .storage import outbox
from .storage.outbox import acknowledged_reports
from .storage.secret import Secret
from .window_mask import Key

if TYPE_CHECKING:
    from .storage.schema import Transaction

MAX_SHOWN: Final = 100  # reports that wait; a gateway has a million
_NOT_KEPT: Final = "    what was true: this device does not know it any more"
_NOT_STORED: Final = (
    "    what was true: it is not stored; while this device keeps its secret, so that it can give"
    " the same answer again, it could find out"
)


def report_lines(
    tx: Transaction, registry: Registry | None, secret: Secret | None = None
) -> Iterator[str]:
    """Yield what adds up, the reports that wait and those that were sent last, the latest first.

    Args: registry: gives bytes their words; None: they are shown as they are.
          secret: of the device, to show what was true of what adds up.
    """
    if tx.execute("SELECT 1 FROM windows LIMIT 1").fetchone():
        yield "being added up, until the period is over:"
        yield from _window_lines(tx, registry, secret)
    yield "waiting to be sent:"
    waiting = list(islice(_waiting(tx), MAX_SHOWN))
    yield from _or_none([line for report in waiting for line in _lines(report, registry)])
    if len(waiting) == MAX_SHOWN:
        yield f"  of {outbox.waiting(tx)}, the latest {MAX_SHOWN}"
    yield f"sent, the last {MAX_ACKNOWLEDGED}:"
    yield from _or_none(list(_acknowledged_lines(tx, registry)))


def _window_lines(
    tx: Transaction, registry: Registry | None, secret: Secret | None
) -> Iterator[str]:
    """Yield each open window; a gateway's only by their number, since nobody is to read them."""
    from .windows import Windows

    windows: Windows | None = None
    if registry is not None and secret is not None and secret.exists:
        windows = Windows(registry, secret, system_randomness())
    for digest, epoch, own, devices in tx.execute(
        "SELECT digest, epoch, sum(device = x''), sum(device <> x'') FROM windows"
        " GROUP BY digest, epoch ORDER BY epoch"
    ).fetchall():
        among = f", of {devices} devices" if devices else ""
        yield f"  {_heading(digest, epoch, registry)}{among}"
        value = windows.value_so_far(tx, Key(b"", digest, epoch)) if windows and own else None
        if registry is not None and value is not None:
            metric = registry.by_digest[digest]
            yield f"    what is asked: {metric.question}"
            yield f"    what is true so far: {metric.domain.in_words(value)}"


def _waiting(tx: Transaction) -> Iterator[Report]:
    """Yield the reports that wait, sealed ones included; but for a gateway's uploads."""
    for row in tx.execute("SELECT digest, epoch, payload FROM reports ORDER BY number DESC"):
        yield Report(*row)
    for (body,) in tx.execute("SELECT body FROM uploads ORDER BY number DESC"):
        try:
            columns = json.loads(body)["columns"]
        except ValueError:
            continue  # MessagePack, of many devices, which are nobody's to read here
        for column in columns:
            payload = from_base64url(column["payloads"])
            yield Report(from_base64url(column["metric"]), column["epoch"], payload)


def _acknowledged_lines(tx: Transaction, registry: Registry | None) -> Iterator[str]:
    for acknowledged in acknowledged_reports(tx):
        yield from _lines(acknowledged.report, registry)
        yield f"    sent on: {epoch_label('1d', acknowledged.day)}"


def _lines(report: Report, registry: Registry | None) -> Iterator[str]:
    yield f"  {_heading(report.metric, report.epoch, registry)}"
    metric = None if registry is None else registry.by_digest.get(report.metric)
    if metric is None:
        yield f"    what is sent: the bytes {report.payload.hex()}; --registry gives them words"
        return
    yield f"    what is asked: {metric.question}"
    yield f"    what is sent: {what_was_sent(metric, report.payload)}"
    yield _NOT_KEPT if metric.policy is None else _NOT_STORED
    yield f"    why it can be denied: {why_deniable(metric)}"


def _heading(digest: bytes, epoch: int, registry: Registry | None) -> str:
    metric = None if registry is None else registry.by_digest.get(digest)
    if metric is None:
        return f"{name_of(digest, registry)}, period {epoch}"
    since = "once" if metric.every == ONCE else f"from {epoch_label(metric.every, epoch)}"
    return f"{metric.title} ({metric.name}), {since}"


def _or_none(lines: list[str]) -> list[str]:
    return lines or ["  nothing"]
