"""What the user of an application may ask of its telemetry: look, switch off, delete.

These functions are public, for the settings and commands of an application, such as ``mytool
telemetry status``, where ``python -m client_sdk`` is not to be had.  Each takes the *data_dir* that
the application gave its client, and returns lines of text for people: what its telemetry has cost,
who may have switched it off, and what this device has told the collector and why it can be denied.
They raise HearsayError or OSError where a file cannot be read or written.  A registry may be given
as the path of its file, as to ``Client``.

What was true is not here: it is kept nowhere once a report is drawn.  Until then, and while values
add up, this device can read what it keeps.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from itertools import islice

from .core.base64url import from_base64url
from .core.epoch import ONCE, epoch_label
from .core.errors import InvalidParameterError
from .core.limits import MAX_ACKNOWLEDGED, PERMIT_FILE
from .core.paths import PathOrStr, RegistryFile, absolute
from .core.randomness import system_randomness
from .core.typing import TYPE_CHECKING, Any, Final
from .privacy.automation import CONTAINER
from .privacy.budget import epsilon
from .privacy.consent import Level, OptOuts, set_user_opt_out
from .privacy.opt_outs import ANSWER_FILE, HEARSAY_TELEMETRY, USER_FILE, answer_in
from .privacy.wording import counted, what_was_sent, why_deniable
from .recording.aggregation import Key, Windows
from .recording.erasure import erase
from .recording.handover_protocol import refusal_in
from .registry.contract import Registry
from .registry.keys import SEGMENT
from .storage import outbox, trusted_clock
from .storage.ledger import DOUBT, WEEK, published_caps, totals_of
from .storage.outbox import acknowledged_reports
from .storage.readonly import open_readonly
from .storage.secret import Secret
from .storage.store import Store
from .upload.schedule import refusal_of
from .upload.transport import why_turned_away
from .wire.reports import Report

if TYPE_CHECKING:
    from .storage.schema import Transaction

_SAYS_NO: Final = {
    Level.DO_NOT_TRACK: "the environment variable DO_NOT_TRACK",
    Level.HEARSAY_TELEMETRY: "the environment variable HEARSAY_TELEMETRY",
    Level.POLICY: "the policy file of this machine",
    Level.USER: f"your own setting, the file {USER_FILE}",
}

_ANSWERED: Final = {  # by what the application's terminal was told, if it has asked
    None: "no opt-out found; your choice in the application applies",
    "granted": "on, as you agreed to",
    "denied": "off, as you said no when you were asked",
    "unknown": "off, as you have not decided",
}

MAX_SHOWN: Final = 100  # reports that wait; a gateway has a million
_NOT_KEPT: Final = "    what was true: this device does not know it any more"
_NOT_STORED: Final = (
    "    what was true: it is not stored; while this device keeps its secret, so that it can give"
    " the same answer again, it could find out"
)

_NOTHING: Final = "nothing was recorded here"
_REMINDER: Final = "The ledger of what was spent stays: without it the same could be spent again."


def status(data_dir: PathOrStr, registry: Registry | RegistryFile | None = None) -> list[str]:
    """Say who says no, what was spent of the privacy budget, and what waits.

    Args: registry: gives metrics their names; None: they are shown by digest.
    """
    folder, registry = _folder(data_dir), _registry(registry)
    lines = [_consent_line(folder), *_file_lines(folder)]
    lines += _automation_lines(OptOuts(folder), registry)
    if not Store(folder).exists:
        return [*lines, _NOTHING]
    with open_readonly(folder) as (tx, said):
        return [*lines, *said, *_ledger_lines(tx, registry)]


def figures(
    data_dir: PathOrStr, registry: Registry | RegistryFile | None = None
) -> dict[str, object]:
    """Return what ``status`` says, for programs: JSON of fixed keys, in nano-epsilon.

    Args: registry: gives metrics their names; None: they are named by digest.
    """
    folder, registry = _folder(data_dir), _registry(registry)
    opt_outs, answer = OptOuts(folder), answer_in(folder)
    consent: dict[str, object] = {"opted_out_by": opt_outs.said_by(), "answer": answer}
    consent["automation"] = opt_outs.automation()
    if not Store(folder).exists:
        return consent | {"recorded": False}
    with open_readonly(folder) as (tx, _):
        return consent | {"recorded": True} | _ledger_figures(tx, registry, _today(tx))


def show(data_dir: PathOrStr, registry: Registry | RegistryFile | None = None) -> list[str]:
    """Say every report that waits or was sent lately, in words, and why it can be denied.

    Args: registry: gives metrics their names and words; None: reports are shown as bytes.
    """
    folder, registry = _folder(data_dir), _registry(registry)
    if not Store(folder).exists:
        return [_NOTHING]
    with open_readonly(folder) as (tx, said):
        return [*said, *_report_lines(tx, registry, Secret(folder))]


def opt_in(data_dir: PathOrStr) -> list[str]:
    """Take back the user's own no.  Others who say no are still obeyed."""
    folder = _folder(data_dir)
    set_user_opt_out(folder, off=False)
    return [_consent_line(folder)]


def opt_out(data_dir: PathOrStr) -> list[str]:
    """Say no from now on, and delete what waits, what was sent and the device's secret."""
    folder = _folder(data_dir)
    set_user_opt_out(folder, off=True)
    return [_consent_line(folder), *_erase(folder)]


