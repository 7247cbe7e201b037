"""A drawn coordinate of a vector: privacy, unbiased means, and when it beats a codebook."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Final

import pytest

from client_sdk.core.randomness import Randomness
from client_sdk.mechanisms import UNIT, Vector
from client_sdk.mechanisms.numbers.sampled_number import SampledNumber
from tests.client_sdk.mechanisms.test_privacy_law import likelihood_bound_holds
from tests.support.enumeration.enumeration import Law, distribution, exp_below

CORNERS: Final[list[Vector]] = [(0, 0), (UNIT, UNIT), (-UNIT, UNIT), (UNIT // 4, -UNIT // 2)]


def mean_of(mechanism: SampledNumber, law: Law, place: int) -> Fraction:
    """Return the mean position of the reports about coordinate *place*."""
    symbols, total, mass = mechanism.number.payload_count, Fraction(0), Fraction(0)
    for payload, chance in law.pmf.items():
        assert isinstance(payload, bytes)
        drawn, symbol = divmod(int.from_bytes(payload, "big"), symbols)
        if drawn == place:
            total += chance * mechanism.number.position(symbol)
            mass += chance
    return total / mass


@pytest.mark.parametrize("epsilon", ["0.5", "1", "4"])
def test_the_reports_about_a_coordinate_average_to_it_exactly(epsilon: str) -> None:
    mechanism = SampledNumber(epsilon, 2, cube=1)

    for value in CORNERS:
        law = distribution(partial(mechanism.randomize, value))
        means = [mean_of(mechanism, law, place) for place in (0, 1)]
        assert means == [Fraction(x + UNIT, 2 * UNIT) for x in value]


class _Telling(SampledNumber):
    """Planted fault: the larger coordinate is drawn."""

    def randomize(self, value: Vector, randomness: Randomness) -> bytes:
        place = max(range(self.domain_size), key=lambda place: abs(value[place]))
        symbol = self.number.draw(Fraction(value[place] + UNIT, 2 * UNIT), randomness)
        report = place * self.number.payload_count + symbol
        return report.to_bytes(self.payload_size, "big")


@pytest.mark.parametrize(("kind", "holds"), [(SampledNumber, True), (_Telling, False)])
def test_a_coordinate_that_is_drawn_by_its_value_tells_more(
    kind: type[SampledNumber], holds: bool
) -> None:
    mechanism = kind("1", 2)
    values = [(0, 0), (UNIT, 0), (0, UNIT), (0, -UNIT)]

    laws = [distribution(partial(mechanism.randomize, value)) for value in values]

    assert likelihood_bound_holds(laws, exp_below(mechanism.spent)) is holds
