"""Credentials and their usage, in memory and on every kind of server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from collector.storage.keys import Keys
from collector.storage.records import CredentialStore, RedisCredentials
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.servers import EVERY_STORE, MEMORY

DAY = 30_000  # in 2052, so that no server forgets it
FIRST, SECOND = b"d" * 32, b"e" * 32


@pytest.fixture
def credentials(server_kind: str, keys: Keys, request: pytest.FixtureRequest) -> CredentialStore:
    """An empty store of keys and tokens."""
    if server_kind == MEMORY:
        return MemoryCredentials()
    request.getfixturevalue("store")  # which is prepared, and deleted at the end
    return RedisCredentials(request.getfixturevalue("server"), keys.prefix)


@EVERY_STORE
def test_a_record_is_kept_in_place_of_what_was_before(credentials: CredentialStore) -> None:
    assert credentials.records() == {}

    for digest, record in ((FIRST, "old"), (SECOND, "other"), (FIRST, "new")):
        credentials.put(digest, record)

    assert credentials.records() == {FIRST: b"new", SECOND: b"other"}


@EVERY_STORE
def test_a_record_is_replaced_only_if_it_is_the_one_that_was_read(
    credentials: CredentialStore,
) -> None:
    credentials.put(FIRST, "first")

    replaced = [credentials.replace(FIRST, b"first", word) for word in ("second", "third")]

    assert replaced == [True, False]
    assert not credentials.replace(SECOND, b"", "new")
    assert credentials.records() == {FIRST: b"second"}


@EVERY_STORE
@pytest.mark.parametrize("share", ["share_usage", "share_uploads", "share_growth"])
def test_the_use_of_a_day_is_the_sum_over_processes_each_counted_once(
    credentials: CredentialStore, share: str
) -> None:
    """Law: a process says sums, so what it says twice counts once; it sees those of all others."""
    say: Callable[..., dict[bytes, int]] = getattr(credentials, share)

    assert say(DAY, "one", {FIRST: 3}) == {FIRST: 3}
    assert say(DAY, "two", {FIRST: 4, SECOND: 1}) == {FIRST: 7, SECOND: 1}
    assert say(DAY, "one", {FIRST: 5}) == {FIRST: 9, SECOND: 1}
    assert say(DAY, "one", {FIRST: 5}) == {FIRST: 9, SECOND: 1}
    assert say(DAY, "three", {}) == {FIRST: 9, SECOND: 1}
    assert say(DAY + 1, "one", {}) == {}


@EVERY_STORE
def test_usage_and_uploads_are_counted_apart(credentials: CredentialStore) -> None:
    credentials.share_usage(DAY, "one", {FIRST: 3})
    credentials.share_uploads(DAY, "one", {FIRST: 1})

    assert credentials.share_usage(DAY, "one", {}) == {FIRST: 3}
    assert credentials.share_uploads(DAY, "one", {}) == {FIRST: 1}
