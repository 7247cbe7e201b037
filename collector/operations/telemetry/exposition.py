"""A snapshot in the words of Prometheus: a table with one name, one help text, one unit a row.

The page of operators lists the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from client_sdk import __version__

from ...core.text_tables import plain_text
from ...storage.diagnosis import Server
from ...storage.records import FIRING, UNABLE
from ...storage.values import Counters
from .activity import (
    CLOCK_WAITS,
    DUPLICATES,
    FOLD_BOUNDS,
    FOLD_US,
    FOLDS,
    REFUSED,
    REJECTED,
)
from .snapshot import Snapshot

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_US: Final = 1_000_000  # microseconds of a second
_TODAY: Final = "since 0:00 UTC"

Values: TypeAlias = Mapping[str, float | None]  # by label; what is None is left out


@dataclass(frozen=True)
class Family:
    """A row of the table: a gauge, or a counter if its name ends in _total."""

    name: str
    help: str  # Markdown, with links as they are in docs/operate
    read: Callable[[Snapshot], Values]
    label: str = ""
    always: bool = False  # also while the store is away

    def metric(self, snapshot: Snapshot) -> Metric:
        """Return what *snapshot* says of it."""
        kind = CounterMetricFamily if self.name.endswith("_total") else GaugeMetricFamily
        labels = [self.label] if self.label else []
        family = kind(self.name, plain_text(self.help), labels=labels)
        for key, value in sorted(self.read(snapshot).items()):
            if value is not None:
                family.add_metric([key] if self.label else [], value)
        return family


@dataclass(frozen=True)
class _Histogram(Family):
    """The times of folds."""

    def metric(self, snapshot: Snapshot) -> Metric:
        """Return the histogram of *snapshot*."""
        buckets = [(bound, value or 0.0) for bound, value in self.read(snapshot).items()]
        seconds = sum(snapshot.totals.of(FOLD_US).values()) / _US
        return HistogramMetricFamily(self.name, self.help, buckets=buckets, sum_value=seconds)


def _number(
    name: str, help: str, read: Callable[[Snapshot], float | None], *, always: bool = False
) -> Family:
    """Return the row of one number without a label."""
    return Family(name, help, lambda snapshot: {"": read(snapshot)}, always=always)


def _count(name: str, help: str, read: Callable[[Counters], float]) -> Family:
    """Return the row of a number of all shards together."""
    return _number(name, help, lambda snapshot: read(sum(snapshot.shards, Counters())))


def _today(name: str, help: str, count: str, label: str = "") -> Family:
    """Return the row of what processes counted today."""

    def read(snapshot: Snapshot) -> Values:
        values = snapshot.totals.of(count)
        return values if label else {"": sum(values.values())}

    return Family(name, f"{help}, {_TODAY}", read, label)


def _server(name: str, help: str, read: Callable[[Server, Snapshot], float | None]) -> Family:
    """Return the row of a number of each server."""

    def each(snapshot: Snapshot) -> Values:
        return {str(i): read(server, snapshot) for i, server in enumerate(snapshot.servers)}

    return Family(name, help, each, "server")


def _watches(name: str, help: str, state: str) -> Family:
    """Return the row of whether each watch is in *state*."""

    def read(snapshot: Snapshot) -> Values:
        cursors = snapshot.watches.ledger.cursors
        return {watch: float(cursor.state == state) for watch, cursor in cursors.items()}

    return Family(name, help, read, "watch")


def _looked(snapshot: Snapshot) -> float | None:
    ledger = snapshot.watches.ledger
    return ledger.looked if ledger.holder else None


def _folds(snapshot: Snapshot) -> Values:
    folds = snapshot.totals.of(FOLDS)
    steps = [folds.get(str(index), 0) for index in range(len(FOLD_BOUNDS) + 1)]
    return dict(zip([*map(str, FOLD_BOUNDS), "+Inf"], accumulate(steps), strict=True))


FAMILIES: Final = (
    _count(
        "hearsay_accepted_uploads_total",
        "uploads acknowledged",
        lambda total: total.accepted.uploads,
    ),
    _count(
        "hearsay_accepted_reports_total",
        "reports acknowledged",
        lambda total: total.accepted.reports,
    ),
    _count(
        "hearsay_folded_uploads_total",
        "uploads counted in tallies",
        lambda total: total.folded.uploads,
    ),
    _count(
        "hearsay_folded_reports_total",
        "reports counted in tallies",
        lambda total: total.folded.reports,
    ),
    _count(
        "hearsay_folded_late_reports_total",
        "of these, counted a day or more after their epoch",
        lambda total: total.late_reports,
    ),
    _count(
        "hearsay_late_share",
        "the same as a share, of all reports ever folded",
        lambda total: total.late_share,
    ),
    _count(
        "hearsay_dropped_uploads_total",
        "uploads deleted from the quarantine by an operator",
        lambda total: total.dropped.uploads,
    ),
    _count("hearsay_dropped_reports_total", "reports in them", lambda total: total.dropped.reports),
    _count(
        "hearsay_pruned_reports_total",
        "of the folded ones, deleted with their epoch by `hearsay prune`, or folded too late for"
        " it",
        lambda total: total.pruned_reports,
    ),
    _count(
        "hearsay_lost_reports_total",
        "of the folded ones, in tallies that are gone, as `hearsay fsck --accept-missing` counted"
        " them",
        lambda total: total.lost_reports,
    ),
    _count(
        "hearsay_quarantined_uploads",
        "uploads set aside now",
        lambda total: total.quarantined.uploads,
    ),
    _count(
        "hearsay_quarantined_reports", "reports in them", lambda total: total.quarantined.reports
    ),
    _count(
        "hearsay_pending_uploads",
        "accepted, and neither folded nor set aside nor dropped, by the counts",
        lambda total: total.pending.uploads,
    ),
    _count("hearsay_pending_reports", "reports in them", lambda total: total.pending.reports),
    _count(
        "hearsay_backlog_uploads",
        "entries in the streams as they are: the same number, counted another way",
        lambda total: total.stream,
    ),
    _number(
        "hearsay_queue_empty_timestamp_seconds",
        "when a look, one a second, last found no upload waiting: none waits for longer; absent if"
        " none did since yesterday",
        lambda snapshot: snapshot.flow.empty_at,
    ),
    _number(
        "hearsay_conservation_drift_uploads",
        "uploads missing from the accounts, by which *accepted = folded + pending + quarantined +"
        " dropped* fails; should be 0",
        lambda snapshot: sum(shard.drift for shard in snapshot.shards),
    ),
    _today(
        "hearsay_rejected_reports_total",
        "reports not accepted, by reason: see [commands.md](commands.md#answers-of-the-collector)",
        REJECTED,
        "reason",
    ),
    _today(
        "hearsay_refused_requests_total",
        "requests answered with a problem document",
        REFUSED,
        "problem",
    ),
    _today(
        "hearsay_duplicate_uploads_total",
        "retries of uploads that were stored already",
        DUPLICATES,
    ),
    _today(
        "hearsay_clock_waits_total",
        "worker rounds skipped because its clock and the store's disagree",
        CLOCK_WAITS,
    ),
    _Histogram(
        "hearsay_fold_seconds",
        f"from claim to fold of one batch, a histogram, {_TODAY}",
        _folds,
        "le",
    ),
    Family(
        "hearsay_processes_alive",
        "processes that gave a sign of life within a minute: `web`, `worker`",
        lambda snapshot: snapshot.totals.alive,
        "role",
    ),
    _number(
        "hearsay_store_up",
        "1 if the store answers; without it most others are absent, never 0",
        lambda snapshot: snapshot.store_is_up,
        always=True,
    ),
    Family(
        "hearsay_shard_up",
        "1 if the process that answers takes uploads of the shard, else 0;"
        " [one server of a cluster is away](#shard-down)",
        lambda snapshot: {str(shard): not refused for shard, refused in snapshot.refused.items()},
        "shard",
        always=True,
    ),
    _number(
        "hearsay_unarchived_folds",
        "folds that wait to be written to the [archive](archive.md); absent if the store's user may"
        " not ask",
        lambda snapshot: snapshot.unarchived,
    ),
    Family(
        "hearsay_new_tally_bytes",
        "bytes of [new tallies](security.md#hostile-input) that uploads under a write key have"
        f" begun, {_TODAY}",
        lambda snapshot: snapshot.begun,
        "key",
    ),
    _watches(
        "hearsay_watch_firing",
        "1 if the last number of a [watch](watch.md) is an alarm, else 0",
        FIRING,
    ),
    _watches("hearsay_watch_unable", "1 if it could not be computed, else 0", UNABLE),
    _number(
        "hearsay_watch_waiting_messages",
        "messages of watches that no receiver has taken yet",
        lambda snapshot: len(snapshot.watches.ledger.outbox),
    ),
    _number(
        "hearsay_watch_given_up_messages_total",
        "messages of watches that no receiver took for a week",
        lambda snapshot: snapshot.watches.ledger.given_up,
    ),
    _number(
        "hearsay_watch_looked_timestamp_seconds",
        "when watches were last looked at; absent where no process goes on looking, as with"
        " `--once`",
        _looked,
    ),
    Family(
        "hearsay_suspicious_epochs",
        "of the last seven closed epochs, those with [checks](poisoning.md#checks-of-an-epoch) that"
        " do not look like honest reports; absent until a worker has looked",
        lambda snapshot: {name: len(watch.sentences) for name, watch in snapshot.watched.items()},
        "metric",
    ),
    _number(
        "hearsay_store_lost_uploads",
        f"acknowledged uploads that the store [no longer holds](#went-back), {_TODAY}; at least so"
        " many",
        lambda snapshot: snapshot.totals.lost,
    ),
    _number(
        "hearsay_store_replaced",
        "1 if the store was emptied, or is another than when the web process that answers began",
        lambda snapshot: snapshot.is_replaced,
    ),
    _server("hearsay_store_memory_bytes", "memory in use", lambda server, _: server.memory),
    _server(
        "hearsay_store_memory_limit_bytes",
        "`maxmemory`; 0 for none",
        lambda server, _: server.memory_limit,
    ),
    _server(
        "hearsay_store_log_sound",
        "1 if the append-only file could last be written and rewritten, and the settings, as far as"
        " the process may read them, fit its profile",
        lambda server, snapshot: server.keeps_what_it_takes(snapshot.profile),
    ),
    _server(
        "hearsay_store_clock_ahead_seconds",
        "its clock against the one of the process that answers",
        lambda server, _: server.ahead,
    ),
    _server(
        "hearsay_store_library_version",
        "version of the function library",
        lambda server, _: server.library,
    ),
    _server(
        "hearsay_store_replicas", "replicas that are connected", lambda server, _: server.replicas
    ),
    _number(
        "hearsay_expired_metrics",
        "metrics of the registry that devices no longer record",
        lambda snapshot: snapshot.expired_metrics,
        always=True,
    ),
    _number(
        "hearsay_next_metric_expiry_timestamp_seconds",
        "when the next metric expires",
        lambda snapshot: snapshot.next_metric_expiry,
        always=True,
    ),
    _number(
        "hearsay_next_token_expiry_timestamp_seconds",
        "when the next key or token of the store expires",
        lambda snapshot: snapshot.next_token_expiry,
        always=True,
    ),
    Family(
        "hearsay_build_info",
        "version of the process that answers",
        lambda _: {__version__: 1},
        "version",
        always=True,
    ),
    Family(
        "hearsay_profile_info",
        "profile by which the process that answers acknowledges",
        lambda snapshot: {snapshot.profile: 1},
        "profile",
        always=True,
    ),
)


def expose(snapshot: Snapshot) -> bytes:
    """Return *snapshot* in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Once(list(_metrics(snapshot))))
    return generate_latest(registry)


class _Once(Collector):
    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Sequence[Metric]:
        return self._metrics


def _metrics(snapshot: Snapshot) -> Iterator[Metric]:
    """Yield each row of *snapshot*, and the client library's own families."""
    for family in FAMILIES:
        if family.always or snapshot.store_is_up:
            yield family.metric(snapshot)
    for own in ProcessCollector(registry=None).collect():
        # the label tells apart which process answers a scrape
        labels = {"process": snapshot.process}
        own.samples = [sample._replace(labels=labels) for sample in own.samples]
        yield own
