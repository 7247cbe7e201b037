"""Operations: what came, what became of it, and what an operator should do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from math import ceil
from typing import Final, NamedTuple

from flask import Blueprint
from flask.typing import ResponseReturnValue
from markupsafe import Markup

from client_sdk.core.epoch import HOUR, epoch_label

from ...analytics.rows import TIME, Chart, Row
from ...core.credentials import OPERATE
from ...core.errors import StorageUnavailableError
from ...core.exclusions import Exclusion, Inclusion, read_all
from ...operations.doctor.checkup import examine
from ...operations.doctor.findings import GOOD, LEVELS, Finding, State, worst
from ...operations.telemetry.activity import DUPLICATES, FOLD_US, FOLDS, REFUSED, REJECTED
from ...operations.telemetry.flow import Flow
from ...operations.telemetry.snapshot import Snapshot
from ...rendering.charts import page_chart, pictures_of
from ...storage.diagnosis import Shard
from ...storage.values import Counters
from ..auth import scope, visible
from ..services import services
from .drawings import WHOLE_HEIGHT
from .layout import shown

UPLOADS: Final = "uploads"
_MINUTE: Final = 60  # seconds
_TITLE: Final = "Uploads of each hour"

blueprint = Blueprint("operations", __name__)


@blueprint.get("/operations")
@scope(OPERATE, page=True)
def operations() -> ResponseReturnValue:
    """Show what came, what became of it, and what an operator should do next."""
    snapshot = services().snapshot()
    findings = _findings_of(snapshot)
    totals = snapshot.totals
    now = datetime.fromtimestamp(services().clock(), UTC)
    return shown(
        "operations.html",
        snapshot=snapshot,
        of_others=len(list(visible())) < len(list(services().catalog)),
        flow=sum(snapshot.shards, Counters()) if snapshot.store_is_up else None,
        drift=sum(shard.drift for shard in snapshot.shards),  # uploads not where the counts say
        findings=sorted(findings, key=lambda finding: -LEVELS.index(finding.level)),
        level=worst(findings),
        good=GOOD,
        rejected=ranked(totals.of(REJECTED)),
        refused=ranked(totals.of(REFUSED)),
        duplicates=sum(totals.of(DUPLICATES).values()),
        fold_ms=_fold_ms(snapshot),
        exclusions=_exclusions() if snapshot.store_is_up else (),
        uploads_title=_TITLE,
        chart=_chart(snapshot.flow),
        hours=[(epoch_label("1h", each.hour), each) for each in reversed(snapshot.flow.hours)],
        lag=_lag(snapshot.flow, services().clock()),
        moment=now.isoformat(timespec="seconds"),
        moment_text=f"{now:%Y-%m-%d %H:%M:%S} UTC",
    )


def _chart(flow: Flow) -> Markup:
    """Return the chart of the uploads of each hour; of refused ones if there are any."""
    refused = [each.refused for each in flow.hours]
    lines = {"accepted": [each.accepted for each in flow.hours]}
    lines |= {"refused": refused} if any(refused) else {}
    rows = [
        _row(epoch_label("1h", each.hour), name, count, each is flow.hours[-1])
        for name, counts in lines.items()
        for each, count in zip(flow.hours, counts, strict=True)
    ]
    if not rows:
        return Markup()
    draw = partial(pictures_of, Chart.ROWS, rows, _TITLE)
    return Markup(page_chart(draw, UPLOADS, height=WHOLE_HEIGHT))  # noqa: S704  # it escapes


def _row(hour: str, name: str, count: int, is_open: bool) -> Row:
    """Return an exact count as charts take it."""
    dimensions = {TIME: hour, UPLOADS: name}
    return Row(dimensions, count, count, count, 0.0, count, 0.05, "good", UPLOADS, is_open=is_open)


def _lag(flow: Flow, now: float) -> str:
    """Return how long an upload can have waited at most, rounded up; "" if that is not known."""
    if flow.empty_at is None:
        return ""
    seconds = max(ceil(now - flow.empty_at), 1)
    if seconds <= 2 * _MINUTE:
        return f"{seconds} s"
    return f"{ceil(seconds / _MINUTE)} min" if seconds <= 2 * HOUR else f"{ceil(seconds / HOUR)} h"


def _findings_of(snapshot: Snapshot) -> list[Finding]:
    """Return what is found in *snapshot*, as ``hearsay doctor`` would judge it."""
    shared = services()
    if not snapshot.store_is_up:
        why = "uploads are answered 503 until it does; devices keep them and send again"
        step = "look whether the server runs, and at REDIS_URL: docs/operate/operate.md#store-down"
        return [Finding("fault", "store", "does not answer", why, step)]
    state = State(
        servers=snapshot.servers,
        shards=[Shard(counters, None) for counters in snapshot.shards],
        recorded_shards=shared.config.shards,
        recorded_profile=shared.config.profile,  # what init has noted; a process cannot read it
        credentials=None,
        alive=snapshot.totals.alive,
        metrics=tuple(visible()),
        granted=None,
        used={},
        archiving=(),
        stuck=0,
        now=shared.clock(),
        lost=snapshot.totals.lost,
        watched=snapshot.watched,
    )
    return examine(shared.config, state, for_page=True)


def ranked(counts: Mapping[str, int]) -> Sequence[tuple[str, int, float]]:
    """Return *counts* with their part of the greatest, the greatest first."""
    most = max(counts.values(), default=1)
    in_order = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return [(name.replace("_", " "), n, n / most) for name, n in in_order if n]


class Listed(NamedTuple):
    """An exclusion as the page shows it."""

    id: str
    source: str
    metrics: str
    days: str
    done: str  # by whom, and on which day
    because: str
    put_back: str  # "" while it is in force


def _exclusions() -> Sequence[Listed] | None:
    """Return the exclusions of metrics that the request may read, the last one first.

    None if they cannot be read.
    """
    try:
        known = read_all(services().tallies.exclusions())
    except StorageUnavailableError:
        return None
    return list(_listed(reversed(known)))


def _listed(exclusions: Iterator[Exclusion]) -> Iterator[Listed]:
    addresses = {Exclusion.address_of(metric): metric for metric in visible()}
    for each in exclusions:
        if not any(map(each.is_meant, addresses.values())):
            continue
        named = [address for address in each.metrics if address in addresses]
        yield Listed(
            each.id,
            each.source,
            ", ".join(named) or "all",
            " to ".join(dict.fromkeys((each.first, each.last))) or "asked once: no days",
            _done(each),
            each.because,
            f"{_done(each.included)}: {each.included.because}" if each.included else "",
        )


def _done(step: Exclusion | Inclusion) -> str:
    return f"{step.author}, {datetime.fromtimestamp(step.at, UTC).date()}"


def _fold_ms(snapshot: Snapshot) -> float | None:
    folds = sum(snapshot.totals.of(FOLDS).values())
    return sum(snapshot.totals.of(FOLD_US).values()) / folds / 1_000 if folds else None