def purge(data_dir: PathOrStr) -> list[str]:
    """Delete what waits, what was sent and the device's secret, and say nothing else."""
    return list(_erase(_folder(data_dir)))


def _erase(folder: str) -> Iterator[str]:
    store = Store(folder)
    store.remove(PERMIT_FILE)  # what was handed to a child until now stays unreported
    if not store.has_traces:
        yield _NOTHING
        return
    try:
        with store.transaction() as tx:
            reports = erase(tx, store)
        store.scrub()
    finally:
        store.close()
    waiting = counted(reports, "report")
    yield f"deleted: {waiting} that waited, what was sent, and the device's secret"
    yield _REMINDER


def _folder(data_dir: PathOrStr) -> str:
    folder = absolute(data_dir)
    if folder is None:
        raise InvalidParameterError("data_dir", None, "must be the folder of the client")
    return str(folder)


def _registry(source: Registry | RegistryFile | None) -> Registry | None:
    return None if source is None else Registry.of(source)


def _consent_line(folder: str) -> str:
    """Return whether telemetry is off, and who says so."""
    level = OptOuts(folder).said_by()
    if level is None:
        return f"telemetry: {_ANSWERED[answer_in(folder)]}"
    return f"telemetry: off, says {_SAYS_NO[level]}"


def _file_lines(folder: str) -> Iterator[str]:
    """Yield what is wrong with what programs that end at once have left in *folder*."""
    if answer_in(folder) is None and os.path.lexists(os.path.join(folder, ANSWER_FILE)):
        yield f"{ANSWER_FILE}: holds no answer, so it is as if nobody was asked; remove it"
    if why := refusal_in(folder):
        yield f"of the last run nothing could be reported: {why}"


def _today(tx: Transaction) -> int:
    """Return the trusted day."""
    return trusted_clock.day(tx, time.time(), trusted_clock.SystemUptime()())


def _ledger_figures(tx: Transaction, registry: Registry | None, day: int) -> dict[str, Any]:
    """Return what was spent as of the trusted *day*, in nano-epsilon, and what waits."""
    totals = totals_of(tx, day)
    return {
        "week": totals.week,
        "lifetime": totals.lifetime,
        "caps": published_caps(tx),
        "metrics": {
            name_of(digest, registry): {"week": week or 0, "lifetime": life, "reports": reports}
            for digest, week, life, reports in _metric_rows(tx, day)
        },
        "waiting": outbox.waiting(tx),
    }


def _automation_lines(opt_outs: OptOuts, registry: Registry | None) -> Iterator[str]:
    """Yield what shows that a machine runs the application here, and what becomes of that."""
    sign = opt_outs.automation()
    if sign is None:
        return
    sign = f"this is {sign}" if sign == CONTAINER else f"the environment variable {sign} is set"
    if registry is not None and registry.automation == SEGMENT:
        yield f"automation: {sign}, so reports say that no person made them"
    else:
        yield (
            f"automation: {sign}, so nothing is recorded or sent;"
            f" {HEARSAY_TELEMETRY}=1 says that a person is here"
        )


def _ledger_lines(tx: Transaction, registry: Registry | None) -> Iterator[str]:
    """Yield what was spent: over all, a metric, and what waits.

    Args: registry: gives metrics their names; None: they are shown by digest.
    """
    day = _today(tx)
    spent = _ledger_figures(tx, registry, day)
    caps = spent["caps"]
    yield f"spent in the last seven days: {_of(spent['week'], caps.get('week'))}"
    yield f"spent for life: {_of(spent['lifetime'], caps.get('lifetime'))}"
    for name, own in spent["metrics"].items():
        yield (
            f"  {name}: {_of(own['week'], caps.get('metric_week'))} in seven"
            f" days, ε {epsilon(own['lifetime'])} for life, {counted(own['reports'], 'report')}"
        )
    yield from _gateway_lines(tx, day)
    yield f"waiting to be sent: {counted(spent['waiting'], 'report')}"
    if status := refusal_of(tx):
        yield why_turned_away(status)
    yield "show prints each report that waits or was sent lately, in words"


def _metric_rows(tx: Transaction, day: int) -> Iterator[tuple[bytes, int | None, int, int]]:
    """Yield digest, nano-epsilon of seven days and of life, and reports of each metric."""
    yield from tx.execute(
        "SELECT digest,"
        " (SELECT sum(nano) FROM costs WHERE costs.device = x'' AND costs.digest = totals.digest"
        " AND last > ?), nano,"
        " (SELECT count(*) FROM charges WHERE charges.device = x''"
        " AND charges.digest = totals.digest)"
        " FROM totals WHERE device = x'' ORDER BY digest",
        (day - WEEK,),
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


def _report_lines(
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
    yield from _or_none(
        [
            line
            for sent in acknowledged_reports(tx)
            for line in (
                *_lines(sent.report, registry),
                f"    sent on: {epoch_label('1d', sent.day)}",
            )
        ]
    )


def _window_lines(
    tx: Transaction, registry: Registry | None, secret: Secret | None
) -> Iterator[str]:
    """Yield each open window; a gateway's only by their number, since nobody is to read them."""
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
            continue  # it is MessagePack of many devices, which nobody may read here
        for column in columns:
            payload = from_base64url(column["payloads"])
            yield Report(from_base64url(column["metric"]), column["epoch"], payload)


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
