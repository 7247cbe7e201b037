"""Tallies are exact integers that add: any order, any split."""

from __future__ import annotations

import random
import struct
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core.errors import InvalidTallyError
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.numbers.discrete_laplace import DiscreteLaplace
from collector.core.cells import Cell
from collector.core.entry import AcceptedColumn
from collector.core.errors import CorruptEntryError, TallyOverflowError
from collector.estimation.tally import (
    Mechanisms,
    check_column,
    merge,
    tally_entries,
)
from tests.support.enumeration.seeded import SeededRandomness

GRR_METRIC, SUM_METRIC = b"grrgrr", b"sumsum"
MECHANISMS: Mechanisms = {GRR_METRIC: GRR("1", 5), SUM_METRIC: DiscreteLaplace("1", 100)}
CELLS = [Cell(GRR_METRIC, 1, ""), Cell(GRR_METRIC, 2, ""), Cell(GRR_METRIC, 1, "platform=mac")]

grr_entries = st.lists(
    st.lists(
        st.builds(AcceptedColumn, st.sampled_from(CELLS), st.lists(st.integers(0, 4)).map(bytes)),
        max_size=4,
    ),
    max_size=6,
)
vectors = st.lists(
    st.lists(st.integers(-(2**40), 2**40), max_size=6).map(lambda v: pack(*v)), max_size=8
)


def pack(*counters: int) -> bytes:
    return struct.pack(f">{len(counters)}q", *counters)


def merged(packed: list[bytes], size: int = 5) -> list[int]:
    n, tally = merge(packed, size)
    return [n, *tally.tolist()]


@given(grr_entries)
def test_increments_count_reports_and_items_of_each_cell(
    entries: list[list[AcceptedColumn]],
) -> None:
    expected: dict[Cell, Counter[int]] = {}
    for entry in entries:
        for column in entry:
            counts = expected.setdefault(column.cell, Counter())
            counts.update({0: len(column.payloads)})
            counts.update(item + 1 for item in column.payloads)

    increments = tally_entries(entries, MECHANISMS)

    assert {cell: dict(pairs) for cell, pairs in increments.items()} == {
        cell: {MECHANISMS[cell.metric].tally_size: 0, **+counts}
        for cell, counts in expected.items()
        if counts[0]
    } | {cell: {} for cell, counts in expected.items() if not counts[0]}


def test_increments_leave_zeros_out_but_for_the_last_cell() -> None:
    """It tells the store how wide the tally is."""
    increments = tally_entries([[AcceptedColumn(CELLS[0], bytes([3, 3]))]], MECHANISMS)

    assert increments == {CELLS[0]: [(0, 2), (4, 2), (5, 0)]}


def test_increments_of_a_sum_are_its_tally() -> None:
    mechanism = MECHANISMS[SUM_METRIC]
    chance = SeededRandomness(b"sum")
    column = b"".join(mechanism.randomize(Fraction(value), chance) for value in (10, 20))
    tally = mechanism.tally(column, np).tolist()
    cell = Cell(SUM_METRIC, 1, "")

    increments = tally_entries([[AcceptedColumn(cell, column)]], MECHANISMS)

    last = len(tally)
    wanted = ((i, value) for i, value in enumerate(tally, 1) if value or i == last)
    assert increments[cell] == [(0, 2), *wanted]


@pytest.mark.parametrize("payloads", [b"\0" * 3, b"\0"])
def test_a_column_with_part_of_a_payload_is_refused(payloads: bytes) -> None:
    wide = {GRR_METRIC: GRR("1", 300)}

    with pytest.raises(CorruptEntryError, match="must be whole"):
        tally_entries([[AcceptedColumn(CELLS[0], payloads)]], wide)


def test_a_payload_out_of_range_is_refused() -> None:
    with pytest.raises(CorruptEntryError, match="range"):
        tally_entries([[AcceptedColumn(CELLS[0], bytes([1, 200]))]], MECHANISMS)


def test_check_column_equals_the_check_of_the_mechanism() -> None:
    payloads = random.Random(1).randbytes(500)

    assert check_column(MECHANISMS[GRR_METRIC], payloads) == MECHANISMS[GRR_METRIC].check(payloads)


@given(vectors)
def test_merge_adds_column_by_column(packed: list[bytes]) -> None:
    rows = [struct.unpack(f">{len(v) // 8}q", v) for v in packed]
    expected = [sum(row[i] for row in rows if i < len(row)) for i in range(6)]

    assert merged(packed) == expected


@given(vectors, st.randoms(use_true_random=False), st.integers(0, 8))
def test_merge_does_not_depend_on_order_or_split(
    packed: list[bytes], chance: random.Random, cut: int
) -> None:
    shuffled = chance.sample(packed, len(packed))
    parts = [pack(*merged(shuffled[:cut])), pack(*merged(shuffled[cut:]))]

    assert merged(packed) == merged(shuffled) == merged(parts)


@given(vectors, vectors)
def test_merge_pads_some_vectors_as_it_pads_all(short: list[bytes], full: list[bytes]) -> None:
    """Whole ones take another way than those without their last zeros; together they must too."""
    whole = [vector.ljust(7 * 8, b"\0") for vector in full]

    n, tally = merge([*short, *whole], 6)

    parts = [merge(part, 6) for part in (short, whole)]
    assert n == sum(part[0] for part in parts)
    assert tally.tolist() == [
        sum(cells) for cells in zip(*(p[1].tolist() for p in parts), strict=True)
    ]


def test_merge_adds_more_than_one_block() -> None:
    size = 1 << 20
    vector = pack(1, 2) + bytes(8 * (size - 2)) + pack(3)

    n, tally = merge([vector] * 5, size)

    assert (n, int(tally[0]), int(tally[-1]), int(tally.sum())) == (5, 10, 15, 25)


@pytest.mark.parametrize("vector", [pack(*range(7)), b"\0" * 7, pack(1) + b"\0"])
def test_merge_refuses_a_vector_of_another_tally(vector: bytes) -> None:
    with pytest.raises(InvalidTallyError, match="vector: must be at most 6 counters"):
        merge([vector], 5)


@pytest.mark.parametrize("counter", [1 << 62, -(1 << 62) - 1])
def test_merge_refuses_a_sum_that_may_not_fit(counter: int) -> None:
    with pytest.raises(TallyOverflowError, match="int64"):
        merge([pack(1, counter)] * 2, 5)


def test_merge_is_exact_above_what_a_double_holds() -> None:
    odd = (1 << 53) + 1

    assert merged([pack(odd, odd), pack(odd, -odd)]) == [2 * odd, 0, 0, 0, 0, 0]
