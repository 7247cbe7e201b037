"""``auto`` stays within the stated factor of the optimal error, at every setting of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from benchmarks.accuracy.accuracy import (
    BAR,
    DOMAIN_SIZES,
    EPSILONS,
    LARGE_EPSILONS,
    large_sizes,
    optimum,
    population,
    predicted,
)
from client_sdk.mechanisms import load
from client_sdk.registry.selection import MAX_AUTO_PAYLOAD

SETTINGS: Final = [
    *((epsilon, DOMAIN_SIZES) for epsilon in EPSILONS),
    *((epsilon, large_sizes(epsilon)) for epsilon in LARGE_EPSILONS),
]


@pytest.mark.parametrize(("epsilon", "sizes"), SETTINGS)
def test_auto_is_within_the_bar_of_the_optimum_and_of_the_payload_at_every_domain_size(
    epsilon: str, sizes: Sequence[int]
) -> None:
    choices = {size: predicted(epsilon, size) for size in sizes}

    assert {size: ratio for size, (_, ratio) in choices.items() if ratio > BAR} == {}
    assert min(ratio for _, ratio in choices.values()) > 1 - 1e-9
    assert all(8 * taken.payload_size <= MAX_AUTO_PAYLOAD for taken, _ in choices.values())


@pytest.mark.parametrize(
    ("epsilon", "domain_size", "stated"),
    [(1, 16, 3.186), (1, 128, 3.618), (2, 16, 0.5783), (2, 1024, 0.7217), (4, 128, 0.0675)],
)
def test_the_optimum_is_the_one_computed_by_hand(
    epsilon: float, domain_size: int, stated: float
) -> None:
    assert optimum(epsilon, domain_size) == pytest.approx(stated, rel=1e-3)


@pytest.mark.parametrize(("epsilon", "domain_size"), [("1", 128), ("4", 1024)])
def test_randomized_response_alone_would_break_the_bar(epsilon: str, domain_size: int) -> None:
    ratio = load("grr")(epsilon, domain_size).predict(1) ** 2 / optimum(float(epsilon), domain_size)

    assert ratio > BAR


@pytest.mark.parametrize("domain_size", [2, 16, 1024])
def test_the_population_has_everybody_and_holds_common_items_first(domain_size: int) -> None:
    people = population(domain_size, 1_000)

    counts = [people.count(item) for item in range(domain_size)]
    assert len(people) == sum(counts) == 1_000
    assert counts[0] == max(counts)
