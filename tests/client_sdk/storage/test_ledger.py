"""The ledger: no order of charges passes a cap, and nothing on disk is ever taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core.errors import AlreadyReportedError, BudgetExhaustedError, StoreError
from client_sdk.privacy.caps import Caps
from client_sdk.storage.ledger import DOUBT, Charge, ChargeTotals, Days, Ledger, totals_of
from client_sdk.storage.schema import FILE_NAME, property_of, set_property
from client_sdk.storage.store import Store
from tests.support.device.clock import FakeClock
from tests.support.device.device import changed, make_client, metric_text, registry_of
from tests.support.device.ledgers import fill_ledger

NANO = 10**9
DIGEST = b"digest"
OTHER = b"second"


def charge(
    store: Store,
    caps: Caps,
    *,
    nano: int,
    day: int,
    epoch: int = 0,
    digest: bytes = DIGEST,
    delta: int = 0,
    device: bytes = b"",
    dearest: int = 0,
    days: Days | None = None,
) -> None:
    with store.transaction() as tx:
        Ledger(caps).charge(tx, Charge(digest, epoch, nano, delta, device, dearest, days), day)


def begin(store: Store, caps: Caps, day: int) -> None:
    with store.transaction() as tx:
        set_property(tx, "doubt", 1)
        Ledger(caps).begin(tx, day)


def spent(store: Store, day: int, device: bytes = b"") -> ChargeTotals:
    with store.transaction() as tx:
        return totals_of(tx, day, device)


def test_deltas_add_up_for_life_over_all_metrics() -> None:
    """Basic composition: the sum of all deltas stays within the cap, however long it takes."""
    store, caps = Store(None), Caps(delta="0.000002")
    charge(store, caps, nano=1, delta=10**6, day=100)
    charge(store, caps, nano=1, delta=10**6, day=900, digest=OTHER)

    with pytest.raises(BudgetExhaustedError, match=r"caps\.delta="):
        charge(store, caps, nano=1, delta=1, day=9_999, epoch=1)

    assert spent(store, 9_999).delta == 2 * 10**6


@pytest.mark.parametrize(
    "caps", [Caps(report="0.5"), Caps(metric_week="1.5"), Caps(week="1.5"), Caps(lifetime="1.5")]
)
@pytest.mark.parametrize("nano", [0, NANO // 4, NANO])
def test_whether_a_charge_is_refused_depends_on_the_dearest_that_it_could_be(
    caps: Caps, nano: int
) -> None:
    """What this value costs would tell, by a refusal, whether it had been reported before."""
    store = Store(None)
    charge(store, Caps(), nano=3 * NANO // 4, day=100, dearest=NANO)

    with pytest.raises(BudgetExhaustedError):
        charge(store, caps, nano=nano, day=100, epoch=1, dearest=NANO)

    assert spent(store, 100).week == 3 * NANO // 4


def test_a_doubt_is_charged_the_rest_of_the_week_once() -> None:
    """What another copy may have spent counts; never more than the cap."""
    store, caps = Store(None), Caps(week="3")
    charge(store, caps, nano=NANO, day=100)

    begin(store, caps, 101)
    begin(store, caps, 102)

    with store.transaction() as tx:
        doubts = tx.execute("SELECT nano, last FROM costs WHERE digest = ?", (DOUBT,)).fetchall()
        assert property_of(tx, "doubt") is None
    assert doubts == [(2 * NANO, 101), (0, 102)]
    assert [spent(store, day).week for day in (106, 107, 108)] == [3 * NANO, 2 * NANO, 0]


def test_a_doubt_is_charged_to_every_device_of_a_gateway() -> None:
    store, caps = Store(None), Caps(week="3")
    charge(store, caps, nano=NANO, day=100, device=b"known")

    begin(store, caps, 100)

    for device in (b"known", b"unknown"):
        with pytest.raises(BudgetExhaustedError, match="week"):
            charge(store, caps, nano=1, day=106, epoch=1, device=device)
        charge(store, caps, nano=1, day=107, epoch=1, device=device)


@pytest.mark.parametrize(
    "statement",
    [
        *("DELETE FROM charges", "UPDATE charges SET epoch = 1", "DELETE FROM totals"),
        *("UPDATE costs SET nano = 1", "UPDATE costs SET last = last + 1", "DELETE FROM costs"),
        *("UPDATE totals SET nano = nano - 1", "UPDATE totals SET delta = -1"),
    ],
)
def test_a_ledger_on_disk_is_append_only(tmp_path: Path, statement: str) -> None:
    store = Store(tmp_path)
    charge(store, Caps(), nano=NANO, day=100)

    with pytest.raises(StoreError, match="append only"), store.transaction() as tx:
        tx.execute(statement)

    assert spent(store, 100).lifetime == NANO
    store.close()


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 8), st.booleans()),
        max_size=40,
    )
)
def test_no_order_of_charges_passes_a_cap(attempts: list[tuple[int, int, int, bool]]) -> None:
    store, caps = Store(None), Caps(report="4", metric_week="6", week="8", lifetime="20")
    accepted: list[tuple[int, int, bytes]] = []  # day, epsilon, metric
    epochs: set[tuple[bytes, int]] = set()
    day = 100

    for epsilon, days, epoch, first in attempts:
        day, digest = day + days, DIGEST if first else OTHER
        week = [(cost, metric) for past, cost, metric in accepted if past > day - 7]
        allowed = (
            (digest, epoch) not in epochs
            and epsilon <= 4
            and sum(cost for cost, metric in week if metric == digest) + epsilon <= 6
            and sum(cost for cost, _ in week) + epsilon <= 8
            and sum(cost for _, cost, _ in accepted) + epsilon <= 20
        )
        try:
            charge(store, caps, nano=epsilon * NANO, day=day, epoch=epoch, digest=digest)
        except (AlreadyReportedError, BudgetExhaustedError):
            assert not allowed
        else:
            assert allowed
            accepted.append((day, epsilon, digest))
            epochs.add((digest, epoch))

    assert spent(store, day).lifetime == sum(cost for _, cost, _ in accepted) * NANO


def test_what_is_about_earlier_days_counts_for_every_week_that_holds_one_of_them() -> None:
    """Law: a report of a week's values, made late, fits the weeks that it is about, not today's."""
    store, caps = Store(None), Caps(week="2")
    charge(store, caps, nano=NANO, day=100)
    charge(store, caps, nano=NANO, day=107, epoch=1)

    with pytest.raises(BudgetExhaustedError, match="week"):
        charge(store, caps, nano=2 * NANO, day=120, epoch=2, digest=OTHER, days=Days(101, 107))
    charge(store, caps, nano=NANO, day=120, epoch=2, digest=OTHER, days=Days(101, 107))
    with pytest.raises(BudgetExhaustedError, match="week"):
        charge(store, caps, nano=1, day=120, epoch=3, digest=OTHER, days=Days(106, 112))
    charge(store, caps, nano=2 * NANO, day=120, epoch=4, digest=OTHER, days=Days(114, 120))

    assert spent(store, 120) == ChargeTotals(120, 2 * NANO, 5 * NANO, 0)


def test_a_cost_that_is_deleted_is_carried_to_the_latest_of_its_metric(tmp_path: Path) -> None:
    """Law: on disk or in memory, no statement takes anything from the sum."""
    for store in (Store(None), Store(tmp_path)):
        for i in range(3):
            charge(store, Caps(), nano=NANO, day=100 + i, epoch=i, delta=1)
        charge(store, Caps(), nano=NANO, day=100, digest=OTHER)

        with store.transaction() as tx:
            tx.execute("DELETE FROM costs WHERE digest = ? AND last < 102", (DIGEST,))
            costs = tx.execute("SELECT digest, last, nano, delta FROM costs").fetchall()
        with pytest.raises(StoreError, match="append only"), store.transaction() as tx:
            tx.execute("DELETE FROM costs WHERE digest = ? AND last = 102", (DIGEST,))

        assert costs == [(DIGEST, 102, 3 * NANO, 3), (OTHER, 100, NANO, 0)]
        assert spent(store, 102) == ChargeTotals(102, 4 * NANO, 4 * NANO, 3)
        store.close()
    assert Store(tmp_path).take_doubts() == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 12), st.integers(0, 7)),
        max_size=40,
    )
)
def test_no_order_of_charges_for_any_days_passes_the_cap_of_a_week(
    attempts: list[tuple[int, int, int, int]],
) -> None:
    """Law: of what is about any seven days; and what fits all of them is not refused."""
    store, caps, day = Store(None), Caps(report="8", metric_week="8", week="8"), 100
    accepted: list[tuple[int, Days]] = []

    for epoch, (epsilon, later, ago, length) in enumerate(attempts):
        day += later
        days = Days(day - ago, min(day - ago + length, day))
        allowed = max(_weeks([*accepted, (epsilon, days)], days)) <= 8
        try:
            charge(store, caps, nano=epsilon * NANO, day=day, epoch=epoch, days=days)
        except BudgetExhaustedError:
            assert not allowed
        else:
            assert allowed
            accepted.append((epsilon, days))

    for _, days in accepted:
        assert max(_weeks(accepted, days)) <= 8


def _weeks(charges: list[tuple[int, Days]], held: Days) -> list[int]:
    """Return what is about each seven days that hold any of those *held*."""
    weeks = (range(begin, begin + 7) for begin in range(held.first - 6, held.last + 1))
    return [
        sum(cost for cost, days in charges if set(week) & set(range(days.first, days.last + 1)))
        for week in weeks
    ]


YEARS: Final = 20
METRICS: Final = [metric_text(f"m{i}", every="1h", epsilon="0.001") for i in range(2)]


def steps_of_a_charge(folder: Path, hours: int) -> int:
    """Return how many thousands of SQLite's instructions it takes to record after *hours*."""
    registry, clock = registry_of(*METRICS), FakeClock()
    client = make_client(folder, registry=registry, clock=clock, caps=Caps(lifetime="9999"))
    client.record("m0", True)
    store: Store = client._engine.store
    with store.transaction() as tx:
        fill_ledger(tx, [metric.digest for metric in registry], hours)
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    with store.transaction() as tx:
        connection = tx
    connection.set_progress_handler(count, 10)
    for i in range(20):
        clock.advance(seconds=3_600)
        client.record("m0", True)
        client.record("m1", True)
        assert client.stats()["recorded"] == 3 + 2 * i
    connection.set_progress_handler(None, 0)
    client.close()
    assert "store" not in changed(client)
    return steps


def test_a_charge_takes_as_many_steps_in_a_long_ledger_as_in_a_short_one(tmp_path: Path) -> None:
    """Law: counted in instructions of the database, not in time; an index is a little deeper."""
    short, long = (steps_of_a_charge(tmp_path / str(n), n) for n in (500, 50_000))

    assert long < 1.2 * short


def test_a_ledger_of_more_than_five_megabytes_goes_on_and_is_sound_when_opened(
    tmp_path: Path,
) -> None:
    """Law: no size silences a device; twenty years of two hourly metrics are 350,000 charges."""
    registry, clock = registry_of(*METRICS), FakeClock()
    caps = Caps(lifetime="9999")
    first = make_client(tmp_path, registry=registry, clock=clock, caps=caps)
    first.record("m0", True)
    with first._engine.store.transaction() as tx:
        fill_ledger(tx, [metric.digest for metric in registry], 365 * 24 * YEARS)
    first.close()
    assert (tmp_path / FILE_NAME).stat().st_size > 5 * 1024 * 1024

    again = make_client(tmp_path, registry=registry, clock=clock, caps=caps)
    again.record("m1", True)
    again.close()

    assert changed(again) == {"recorded": 1, "uploaded": 1}
