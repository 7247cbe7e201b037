"""A process renews what it knows of keys in time, counts quotas, and fails closed."""

from __future__ import annotations

import logging
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from client_sdk.core.limits import MAX_DEVICE_BODY, MAX_GATEWAY_BODY
from collector.core.catalog import Catalog
from collector.core.cells import MOST_KEYS, OTHER_KEYS, Source, key_in, key_source
from collector.core.credentials import ANALYST, GATEWAY, READ, WRITE, Credential, digest_of, id_of
from collector.core.errors import (
    QuotaExhaustedError,
    StorageFullError,
    StorageUnavailableError,
    UnauthorizedError,
)
from collector.intake.keyring import TRUST_S, Keyring, sources_of
from collector.storage.records import REPORTS_SENT
from tests.support.crowds.uploads import NOON, TODAY, registry
from tests.support.store.memory_credentials import MemoryCredentials

TOKEN, KEY, OWN = "hsr_token-for-tests", "hsw_key-for-tests", "own-key-of-the-environment"
READER = Credential(READ, "test", role=ANALYST, expires=TODAY + 1)
SENDER = Credential(WRITE, "test", quota=100)
DAY = 86_400


class Desk:
    """Processes that share a store of credentials, and clocks that a test moves."""

    def __init__(self) -> None:
        self.store = MemoryCredentials()
        self.store.add(TOKEN, READER)
        self.store.add(KEY, SENDER)
        self.now, self.seconds = NOON, 1_000.0
        self.catalog = Catalog([registry()])

    def process(self) -> Keyring:
        own = {digest_of(OWN): Credential(WRITE)}
        return Keyring(own, self.store, self.catalog, lambda: self.now, lambda: self.seconds)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.seconds += seconds


def header(secret: str) -> str:
    return f"Bearer {secret}"


def test_a_revoked_token_opens_nothing_five_seconds_later_whenever_it_was_revoked() -> None:
    for before in range(0, 50, 7):
        desk = Desk()
        ring = desk.process()
        ring.find(header(TOKEN))
        desk.wait(before / 10)
        ring.find(header(TOKEN))
        desk.store.add(TOKEN, replace(READER, revoked=True))
        for _ in range(50):  # requests keep coming, as on a busy day
            desk.wait(TRUST_S / 50)
            ring.find(header(TOKEN))

        assert ring.find(header(TOKEN)) is None


@pytest.mark.parametrize(
    ("refusal", "seconds"),
    [(None, 3_600), (StorageFullError("store: is out of memory"), TRUST_S)],
    ids=["after an hour without requests", "though a full store cannot share usage"],
)
def test_a_revoked_token_opens_nothing(refusal: StorageFullError | None, seconds: float) -> None:
    desk = Desk()
    ring = desk.process()
    assert ring.find(header(TOKEN)) == READER
    desk.store.add(TOKEN, replace(READER, revoked=True))
    desk.store.refusal = refusal

    desk.wait(seconds)

    assert ring.find(header(TOKEN)) is None


def test_a_new_key_works_within_five_seconds() -> None:
    desk = Desk()
    ring = desk.process()
    assert ring.find(header("hsw_later")) is None
    desk.store.add("hsw_later", SENDER)

    desk.wait(TRUST_S)

    assert ring.find(header("hsw_later")) == SENDER


def test_the_store_is_asked_once_in_seconds_and_not_once_a_request() -> None:
    desk = Desk()
    ring = desk.process()

    for _ in range(1_000):
        ring.find(header(TOKEN))
        ring.find(header("hsr_guess"))

    assert desk.store.reads == 1


