"""The ledger: caps over all metrics, one report an epoch, and nothing ever given back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.errors import (
    AlreadyReportedError,
    BudgetExhaustedError,
    InvalidParameterError,
    StoreError,
)
from client_sdk.ledger import Caps, Charge, Ledger, Spent, spent_by
from client_sdk.store import Store

NANO = 10**9
DIGEST = b"digest"


def charge(store: Store, caps: Caps, *, nano: int, day: int, epoch: int = 0) -> None:
    with store.transaction() as tx:
        Ledger(caps).charge(tx, Charge(DIGEST, epoch, nano, day))


def spent(store: Store, day: int) -> Spent:
    with store.transaction() as tx:
        return spent_by(tx, day)


def test_caps_are_whole_nano_epsilon() -> None:
    caps = Caps(report="0.1", week="2.000000001", lifetime="999999")

    assert (caps.report, caps.week, caps.lifetime) == (NANO // 10, 2 * NANO + 1, 999_999 * NANO)


@pytest.mark.parametrize(
    "cap",
    ["0", "0.0", "-1", "1e9", "nan", "inf", "", " 1", "1.", "1.0000000001", "1000000", 4, 4.0],
)
def test_caps_that_are_not_a_positive_decimal_are_refused(cap: str) -> None:
    with pytest.raises(InvalidParameterError, match=r"caps\.week="):
        Caps(week=cap)


@pytest.mark.parametrize("caps", [Caps(report="0.5"), Caps(week="0.5"), Caps(lifetime="0.5")])
def test_a_charge_above_any_cap_is_refused_and_writes_nothing(caps: Caps) -> None:
    store = Store(None)

    with pytest.raises(BudgetExhaustedError):
        charge(store, caps, nano=NANO // 2 + 1, day=100)

    assert spent(store, 100) == Spent(100, 0, 0)


def test_a_cap_can_be_spent_to_the_last_nano() -> None:
    store, caps = Store(None), Caps(week="1")

    for epoch in range(10):
        charge(store, caps, nano=NANO // 10, day=100, epoch=epoch)

    assert spent(store, 100).week == NANO


def test_a_second_charge_of_the_same_metric_and_epoch_is_refused() -> None:
    store = Store(None)
    charge(store, Caps(), nano=NANO, day=100)

    with pytest.raises(AlreadyReportedError):
        charge(store, Caps(), nano=NANO, day=101)

    assert spent(store, 101).lifetime == NANO


@pytest.mark.parametrize(("day", "week"), [(100, NANO), (106, NANO), (107, 0)])
def test_a_week_is_seven_days_with_the_present_one(day: int, week: int) -> None:
    store = Store(None)
    charge(store, Caps(), nano=NANO, day=100)

    assert spent(store, day) == Spent(day, week, NANO)


def test_a_lifetime_cap_outlasts_every_week() -> None:
    store, caps = Store(None), Caps(week="1", lifetime="2")
    charge(store, caps, nano=NANO, day=100, epoch=0)
    charge(store, caps, nano=NANO, day=200, epoch=1)

    with pytest.raises(BudgetExhaustedError, match="lifetime"):
        charge(store, caps, nano=1, day=9_999, epoch=2)

    assert spent(store, 9_999) == Spent(9_999, 0, 2 * NANO)


def test_a_clock_that_goes_backward_frees_nothing() -> None:
    store, caps = Store(None), Caps(week="1")
    charge(store, caps, nano=NANO, day=100, epoch=0)

    with pytest.raises(BudgetExhaustedError, match="week"):
        charge(store, caps, nano=1, day=50, epoch=1)

    assert spent(store, 50) == Spent(100, NANO, NANO)


def test_a_charge_made_on_a_backward_clock_counts_from_the_latest_day() -> None:
    store = Store(None)
    charge(store, Caps(), nano=1, day=100, epoch=0)

    charge(store, Caps(), nano=1, day=50, epoch=1)

    assert spent(store, 106).week == 2


@pytest.mark.parametrize("statement", ["DELETE FROM charges", "UPDATE charges SET nano = 1"])
def test_a_ledger_on_disk_is_append_only(tmp_path: Path, statement: str) -> None:
    store = Store(tmp_path)
    charge(store, Caps(), nano=NANO, day=100)

    with pytest.raises(StoreError, match="append only"), store.transaction() as tx:
        tx.execute(statement)

    assert spent(store, 100).lifetime == NANO
    store.close()


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 30), st.integers(0, 8)), max_size=40))
def test_no_order_of_charges_and_clock_jumps_passes_a_cap(
    attempts: list[tuple[int, int, int]],
) -> None:
    store, caps = Store(None), Caps(report="4", week="8", lifetime="20")
    accepted: list[tuple[int, int]] = []  # (day the charge counts from, epsilon)
    epochs: set[int] = set()

    for epsilon, day, epoch in attempts:
        latest = max([day, *(past for past, _ in accepted)])
        week = sum(cost for past, cost in accepted if past > latest - 7)
        total = sum(cost for _, cost in accepted)
        allowed = (
            epoch not in epochs and epsilon <= 4 and week + epsilon <= 8 and total + epsilon <= 20
        )
        try:
            charge(store, caps, nano=epsilon * NANO, day=day, epoch=epoch)
        except (AlreadyReportedError, BudgetExhaustedError):
            assert not allowed
        else:
            assert allowed
            accepted.append((latest, epsilon))
            epochs.add(epoch)

    assert spent(store, 0).lifetime == sum(cost for _, cost in accepted) * NANO
