"""``auto`` stays within the stated factor of the optimal error, at every setting of the table."""

from __future__ import annotations

import pytest

from benchmarks.accuracy.accuracy import BAR, DOMAIN_SIZES, EPSILONS, optimum, population, predicted
from client_sdk.mechanisms import load
from client_sdk.registry.selection import MAX_AUTO_PAYLOAD


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_auto_is_within_the_bar_of_the_optimum_at_every_domain_size(epsilon: str) -> None:
    ratios = {size: predicted(epsilon, size)[1] for size in DOMAIN_SIZES}

    assert {size: ratio for size, ratio in ratios.items() if ratio > BAR} == {}


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_nothing_that_auto_takes_beats_the_optimum(epsilon: str) -> None:
    ratios = [predicted(epsilon, size)[1] for size in DOMAIN_SIZES]

    assert min(ratios) > 1 - 1e-9


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_auto_keeps_the_payload_limit(epsilon: str) -> None:
    payloads = [predicted(epsilon, size)[0].payload_size for size in DOMAIN_SIZES]

    assert 8 * max(payloads) <= MAX_AUTO_PAYLOAD


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
