"""Post-processing by name: each keeps its promise, and the raw number is never lost."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from collector.analytics.postprocess import (
    FALSE_KEEPS,
    OF_CURVES,
    OF_PARTS,
    OF_SEVERAL,
    PROMISES,
    apply,
    base_cut,
    processed,
)
from collector.analytics.rows import RAW, Row, empty_row, row_of
from collector.core.errors import QueryError
from collector.core.remarks import Code, remark
from collector.estimation.estimate import Estimate
from tests.support.enumeration.coverage import fits_rate

N: Final = 1_000
ALPHA: Final = 0.05
ROUNDS: Final = 4_000


def rows_of(*shares: float, error: float = 0.02) -> tuple[Row, ...]:
    """Return raw rows of *shares*."""
    return tuple(
        row_of(
            {"item": str(i)},
            Estimate(share, error, share - 2 * error, share + 2 * error),
            N,
            ALPHA,
            "share",
        )
        for i, share in enumerate(shares)
    )


def values(rows: tuple[Row, ...]) -> list[float | None]:
    return [row.value for row in rows]


def test_norm_sub_is_the_nearest_point_in_squares() -> None:
    """Two names for one point; the literature knows it by both."""
    raw = np.random.default_rng(1).normal(1 / 30, 0.05, 30)

    assert apply("norm_sub", raw, raw, N).tolist() == apply("simplex_l2", raw, raw, N).tolist()


def test_the_lattice_gives_whole_devices() -> None:
    """Shares times the reports are counts."""
    counts = apply("simplex_l1", [0.7004, 0.3503, -0.05], [0.02] * 3, N) * N

    assert counts == pytest.approx(np.rint(counts), abs=1e-9)


def test_a_curve_is_pooled_by_how_sure_its_points_are() -> None:
    """A point known for certain stays; the other comes to it."""
    found = apply("isotonic", [0.5, 0.4, 1.0], [0.0, 0.1, 0.0], N)

    assert found == pytest.approx([0.5, 0.5, 1], abs=1e-9)


def test_a_curve_of_unknown_errors_is_pooled_evenly() -> None:
    """Without errors every point counts alike."""
    assert apply("isotonic", [0.6, 0.4], [0, 0], N) == pytest.approx([0.5, 0.5])


def test_an_item_that_is_not_shown_takes_part_in_the_sum() -> None:
    """Of a boolean only "true" is shown; "false" is the rest, so 0.4 stays 0.4."""
    (inside,) = processed(rows_of(0.4), "norm_sub", whole=False)
    (beyond,) = processed(rows_of(1.1), "simplex_l1", whole=False)

    assert inside.value == pytest.approx(0.4)
    assert beyond.value == 1


def test_rows_without_numbers_stay_as_they_are() -> None:
    """Where a slice is refused there is nothing to make consistent."""
    refused = (
        *rows_of(0.4),
        empty_row({"item": "b"}, 3, ALPHA, "share", remark(Code.BOUNDS)),
    )

    assert processed(refused, "norm_sub") == refused
    assert processed((), "norm_sub") == ()


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    """The error names the field of the request."""
    with pytest.raises(QueryError, match=r"^postprocess: must be one of raw, norm_sub"):
        processed(rows_of(0.4), "softmax")


def test_the_names_offered_anywhere_are_the_names_that_have_a_promise() -> None:
    """Each kind of shares offers raw first, and nothing that does not exist."""
    assert {*OF_PARTS, *OF_SEVERAL, *OF_CURVES} == set(PROMISES)
    assert {names[0] for names in (OF_PARTS, OF_SEVERAL, OF_CURVES)} == {RAW}


def any_kept(threshold: Any, items: int) -> int:
    """Return in how many of ROUNDS answers an item that nobody holds is kept."""
    noise = np.random.default_rng(7).normal(0, 0.01, (ROUNDS, items))
    return sum(bool(threshold(row).any()) for row in noise)


def test_base_cut_keeps_what_nobody_holds_as_rarely_as_it_says() -> None:
    """Of 4,000 answers; a threshold for one item instead of all 25 is caught."""
    items = 25
    rate = 1 - (1 - FALSE_KEEPS / items) ** items

    kept = any_kept(lambda row: base_cut(row, np.full(items, 0.01)), items)
    of_one = any_kept(lambda row: np.array([base_cut([v], [0.01])[0] for v in row]), items)

    assert fits_rate(kept, ROUNDS, rate)
    assert rate <= FALSE_KEEPS
    assert not fits_rate(of_one, ROUNDS, rate)


def test_base_cut_leaves_what_it_keeps_unbiased() -> None:
    """A kept share is the given one, a cut one is 0, and a second cut changes nothing."""
    found = base_cut([0.5, 0.3, 0.01, -0.2], [0.02] * 4)

    assert found.tolist() == [0.5, 0.3, 0, 0]
    assert base_cut(found, [0.02] * 4).tolist() == found.tolist()
