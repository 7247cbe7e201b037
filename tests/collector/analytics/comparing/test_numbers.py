"""Numbers that are compared, of single answers and of joint ones."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from client_sdk.registry.metric import Metric
from collector.analytics.comparing.differences import difference
from collector.analytics.comparing.numbers import (
    DRAWN,
    Number,
    estimates_of,
    items_of,
    numbers_of,
    refusal,
)
from collector.analytics.comparing.scan import scans_of
from collector.analytics.verb import Slice, merged, united
from collector.core.errors import QueryError
from collector.estimation.estimate import shares
from tests.support.crowds.asking import ask
from tests.support.device.registries import BOOLEAN, CATEGORY, NUMBER, RETENTION, SET, TWO_LAYER
from tests.support.enumeration.coverage import fits_rate
from tests.support.enumeration.populations import metric_of


@pytest.mark.parametrize(
    ("fields", "items", "unit"),
    [
        (BOOLEAN, ("true",), "share"),
        (CATEGORY, ("free", "pro", "team"), "share"),
        (SET, ("a", "b", "c"), "share"),
        (NUMBER, ("mean",), None),
    ],
)
def test_every_kind_has_its_items(
    fields: dict[str, str], items: tuple[str, ...], unit: str | None
) -> None:
    """Of a boolean only "true"; "false" may be named."""
    metric = metric_of(fields)

    assert refusal(metric) is None
    assert items_of(metric, None, 3) == items
    assert items_of(metric, items[-1], 1) == items[-1:]
    assert metric.domain.unit == unit or unit is None
    if fields is BOOLEAN:
        assert items_of(metric, "false", 1) == ("false",)


def test_more_items_than_one_picture_holds_must_be_named() -> None:
    """The error says how many there are, and of an unknown one which."""
    with pytest.raises(QueryError, match=r"^options\.item: must name one of the 3 items"):
        items_of(metric_of(CATEGORY), None, 2)
    with pytest.raises(QueryError, match=r"^options\.item: must be one of: free, pro, team"):
        items_of(metric_of(CATEGORY), "gold", 2)
    with pytest.raises(QueryError, match=r"^of: must be one of: free, pro, team"):
        items_of(metric_of(CATEGORY), None, 1, "of")


def test_slices_together_have_all_their_reports_and_epochs() -> None:
    """Integers are added, an epoch counts once."""
    metric = metric_of(CATEGORY)
    parts = [
        Slice(metric, {}, 6, np.array([1, 2, 3]), epochs, late=1) for epochs in ((1, 2), (2, 3))
    ]

    whole = merged(parts, {"time": "both"})

    assert (whole.n, whole.tally.tolist(), whole.epochs, whole.late) == (
        12,
        [2, 4, 6],
        (1, 2, 3),
        2,
    )


def test_repeated_responses_are_worth_those_of_one_epoch_beside_other_devices() -> None:
    """The same noise, sent in each of four epochs, is no smaller than sent once."""
    metric = metric_of(TWO_LAYER)
    size = metric.mechanism.tally_size
    one = Slice(metric, {}, 900, np.full(size, 900 // size), (1, 2, 3, 4))

    alone = shares(metric.mechanism, one.tally, one.n, 0.05)[1].std_error

    apart, same = (
        numbers_of(one, ("pro",), "reported", in_time=in_time)["pro"].variance
        for in_time in (False, True)
    )

    assert apart == pytest.approx(4 * alone**2)
    assert same == pytest.approx(alone**2)
    assert estimates_of(one, 0.05)["pro"].std_error == pytest.approx(2 * alone)


def test_devices_that_may_have_reported_under_two_definitions_count_with_all_their_epochs() -> None:
    """A device that told the same under each, in five epochs: its value counts five times."""
    metrics = [metric_of({**BOOLEAN, "epsilon": f'"{epsilon}"'}) for epsilon in ("16", "15.9")]
    under = [
        Slice(metric, {}, n, np.array([n - n // 2, n // 2]), epochs)
        for metric, n, epochs in zip(metrics, (3_000, 2_000), ((0, 1, 2), (3, 4)), strict=True)
    ]

    (both,) = united([[part] for part in under], metrics[0])
    number = numbers_of(both, ("true",), "drawn", in_time=False)["true"]

    assert number.value == pytest.approx(0.5, abs=1e-3)
    assert number.n == 5_000
    assert number.variance == pytest.approx(5 * 0.25 / 5_000, rel=1e-3)  # noise is next to nothing


def test_a_change_of_repeated_responses_counts_each_epoch_anew() -> None:
    """A series is compared with itself at another time, where what repeats cancels."""
    metric = metric_of(TWO_LAYER)
    size = metric.mechanism.tally_size
    even, first = np.full(size, 1_200), np.array([1_300, *[1_200] * (size - 2), 1_100])

    def p_value(epochs: int) -> float:
        parts = [
            Slice(metric, {}, 3 * 1_200, tally, tuple(range(i * epochs, (i + 1) * epochs)))
            for i, tally in enumerate((even, first))
        ]
        return scans_of(parts, ("free",), "reported")["free"].p_value

    assert p_value(7) == pytest.approx(p_value(1))
    assert p_value(1) < 1


TRIALS: Final = 1_500
DEVICES: Final = 3_000
# Of 00, 01, 10, 11: a third was active in the first period, 30 % of these in the second.
LAW: Final = (0.4, 0.267, 0.233, 0.1)
ITEM: Final = "week 1"


def retention(epsilon: str) -> Metric:
    changes = {"epsilon": f'"{epsilon}"', "mechanism": '"grr"', "min_reports": "100"}
    return metric_of({**RETENTION, "periods": '["week 0", "week 1"]'}, **changes)


def drawn(metric: Metric, n: int, law: Any, chance: np.random.Generator) -> Slice:
    channel: Any = metric.mechanism.channel  # type: ignore[attr-defined]  # grr has one
    p, q = float(channel.p), float(channel.q)
    held = chance.multinomial(n, law)
    tally = sum(
        chance.multinomial(k, q + (p - q) * row) for k, row in zip(held, np.eye(4), strict=True)
    )
    return Slice(metric, {"arm": "a"}, n, np.asarray(tally), (0,))


@pytest.mark.parametrize("epsilon", ["1.0", "8.0"])
def test_a_difference_of_who_came_back_holds_at_its_level(epsilon: str) -> None:
    """Devices drawn anew in both arms: with ε 1 noise is most of the error, with 8 chance is.

    Were the part that the share is of not counted, the latter would be missed.
    """
    chance = np.random.default_rng(20261122)
    metric = retention(epsilon)
    n = DEVICES * (20 if epsilon == "1.0" else 1)
    inside = inside_without = 0
    for _ in range(TRIALS):
        first, second = (
            numbers_of(drawn(metric, n, LAW, chance), [ITEM], DRAWN, in_time=False)[ITEM]
            for _ in range(2)
        )
        found = difference(first, second, 0.05)
        narrow = difference(without_part(first), without_part(second), 0.05)
        inside += found.ci_low <= 0 <= found.ci_high
        inside_without += narrow.ci_low <= 0 <= narrow.ci_high

    assert fits_rate(inside, TRIALS, 0.95), inside
    assert epsilon == "1.0" or not fits_rate(inside_without, TRIALS, 0.95)


def without_part(one: Number) -> Number:
    """Return a number whose chance of sampling were that of a share of all devices."""
    spread = one.value * (1 - one.value) / one.n
    part = LAW[2] + LAW[3]
    return Number(one.value, one.variance - spread / part + spread, one.n)


def test_a_group_of_which_nobody_may_have_been_active_has_no_comparison() -> None:
    """The reason is that of the verb retention."""
    chance = np.random.default_rng(7)
    metric = retention("0.5")
    few = drawn(metric, 400, (0.5, 0.5, 0.0, 0.0), chance)
    many = drawn(metric, 100_000, LAW, chance)
    parts = [
        Slice(metric, {"arm": arm}, one.n, one.tally, (0,))
        for arm, one in (("a", few), ("b", many))
    ]

    found = ask("lift", parts, options={"dimension": "arm", "control": "b"})

    assert {row.value for row in found.rows} == {None}
    assert all("is in the group before is not sure" in (row.reason or "") for row in found.rows)
