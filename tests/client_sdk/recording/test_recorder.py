"""The recorder: a group of values in one transaction, and a last look before a report leaves."""

from __future__ import annotations

import sqlite3
import sys
import threading
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final

import pytest

from client_sdk.core.dataclass import replace
from client_sdk.core.epoch import DAY
from client_sdk.core.errors import EntropyError, InvalidParameterError, StoreError
from client_sdk.core.randomness import Randomness
from client_sdk.core.stats import Reason
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.consent import Consent, ConsentSwitch
from client_sdk.recording.inbox import OnReport, ReportView
from client_sdk.recording.recorder import Recorder
from client_sdk.storage.ledger import Ledger
from client_sdk.storage.outbox import Outbox
from client_sdk.storage.schema import FILE_NAME
from client_sdk.storage.store import Store
from tests.support.device.clock import NOON, FakeClock
from tests.support.device.device import (
    CANARY,
    REGISTRY,
    alter,
    changed,
    collecting,
    make_client,
    metric_text,
    registry_of,
    rows,
)
from tests.support.device.device_transport import NoEntropy
from tests.support.enumeration.seeded import SeededRandomness

MOST_SIGNALS = 50
COUNTS = "SELECT (SELECT count(*) FROM charges), (SELECT count(*) FROM reports)"


class FailingAfter(SeededRandomness):
    """Entropy for *draws* draws."""

    def __init__(self, draws: int) -> None:
        super().__init__(b"seed")
        self._left = draws

    def uniform(self, n: int) -> int:
        self._left -= 1
        if self._left < 0:
            raise EntropyError("dry")
        return super().uniform(n)


def recorder(
    store: Store,
    *,
    caps: Caps | None = None,
    randomness: Randomness | None = None,
    on_report: OnReport | None = None,
    registry: Any = REGISTRY,
) -> Recorder:
    return Recorder(
        *(registry, store, Ledger(caps or Caps()), Outbox({})),
        *(randomness or SeededRandomness(b"seed"), ConsentSwitch(Consent.GRANTED)),
        *(FakeClock().uptime, on_report),
    )


def test_a_group_is_reported_and_its_refusals_are_counted(tmp_path: Path) -> None:
    """A refused item does not stop the others."""
    maker = recorder(Store(tmp_path), caps=Caps(week="2"))
    names = ("dark_mode", "dark_mode", "theme", "files")
    values = (True, False, "plain", 7)
    group = [maker.prepare(*pair, NOON) for pair in zip(names, values, strict=True)]

    counts = maker.commit(group)

    assert counts == {Reason.RECORDED: 2, Reason.ALREADY_REPORTED: 1, Reason.BUDGET: 1}
    assert rows(tmp_path, COUNTS) == [(2, 2)]


GROUP: Final = (("dark_mode", True), ("theme", "plain"))


def _interrupted(report: ReportView) -> bool:
    raise KeyboardInterrupt


FULL = (
    "CREATE TRIGGER full BEFORE INSERT ON reports WHEN (SELECT count(*) FROM reports) > 1"
    " BEGIN SELECT RAISE(ABORT, 'disk full'); END"
)


@pytest.mark.parametrize(
    ("fails", "error"),
    [
        ({"randomness": FailingAfter(1)}, EntropyError),
        ({}, StoreError),
        ({"on_report": _interrupted}, KeyboardInterrupt),
    ],
    ids=["entropy", "disk", "hook"],
)
def test_a_group_that_fails_on_its_way_leaves_nothing(
    tmp_path: Path, fails: dict[str, Any], error: type[BaseException]
) -> None:
    """Neither a report nor a charge, and what was there before stays."""
    store = Store(tmp_path)
    before = recorder(store)
    before.commit([before.prepare("weekly", True, NOON)])
    alter(tmp_path, FULL)
    maker = recorder(store, **fails)

    with pytest.raises(error):
        maker.commit([maker.prepare(name, value, NOON) for name, value in GROUP])

    assert rows(tmp_path, COUNTS) == [(1, 1)]
    store.close()


def test_an_empty_group_opens_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "new")

    assert recorder(store).commit([]) == {}
    assert not store.exists


def test_preparing_draws_nothing_and_opens_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "new")

    recorder(store, randomness=NoEntropy()).prepare("dark_mode", True, NOON)

    assert not store.exists


@pytest.mark.parametrize("now", [float("nan"), float("inf"), -1e300, 2.0**40])
def test_a_time_that_is_none_is_refused_before_it_waits_beside_others(now: float) -> None:
    with pytest.raises(InvalidParameterError, match="clock="):
        recorder(Store(None)).prepare("dark_mode", True, now)


def test_a_pending_value_does_not_show_itself() -> None:
    pending = recorder(Store(None)).prepare("theme", CANARY, NOON)

    assert CANARY not in repr(pending)
    assert "encoded" not in repr(pending)


def test_the_hook_sees_all_that_leaves_and_lets_it() -> None:
    seen: list[ReportView] = []
    maker = recorder(Store(None), on_report=collecting(seen))

    counts = maker.commit([maker.prepare("theme", CANARY, NOON)])

    ((view,), metric) = (seen, REGISTRY.metric("theme"))
    assert counts == {Reason.RECORDED: 1}
    assert (view.metric, view.epoch) == ("theme", 20_000)
    assert metric.mechanism.reason(view.payload) is None


