"""Look for fakes in every closed epoch, without a question: a thread of the worker.

Each look takes all reports of an epoch together, late ones too, and holds the newest epochs against
those before them.  It changes no tally and no answer; what it finds is kept for operators.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from client_sdk.core.epoch import ONCE, epoch_label, epoch_of
from client_sdk.registry.metric import Metric

from ..analytics.poisoning.checks import EpochEstimates, epoch_estimates
from ..analytics.poisoning.findings import suspicions_of
from ..analytics.poisoning.sources import Tallied, differences, source_findings
from ..analytics.verb import Slice
from ..core.cells import key_in, split_source
from ..core.errors import CollectorError, StorageFullError, StorageUnavailableError
from ..estimation.tally import Sum
from ..storage.protocols import TallyStore
from ..storage.records import SuspicionStore, WatchRecord
from ..storage.values import COUNTER_SIZE

NEWEST: Final = 7  # closed epochs whose findings are kept; after that, an epoch is history
KNOWN: Final = 30  # epochs read, the newest among them, to be compared with
LEAST_KNOWN: Final = NEWEST + 7  # also of tallies that are wide
MOST_READ: Final = 64 * 1024 * 1024  # bytes of vectors a look, as far as LEAST_KNOWN allows; and
# of what is held of keys at once: of wide metrics with many keys they are not looked at
PERIOD_S: Final = 60.0  # seconds between two rounds; most of them have nothing to do
AGAIN_S: Final = 3_600  # seconds after which the same epochs are looked at again: reports come late

_Sources: TypeAlias = Mapping[str | None, Tallied]  # of an epoch, by key

_log = logging.getLogger("hearsay.watching")


class Watch:
    """Looks at the closed epochs of *metrics*.  Any number may share a store."""

    def __init__(
        self,
        storage: TallyStore,
        suspicions: SuspicionStore,
        metrics: Iterable[Metric],
        clock: Callable[[], float],
    ) -> None:
        """Read tallies from *storage*, and keep what is found in *suspicions*."""
        self._storage, self._suspicions, self._clock = storage, suspicions, clock
        self._metrics = [metric for metric in metrics if metric.every != ONCE]
        self._failure = ""

    def run(self, stop: threading.Event) -> None:
        """Look until *stop* is set.  Never raises: folding goes on whatever is found."""
        while True:
            try:
                self.look()
                self._failure = ""
            except CollectorError as error:
                if str(error) != self._failure:
                    _log.warning("closed epochs are not looked at: %s", error)
                self._failure = str(error)
            if stop.wait(PERIOD_S):
                return

    def look(self) -> None:
        """Check each metric if an epoch has closed since its last check, or that check is old.

        Raises: StorageUnavailableError, StorageFullError.
        """
        records, now = self._suspicions.records(), self._clock()
        for metric in self._metrics:
            latest, before = epoch_of(metric.every, now) - 1, records.get(metric.digest)
            if before and before.latest == latest and 0 <= now - before.at < AGAIN_S:
                continue
            try:
                watched = self._watched(metric, latest, int(now))
            except (StorageUnavailableError, StorageFullError):
                raise  # the next metric would wait for the store just as long
            except Exception as error:  # noqa: BLE001  # logged; the other metrics are looked at
                what = type(error).__name__
                _log.error("metric=%s: cannot be looked at: %s: %s", metric.address, what, error)
                continue
            self._suspicions.put(metric.digest, watched)

    def _watched(self, metric: Metric, latest: int, now: int) -> WatchRecord:
        sentences: dict[str, list[str]] = {}
        past: list[EpochEstimates] = []
        apart: list[Mapping[str, EpochEstimates]] = []  # what sources differed by, in the past
        looked = 0
        for part, sources in self._closed(metric, latest):
            known = epoch_estimates(metric.mechanism, part.tally, part.n)
            differing = differences(metric, sources)
            if part.epochs[0] > latest - NEWEST:
                looked += 1
                texts = [each.text for each in suspicions_of(part, past, known)]
                texts += source_findings(metric, differing, apart)
                if texts:
                    sentences[epoch_label(metric.every, part.epochs[0])] = texts
            past.append(known)
            apart.append(differing)
        return WatchRecord(now, latest, looked, sentences)

    def _closed(self, metric: Metric, latest: int) -> list[tuple[Slice, _Sources]]:
        """Return the last closed epochs that have enough reports, in the order of time.

        Each with what came under which key, unless that is too much to be held at once.
        """
        width = metric.mechanism.tally_size + 1
        fitting = MOST_READ // (width * COUNTER_SIZE * self._storage.shards)
        first = max(latest + 1 - min(max(fitting, LEAST_KNOWN), KNOWN), 0)
        index = self._storage.index(metric.digest, range(first, latest + 1))
        keys = {cell: key_in(split_source(cell.segment)[0]) for cell in index.cells}
        parts = {(cell.epoch, key) for cell, key in keys.items()}
        is_apart = len(parts) * width * COUNTER_SIZE <= MOST_READ
        sums: dict[int, Sum] = {}
        apart: dict[int, dict[str | None, Sum]] = defaultdict(dict)
        for cell, vector in self._storage.vectors(index, width):
            sums.setdefault(cell.epoch, Sum(width - 1)).add([vector])
            if is_apart:
                apart[cell.epoch].setdefault(keys.get(cell), Sum(width - 1)).add([vector])
        # An epoch is marked before anything of it goes, so what is not marked by now is whole.
        first_whole = self._storage.pruned([metric.digest]).get(metric.digest, first)
        return [
            (
                Slice(metric, {}, total.n, total.tally, (epoch,)),
                {key: Tallied(part.tally, part.n) for key, part in apart[epoch].items()},
            )
            for epoch, total in sorted(sums.items())
            if epoch >= first_whole and total.n >= metric.min_reports
        ]
