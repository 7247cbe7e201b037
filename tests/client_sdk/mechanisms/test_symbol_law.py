"""Numbers sent as symbols: exact privacy, formulas of the literature, and intervals that cover."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final, cast

import numpy as np
import pytest

from client_sdk.core.errors import InvalidTallyError
from client_sdk.mechanisms import MeanMechanism, load
from client_sdk.mechanisms.numbers._symbols import SymbolReports
from client_sdk.mechanisms.numbers.duchi import Duchi
from client_sdk.mechanisms.numbers.hybrid import Hybrid
from client_sdk.mechanisms.numbers.one_bit_mean import OneBitMean
from client_sdk.mechanisms.numbers.piecewise import Piecewise
from tests.support.enumeration.coverage import covered
from tests.support.enumeration.enumeration import distribution
from tests.support.enumeration.vectors import every_case

REPLICATIONS: Final = 20_000
DEVICES: Final = 600

every_symbol_case = every_case(SymbolReports)


def in_minus_one_to_one(mechanism: MeanMechanism) -> float:
    """Return the worst variance of one report if the range were [-1, 1], as papers have it."""
    return 4 * mechanism.worst_variance / mechanism.top**2


def tallies(
    mechanism: SymbolReports, population: dict[Fraction, int], replications: int
) -> np.ndarray[Any, Any]:
    """Return tallies of independent replications: a multinomial a group of equal devices."""
    dice = np.random.default_rng(20_240_229)
    total = np.zeros((replications, mechanism.payload_count), dtype=np.int64)
    for value, devices in population.items():
        law = distribution(lambda rnd, v=value: mechanism.draw(v, rnd))  # type: ignore[misc]  # v is bound now
        pmf = [float(law.pmf.get(symbol, Fraction(0))) for symbol in range(mechanism.payload_count)]
        total += dice.multinomial(devices, np.array(pmf) / math.fsum(pmf), size=replications)
    return total


def share_covered(mechanism: SymbolReports, population: dict[Fraction, int]) -> float:
    """Return the share of 95 % intervals that hold the true sum."""
    n, truth = sum(population.values()), float(sum(v * m for v, m in population.items()))
    (share,) = covered(mechanism, tallies(mechanism, population, REPLICATIONS), n, truth)
    return float(share)


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "4"])
def test_the_error_of_duchis_bit_is_that_of_the_paper(epsilon: str) -> None:
    odds = math.exp(float(epsilon))

    found = in_minus_one_to_one(Duchi(epsilon, 101))

    assert found == pytest.approx(((odds + 1) / (odds - 1)) ** 2, rel=1e-9)


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "4", "8", "16"])
def test_piecewise_errs_at_most_as_the_paper_with_two_percent_to_spare(epsilon: str) -> None:
    a = math.exp(float(epsilon) / 2)

    found = in_minus_one_to_one(Piecewise(epsilon, 101))

    assert found <= 1.02 * 4 * a / (3 * (a - 1) ** 2)


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2"])
def test_piecewise_on_a_fine_grid_has_the_variance_of_the_paper(epsilon: str) -> None:
    a = math.exp(float(epsilon) / 2)
    steps = 120
    mechanism = Piecewise(epsilon, 101, steps=steps, width=round(steps / a) or 1)

    centre, end = (4 * mechanism.variance_of(Fraction(x)) / 100**2 for x in (50, 100))

    assert centre == pytest.approx((a + 3) / (3 * (a - 1) ** 2), rel=0.02)
    assert end == pytest.approx(4 * a / (3 * (a - 1) ** 2), rel=0.02)


@pytest.mark.parametrize(
    ("epsilon", "paper"), [("0.5", 16.7), ("1", 4.29), ("2", 1.04), ("4", 0.219)]
)
def test_hybrid_errs_at_most_as_the_paper_with_two_percent_to_spare(
    epsilon: str, paper: float
) -> None:
    assert in_minus_one_to_one(Hybrid(epsilon, 101)) <= 1.02 * paper


@pytest.mark.parametrize(("epsilon", "steps"), [("0.5", 1), ("0.6", 1)])
def test_hybrid_is_duchis_bit_alone_at_small_epsilon(epsilon: str, steps: int) -> None:
    hybrid = Hybrid(epsilon, 101)

    assert (hybrid.steps, hybrid.payload_count) == (steps, 2)
    assert hybrid.worst_variance == Duchi(epsilon, 101).worst_variance


@pytest.mark.parametrize(("per_mille", "left", "wider"), [(200, 0.5694, 1.67), (100, 0.7761, 1.25)])
def test_output_perturbation_costs_and_saves_what_the_paper_says(
    per_mille: int, left: float, wider: float
) -> None:
    """Check E14: Ding, Kulkarni, Yekhanin, NeurIPS 2017."""
    flipped = OneBitMean("1", 101, flip_per_mille=per_mille)

    growth = flipped.predict(1) / OneBitMean("1", 101).predict(1)

    assert float(flipped.spent) == pytest.approx(left, abs=5e-5)
    assert growth == pytest.approx(wider, abs=5e-3)
    assert growth == pytest.approx(1 / (1 - 2 * per_mille / 1000), rel=1e-9)


@every_symbol_case
def test_debias_states_the_enumerated_variance_of_equal_devices(
    name: str, case: dict[str, Any]
) -> None:
    mechanism = cast("SymbolReports", load(name)(**case["parameters"]))
    n = 1 << 30
    for value in (Fraction(mechanism.top * part, 14) for part in (0, 2, 5, 7, 9)):
        law = distribution(lambda rnd, v=value: mechanism.draw(v, rnd))  # type: ignore[misc]  # v is bound now
        tally = np.array([round(n * law.pmf[symbol]) for symbol in range(mechanism.payload_count)])
        tally[0] += n - int(tally.sum())

        totals, variances = mechanism.debias(tally, n, np)

        exact, blur = mechanism.variance_of(value), mechanism.rounding * mechanism.top**2
        assert totals[0] / n == pytest.approx(float(value), abs=1e-5 * mechanism.top)
        assert exact * (1 - 1e-5) <= variances[0] / n <= (exact + float(blur)) * (1 + 1e-5)


@pytest.mark.parametrize("name", ["duchi", "one_bit_mean", "piecewise", "hybrid", "minimax"])
@pytest.mark.parametrize("epsilon", ["0.5", "1", "4"])
def test_95_percent_intervals_cover_94_to_96_percent_of_equal_devices(
    name: str, epsilon: str
) -> None:
    mechanism = cast("SymbolReports", load(name)(epsilon, 101))

    share = share_covered(mechanism, {Fraction(30): DEVICES})

    assert 0.94 <= share <= 0.96


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [("piecewise", "1"), ("hybrid", "1"), ("hybrid", "4"), ("minimax", "1"), ("minimax", "4")],
)
def test_95_percent_intervals_cover_94_to_96_percent_of_scattered_devices(
    name: str, epsilon: str
) -> None:
    mechanism = cast("SymbolReports", load(name)(epsilon, 101))

    share = share_covered(mechanism, {Fraction(0): 200, Fraction(33): 250, Fraction(100): 150})

    assert 0.94 <= share <= 0.96


def test_intervals_of_one_bit_are_too_wide_for_scattered_devices_never_too_narrow() -> None:
    mechanism = Duchi("1", 101)

    share = share_covered(mechanism, {Fraction(0): 300, Fraction(100): 300})

    assert 0.96 < share < 0.99


@every_symbol_case
def test_debias_refuses_counts_that_do_not_add_up_to_the_reports(
    name: str, case: dict[str, Any]
) -> None:
    mechanism = load(name)(**case["parameters"])
    tally = np.ones(mechanism.tally_size, dtype=np.int64)

    with pytest.raises(InvalidTallyError, match="add up to n="):
        mechanism.debias(tally, mechanism.tally_size + 1, np)