def raising(report: ReportView) -> bool:
    raise RuntimeError("a bug of the application")


@pytest.mark.parametrize("hook", [lambda _: False, raising], ids=["false", "raises"])
def test_a_hook_can_drop_a_report_and_the_charge_stays(tmp_path: Path, hook: OnReport) -> None:
    """The payload was drawn: giving the charge back would let an app draw until it likes one."""
    store = Store(tmp_path)
    maker = recorder(store, on_report=hook)

    counts = maker.commit([maker.prepare("dark_mode", True, NOON)])

    assert counts == {Reason.DROPPED: 1}
    assert rows(tmp_path, COUNTS) == [(1, 0)]
    again = maker.commit([maker.prepare("dark_mode", True, NOON)])
    assert again == {Reason.ALREADY_REPORTED: 1}
    store.close()


def test_what_a_hook_records_waits_for_its_transaction() -> None:
    def record_another(report: ReportView) -> bool:
        client.record("theme", "plain")
        return True

    with make_client(on_report=record_another) as client:
        client.record("dark_mode", True)

    assert changed(client) == {"recorded": 2, "already_reported": 1, "uploaded": 2}


@pytest.mark.parametrize("mode", ["manual", "background"])
def test_what_a_hook_records_at_the_end_of_a_window_is_written_afterwards(
    tmp_path: Path, mode: str
) -> None:
    """Law: the store is busy with the report of the window until the hook returns."""

    def record_another(report: ReportView) -> bool:
        if report.metric == "total":
            client.record("other", True)
        return True

    text = metric_text("total") + 'aggregate = "any"\n'
    registry, clock = registry_of(metric_text("dark_mode"), metric_text("other"), text), FakeClock()
    client = make_client(
        tmp_path, registry=registry, clock=clock, on_report=record_another, mode=mode
    )
    with client:
        client.record("total", True)
        client.flush()
        clock.now += DAY
        client.record("dark_mode", True)
        client.flush()

    counts = changed(client)
    assert counts["recorded"] == 3
    assert "store" not in counts


def test_in_manual_mode_every_value_is_written_at_once_where_threads_stand_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: a worker of uWSGI without threads may be killed after any value."""
    uwsgi = ModuleType("uwsgi")
    uwsgi.worker_id, uwsgi.opt, uwsgi.has_threads = lambda: 1, {}, 0  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "uwsgi", uwsgi)
    client = make_client(tmp_path)

    for name, value in (("dark_mode", True), ("theme", "plain"), ("files", 3)):
        client.record(name, value)

    assert rows(tmp_path, "SELECT count(*) FROM reports") == [(3,)]
    client.close()


def test_in_manual_mode_a_value_is_durable_when_record_returns(tmp_path: Path) -> None:
    """Law: whoever else writes, and however long it takes."""
    client = make_client(tmp_path)
    client.record("dark_mode", True)
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    held = threading.Timer(2.0, other.rollback)
    first = threading.Thread(target=client.record, args=("theme", "plain"))
    held.start()
    first.start()

    client.record("files", 3)

    written = {digest for (digest,) in rows(tmp_path, "SELECT digest FROM reports")}
    assert REGISTRY.metric("files").digest in written
    first.join()
    held.join()
    other.close()
    client.close()


def test_a_handler_that_records_wherever_a_signal_comes_never_waits_for_itself(
    tmp_path: Path,
) -> None:
    """Law: a signal may come between any two lines of a record."""
    client = make_client(tmp_path)
    handled: list[str] = []

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_name == "drain" and len(handled) < MOST_SIGNALS:
            handled.append(f"{event} {frame.f_lineno}")
            client.record("theme", "plain")
        return trace

    sys.settrace(trace)
    try:
        client.record("dark_mode", True)
    finally:
        sys.settrace(None)
    client.record("files", 3)

    assert len({*handled}) > 5
    assert rows(tmp_path, "SELECT count(*) FROM reports") == [(3,)]
    client.close()


def test_devices_of_a_gateway_each_have_their_report_of_an_epoch(tmp_path: Path) -> None:
    store = Store(tmp_path)
    maker = recorder(store)
    pending = maker.prepare("dark_mode", True, NOON)

    counts = maker.commit([replace(pending, device=key) for key in (b"a", b"b", b"a")])

    assert counts == {Reason.RECORDED: 2, Reason.ALREADY_REPORTED: 1}
    store.close()


def test_a_delta_is_charged_with_its_epsilon(tmp_path: Path) -> None:
    kind = 'type = "count"\nmin = 0\nmax = 100\nstep = 1\nunit = "files"\n'
    text = metric_text("loose", kind + 'mechanism = "discrete_gaussian"')
    store = Store(tmp_path)
    maker = recorder(store, registry=registry_of(text))

    maker.commit([maker.prepare("loose", 5, NOON)])

    assert rows(tmp_path, "SELECT delta FROM costs") == [(10**6,)]
    store.close()
