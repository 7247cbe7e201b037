"""Any table of weighted sets is a channel of the ε that is asked for, or is refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Final

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms.exact import exp_floor
from client_sdk.mechanisms.items.cover import Cover

ITEMS: Final = 6
_SETS: Final = st.lists(
    st.tuples(st.integers(256, 65_535), st.integers(1, (1 << ITEMS) - 2)), min_size=1, max_size=12
)


def cover_of(sets: list[tuple[int, int]], epsilon: str, items: int = ITEMS) -> Cover:
    return Cover(epsilon, items, **Cover.table_of(sets, items))


@given(sets=_SETS, epsilon=st.sampled_from(["0.01", "1", "4", "16"]))
def test_any_sets_are_a_channel_within_epsilon_or_are_refused(
    sets: list[tuple[int, int]], epsilon: str
) -> None:
    """Every column adds up to 1, and the largest ratio in a row is the one that is stated."""
    try:
        cover = cover_of(sets, epsilon)
    except InvalidParameterError:
        assume(False)

    laws = [cover.channel_law(item) for item in range(ITEMS)]

    assert [sum(law) for law in laws] == [1] * ITEMS
    ratios = [max(row) / min(row) for row in zip(*laws, strict=True)]
    assert set(ratios) == {cover.likelihood_ratio}
    assert cover.likelihood_ratio <= exp_floor(Fraction(epsilon))


@given(sets=_SETS)
def test_debiasing_undoes_the_channel_whatever_the_sets_are(sets: list[tuple[int, int]]) -> None:
    """In expectation: of a device's law it makes the item that the device holds."""
    try:
        cover = cover_of(sets, "1")
    except InvalidParameterError:
        assume(False)
    channel = cover.channel_matrix(np)
    every = np.eye(cover.payload_count, dtype=np.int64)

    stands = np.array([cover.debias(one, 1, np).totals for one in every]).T

    assert stands @ channel == pytest.approx(np.eye(ITEMS), abs=1e-6)


def test_the_law_of_sums_is_the_variance_of_what_reports_stand_for() -> None:
    cover = cover_of([(300, 0b000111), (280, 0b111000), (256, 0b010101), (256, 0b110010)], "2")
    channel = cover.channel_matrix(np)
    every = np.eye(cover.payload_count, dtype=np.int64)
    stands = np.array([cover.debias(one, 1, np).totals for one in every])
    weights = np.array([[1, 1, 1, 0, 0, 0], [1, 0, -1, 0.5, 0, 2]])

    laws = cover.sum_laws(weights, np)

    sums = stands @ weights.T
    moments = channel.T @ sums**2 - (channel.T @ sums) ** 2
    assert laws == pytest.approx(moments.T)


def test_sets_of_two_tell_items_apart_though_each_has_an_even_number() -> None:
    """As bits their rank is too small modulo 2; it is subset selection."""
    pairs = [(256, 1 << a | 1 << b) for a, b in combinations(range(5), 2)]

    assert cover_of(pairs, "1", 5).payload_count == len(pairs)


def test_a_table_that_cannot_tell_items_apart_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="must tell all items apart"):
        cover_of([(256, 0b0011), (256, 0b1100), (256, 0b0110), (256, 0b1001)], "1", 4)


def test_the_chances_of_a_table_do_not_depend_on_the_unit_of_its_weights() -> None:
    sets = [(400, 0b000111), (300, 0b111000), (300, 0b010101), (256, 0b110010)]
    double = [(2 * weight, items) for weight, items in sets]

    one, two = cover_of(sets, "1"), cover_of(double, "1")

    assert one.channel_law(3) == two.channel_law(3)


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-6", "0.01", "16"])
@pytest.mark.parametrize("items", [2, 9, 40])
def test_what_is_small_where_epsilon_is_small_does_not_get_lost_in_rounding(
    epsilon: str, items: int
) -> None:
    """Law: reports stand for what is held, and the predicted error is the one of the laws."""
    cover = Cover(epsilon, items)
    every = np.eye(items)

    laws, channel = cover.sum_laws(every, np), cover.channel_matrix(np)

    stands = np.array(
        [cover.debias(one, 1, np).totals for one in np.eye(cover.payload_count, dtype=int)]
    )
    assert stands.T @ channel == pytest.approx(every, abs=1e-15 * np.abs(stands).max() * items)
    assert cover.predict(1) == pytest.approx(float(np.sqrt(laws.mean())), rel=1e-6)


def test_a_table_of_kilobytes_is_not_written_out_where_the_mechanism_is_shown() -> None:
    """Python writes no integer of more than 4,300 digits in decimal: it would raise."""
    assert "domain_size=64" in repr(Cover("1", 64))


@given(sets=_SETS)
def test_a_table_is_refused_just_where_its_sets_do_not_tell_items_apart(
    sets: list[tuple[int, int]],
) -> None:
    rows = [[items >> item & 1 for item in range(ITEMS)] for _, items in sets]
    covered = np.array([weight for weight, _ in sets]) @ rows
    completing = np.diag(covered.max() - covered > 0)
    is_known = np.linalg.matrix_rank(np.vstack([rows, completing])) == ITEMS

    if is_known:
        assert cover_of(sets, "1").payload_count == len(sets) + completing.any(axis=1).sum()
    else:
        with pytest.raises(InvalidParameterError, match="must tell all items apart"):
            cover_of(sets, "1")
