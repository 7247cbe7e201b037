"""The ledger: caps over all metrics, one report an epoch, and nothing ever given back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk import meta
from client_sdk.caps import Caps
from client_sdk.errors import AlreadyReportedError, BudgetExhaustedError, StoreError
from client_sdk.ledger import DOUBT, Charge, Ledger, Spent, spent_by, spent_on
from client_sdk.store import Store

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
) -> None:
    with store.transaction() as tx:
        Ledger(caps).charge(tx, Charge(digest, epoch, nano, delta, device, dearest), day)


def settle(store: Store, caps: Caps, day: int) -> None:
    with store.transaction() as tx:
        meta.put(tx, "doubt", 1)
        Ledger(caps).settle(tx, day)


def spent(store: Store, day: int, device: bytes = b"") -> Spent:
    with store.transaction() as tx:
        return spent_by(tx, day, device)


@pytest.mark.parametrize(
    "caps", [Caps(report="0.5"), Caps(metric_week="0.5"), Caps(week="0.5"), Caps(lifetime="0.5")]
)
def test_a_charge_above_any_cap_is_refused_and_writes_nothing(caps: Caps) -> None:
    store = Store(None)

    with pytest.raises(BudgetExhaustedError):
        charge(store, caps, nano=NANO // 2 + 1, day=100)

    assert spent(store, 100) == Spent(100, 0, 0, 0)


def test_a_cap_can_be_spent_to_the_last_nano() -> None:
    store, caps = Store(None), Caps(week="1")

    for epoch in range(10):
        charge(store, caps, nano=NANO // 10, day=100, epoch=epoch)

    assert spent(store, 100).week == NANO


def test_a_cap_of_a_metric_leaves_the_others_their_share() -> None:
    """One metric alone cannot use up the week of all."""
    store, caps = Store(None), Caps(metric_week="1", week="3")
    charge(store, caps, nano=NANO, day=100, epoch=0)

    with pytest.raises(BudgetExhaustedError, match="metric_week"):
        charge(store, caps, nano=1, day=106, epoch=1)
    charge(store, caps, nano=NANO, day=106, digest=OTHER)
    charge(store, caps, nano=NANO, day=107, epoch=1)

    with store.transaction() as tx:
        assert (spent_on(tx, 107, DIGEST), spent_on(tx, 107, OTHER)) == (NANO, NANO)


def test_deltas_add_up_for_life_over_all_metrics() -> None:
    """Basic composition: the sum of all deltas stays within the cap, however long it takes."""
    store, caps = Store(None), Caps(delta="0.000002")
    charge(store, caps, nano=1, delta=10**6, day=100)
    charge(store, caps, nano=1, delta=10**6, day=900, digest=OTHER)

    with pytest.raises(BudgetExhaustedError, match=r"caps\.delta="):
        charge(store, caps, nano=1, delta=1, day=9_999, epoch=1)

    assert spent(store, 9_999).delta == 2 * 10**6


def test_a_second_charge_of_the_same_metric_and_epoch_is_refused() -> None:
    store = Store(None)
    charge(store, Caps(), nano=NANO, day=100)

    with pytest.raises(AlreadyReportedError):
        charge(store, Caps(), nano=NANO, day=101)

    assert spent(store, 101).lifetime == NANO


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


def test_what_is_charged_is_not_the_dearest_that_it_could_have_been() -> None:
    store = Store(None)

    charge(store, Caps(), nano=NANO // 4, day=100, dearest=NANO)

    assert spent(store, 100).week == NANO // 4


def test_devices_of_a_gateway_have_budgets_of_their_own() -> None:
    store, caps = Store(None), Caps(week="1")

    for device in (b"first", b"other"):
        charge(store, caps, nano=NANO, day=100, device=device)

    assert [spent(store, 100, device).week for device in (b"first", b"other", b"none")] == [
        *(NANO, NANO, 0),
    ]


@pytest.mark.parametrize(("day", "week"), [(100, NANO), (106, NANO), (107, 0)])
def test_a_week_is_seven_days_with_the_present_one(day: int, week: int) -> None:
    store = Store(None)
    charge(store, Caps(), nano=NANO, day=100)

    assert spent(store, day) == Spent(day, week, NANO, 0)


def test_a_lifetime_cap_outlasts_every_week() -> None:
    store, caps = Store(None), Caps(week="1", lifetime="2")
    charge(store, caps, nano=NANO, day=100, epoch=0)
    charge(store, caps, nano=NANO, day=200, epoch=1)

    with pytest.raises(BudgetExhaustedError, match="lifetime"):
        charge(store, caps, nano=1, day=9_999, epoch=2)

    assert spent(store, 9_999) == Spent(9_999, 0, 2 * NANO, 0)


def test_a_doubt_is_charged_the_rest_of_the_week_once() -> None:
    """What another copy may have spent counts; never more than the cap."""
    store, caps = Store(None), Caps(week="3")
    charge(store, caps, nano=NANO, day=100)

    settle(store, caps, 101)
    settle(store, caps, 102)

    with store.transaction() as tx:
        doubts = tx.execute("SELECT nano, day FROM charges WHERE digest = ?", (DOUBT,)).fetchall()
        assert meta.get(tx, "doubt") is None
    assert doubts == [(2 * NANO, 101), (0, 102)]
    assert [spent(store, day).week for day in (106, 107, 108)] == [3 * NANO, 2 * NANO, 0]


def test_a_doubt_is_charged_to_every_device_of_a_gateway() -> None:
    store, caps = Store(None), Caps(week="3")
    charge(store, caps, nano=NANO, day=100, device=b"known")

    settle(store, caps, 100)

    for device in (b"known", b"unknown"):
        with pytest.raises(BudgetExhaustedError, match="week"):
            charge(store, caps, nano=1, day=106, epoch=1, device=device)
        charge(store, caps, nano=1, day=107, epoch=1, device=device)


@pytest.mark.parametrize("statement", ["DELETE FROM charges", "UPDATE charges SET nano = 1"])
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
