"""What arrives while the demo is watched: past days, each with its own reports, then a trickle."""

from __future__ import annotations

import random
import time
from collections import Counter

import pytest

from client_sdk.core.epoch import epoch_of
from client_sdk.core.limits import MAX_CLOCK_SKEW, MAX_REPORT_AGE
from client_sdk.registry import Registry
from client_sdk.upload.transport import Answer
from collector.core.catalog import Catalog
from collector.demo.fleet import A_DAY, DEMO_REGISTRY, PAST_DAYS, backfill, run_forever
from collector.intake.validation import judge
from collector.intake.wire import JSON, decode

REGISTRY = Registry.from_file(str(DEMO_REGISTRY))


class Judging:
    """A transport that keeps what a collector of today says of each upload."""

    def __init__(self) -> None:
        self.accepted: Counter[tuple[str, int]] = Counter()
        self.refused = 0

    def send(self, body: bytes, timeout: float) -> Answer:
        verdict = judge(decode(body, JSON), Catalog([REGISTRY]), epoch_of("1d", time.time()))
        self.refused += len(verdict.rejected)
        for column in verdict.accepted:
            metric = REGISTRY.by_digest[column.cell.metric]
            self.accepted[metric.name, column.cell.epoch] += 1
        return Answer(202, None, b'{"accepted": 6, "duplicate": false, "rejected": []}')


class EndedError(Exception):
    """The demo was ended."""


class Ending:
    """Says that the demo is alive, some times."""

    def __init__(self, times: int) -> None:
        self._left = times

    def __call__(self) -> None:
        self._left -= 1
        if not self._left:
            raise EndedError


def test_every_past_day_gets_its_own_reports_and_none_is_refused() -> None:
    transport, told = Judging(), list[int]()

    backfill(REGISTRY, transport, random.Random(1), lambda: None, told.append, a_day=2)

    today = epoch_of("1d", time.time())
    days = {epoch: n for (name, epoch), n in transport.accepted.items() if name == "one_page"}
    assert list(days.values()) == [2] * PAST_DAYS
    assert list(days) == sorted(days)
    assert max(days) - today in (-1, -2)  # midnight may have passed
    assert transport.accepted["age", 0] == 2 * PAST_DAYS
    assert transport.refused == 0
    assert told == list(range(1, PAST_DAYS + 1))


def test_past_days_are_accepted_even_around_midnight() -> None:
    assert PAST_DAYS + MAX_CLOCK_SKEW <= MAX_REPORT_AGE


def test_the_devices_of_a_past_day_are_enough_for_a_number() -> None:
    assert all(metric.min_reports <= A_DAY for metric in REGISTRY)


def test_past_days_end_with_the_demo() -> None:
    transport = Judging()

    with pytest.raises(EndedError):
        backfill(REGISTRY, transport, random.Random(2), Ending(3), lambda done: None)

    assert transport.accepted["age", 0] == 3


def test_devices_go_on_one_at_a_time_with_a_pause_until_the_demo_ends() -> None:
    transport, pauses = Judging(), list[float]()

    with pytest.raises(EndedError):
        run_forever(REGISTRY, transport, random.Random(3), Ending(4), pauses.append)

    assert transport.accepted["age", 0] == len(pauses) == 4
    assert min(pauses) > 0
