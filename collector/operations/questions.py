"""Who asked for what: counts of a UTC day by person, verb and metric, and nothing else.

Off unless ``HEARSAY_AUDIT=1``.  No time within the day, no filter, no option and no answer is kept;
it is about those who read, and devices have no part in it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from ..core.errors import CollectorError
from ..intake.day_counts import EXCHANGE_S, DayCounts
from ..storage.records import QUESTIONS_ASKED, CredentialStore

MOST_ROWS: Final = 5_000  # of a process and day: some 1 MB; what is beyond is counted in one
MORE: Final = "(more)"  # verb and metric of that one

_log = logging.getLogger("hearsay.audit")


class QuestionRow(NamedTuple):
    """How often a person asked a verb of a metric on an epoch day."""

    day: int
    who: str
    verb: str
    metric: str
    times: int


class Questions:
    """Counts the questions of each person in one process.  Safe to share between threads."""

    def __init__(
        self,
        store: CredentialStore,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        """Exchange counts through *store*.  Args: as those of ``Shares``."""
        self._counts = DayCounts(partial(store.share, QUESTIONS_ASKED), clock)
        self._monotonic, self._exchanged_at = monotonic, float("-inf")
        self._day, self._rows = 0, set[bytes]()
        self._is_away = False

    def count(self, who: str, verb: str, metrics: Sequence[str]) -> None:
        """Count that *who* asked *verb* of *metrics*, once of each."""
        if self._day != self._counts.day:
            self._day, self._rows = self._counts.day, set()
        for metric in metrics:
            key = _key(who, verb, metric)
            if key not in self._rows and len(self._rows) >= MOST_ROWS:
                key = _key(who, MORE, MORE)
            self._rows.add(key)
            self._counts.add(key)

    def exchange(self) -> None:
        """Write what was counted.  Never raises; called every second."""
        now = self._monotonic()
        if now - self._exchanged_at < EXCHANGE_S:
            return
        self._exchanged_at = now
        try:
            self._counts.exchange()
            self._is_away = False
        except CollectorError as error:
            if not self._is_away:  # logged when it begins, not by each try
                _log.warning("questions are not counted: %s", error)
            self._is_away = True


def question_rows(store: CredentialStore, days: Sequence[int]) -> Iterator[QuestionRow]:
    """Yield the rows of *days*, the most frequent of each day first."""
    for day in days:
        rows = []
        for key, times in store.share(QUESTIONS_ASKED, day).items():
            who, verb, metric = json.loads(key)
            rows.append(QuestionRow(day, who, verb, metric, times))
        yield from sorted(rows, key=lambda row: (-row.times, row))


def _key(who: str, verb: str, metric: str) -> bytes:
    return json.dumps([who, verb, metric], ensure_ascii=False).encode()
