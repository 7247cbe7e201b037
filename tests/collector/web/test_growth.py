"""A public key begins so many tallies a day; what it adds to those that are there costs nothing."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

import pytest
from flask import Flask

from client_sdk.core.epoch import day_of
from client_sdk.mechanisms.base import Mechanism
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from client_sdk.wire.reports import Column
from collector.core.cells import ATTESTED, FACTS, RELAYED, UNKNOWN, Cell, Source, segment_text
from collector.core.config import Config
from collector.core.credentials import WRITE, Credential, digest_of
from collector.core.entry import AcceptedColumn
from collector.core.errors import (
    CollectorError,
    ManyTalliesError,
    RefusedByStoreError,
    StorageUnavailableError,
)
from collector.estimation.tally import tally_entries
from collector.intake.day_counts import EXCHANGE_S
from collector.intake.tally_quota import BEGUN_CEILING, BEGUN_SHARE, Beginning, size_of
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.records import BYTES_BEGUN
from collector.storage.redis import RedisStorage
from collector.storage.values import TallyPlace
from collector.web import create_app
from collector.web.services import services_of
from collector.worker.worker import Worker
from tests.support.crowds.uploads import (
    COMMON,
    GATEWAY_KEY,
    WRITE_KEY,
    as_json,
    as_msgpack,
    bearer,
    upload,
)
from tests.support.device.clock import FakeClock
from tests.support.sites.posting import post, problem_of
from tests.support.sites.rsgi import Request, answers
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage
from tests.support.store.servers import EVERY_STORE, REAL
from tests.support.store.stored import NOBODY_LEFT_IT

LIMIT: Final = 1_000_000  # bytes: the least that can be set
QUIET: Final = "quiet-key-for-tests-0123456789"
PLATFORMS: Final = ("car", "linux", "mac", "phone", "tv", "watch")
REGISTRY: Final = """
schema = 1
app = "test"

[segments]
platform = ["car", "linux", "mac", "phone", "tv", "watch"]

