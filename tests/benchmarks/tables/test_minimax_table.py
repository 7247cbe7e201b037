"""The designs of minimax are those that the program of the benchmark gives."""

from __future__ import annotations

from typing import Final

import pytest

from benchmarks.tables.minimax_table import SLACK, alone, best_of, variance
from client_sdk.mechanisms.numbers.minimax import DESIGNS

ROW: Final = 10  # of DESIGNS, from ε = 2 on
EXACT: Final = 2e-3  # of the variance: a byte may differ on another processor


def test_a_row_of_the_table_is_what_the_program_gives_for_its_ends() -> None:
    """Of another processor's doubles a byte may be rounded otherwise; the error then is as good."""
    (first, width, distances), (last, *_) = DESIGNS[ROW : ROW + 2]

    worst, found, _ = best_of(first, last)

    assert found == width
    for thousandths in (first, last):
        beside = variance(thousandths, width, int(distances, 16)) / alone(thousandths)
        assert beside <= worst * (1 + EXACT)
        assert worst <= SLACK[0]


@pytest.mark.parametrize("distances", [0xFFFF, 0x80FF])
def test_a_design_whose_windows_do_not_rise_is_no_candidate(distances: int) -> None:
    assert variance(1_000, 1, distances) == float("inf")
