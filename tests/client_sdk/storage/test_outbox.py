"""The outbox: bounded in number, age and size, sealed for good, and what was acknowledged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from client_sdk.core.base64url import from_base64url
from client_sdk.core.dataclass import replace
from client_sdk.core.epoch import day_of
from client_sdk.core.errors import EntropyError, TransportError
from client_sdk.core.limits import (
    MAX_ACKNOWLEDGED,
    MAX_DEVICE_BODY,
    MAX_PENDING_REPORTS,
    MAX_PENDING_SIZE,
    MAX_REPORT_AGE,
    MAX_UPLOAD_REPORTS,
    UPLOAD_ID_SIZE,
)
from client_sdk.core.randomness import Randomness
from client_sdk.recording.erasure import erase
from client_sdk.storage import outbox
from client_sdk.storage.outbox import AcknowledgedReport, Outbox, acknowledged_reports
from client_sdk.storage.store import Store
from client_sdk.upload import sealing
from client_sdk.upload.sealing import MAX_SEALED, SealedUpload, Sealer
from client_sdk.wire.reports import DEVICE, Report
from tests.support.device.device_desk import Desk
from tests.support.device.device_transport import NoEntropy, ScriptedTransport, reports_in
from tests.support.enumeration.seeded import SeededRandomness

DAY = 20_000
LOST = TransportError("lost")


def put(
    store: Store, *, count: int = 1, size: int = 1, day: int = DAY, platform: str = "mac"
) -> int:
    """Queue *count* reports, each of its own epoch; return how many were dropped."""
    box = Outbox({"platform": platform})
    with store.transaction() as tx:
        return sum(
            box.put(tx, Report(b"digest", epoch, bytes(size)), day, ["platform"])
            for epoch in range(count)
        )


def take(store: Store, day: int = DAY, randomness: Randomness | None = None) -> SealedUpload | None:
    drawn = SeededRandomness(b"ids") if randomness is None else randomness
    with store.transaction() as tx:
        return Sealer(drawn).take(tx, day, failing=False)


def take_all(store: Store) -> list[SealedUpload]:
    """Seal and remove until nothing waits."""
    randomness, taken = SeededRandomness(b"ids"), []
    while (upload := take(store, randomness=randomness)) is not None:
        taken.append(upload)
        with store.transaction() as tx:
            sealing.remove(tx, upload.upload_id)
    return taken


def waiting(store: Store) -> int:
    with store.transaction() as tx:
        return outbox.waiting(tx)


def parsed(upload: SealedUpload | None) -> Any:
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


def test_reports_leave_the_queue_only_as_their_upload_is_stored() -> None:
    store = Store(None)
    put(store, count=2)

    with pytest.raises(EntropyError):
        take(store, randomness=NoEntropy())

    upload = take(store)
    assert upload is not None
    assert (waiting(store), upload.reports, reports_in(upload.body)) == (2, 2, 2)


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


def test_an_outbox_of_large_reports_keeps_its_newest_within_its_size() -> None:
    store, size = Store(None), 10_000
    count = MAX_PENDING_SIZE // size + 9

    dropped = put(store, count=count, size=size)

    with store.transaction() as tx:
        epochs = [epoch for (epoch,) in tx.execute("SELECT epoch FROM reports ORDER BY number")]
    assert dropped == 9
    assert epochs == list(range(9, count))


def test_a_bound_with_slack_is_passed_by_no_more_than_the_slack() -> None:
    store, most = Store(None), 0
    box = Outbox({}, replace(DEVICE, reports=100, slack=10))

    for epoch in range(300):
        with store.transaction() as tx:
            box.put(tx, Report(b"digest", epoch, b"\x01"), DAY, ())
        most = max(most, waiting(store))

    assert 100 <= most <= 110


def test_a_report_carries_only_the_dimensions_that_its_metric_keeps_apart() -> None:
    store, box = Store(None), Outbox({"platform": "mac", "plan": "free"})
    dimensions = [("platform",), (), ("plan", "platform"), ("channel",), ("platform",)]

    with store.transaction() as tx:
        for epoch, kept in enumerate(dimensions):
            box.put(tx, Report(b"digest", epoch, b"\x01"), DAY, kept)

    found = [(json.loads(u.body)["segment"], u.reports) for u in take_all(store)]
    assert sorted(found, key=str) == [
        ({"plan": "free", "platform": "mac"}, 1),
        ({"platform": "mac"}, 2),
        ({}, 2),
    ]


def test_an_upload_holds_no_more_than_its_number_of_reports() -> None:
    store = Store(None)
    put(store, count=MAX_UPLOAD_REPORTS + 1)

    assert [upload.reports for upload in take_all(store)] == [MAX_UPLOAD_REPORTS, 1]


@pytest.mark.parametrize("size", [1, 128, 1_024, 10_000])
def test_an_upload_fits_the_body_of_a_device(size: int) -> None:
    store, count = Store(None), min(MAX_UPLOAD_REPORTS, MAX_PENDING_SIZE // size)
    put(store, count=count, size=size)

    uploads = take_all(store)

    assert max(len(upload.body) for upload in uploads) <= MAX_DEVICE_BODY
    assert sum(upload.reports for upload in uploads) == count


@pytest.mark.parametrize(("age", "dropped"), [(MAX_REPORT_AGE, 0), (MAX_REPORT_AGE + 1, 5)])
def test_what_waited_too_long_is_dropped_sealed_or_not(age: int, dropped: int) -> None:
    store = Store(None)
    put(store, count=2)
    take(store)
    put(store, count=3)

    with store.transaction() as tx:
        count = outbox.expire(tx, DAY + age)

    assert (count, waiting(store)) == (dropped, 5 - dropped)


def test_a_month_offline_keeps_the_bounds_and_counts_every_report(tmp_path: Path) -> None:
    """Law: what was put is waiting, too old, or was dropped; the disk stays below a megabyte."""
    desk, recorded, dropped = Desk(ScriptedTransport([LOST] * 40), store=Store(tmp_path)), 0, 0
    for count in (600, *(90,) * 29):
        day = day_of(desk.clock())
        with desk.store.transaction() as tx:
            for number in range(count):
                report = Report(number.to_bytes(6, "big"), day, bytes(16))
                dropped += Outbox({}).put(tx, report, day, ())
        recorded += count
        desk.flush()
        desk.clock.advance(days=1)

    with desk.store.transaction() as tx:
        (sealed,) = tx.execute("SELECT count(*) FROM uploads").fetchone()
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert dropped > 0
    assert desk.counts()["too_old"] > 0
    assert recorded == desk.waiting() + dropped + desk.counts()["too_old"]
    assert MAX_SEALED < sealed <= MAX_REPORT_AGE + 1
    assert size <= 1024 * 1024


def test_500_waiting_reports_take_less_than_a_megabyte(tmp_path: Path) -> None:
    """Law: reserve file, log and all, after as many transactions as reports."""
    box, store = Outbox({"platform": "mac"}), Store(tmp_path)
    for epoch in range(MAX_PENDING_REPORTS):
        with store.transaction(growing=True) as tx:
            box.put(tx, Report(b"digest", epoch, bytes(16)), DAY, ["platform"])

    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1024 * 1024


def recalled(desk: Desk) -> list[AcknowledgedReport]:
    with desk.store.transaction() as tx:
        return list(acknowledged_reports(tx))


def test_what_was_acknowledged_is_kept_as_it_was_on_the_wire() -> None:
    """Law: digest, epoch and payload of every report of the upload, and the day of its answer."""
    desk = Desk(transport := ScriptedTransport())
    desk.put(3)

    desk.flush()

    columns = json.loads(transport.sent[0])["columns"]
    said = [
        Report(from_base64url(c["metric"]), c["epoch"], from_base64url(c["payloads"]))
        for c in columns
    ]
    found = recalled(desk)
    assert [kept.report for kept in reversed(found)] == said
    assert {kept.day for kept in found} == {day_of(desk.clock())}


def test_only_the_last_reports_are_kept() -> None:
    """Law: MAX_ACKNOWLEDGED of them, the latest."""
    desk = Desk(ScriptedTransport())
    desk.put(MAX_ACKNOWLEDGED + 7)

    desk.flush()

    assert [kept.report.epoch for kept in recalled(desk)] == list(
        range(MAX_ACKNOWLEDGED + 6, 6, -1)
    )


def test_a_wipe_forgets_what_was_sent() -> None:
    """Law: a denial leaves nothing to look at."""
    desk = Desk(ScriptedTransport())
    desk.put(3)
    desk.flush()

    with desk.store.transaction() as tx:
        erase(tx, desk.store)

    assert recalled(desk) == []
