"""The memory of upload ids outlives every day on which the intake would take the upload again."""

from __future__ import annotations

import secrets

import pytest

from client_sdk.core.epoch import DAY, day_of
from client_sdk.core.limits import MAX_CLOCK_SKEW, MAX_REPORT_AGE
from collector.core.catalog import Catalog
from collector.core.errors import ExpiredUploadError, ForgottenUploadError, FutureUploadError
from collector.intake.validation import judge
from collector.intake.wire import Upload
from collector.storage.redis import SEEN_DAYS
from tests.support.crowds.uploads import registry
from tests.support.store.servers import EVERY_STORE
from tests.support.store.stored import Store

CATALOG = Catalog([registry()])


@EVERY_STORE
@pytest.mark.parametrize("skew", range(-MAX_CLOCK_SKEW, MAX_CLOCK_SKEW + 1))
@pytest.mark.parametrize("age", [-2, -1, 0, 1, 13, 14, 15, 16, 17, 30])
def test_a_repeat_is_recognised_or_refused_on_every_day(store: Store, age: int, skew: int) -> None:
    """Also by a web process whose clock is a day off that of the store.

    The store's clock is real, so it is the day of sealing that moves: before, at and after the day
    on which its ids are forgotten.
    """
    today = day_of(store.now(0))
    upload = Upload(secrets.token_bytes(16), today - age, {}, ())
    try:
        judge(upload, CATALOG, today + skew)
    except (ExpiredUploadError, FutureUploadError):
        return

    firsts = [store.append(upload.id, upload.sealed, b"entry", 1) for _ in range(3)]

    assert firsts == [True, False, False]


def test_the_intake_ends_before_the_memory_does() -> None:
    """Even when its clock is as far behind the store's as any may be."""
    last_taken = MAX_REPORT_AGE + MAX_CLOCK_SKEW  # days after that of sealing, by the store's clock

    assert last_taken < SEEN_DAYS


@EVERY_STORE
def test_an_upload_whose_id_is_forgotten_is_refused_by_the_store_itself(
    store: Store,
) -> None:
    """Also where a web process with a wrong clock would take it; of a day later it is taken."""
    sealed = day_of(store.now(0)) - SEEN_DAYS

    with pytest.raises(ForgottenUploadError):
        store.append(b"a" * 16, sealed, b"entry", 1)

    assert (sealed + SEEN_DAYS) * DAY <= store.now(0)
    assert store.append(b"a" * 16, sealed + 1, b"entry", 1)
    assert not store.append(b"a" * 16, sealed + 1, b"entry", 1)
