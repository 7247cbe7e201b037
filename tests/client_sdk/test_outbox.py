"""The outbox: bounded in number, age and body size; sealed bytes never change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from client_sdk import outbox
from client_sdk.errors import EntropyError
from client_sdk.limits import (
    MAX_DEVICE_BODY,
    MAX_PENDING_REPORTS,
    MAX_REPORT_AGE,
    MAX_UPLOAD_REPORTS,
    UPLOAD_ID_SIZE,
)
from client_sdk.outbox import Outbox, Sealed
from client_sdk.randomness import Randomness
from client_sdk.report import Report, from_base64url
from client_sdk.store import Store
from tests.support.device_transport import NoEntropy, reports_in
from tests.support.seeded import SeededRandomness

DAY = 20_000


def put(
    store: Store, *, count: int = 1, size: int = 1, day: int = DAY, platform: str = "mac"
) -> int:
    """Queue *count* reports, each of its own epoch; return how many were dropped."""
    box = Outbox({"platform": platform})
    with store.transaction() as tx:
        return sum(
            box.put(tx, Report(b"digest", epoch, bytes(size)), day) for epoch in range(count)
        )


def take(store: Store, day: int = DAY, randomness: Randomness | None = None) -> Sealed | None:
    drawn = SeededRandomness(b"ids") if randomness is None else randomness
    with store.transaction() as tx:
        return outbox.next_upload(tx, day, drawn)


def take_all(store: Store) -> list[Sealed]:
    """Seal and remove until nothing waits."""
    randomness, taken = SeededRandomness(b"ids"), []
    while (upload := take(store, randomness=randomness)) is not None:
        taken.append(upload)
        with store.transaction() as tx:
            outbox.remove(tx, upload.upload_id)
    return taken


def waiting(store: Store) -> int:
    with store.transaction() as tx:
        return outbox.waiting(tx)


def parsed(upload: Sealed | None) -> Any:
    assert upload is not None
    return json.loads(upload.body)


def test_an_empty_outbox_seals_nothing_and_draws_nothing() -> None:
    assert take(Store(None), randomness=NoEntropy()) is None


def test_an_upload_says_its_id_day_segment_and_columns_and_no_more() -> None:
    store = Store(None)
    put(store, count=3)

    upload = parsed(take(store))

    assert set(upload) == {"v", "id", "sealed", "segment", "columns"}
    assert len(from_base64url(upload["id"])) == UPLOAD_ID_SIZE
    assert (upload["sealed"], upload["segment"]) == (DAY, {"platform": "mac"})
    assert [set(column) for column in upload["columns"]] == [{"metric", "epoch", "payloads"}] * 3


def test_a_sealed_upload_is_the_same_bytes_until_it_is_removed() -> None:
    store = Store(None)
    put(store, count=2)
    first = take(store)
    put(store, count=5)

    again = take(store, day=DAY + 3, randomness=SeededRandomness(b"other"))

    assert again == first
    assert waiting(store) == 7


def test_reports_leave_the_queue_only_as_their_upload_is_stored() -> None:
    store = Store(None)
    put(store, count=2)

    with pytest.raises(EntropyError):
        take(store, randomness=NoEntropy())

    upload = take(store)
    assert upload is not None
    assert (waiting(store), upload.reports, reports_in(upload.body)) == (2, 2, 2)


def test_removing_an_upload_twice_counts_once() -> None:
    store = Store(None)
    put(store)
    upload = take(store)
    assert upload is not None

    with store.transaction() as tx:
        removed = [outbox.remove(tx, upload.upload_id) for _ in range(2)]

    assert removed == [True, False]


def test_a_full_outbox_drops_its_oldest_reports() -> None:
    store = Store(None)

    dropped = put(store, count=MAX_PENDING_REPORTS + 7)

    epochs = [
        column["epoch"]
        for upload in take_all(store)
        for column in json.loads(upload.body)["columns"]
    ]
    assert dropped == 7
    assert epochs == list(range(7, MAX_PENDING_REPORTS + 7))


def test_an_upload_holds_no_more_than_its_number_of_reports() -> None:
    store = Store(None)
    put(store, count=MAX_UPLOAD_REPORTS + 1)

    assert [upload.reports for upload in take_all(store)] == [MAX_UPLOAD_REPORTS, 1]


@pytest.mark.parametrize("size", [1, 128, 1_024, 10_000])
def test_an_upload_fits_the_body_of_a_device(size: int) -> None:
    store = Store(None)
    put(store, count=MAX_UPLOAD_REPORTS, size=size)

    uploads = take_all(store)

    assert max(len(upload.body) for upload in uploads) <= MAX_DEVICE_BODY
    assert sum(upload.reports for upload in uploads) == MAX_UPLOAD_REPORTS


def test_reports_of_two_segments_never_share_an_upload() -> None:
    store = Store(None)
    for platform in ("mac", "linux", "mac"):
        put(store, platform=platform)

    uploads = [(json.loads(u.body)["segment"]["platform"], u.reports) for u in take_all(store)]

    assert uploads == [("mac", 2), ("linux", 1)]


@pytest.mark.parametrize(("age", "dropped"), [(MAX_REPORT_AGE, 0), (MAX_REPORT_AGE + 1, 5)])
def test_what_waited_too_long_is_dropped_sealed_or_not(age: int, dropped: int) -> None:
    store = Store(None)
    put(store, count=2)
    take(store)
    put(store, count=3)

    with store.transaction() as tx:
        count = outbox.expire(tx, DAY + age)

    assert (count, waiting(store)) == (dropped, 5 - dropped)


def test_a_wipe_leaves_nothing_to_send() -> None:
    store = Store(None)
    put(store, count=2)
    take(store)
    put(store, count=3)

    with store.transaction() as tx:
        wiped = outbox.wipe(tx)

    assert (wiped, waiting(store), take(store)) == (5, 0, None)


def test_upload_ids_are_never_repeated() -> None:
    store = Store(None)
    put(store, count=MAX_PENDING_REPORTS)

    ids = [upload.upload_id for upload in take_all(store)]

    assert len(set(ids)) == len(ids) == 3
