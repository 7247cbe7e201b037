"""The gateway: a ledger and a memo for each device, names for none, and large columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from client_sdk.core.dataclass import replace
from client_sdk.core.errors import RegistryError
from client_sdk.core.limits import MAX_COLUMNS, MAX_REPORT_AGE
from client_sdk.gateway import Gateway
from client_sdk.handles import Handle, require_definitions
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.registry import Registry
from client_sdk.storage.outbox import Outbox
from client_sdk.storage.secret import NAMES_FILE
from client_sdk.storage.store import Store
from client_sdk.upload.sealing import SealedUpload, Sealer, remove
from client_sdk.upload.transport import Transport
from client_sdk.wire.reports import GATEWAY, Report
from collector.intake.wire import MSGPACK, Upload, decode
from tests.support.device.clock import FakeClock
from tests.support.device.device import (
    CANARY,
    REGISTRY,
    bytes_on_disk,
    metric_text,
    registry_of,
    rows,
)
from tests.support.device.device_transport import ScriptedTransport
from tests.support.enumeration.seeded import SeededRandomness

NAME = "canary-3b5e-the-name-of-a-machine"
LIST = 'type = "category"\nvalues = ["a", "b", "c", "d"]'
PERMANENT = registry_of(
    metric_text("kind", LIST).replace('longitudinal = "fresh"', 'longitudinal = "permanent"')
)


def make_gateway(
    folder: Path | None,
    transport: Transport | None = None,
    *,
    registry: Registry = REGISTRY,
    clock: FakeClock | None = None,
    caps: Caps | None = None,
) -> Gateway:
    """Return a gateway with fakes for all that is not given."""
    clock = clock or FakeClock()
    return Gateway(
        "https://collector.example",
        "key",
        registry,
        consent="granted",
        data_dir=folder,
        segment={"platform": "linux"},
        caps=caps or Caps(),
        transport=transport or ScriptedTransport(),
        opt_outs=NoOptOuts(),
        clock=clock,
        uptime=clock.uptime,
    )


def changed(gateway: Gateway) -> dict[str, int]:
    return {reason: count for reason, count in gateway.stats().items() if count}


def uploads(transport: ScriptedTransport) -> list[Upload]:
    return [decode(body, MSGPACK) for body in transport.sent]


def test_each_device_has_its_own_ledger() -> None:
    """Law: one report a device, metric and epoch; another device's reports change nothing."""
    gateway = make_gateway(None)

    gateway.record_many((f"d{i % 3}", "dark_mode", True) for i in range(7))

    assert changed(gateway) == {"recorded": 3, "already_reported": 4}


def test_each_device_has_its_own_caps() -> None:
    """Law: the caps bound what is spent on each device, not what the gateway sends."""
    gateway = make_gateway(None, caps=Caps(metric_week="2", week="2"))

    for name in ("dark_mode", "theme", "weekly"):
        gateway.record_many((f"d{i}", name, CANARY if name == "theme" else True) for i in range(5))

    assert changed(gateway) == {"recorded": 10, "budget": 5}


def test_a_refused_value_does_not_stop_the_others() -> None:
    """Law: each of many values is judged for itself, and each refusal counted."""
    gateway = make_gateway(None)

    gateway.record_many(
        [
            ("d1", "dark_mode", "yes"),
            ("d1", "unheard_of", True),
            ("", "dark_mode", True),
            (7, "dark_mode", True),  # type: ignore[list-item]  # a wrong name
            ("\ud800", "dark_mode", True),
            ("d1", "dark_mode"),  # type: ignore[list-item]  # no value
            ("d1", "bygone", True),
            ("d1", "dark_mode", True),
        ]
    )

    assert changed(gateway) == {
        "invalid_value": 4,
        "unknown_metric": 1,
        "internal": 1,
        "expired": 1,
        "recorded": 1,
    }


