"""Minimax: exact at every design and epsilon, and near the optimum of a linear program."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Final

import pytest

from client_sdk.mechanisms.exact import exp_floor
from client_sdk.mechanisms.numbers.hybrid import Hybrid
from client_sdk.mechanisms.numbers.minimax import DESIGNS, Minimax, design_of
from tests.docs.pages import text_of
from tests.support.enumeration.enumeration import Law, distribution

BAR: Final = 1.02  # of the optimum's variance, for epsilon from 0.5 to 5
EPSILONS: Final = (
    Fraction(1, 100),
    Fraction(1, 3),
    Fraction(7, 5),
    Fraction(299, 100),
    Fraction(5),
)
UNEVEN: Final = (3, 0xFFC0_9010_0800)  # a width and distances that no row has


def every_design() -> list[Minimax]:
    """Return every sixth design at its own end and where no design fits it, and one of our own."""
    rows = [(Fraction(first, 1000), width, int(hexed, 16)) for first, width, hexed in DESIGNS[::6]]
    settings = [*rows, *((epsilon, *UNEVEN) for epsilon in EPSILONS)]
    settings += [(epsilon, *rows[-1][1:]) for epsilon in EPSILONS]
    return [Minimax(e, 11, width=width, distances=design) for e, width, design in settings]


def laws(mechanism: Minimax) -> list[Law]:
    """Return the law of the symbol at every input."""
    places = [(x + Fraction(1, 2)) * mechanism.top for x in mechanism.inputs]
    return [
        distribution(lambda rnd, v=place: mechanism.draw(v, rnd))  # type: ignore[misc]  # v is bound now
        for place in places
    ]


@pytest.mark.parametrize(
    "mechanism", every_design(), ids=lambda m: f"{float(m.epsilon):g}-{m.width}"
)
def test_every_input_of_every_design_is_private_and_unbiased_exactly(mechanism: Minimax) -> None:
    """Enumerated: no symbol is more than e^ε likelier, and the mean report is the position."""
    found, bound = laws(mechanism), exp_floor(mechanism.epsilon)

    for symbol in range(mechanism.payload_count):
        chances = [law.pmf[symbol] for law in found]
        assert max(chances) <= bound * min(chances)
    for law, place in zip(found, mechanism.inputs, strict=True):
        assert sum(law.pmf.values()) == 1
        mean = sum(mechanism.position(int(str(s))) * mass for s, mass in law.pmf.items())
        assert mean == place + Fraction(1, 2)


@pytest.mark.parametrize(
    "mechanism", every_design(), ids=lambda m: f"{float(m.epsilon):g}-{m.width}"
)
def test_credits_average_to_the_variance_of_every_input(mechanism: Minimax) -> None:
    for law, place, noise in zip(laws(mechanism), mechanism.inputs, mechanism.noises, strict=True):
        symbols = {int(str(s)): mass for s, mass in law.pmf.items()}
        exact = sum(mechanism.position(s) ** 2 * mass for s, mass in symbols.items())
        exact -= (place + Fraction(1, 2)) ** 2

        credit = sum(mechanism.credits[s] * float(mass) for s, mass in symbols.items())

        assert exact == noise
        assert credit == pytest.approx(float(noise), rel=1e-9)


def test_the_largest_variance_is_within_two_percent_of_the_optimum() -> None:
    """The optima are those of the page, which `benchmarks number_optimum` printed."""
    page = text_of("docs/evidence/accuracy.md")
    rows = page[page.index("| ε | linear program |") :].split("\n\n")[0].splitlines()[2:]
    optima = {cells[0]: float(cells[1]) for cells in (row.strip("| ").split(" | ") for row in rows)}

    assert {"0.5", "1", "2", "3", "4", "5"} <= optima.keys()
    for epsilon, optimum in optima.items():
        mechanism = Minimax(epsilon, 101)
        assert mechanism.worst_variance * (2 / mechanism.top) ** 2 <= BAR * optimum


@pytest.mark.parametrize("thousandths", range(500, 8_001, 125))
def test_it_errs_less_than_hybrid_wherever_it_has_a_design(thousandths: int) -> None:
    epsilon = Fraction(thousandths, 1000)

    assert Minimax(epsilon, 101).worst_variance < Hybrid(epsilon, 101).worst_variance


def test_the_designs_rise_with_epsilon_and_each_holds_from_its_end_on() -> None:
    ends = [row[0] for row in DESIGNS]

    assert all(lower < upper for lower, upper in pairwise(ends))
    assert all(row[1] >= after[1] for row, after in pairwise(DESIGNS))
    for first, width, distances in DESIGNS:
        assert len(bytes.fromhex(distances)) == 32
        assert design_of(Fraction(first, 1000)) == (width, int(distances, 16))
        if first > ends[0]:
            assert design_of(Fraction(first, 1000) - Fraction(1, 10**9))[1] != int(distances, 16)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_position_has_a_variance_above_the_worst_and_one_has_nearly_that(
    epsilon: Fraction,
) -> None:
    mechanism = Minimax(epsilon, 401)

    worst = max(mechanism.variance_of(Fraction(place)) for place in range(401))

    assert 0.9999 * mechanism.worst_variance <= worst <= 1.0001 * mechanism.worst_variance