[metrics.item]
title = "Item"
question = "Which item comes first?"
type = "category"
values = {values}
mechanism = "{mechanism}"
segments = ["platform"]
every = "1d"
{common}
"""


def text_of(mechanism: str, items: int = 1_600) -> str:
    values = [f"item-{number}" for number in range(items)]
    common = COMMON.format(epsilon="2.0", min_reports=100, expires="2052-12-31")
    return REGISTRY.format(values=values, mechanism=mechanism, common=common)


METRIC: Final[Metric] = Registry.from_text(text_of("olh")).metric("item")
MECHANISM: Final[Mechanism[object]] = METRIC.mechanism
MOST: Final = LIMIT // size_of(METRIC, 1)  # tallies
PAYLOAD: Final = bytes(MECHANISM.payload_size)
TODAY: Final = day_of(time.time())
# Of a device that is as late as may be: each is another tally, on one shard or another.
PLACES: Final = [(day, name) for name in PLATFORMS for day in range(TODAY - 13, TODAY + 1)]


class Site:
    """Web processes of one store, the newest of which is asked."""

    def __init__(self, config: Config, storage: RedisStorage | MemoryStorage) -> None:
        self.config, self.storage = config, storage
        self.credentials, self.ran = MemoryCredentials(), FakeClock(0)
        self.credentials.add(QUIET, Credential(WRITE))
        self.restart()

    def restart(self) -> None:
        self.app: Flask = create_app(
            self.config, self.storage, time.time, self.credentials, self.ran
        )
        self.exchange()

    def exchange(self) -> None:
        self.ran.advance(seconds=EXCHANGE_S)
        services_of(self.app).tally_quota.exchange()
        services_of(self.app).id_quota.exchange()

    def send(self, places: Sequence[tuple[int, str]], key: str = WRITE_KEY) -> list[int]:
        """Return the answers to new uploads of one report each."""
        client = self.app.test_client()
        found = []
        for day, platform in places:
            self.ran.advance(seconds=1)
            found.append(post(client, body_of(day, platform), key=key).status_code)
        return found

    def fold(self) -> None:
        worker = Worker(self.storage, {METRIC.digest: MECHANISM}, {METRIC.digest: METRIC.every})
        while worker.step():
            pass

    @property
    def begun(self) -> int:
        """Bytes that the flooding key has begun, as processes have told each other."""
        self.exchange()
        sums = self.credentials.share(BYTES_BEGUN, TODAY)
        return sums.get(digest_of(WRITE_KEY), 0)


def beginning(cell: Cell) -> Beginning:
    """Return an upload of one report of *cell*, on the first shard."""
    return Beginning(digest_of(WRITE_KEY), bytes(16), [AcceptedColumn(cell, PAYLOAD)])


def body_of(day: int, platform: str) -> bytes:
    # The first bytes of an id choose the shard: one of two, so that each place has two tallies.
    upload_id = bytes([*bytes(7), secrets.randbelow(2)]) + secrets.token_bytes(8)
    columns = [Column(METRIC.digest, day, PAYLOAD)]
    segment = {"platform": platform}
    return as_json(upload(columns, upload_id=upload_id, sealed=TODAY, segment=segment))


@pytest.fixture
def config(config: Config) -> Config:
    with open(config.registry_paths[0], "w", encoding="utf-8") as file:
        file.write(text_of("olh"))
    return replace(config, new_tallies_mb=1)


def tallies(storage: RedisStorage | MemoryStorage) -> int:
    """Return how many tallies there are, of all shards."""
    return storage.index(METRIC.digest, range(TODAY - 14, TODAY + 2)).tallies


def test_tallies_of_every_source_count_to_the_key_that_begins_them(
    config: Config, storage: MemoryStorage
) -> None:
    """Whoever makes uploads come in every way fills no more of the store by that."""
    growth = services_of(Site(config, storage).app).tally_quota
    sources = UNKNOWN, frozenset({RELAYED}), frozenset({ATTESTED}), frozenset(FACTS)
    cells = [
        Cell(METRIC.digest, day, segment_text(METRIC, {"platform": platform}, source))
        for day, platform in PLACES[: MOST // len(sources) + 1]
        for source in sources
    ]

    *begun, more = growth.refusals([beginning(cell) for cell in cells[: MOST + 1]], 0)

    assert len(set(cells)) > MOST
    assert begun == [None] * MOST
    assert isinstance(more, ManyTalliesError)


@EVERY_STORE
def test_a_flood_of_new_tallies_is_refused_and_the_store_grows_no_further(
    config: Config, store: RedisStorage | MemoryStorage
) -> None:
    site = Site(config, store)

    flood = site.send(PLACES * 2)
    site.fold()

    assert set(flood) == {202, 429}
    assert tallies(store) == MOST
    assert site.begun == MOST * size_of(METRIC, 1) <= LIMIT


def test_the_same_flood_grows_beyond_it_where_there_is_no_limit(
    config: Config, storage: MemoryStorage
) -> None:
    """The control: without the limit the assertions above fail."""
    storage.clock = int(time.time())
    site = Site(replace(config, new_tallies_mb=0), storage)

    flood = site.send(PLACES)
    site.fold()

    assert set(flood) == {202}
    assert tallies(storage) == len(PLACES) > MOST


def test_another_key_is_served_and_so_is_a_gateway(
    config: Config, store: RedisStorage | MemoryStorage
) -> None:
    site = Site(config, store)
    refused = [place for place in PLACES * 2 if site.send([place]) == [429]]
    assert refused

    assert site.send(refused[:1], QUIET) == [202]
    assert site.send(refused[1:3], GATEWAY_KEY) == [202] * 2


@EVERY_STORE
def test_a_late_report_of_a_tally_that_is_there_is_taken_while_its_key_is_refused(
    config: Config, store: RedisStorage | MemoryStorage
) -> None:
    """Also by a process that has just been started, and has to ask the store for it."""
    site = Site(config, store)
    full = (config.new_tallies_mb or 0) * LIMIT
    site.send(PLACES[:2] * 40)
    site.fold()
    before = site.begun
    site.credentials.share(BYTES_BEGUN, TODAY, "elsewhere", {digest_of(WRITE_KEY): full - before})
    site.restart()

    assert site.send(PLACES[:2] * 4) == [202] * 8
    assert site.send(PLACES[2:4]) == [429] * 2
    assert site.begun == full


def test_a_restart_costs_nothing_of_the_quota(
    config: Config, store: RedisStorage | MemoryStorage
) -> None:
    site = Site(config, store)
    assert set(site.send(PLACES[:5] * 40)) == {202}
    site.fold()
    before = site.begun

    site.restart()

    assert set(site.send(PLACES[:5] * 4)) == {202}
    assert before == site.begun == 10 * size_of(METRIC, 1)


def test_a_key_that_occupies_half_of_the_memory_begins_no_more_whatever_the_day(
    config: Config, storage: MemoryStorage
) -> None:
    """Of all the days that are remembered, so that no key fills the store in a week of nights."""
    storage.memory_limit = 100 * LIMIT
    site = Site(replace(config, new_tallies_mb=None), storage)
    most = round(BEGUN_SHARE * storage.memory_limit)
    past, key = day_of(time.time()) - 20, digest_of(WRITE_KEY)
    half = {key: round(BEGUN_CEILING * storage.memory_limit) - most}
    site.credentials.share(BYTES_BEGUN, past, "elsewhere", half)
    site.restart()
    assert site.send(PLACES[:1]) == [202]
    site.credentials.share(BYTES_BEGUN, past + 1, "elsewhere", {key: most})

    site.restart()
    services_of(site.app).pressure.poll()

    assert site.send(PLACES[1:2]) == [429]
    assert site.send(PLACES[1:2], QUIET) == [202]


def test_the_refusal_is_ours_and_says_when_to_come_back(
    config: Config, storage: MemoryStorage, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site(config, storage)
    used = {digest_of(WRITE_KEY): LIMIT}
    site.credentials.share(BYTES_BEGUN, TODAY, "elsewhere", used)
    site.exchange()
    client = site.app.test_client()

    with caplog.at_level(logging.WARNING, "hearsay.shares"):
        response = [post(client, body_of(*place)) for place in PLACES[:3]][-1]

    assert problem_of(response)["type"] == "urn:hearsay:problem:many-tallies"
    assert int(response.headers["Retry-After"]) > 0
    [record] = caplog.records
    assert digest_of(WRITE_KEY).hex()[:8] in record.getMessage()
    assert storage.backlog() == 0


def test_what_is_refused_is_counted_once_when_it_comes_again_on_another_day(
    config: Config, storage: MemoryStorage
) -> None:
    site = Site(config, storage)
    site.credentials.share(BYTES_BEGUN, TODAY, "elsewhere", {digest_of(WRITE_KEY): LIMIT})
    site.exchange()
    client, body = site.app.test_client(), body_of(*PLACES[-1])
    assert post(client, body).status_code == 429
    site.credentials.share(BYTES_BEGUN, TODAY, "elsewhere", {digest_of(WRITE_KEY): 0})
    site.exchange()

    again = [post(client, body) for _ in range(3)]

    assert [answer.get_json()["duplicate"] for answer in again] == [False, True, True]
    assert storage.backlog() == 1


def test_the_server_of_hearsay_serve_refuses_the_same(
    config: Config, storage: MemoryStorage
) -> None:
    """Its event loop never waits for the store, so another thread asks."""
    site = Site(config, storage)
    site.credentials.share(BYTES_BEGUN, TODAY, "elsewhere", {digest_of(WRITE_KEY): LIMIT - 20_000})
    site.exchange()
    columns = [[Column(METRIC.digest, TODAY - days, PAYLOAD)] for days in (0, 1, 0)]
    bodies = [as_msgpack(one, upload_id=secrets.token_bytes(16), sealed=TODAY) for one in columns]
    headers = {**bearer(WRITE_KEY), "Content-Type": "application/msgpack"}

    told = answers(site.app, *(Request(headers=headers, parts=(body,)) for body in bodies))

    assert [answer and answer.status for answer in told] == [202, 429, 202]


class Unreadable(MemoryStorage):
    """A store that takes uploads and does not say which tallies it has."""

    def __init__(self, error: CollectorError) -> None:
        super().__init__()
        self.error, self.asked = error, 0

    def existing(self, places: Collection[TallyPlace]) -> set[TallyPlace]:
        self.asked += 1
        raise self.error


@pytest.mark.parametrize("error", [StorageUnavailableError("away"), RefusedByStoreError("NOPERM")])
def test_a_store_that_does_not_say_what_it_has_refuses_nothing_here(
    config: Config, error: CollectorError
) -> None:
    """And is not asked by each of the uploads that wait, or all would wait for a time-out."""
    storage = Unreadable(error)
    site = Site(config, storage)
    client = site.app.test_client()

    answers_ = [post(client, body_of(*place)).status_code for place in PLACES[:9]]

    assert answers_ == [202] * 9
    assert storage.asked == 1


@pytest.mark.parametrize(
    "mechanism", ["olh", "oue", "sue", "subset_selection", "grr", "hadamard", "pgr", "hcms", "cms"]
)
@pytest.mark.parametrize("items", [1_000, 4_000])
@pytest.mark.parametrize("source", [UNKNOWN, frozenset(FACTS)], ids=["unknown", "known"])
@pytest.mark.parametrize("server_kind", [REAL], indirect=True)  # others do not count their memory
def test_a_tally_is_never_larger_than_what_it_is_counted_for(
    mechanism: str,
    items: int,
    source: Source,
    store: RedisStorage,
    server: Connection,
    keys: Keys,
) -> None:
    metric = Registry.from_text(text_of(mechanism, items)).metric("item")
    payload = bytes(metric.mechanism.payload_size)
    cell = Cell(metric.digest, TODAY, segment_text(metric, {}, source))
    store.append(bytes(16), TODAY, b"entry", 1)
    [claimed] = store.claim(0, "any", 1, NOBODY_LEFT_IT)
    increments = tally_entries([[AcceptedColumn(cell, payload)]], {metric.digest: metric.mechanism})

    assert store.fold(0, [claimed.id], increments) == ()

    parts = keys.tally(0, cell), keys.cells(0, metric.digest, TODAY)
    assert sum(server.call("MEMORY", "USAGE", part) for part in parts) <= size_of(metric, 1)