def test_reports_of_all_devices_share_columns_in_an_order_that_tells_nothing() -> None:
    """Law: a column a metric and epoch, its payloads sorted, and nothing of who sent which."""
    gateway = make_gateway(None, transport := ScriptedTransport())
    gateway.record_many((f"d{i}", "dark_mode", i % 2 == 0) for i in range(500))
    gateway.record_many((f"d{i}", "files", i % 100) for i in range(500))

    gateway.flush()

    [upload] = uploads(transport)
    assert {column.metric for column in upload.columns} == {
        REGISTRY.metrics[name].digest for name in ("dark_mode", "files")
    }
    for column in upload.columns:
        size = REGISTRY.by_digest[column.metric].mechanism.payload_size
        payloads = [column.payloads[i : i + size] for i in range(0, len(column.payloads), size)]
        assert len(payloads) == 500
        assert payloads == sorted(payloads)
    assert upload.segment == {}  # no metric keeps platforms apart


def test_a_name_is_neither_stored_nor_sent_nor_shown(tmp_path: Path) -> None:
    """Law: a canary for a name occurs in no file, no upload, no repr and no count."""
    gateway = make_gateway(tmp_path, transport := ScriptedTransport([503]))
    gateway.record_many([(NAME, "dark_mode", True), (NAME, "dark_mode", "wrong")])

    gateway.flush()

    seen = bytes_on_disk(tmp_path) + b"".join(transport.sent)
    seen += repr((gateway, vars(gateway), gateway.stats())).encode()
    assert len(transport.sent) == 1
    assert NAME.encode() not in seen


def test_a_restart_finds_the_ledgers_again(tmp_path: Path) -> None:
    """Law: the key of a name is the same in every run."""
    with make_gateway(tmp_path) as first:
        first.record_many((f"d{i}", "dark_mode", True) for i in range(5))

    again = make_gateway(tmp_path)
    again.record_many((f"d{i}", "dark_mode", True) for i in range(6))

    assert changed(again) == {"recorded": 1, "already_reported": 5}


def test_a_denial_wipes_what_waits_and_keeps_the_ledgers(tmp_path: Path) -> None:
    """Law: nothing is sent after a no, and a later yes begins no ledger anew."""
    gateway = make_gateway(tmp_path, transport := ScriptedTransport())
    gateway.record_many((f"d{i}", "dark_mode", True) for i in range(5))
    gateway.set_consent("denied")
    gateway.flush()

    gateway.set_consent("granted")
    gateway.record_many((f"d{i}", "dark_mode", True) for i in range(5))

    assert transport.sent == []
    assert changed(gateway) == {"recorded": 5, "revoked": 5, "already_reported": 5}


def test_without_the_names_every_device_counts_as_spent_for_a_week(tmp_path: Path) -> None:
    """Law: ledgers that cannot be found are taken to be full, not empty."""
    clock = FakeClock()
    with make_gateway(tmp_path, clock=clock) as first:
        first.record("d1", "dark_mode", True)
    (tmp_path / NAMES_FILE).unlink()
    again = make_gateway(tmp_path, clock=clock)

    for _ in range(2):
        again.record_many([("d1", "dark_mode", True), ("d2", "dark_mode", True)])
        clock.advance(days=7)

    assert changed(again) == {"budget": 2, "recorded": 2}


def test_each_device_has_its_own_memo(tmp_path: Path) -> None:
    """Law: a permanent response is one device's: repeated by it, and by no other but by chance."""
    clock = FakeClock()
    gateway = make_gateway(tmp_path, registry=PERMANENT, clock=clock)
    for _ in range(2):
        gateway.record_many((f"d{i}", "kind", "a") for i in range(64))
        clock.advance(days=1)

    first, second = (
        [payload for (payload,) in rows(tmp_path, f"SELECT payload FROM reports WHERE {where}")]  # noqa: S608
        for where in ("number <= 64", "number > 64")
    )
    [(spent,)] = rows(tmp_path, "SELECT count(*) FROM costs WHERE nano > 0")
    assert first == second
    assert len(set(first)) > 1
    assert spent == 64


def test_uploads_wait_for_the_schedule_and_flush_does_not() -> None:
    """Law: ``upload`` may be called as often as you like."""
    clock = FakeClock()
    gateway = make_gateway(None, transport := ScriptedTransport(), clock=clock)
    gateway.record("d1", "dark_mode", True)
    for _ in range(60):
        gateway.upload()
        clock.advance(seconds=60)
    early = len(transport.sent)

    clock.advance(seconds=5 * 3_600)
    gateway.upload()
    gateway.record("d2", "dark_mode", True)
    gateway.flush()

    assert (early, len(transport.sent)) == (0, 2)


