"""Facts about count mean sketches: published noise, exact collisions, and stated variances."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from client_sdk.mechanisms.deployed._sketch import PRIME, Sketch
from client_sdk.mechanisms.deployed.cms import CMS
from client_sdk.mechanisms.deployed.hcms import HCMS
from tests.support.enumeration.linear import moments
from tests.support.enumeration.seeded import SeededRandomness

both = pytest.mark.parametrize("kind", [CMS, HCMS])


@pytest.mark.parametrize(
    ("sketch", "factor"),
    [
        pytest.param(CMS("8", 100), 0.1379, id="E18-cms-8"),
        pytest.param(CMS("2", 100), 0.9595, id="E18-cms-2"),
        pytest.param(HCMS("4", 100), 1.0373, id="E18-hcms-4"),
    ],
)
def test_the_noise_is_the_published_factor(sketch: Sketch, factor: float) -> None:
    assert math.sqrt(sketch.noise) == pytest.approx(factor, abs=5e-5)


@both
@pytest.mark.parametrize("epsilon", ["0.5", "2", "8"])
def test_the_expected_estimate_is_the_truth_and_the_collisions_beyond_chance(
    kind: Callable[..., Sketch], epsilon: str
) -> None:
    sketch = kind(epsilon, 5, rows=3, columns=4)
    cells = [[sketch.cell_of(row, x) for row in range(3)] for x in range(5)]

    for value in range(5):
        mean, _ = moments(sketch, value)

        shared = [
            sum(a == b for a, b in zip(cells[x], cells[value], strict=True)) / 3 for x in range(5)
        ]
        assert mean == pytest.approx([4 / 3 * (c - 1 / 4) for c in shared], abs=1e-9)
        assert mean[value] == pytest.approx(1)


@both
def test_the_variance_of_a_report_is_its_noise_and_its_row(kind: Callable[..., Sketch]) -> None:
    sketch = kind("2", 5, rows=3, columns=4)

    _, variances = moments(sketch, 0)

    own = 0 if kind is CMS else 1  # a sign of ±c has c^2 - 1 around a mean of 1
    assert variances[0] == pytest.approx((4 / 3) ** 2 * (sketch.noise - own), rel=1e-9)


@both
def test_the_hash_by_numpy_is_the_hash_of_the_device(kind: Callable[..., Sketch]) -> None:
    sketch = kind("1", 3000, rows=5, columns=64)

    columns = [row.tolist() for row in sketch.columns_of_items(np)]

    assert columns == [[sketch.cell_of(row, x) for x in range(3000)] for row in range(5)]


@both
def test_the_largest_item_is_hashed_without_overflow(kind: Callable[..., Sketch]) -> None:
    sketch = kind("1", 1 << 24, rows=2, columns=1024)

    last = [int(row[-1]) for row in sketch.columns_of_items(np)]

    assert last == [sketch.cell_of(row, (1 << 24) - 1) for row in range(2)]
    assert (PRIME - 1) * ((1 << 24) + 1) < 1 << 63


@both
def test_items_collide_in_about_one_column_in_m(kind: Callable[..., Sketch]) -> None:
    sketch = kind("1", 400, rows=64, columns=32)
    columns = np.array(list(sketch.columns_of_items(np)))

    shared = (columns[:, :, None] == columns[:, None, :]).mean(axis=0)
    share = shared[~np.eye(400, dtype=bool)].mean()

    assert share == pytest.approx(1 / 32, rel=0.02)


def test_the_tally_of_cms_is_the_ones_of_each_column_by_row() -> None:
    sketch, randomness = CMS("1", 9, rows=3, columns=16), SeededRandomness(b"tally")
    rows = [sketch.randomize(i % 9, randomness) for i in range(300)]
    expected = np.zeros((3, 17), dtype=int)
    for row in rows:
        bits = int.from_bytes(row[4:], "big")
        expected[row[3], 0] += 1
        for c in range(16):
            expected[row[3], 1 + c] += bits >> (15 - c) & 1

    tally = sketch.tally(b"".join(rows), np)

    assert tally.reshape(3, 17).tolist() == expected.tolist()


@both
def test_a_report_supports_the_items_whose_cell_agrees(kind: Callable[..., Sketch]) -> None:
    sketch = kind("16", 8, rows=4, columns=64)
    randomness = SeededRandomness(b"support")

    supported = sum(5 in list(sketch.supports(sketch.randomize(5, randomness))) for _ in range(200))

    assert supported > 190
