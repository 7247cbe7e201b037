"""Facts about projective geometry response: the geometry, and a decode that stays exact."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from client_sdk.mechanisms import MAX_REPORTS
from client_sdk.mechanisms.items.pgr import PGR

LARGE: Final = [("1", 65_536), ("2", 65_536), ("5", 65_536)]  # orders 3, 7 and 61


def digits(mechanism: PGR) -> Any:
    """Return the digits of every point from its number, shape (points, dimension)."""
    spelled = []
    for point in range(mechanism.points):
        leading, tail = mechanism.vector(point)
        spelled.append(mechanism.order**leading + tail)
    places = mechanism.order ** np.arange(mechanism.dimension)
    return np.array(spelled)[:, None] // places % mechanism.order


def counted(mechanism: PGR, tally: Any, items: list[int]) -> list[int]:
    """Return the reports orthogonal to each of *items* by integer products, point by point."""
    points = digits(mechanism)
    return [int(tally[points @ points[item] % mechanism.order == 0].sum()) for item in items]


def tallies(mechanism: PGR) -> list[Any]:
    """Return tallies of as many reports as there may be: all alike, in one cell, and in three."""
    size = mechanism.tally_size
    alike = np.full(size, MAX_REPORTS // size)
    alike[0] += MAX_REPORTS - alike.sum()
    one, three = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    one[size - 1] = MAX_REPORTS
    three[[0, size // 2, size - 2]] = [1, MAX_REPORTS - 3, 2]
    dice = np.random.default_rng(1)
    return [alike, one, three, dice.multinomial(MAX_REPORTS, dice.dirichlet(np.full(size, 0.01)))]


@pytest.mark.parametrize(("epsilon", "domain_size"), LARGE)
def test_the_decode_is_exact_for_the_most_reports_of_a_large_domain(
    epsilon: str, domain_size: int
) -> None:
    mechanism = PGR(epsilon, domain_size)
    items = [0, 1, 2, 40, 1000, domain_size // 2, domain_size - 2, domain_size - 1]

    for tally in tallies(mechanism):
        found = mechanism.support_counts(tally, MAX_REPORTS, np)
        assert found.dtype == np.int64
        assert found[items].tolist() == counted(mechanism, tally, items)


@pytest.mark.parametrize(("order", "domain_size"), [(2, 7), (2, 5), (3, 40), (5, 31), (7, 20)])
def test_the_decode_equals_integer_products_for_every_item(order: int, domain_size: int) -> None:
    mechanism = PGR("1", domain_size, order=order)
    tally = np.random.default_rng(order).integers(0, 1000, mechanism.tally_size)

    found = mechanism.support_counts(tally, int(tally.sum()), np)

    assert found.tolist() == counted(mechanism, tally, list(range(domain_size)))


@pytest.mark.parametrize(("order", "domain_size"), [(2, 7), (3, 13), (5, 31), (7, 57)])
def test_the_number_of_a_point_and_its_digits_are_one_to_one(order: int, domain_size: int) -> None:
    mechanism = PGR("1", domain_size, order=order)

    for point in range(mechanism.points):
        leading, tail = mechanism.vector(point)
        vector = order**leading + tail
        assert mechanism.number(vector) == point


def test_every_multiple_of_a_vector_is_the_same_point() -> None:
    mechanism = PGR("1", 31, order=5)
    points = digits(mechanism)
    places = 5 ** np.arange(mechanism.dimension)

    for factor in range(1, 5):
        multiples = (points * factor % 5 * places).sum(axis=1).tolist()
        assert [mechanism.number(vector) for vector in multiples] == list(range(31))


def test_every_two_points_share_as_many_orthogonal_points() -> None:
    mechanism = PGR("1", 13, order=3)
    points = digits(mechanism)

    orthogonal = points @ points.T % 3 == 0

    shared = orthogonal.astype(int) @ orthogonal.astype(int)
    assert np.diag(shared).tolist() == [4] * 13
    assert {int(count) for count in shared[~np.eye(13, dtype=bool)]} == {1}


def test_the_order_is_chosen_near_e_to_the_epsilon_plus_one() -> None:
    assert [PGR(e, 1 << 10).order for e in ("0.5", "1", "2", "4")] == [3, 3, 7, 53]