@pytest.mark.parametrize(("days", "late"), [(MAX_REPORT_AGE, 0), (MAX_REPORT_AGE + 1, 3)])
def test_weeks_offline_are_within_the_horizon(days: int, late: int, tmp_path: Path) -> None:
    """Law: what waited no longer than MAX_REPORT_AGE is sent, across restarts; older is counted."""
    clock = FakeClock()
    with make_gateway(tmp_path, clock=clock) as before:
        before.record_many((f"d{i}", "dark_mode", True) for i in range(3))
    clock.advance(days=days)

    after = make_gateway(tmp_path, clock=clock)
    after.flush()

    assert changed(after) == ({"too_old": 3} if late else {"uploaded": 3})


def test_a_closed_gateway_records_nothing() -> None:
    """Law: each value that comes too late is counted."""
    gateway = make_gateway(None)
    gateway.close()

    gateway.record_many([("d1", "dark_mode", True)] * 3)

    assert changed(gateway) == {"closed": 3}


def sealed(store: Store, sealer: Sealer) -> list[SealedUpload]:
    """Seal and remove until nothing waits."""
    taken = []
    with store.transaction() as tx:
        while (upload := sealer.take(tx, 20_000, failing=False)) is not None:
            taken.append(upload)
            remove(tx, upload.upload_id)
    return taken


@pytest.mark.parametrize(
    ("reports", "epochs", "size", "least"), [(600, 600, 1, 3), (900, 3, 100, 9), (2_500, 1, 1, 3)]
)
def test_an_upload_of_a_gateway_keeps_every_limit_of_the_collector(
    reports: int, epochs: int, size: int, least: int
) -> None:
    """Law: columns, bytes and reports each end an upload in time; together they hold everything."""
    store, bounds = Store(None), replace(GATEWAY, body=12_000, upload_reports=1_000)
    box = Outbox({}, bounds)
    with store.transaction() as tx:
        for number in range(reports):
            box.put(tx, Report(b"digest", number % epochs, bytes(size)), 20_000, ())

    uploads = sealed(store, Sealer(SeededRandomness(b"ids"), bounds))

    assert len(uploads) >= least
    assert sum(upload.reports for upload in uploads) == reports
    for upload in uploads:
        assert len(upload.body) <= bounds.body
        assert len(decode(upload.body, MSGPACK).columns) <= MAX_COLUMNS
        assert upload.reports <= bounds.upload_reports


def failing() -> Iterator[Any]:
    yield "a", "dark_mode", True
    raise RuntimeError(CANARY)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("entries", [None, 5, [1, ("a",)], [None], object()])
def test_what_is_no_list_of_values_is_counted(entries: Any, closed: bool) -> None:
    """Law: nothing but the constructor and set_consent raises."""
    gateway = make_gateway(None)
    if closed:
        gateway.close()

    gateway.record_many(entries)
    gateway.watch(entries)
    gateway.upload(entries)
    gateway.flush(entries)

    assert sum(gateway.stats().values()) >= 1
    assert gateway.stats()["recorded"] == 0


def test_values_that_end_in_an_error_are_recorded_until_then() -> None:
    """Law: the error of a caller's iterator is counted once."""
    gateway = make_gateway(None)

    gateway.record_many(failing())

    assert (gateway.stats()["recorded"], gateway.stats()["internal"]) == (1, 1)


def test_handles_record_for_one_device_of_a_gateway(tmp_path: Path) -> None:
    """Law: as ``record`` does, under a ledger of its own, and its name is kept nowhere."""
    gateway = make_gateway(tmp_path)
    digests = {"dark_mode": REGISTRY.metric("dark_mode").digest.hex()}

    for name in (NAME, "another"):
        device = gateway.device(name)
        require_definitions(device, digests)
        Handle[bool](device, "dark_mode").record(True)
        Handle[bool](device, "dark_mode").record(True)
    with pytest.raises(RegistryError):
        require_definitions(gateway.device(NAME), {"dark_mode": "00"})
    gateway.close()

    assert gateway.stats()["recorded"] == gateway.stats()["already_reported"] == 2
    assert NAME.encode() not in bytes_on_disk(tmp_path)
