"""A snapshot in the words of Prometheus: one name, one help text, one unit each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Final

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

from ...storage.diagnosis import Server
from ...storage.records import FIRING, UNABLE, WatchState
from ...storage.values import Counters
from .activity import (
    CLOCK_WAITS,
    DUPLICATES,
    FOLD_BOUNDS,
    FOLD_US,
    FOLDS,
    REFUSED,
    REJECTED,
    Totals,
)
from .snapshot import Snapshot

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_US: Final = 1_000_000  # microseconds of a second


def expose(snapshot: Snapshot) -> bytes:
    """Return *snapshot* in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Once(list(families(snapshot))))
    return generate_latest(registry)


class _Once(Collector):
    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Sequence[Metric]:
        return self._metrics


def families(snapshot: Snapshot) -> Iterator[Metric]:
    """Yield every family that *snapshot* has something to say on."""
    yield _gauge("hearsay_store_up", "1 if the store answers, else 0.", snapshot.store_is_up)
    yield _labelled("hearsay_build_info", "Version of this process.", "version", {__version__: 1})
    text = "1 if the process that answers takes uploads of the shard, else 0."
    ups = {str(shard): float(not refused) for shard, refused in snapshot.refused.items()}
    yield _labelled("hearsay_shard_up", text, "shard", ups)
    text = "Profile by which this process acknowledges."
    yield _labelled("hearsay_profile_info", text, "profile", {snapshot.profile: 1})
    yield from _of_registry(snapshot)
    yield from _of_process(snapshot.process)
    if snapshot.store_is_up:
        text = "1 if it was emptied, or is another than when the process that answers began."
        yield _gauge("hearsay_store_replaced", text, snapshot.is_replaced)
        yield from _of_counts(snapshot)
        yield from _of_activity(snapshot.totals)
        yield from _of_servers(snapshot)
        text = "Closed epochs, of the last few, in which checks found what does not look honest."
        name = "hearsay_suspicious_epochs"
        suspicious = {metric: len(watch.sentences) for metric, watch in snapshot.watched.items()}
        yield _labelled(name, text, "metric", suspicious)
        yield from _of_watches(snapshot.watches)
        text = "Bytes of new tallies that uploads under a write key have begun, since 0:00 UTC."
        yield _labelled("hearsay_new_tally_bytes", text, "key", snapshot.begun)
        text = "Folds that wait to be written to the archive."
        yield _gauge("hearsay_unarchived_folds", text, snapshot.unarchived)


def _of_counts(snapshot: Snapshot) -> Iterator[Metric]:
    total = sum(snapshot.shards, Counters())
    for state, what in (
        ("accepted", "acknowledged"),
        ("folded", "counted in tallies"),
        ("dropped", "deleted from the quarantine by an operator"),
    ):
        count = getattr(total, state)
        yield _counter(f"hearsay_{state}_uploads", f"Uploads {what}.", count.uploads)
        yield _counter(f"hearsay_{state}_reports", f"Reports {what}.", count.reports)
    for state, what in (("pending", "waiting to be folded"), ("quarantined", "set aside now")):
        count = getattr(total, state)
        yield _gauge(f"hearsay_{state}_uploads", f"Uploads {what}, by the counts.", count.uploads)
        yield _gauge(f"hearsay_{state}_reports", f"Reports {what}, by the counts.", count.reports)
    text = "Reports counted after class 0 ended."
    yield _counter("hearsay_folded_late_reports", text, total.late_reports)
    text = "Share of all folded reports that were late."
    yield _gauge("hearsay_late_share", text, total.late_share)
    text = "Reports whose epoch was deleted by hearsay prune, or that came too late for it."
    yield _counter("hearsay_pruned_reports", text, total.pruned_reports)
    text = "Reports of tallies that are gone, as hearsay fsck --accept-missing counted them."
    yield _counter("hearsay_lost_reports", text, total.lost_reports)
    yield _gauge("hearsay_backlog_uploads", "Entries in the streams, as they are.", total.stream)
    drift = sum(shard.drift for shard in snapshot.shards)
    text = "Uploads by which accepted = folded + pending + quarantined + dropped fails; 0."
    yield _gauge("hearsay_conservation_drift_uploads", text, drift)


