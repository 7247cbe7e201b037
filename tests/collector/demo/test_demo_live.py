"""What arrives while the demo is watched: past days, as if counted then, then a trickle."""

from __future__ import annotations

import random
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from client_sdk.core.epoch import DAY, day_of, epoch_of
from client_sdk.core.limits import MAX_CLOCK_SKEW, MAX_REPORT_AGE
from client_sdk.registry import Registry
from client_sdk.upload.transport import Answer
from collector.analytics.poisoning.anomaly import CHECKS, FALSE_ALARM
from collector.analytics.poisoning.checks import EpochEstimates, more_reports
from collector.core.catalog import Catalog
from collector.core.config import SHARDS, STANDARD
from collector.core.errors import ChildError
from collector.demo.fleet import DEMO_REGISTRY, Crowd, run_forever
from collector.demo.past import PAST_DAYS, Past, backfill
from collector.intake.validation import judge
from collector.intake.wire import JSON, decode
from collector.storage.connect import open_storage
from collector.storage.redis import RedisStorage
from tests.support.sites.site import running_site
from tests.support.store.servers import needs_real
from tests.support.store.stored import tallies

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


DEVICES = 40  # of a day
DAYS = (PAST_DAYS, 2, 1)  # days ago
WRITE_KEY, GATEWAY_KEY, READ_TOKEN = (
    f"a-{n}-key-of-the-tests-0123" for n in ("write", "gate", "read")
)


@dataclass(frozen=True)
class Played:
    """A collector whose past days have been played, on the day *today*."""

    past: Past
    storage: RedisStorage
    today: int
    told: list[int]


@contextmanager
def unworked_site(folder: Path) -> Iterator[tuple[Past, RedisStorage]]:
    """A collector without a worker, and what its past would be."""
    registry = Path(str(DEMO_REGISTRY))
    with running_site(folder / "store", registry, WRITE_KEY, READ_TOKEN, GATEWAY_KEY) as site:
        site.kill_worker()
        past = Past(site.url, GATEWAY_KEY, str(registry), DEVICES, seed=1, now=time.time())
        yield past, open_storage(site.redis_url, "hearsay", shards=SHARDS, profile=STANDARD)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with unworked_site(tmp_path_factory.mktemp("past")) as (past, storage):
        told: list[int] = []
        backfill(past, storage, lambda: None, told.append, DAYS)
        yield Played(past, storage, day_of(past.now), told)


@pytest.mark.real
@needs_real
def test_past_days_are_counted_as_if_on_their_day(played: Played) -> None:
    metric = REGISTRY.metric("one_page")
    visitors = {played.today - ago: played.past.visitors(ago) for ago in DAYS}

    vectors = tallies(played.storage, metric.digest, range(played.today - PAST_DAYS, played.today))

    reports: Counter[int] = Counter()
    for cell, packed in vectors.items():
        reports[cell.epoch] += sum(struct.unpack_from(">q", vector)[0] for vector in packed)
    assert {cell.lateness for cell in vectors} == {0}
    assert reports == visitors


@pytest.mark.real
@needs_real
def test_the_days_that_are_done_are_told_up_to_the_last(played: Played) -> None:
    assert played.told == sorted(played.told)
    assert played.told[-1] == len(DAYS)


@pytest.mark.real
@needs_real
def test_a_past_that_the_collector_refuses_is_a_failure(
    played: Played, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ChildError, match="could not be reported"):
        backfill(replace(played.past, gateway_key="of-nobody"), played.storage, days=(1,))

    assert "were not acknowledged" in capfd.readouterr().err


@pytest.mark.real
@needs_real
def test_past_days_end_with_the_demo(played: Played) -> None:
    with pytest.raises(EndedError):
        backfill(played.past, played.storage, Ending(1), days=DAYS)


def test_a_past_day_has_somewhat_more_visitors_than_today_so_far_and_enough_for_a_number() -> None:
    past = Past("http://127.0.0.1:1", GATEWAY_KEY, str(DEMO_REGISTRY), 1_000, seed=5, now=DAY)

    visitors = [past.visitors(ago) for ago in range(1, PAST_DAYS + 1)]

    assert len(set(visitors)) > 1
    assert all(1_120 <= number <= 1_180 for number in visitors)
    assert min(visitors) < past.usual < max(visitors)
    assert all(metric.min_reports <= 1_000 for metric in REGISTRY)


@pytest.mark.parametrize("devices", [1_000, 3_000, 50_000])
def test_a_day_of_the_usual_number_is_not_suspected_and_an_endless_one_is(devices: int) -> None:
    past = Past("http://127.0.0.1:1", GATEWAY_KEY, str(DEMO_REGISTRY), devices, seed=5, now=DAY)
    days = [
        EpochEstimates(np.zeros(0), np.zeros(0), past.visitors(ago))
        for ago in range(1, PAST_DAYS + 1)
    ]

    usual = more_reports(past.usual, days, FALSE_ALARM / CHECKS)
    endless = more_reports(2 * past.usual, days, FALSE_ALARM / CHECKS)

    assert usual is not None
    assert endless is not None
    assert usual.statistic <= usual.limit
    assert endless.statistic > endless.limit


def test_as_many_past_days_are_played_as_are_accepted_even_around_midnight() -> None:
    assert PAST_DAYS + MAX_CLOCK_SKEW == MAX_REPORT_AGE


EMPTY = Crowd(usual=1_000, day=day_of(time.time()), reported=0)


def test_no_more_devices_report_on_a_day_than_are_usual() -> None:
    transport, now = Judging(), [time.time() // DAY * DAY]
    day = day_of(now[0])
    crowd = Crowd(usual=5, day=day, reported=3)

    def pause(seconds: float) -> None:
        now[0] += DAY / 8

    with pytest.raises(EndedError):
        run_forever(REGISTRY, transport, random.Random(3), Ending(16), crowd, pause, lambda: now[0])

    assert [transport.accepted["one_page", day + n] for n in (0, 1)] == [2, 5]


def test_devices_go_on_one_at_a_time_with_a_pause_until_the_demo_ends() -> None:
    transport, pauses = Judging(), list[float]()

    with pytest.raises(EndedError):
        run_forever(REGISTRY, transport, random.Random(3), Ending(4), EMPTY, pauses.append)

    assert sum(n for (name, _), n in transport.accepted.items() if name == "one_page") == 4
    assert len(pauses) == 4
    assert min(pauses) > 0