class RecordedLookups(dict[bytes, Credential]):
    """A mapping that remembers what was looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[object] = []

    def get(self, key: object, default: object = None) -> Any:
        self.asked.append(key)
        return None


def test_what_is_compared_is_never_the_secret_so_that_time_tells_nothing_of_it() -> None:
    """How long a look-up takes depends on the digest, which shares nothing with that of a guess."""
    desk, lookups = Desk(), RecordedLookups()
    ring = Keyring(lookups, desk.store, desk.catalog, lambda: desk.now, lambda: desk.seconds)
    guesses = [TOKEN[:length] + "x" for length in range(len(TOKEN))]

    for guess in guesses:
        assert ring.find(header(guess)) is None

    assert lookups.asked == [digest_of(guess) for guess in guesses]


def test_a_token_ends_with_its_day_without_asking_the_store() -> None:
    desk = Desk()
    ring = desk.process()
    assert ring.find(header(TOKEN)) == READER

    desk.now = (TODAY + 1) * DAY

    assert ring.find(header(TOKEN)) is None


def test_what_is_known_outlives_a_short_outage_and_not_a_long_one() -> None:
    desk = Desk()
    ring = desk.process()
    ring.find(header(TOKEN))
    desk.store.failure = StorageUnavailableError("gone")

    desk.wait(TRUST_S - 0.1)
    assert ring.find(header(TOKEN)) == READER
    desk.wait(0.2)

    with pytest.raises(StorageUnavailableError):
        ring.find(header(TOKEN))


def test_keys_of_the_environment_need_no_store() -> None:
    desk = Desk()
    desk.store.failure = StorageUnavailableError("gone")

    assert desk.process().grant(header(OWN)).limit == MAX_DEVICE_BODY


def test_an_outage_is_asked_after_once_a_second_and_ends_by_itself() -> None:
    desk = Desk()
    ring = desk.process()
    desk.store.failure = StorageUnavailableError("gone")
    for _ in range(10):
        with pytest.raises(StorageUnavailableError):
            ring.find(header(TOKEN))
    desk.store.failure = None

    desk.wait(1)

    assert ring.find(header(TOKEN)) == READER
    assert desk.store.reads == 1


def test_a_record_that_cannot_be_read_opens_nothing_and_closes_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    desk.store.put(digest_of("hsr_broken"), '{"kind": "write", "role": "root"}')
    ring = desk.process()

    with caplog.at_level(logging.ERROR):
        assert ring.find(header("hsr_broken")) is None

    assert ring.find(header(TOKEN)) == READER
    assert "role: must be one of" in caplog.text


def test_a_key_allows_a_body_by_its_kind_and_the_metrics_of_its_app() -> None:
    desk = Desk()
    desk.store.add("hsg_gateway", Credential(GATEWAY, "test", frozenset({"page"})))
    ring = desk.process()

    device, gateway = ring.grant(header(KEY)), ring.grant(header("hsg_gateway"))

    assert (device.limit, gateway.limit) == (MAX_DEVICE_BODY, MAX_GATEWAY_BODY)
    assert [metric.name for metric in gateway.catalog] == ["page"]
    assert len(list(device.catalog)) == len(list(desk.catalog))
    assert list(ring.view(Credential(WRITE, "another"))) == []
    assert ring.view(Credential(WRITE)) is desk.catalog


def test_a_key_that_has_used_its_quota_is_refused_until_the_next_day() -> None:
    desk = Desk()
    ring = desk.process()
    ring.count(ring.grant(header(KEY)), 99)
    ring.count(ring.grant(header(KEY)), 5)

    with pytest.raises(QuotaExhaustedError):
        ring.grant(header(KEY))
    desk.now = (TODAY + 1) * DAY

    assert ring.grant(header(KEY)).counted


def test_processes_count_one_quota_together_within_seconds() -> None:
    desk = Desk()
    first, second = desk.process(), desk.process()
    for ring in (first, second):
        ring.count(ring.grant(header(KEY)), 50)

    for _ in range(2):  # the first to look sees the other's count only after the other has shared
        desk.wait(TRUST_S)
        for ring in (first, second):
            ring.can_anybody_report()

    for ring in (first, second):
        with pytest.raises(QuotaExhaustedError):
            ring.grant(header(KEY))


def test_a_process_that_starts_anew_goes_on_counting() -> None:
    desk = Desk()
    first = desk.process()
    first.count(first.grant(header(KEY)), 100)
    desk.wait(TRUST_S)
    first.can_anybody_report()

    with pytest.raises(QuotaExhaustedError):
        desk.process().grant(header(KEY))


def test_a_key_without_a_quota_is_not_counted() -> None:
    desk = Desk()
    desk.store.add("hsw_free", replace(SENDER, quota=None))
    ring = desk.process()

    ring.count(ring.grant(header("hsw_free")), 1_000)
    desk.wait(TRUST_S)
    ring.can_anybody_report()

    assert desk.store.share(REPORTS_SENT, TODAY) == {}


@pytest.mark.parametrize(
    ("credential", "anybody"),
    [
        (SENDER, True),
        (replace(SENDER, revoked=True), False),
        (replace(SENDER, expires=TODAY), False),
        (READER, False),
    ],
)
def test_somebody_can_report_if_a_write_key_is_good(credential: Credential, anybody: bool) -> None:
    desk, store = Desk(), MemoryCredentials()
    store.add("hs_any", credential)

    ring = Keyring({}, store, desk.catalog, lambda: desk.now, lambda: desk.seconds)

    assert ring.can_anybody_report() is anybody


FREE = replace(SENDER, quota=None, expires=TODAY + 1)


def _others(desk: Desk) -> None:
    for number in range(5 * MOST_KEYS):
        desk.store.add(f"hsw_{number}", FREE)


@pytest.mark.parametrize(
    "change",
    [
        lambda desk: desk.store.add(KEY, replace(FREE, revoked=True)),
        lambda desk: desk.store.add(KEY, replace(FREE, metrics=frozenset({"page"}))),
        lambda desk: desk.store.add(KEY, replace(FREE, quota=1)),
        lambda desk: desk.store.add(KEY, replace(FREE, kind=GATEWAY)),
        _others,
        lambda desk: setattr(desk.store, "failure", StorageUnavailableError("gone")),
        lambda desk: setattr(desk, "now", (TODAY + 1) * DAY),
    ],
    ids=["revoked", "narrowed", "with a quota", "kept secret", "with others", "away", "past"],
)
@pytest.mark.parametrize("is_watched", [False, True])
def test_a_key_that_was_good_a_thousand_times_is_judged_as_by_a_new_process(
    change: Callable[[Desk], None], is_watched: bool
) -> None:
    desk = Desk()
    desk.store.add(KEY, FREE)
    ring = desk.process()
    for _ in range(1_000):
        ring.grant(header(KEY))
    before = _judged(ring)

    change(desk)
    desk.wait(TRUST_S)
    if is_watched:  # as by the thread that reads the records each second
        ring.renew()

    assert _judged(ring) == _judged(desk.process()) != before


def test_a_key_that_was_good_a_thousand_times_ends_with_its_day() -> None:
    desk = Desk()
    desk.store.add(KEY, FREE)
    ring = desk.process()
    for _ in range(1_000):
        ring.grant(header(KEY))

    desk.now = (TODAY + 1) * DAY

    with pytest.raises(UnauthorizedError):
        ring.grant(header(KEY))


def _judged(ring: Keyring) -> object:
    try:
        grant = ring.grant(header(KEY))
    except (UnauthorizedError, StorageUnavailableError, QuotaExhaustedError) as error:
        return type(error)
    return grant.limit, [*grant.catalog.by_digest], grant.counted, grant.is_public, grant.source


def test_a_key_that_is_written_in_many_ways_takes_no_memory() -> None:
    desk = Desk()
    desk.store.add(KEY, FREE)
    ring = desk.process()
    ring.grant(header(KEY))
    tracemalloc.start()
    try:
        for spaces in range(2_000, 3_000):
            ring.grant(f"Bearer{' ' * spaces}{KEY}")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 100_000


def test_a_grant_says_under_which_name_of_a_key_its_reports_are_kept_apart() -> None:
    desk = Desk()
    ring = desk.process()

    assert [key_in(ring.grant(header(key)).source) for key in (KEY, OWN)] == [
        id_of(digest_of(key)) for key in (KEY, OWN)
    ]


def test_a_new_key_is_kept_apart_as_soon_as_it_is_known_and_a_revoked_one_keeps_its_name() -> None:
    desk = Desk()
    ring = desk.process()
    first = ring.grant(header(KEY)).source
    desk.store.add("hsw_new", replace(SENDER, quota=None))
    desk.store.add("hsw_old", replace(SENDER, revoked=True))
    desk.wait(TRUST_S)

    assert key_in(ring.grant(header("hsw_new")).source) == id_of(digest_of("hsw_new"))
    assert ring.grant(header(KEY)).source == first


def _kept(credentials: dict[bytes, Credential], app: str) -> set[Source]:
    """Return the sources of all that may report to *app*."""
    sources = sources_of(credentials)
    return {source for digest, source in sources.items() if credentials[digest].app in (None, app)}


@pytest.mark.parametrize("anywhere", [0, 3, 200])
def test_an_app_has_few_sources_however_many_keys_there_are(anywhere: int) -> None:
    keys = {digest_of(f"a{i}"): Credential(WRITE, "a") for i in range(100)}
    keys |= {digest_of(f"b{i}"): Credential(GATEWAY, "b") for i in range(5)}
    keys |= {digest_of(f"*{i}"): Credential(WRITE) for i in range(anywhere)}
    readers = {digest_of("reader"): READER}

    fewest = MOST_KEYS - 8 if anywhere else MOST_KEYS + 1
    assert fewest <= len(_kept(keys, "a")) <= MOST_KEYS + 1
    assert key_source(OTHER_KEYS) in _kept(keys, "a")
    assert 5 <= len(_kept(keys, "b")) <= MOST_KEYS + 1
    assert sources_of(keys | readers) == sources_of(keys)


def test_what_keys_are_called_does_not_depend_on_the_order_in_which_they_were_read() -> None:
    keys = {digest_of(f"a{i}"): Credential(WRITE, "a") for i in range(100)}

    assert sources_of(dict(reversed(keys.items()))) == sources_of(keys)