def _of_activity(totals: Totals) -> Iterator[Metric]:
    rejected, refused = totals.of(REJECTED), totals.of(REFUSED)
    name, text = "hearsay_rejected_reports", "Reports not accepted, by reason, since 0:00 UTC."
    yield _labelled(name, text, "reason", rejected, CounterMetricFamily)
    name, text = "hearsay_refused_requests", "Requests not answered as asked, since 0:00 UTC."
    yield _labelled(name, text, "problem", refused, CounterMetricFamily)
    duplicates = sum(totals.of(DUPLICATES).values())
    text = "Uploads known already, since 0:00 UTC."
    yield _counter("hearsay_duplicate_uploads", text, duplicates)
    waits = sum(totals.of(CLOCK_WAITS).values())
    text = "Rounds in which a worker folded nothing: clocks do not agree; since 0:00 UTC."
    yield _counter("hearsay_clock_waits", text, waits)
    text = "Uploads that the store had counted and no longer holds, since 0:00 UTC: it went back."
    yield _gauge("hearsay_store_lost_uploads", text, totals.lost)
    yield _folds(totals)
    text = "Processes that gave a sign of life within a minute."
    yield _labelled("hearsay_processes_alive", text, "role", totals.alive)


def _of_watches(state: WatchState) -> Iterator[Metric]:
    """Yield what watches say; nothing before one has been evaluated."""
    cursors = state.ledger.cursors
    for word, name, text in (
        (FIRING, "hearsay_watch_firing", "1 if the last number of a watch is an alarm, else 0."),
        (UNABLE, "hearsay_watch_unable", "1 if a watch could not be computed, else 0."),
    ):
        says = {watch: float(cursor.state == word) for watch, cursor in cursors.items()}
        yield _labelled(name, text, "watch", says)
    text = "Messages of watches that no receiver has taken yet."
    yield _gauge("hearsay_watch_waiting_messages", text, len(state.ledger.outbox))
    text = "Messages of watches that nobody took for a week."
    yield _counter("hearsay_watch_given_up_messages", text, state.ledger.given_up)
    text = "When watches were last looked at; absent where no process goes on looking."
    looked = state.ledger.looked if state.ledger.holder else None
    yield _gauge("hearsay_watch_looked_timestamp_seconds", text, looked)


def _folds(totals: Totals) -> Metric:
    folds = totals.of(FOLDS)
    steps = [folds.get(str(index), 0) for index in range(len(FOLD_BOUNDS) + 1)]
    bounds = [*map(str, FOLD_BOUNDS), "+Inf"]
    buckets = list(zip(bounds, map(float, accumulate(steps)), strict=True))
    seconds = sum(totals.of(FOLD_US).values()) / _US
    text = "From claim to fold of one batch, since 0:00 UTC."
    return HistogramMetricFamily("hearsay_fold_seconds", text, buckets=buckets, sum_value=seconds)


def _of_servers(snapshot: Snapshot) -> Iterator[Metric]:
    def of(name: str, text: str, tell: Callable[[Server], float | None]) -> Metric:
        values = {str(index): tell(server) for index, server in enumerate(snapshot.servers)}
        known = {index: value for index, value in values.items() if value is not None}
        return _labelled(f"hearsay_store_{name}", text, "server", known)

    yield of("memory_bytes", "Memory in use.", attrgetter("memory"))
    yield of("memory_limit_bytes", "Memory limit; 0 for none.", attrgetter("memory_limit"))
    text = "1 if settings and append-only file keep what the profile promises, else 0."
    yield of("log_sound", text, lambda server: server.keeps_what_it_takes(snapshot.profile))
    text = "Seconds that the server's clock is ahead of this process's."
    yield of("clock_ahead_seconds", text, attrgetter("ahead"))
    yield of("library_version", "Version of the function library.", attrgetter("library"))
    yield of("replicas", "Replicas that are connected.", attrgetter("replicas"))


def _of_registry(snapshot: Snapshot) -> Iterator[Metric]:
    text = "Metrics of the registry that devices no longer record."
    yield _gauge("hearsay_expired_metrics", text, snapshot.expired_metrics)
    text = "When the next metric expires."
    yield _gauge("hearsay_next_metric_expiry_timestamp_seconds", text, snapshot.next_metric_expiry)
    text = "When the next key or token of the store expires."
    yield _gauge("hearsay_next_token_expiry_timestamp_seconds", text, snapshot.next_token_expiry)


def _of_process(process: str) -> Iterator[Metric]:
    """Yield the client library's own families; the label tells apart who answers a scrape."""
    for family in ProcessCollector(registry=None).collect():
        family.samples = [sample._replace(labels={"process": process}) for sample in family.samples]
        yield family


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)


def _gauge(name: str, text: str, value: float | None) -> Metric:
    """Return a gauge, without a sample if there is no value."""
    return GaugeMetricFamily(name, text, value=value)


def _labelled(
    name: str,
    text: str,
    label: str,
    values: Mapping[str, float],
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily] = GaugeMetricFamily,
) -> Metric:
    """Return a family with one sample for each value of *label*."""
    family = kind(name, text, labels=[label])
    for key, value in sorted(values.items()):
        family.add_metric([key], value)
    return family
