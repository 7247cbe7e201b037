"""A channel that spends more than its epsilon is refused when it is built, never cut to it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms import Channel, load, names
from client_sdk.mechanisms.exact import exp_ceil
from client_sdk.mechanisms.numbers._wave import Window
from tests.support.loops import in_turn

STEP = Fraction(1, 1 << 128)  # of the grid of thresholds
EXACT = {"discrete_gaussian", "discrete_laplace"}  # noise of a rational epsilon: no channel is cut
UNSPENT = {"coin", "rates", "shown"}  # chances that are not, or not alone, at the bound


@pytest.mark.parametrize("name", sorted(set(names()) - EXACT - {"pem"}))
@in_turn("epsilon", ["0.5", "1", "4"])
def test_a_chance_one_grid_step_beyond_epsilon_is_refused(name: str, epsilon: str) -> None:
    """The smallest fault that thresholds can have is seen by the constructor of every mechanism."""
    honest = load(name)(epsilon, 5)
    chances = {key: c for key, c in honest.constant_values().items() if key not in UNSPENT}

    assert chances
    assert honest.spent <= honest.epsilon
    for key, chance in chances.items():
        refused = 0
        for step in (STEP, -STEP):
            moved = (
                chance + step if isinstance(chance, Fraction) else (chance[0] + step, *chance[1:])
            )
            constants = {**honest.constant_values(), key: moved}
            try:
                load(name).with_constants(constants, epsilon, 5, **honest.parameters)
            except InvalidParameterError as error:
                refused += "at least what the channel spends" in str(error)
        assert refused == 1, key


@pytest.mark.parametrize("name", sorted(set(names()) - EXACT - {"exponential"}))
def test_every_mechanism_refuses_a_likelihood_ratio_above_e_to_the_epsilon(name: str) -> None:
    """No class has a constructor that passes over the check."""
    above = property(lambda self: exp_ceil(self.epsilon))
    planted = type("Planted", (load(name),), {"likelihood_ratio": above})

    with pytest.raises(InvalidParameterError, match="at least what the channel spends"):
        planted("1", 4)


@pytest.mark.parametrize("name", names())
@in_turn("precision", [0, -1, 129, 10**6, True, 8.0, "8", None])
def test_a_precision_that_is_no_count_of_bits_is_refused(name: str, precision: Any) -> None:
    """A grid finer than the reviewed one, or none, is no parameter."""
    with pytest.raises(InvalidParameterError) as caught:
        load(name)("1", 4, precision=precision)

    assert caught.value.name == "precision"


@pytest.mark.parametrize("name", names())
@in_turn("precision", [1, 2, 3, 128])
@in_turn("epsilon", ["1e-9", "0.01", "16"])
def test_the_least_of_any_parameter_gives_a_mechanism_or_its_own_error(
    name: str, precision: int, epsilon: str
) -> None:
    """Nothing else is raised, such as a division by zero."""
    try:
        mechanism = load(name)(epsilon, 2, precision=precision)
    except InvalidParameterError:
        return
    assert 0 < mechanism.spent <= mechanism.epsilon


@pytest.mark.parametrize("chances", [(Fraction(3, 2), Fraction(0)), (Fraction(1), Fraction(-1, 9))])
def test_a_channel_of_no_probabilities_is_refused(chances: tuple[Fraction, Fraction]) -> None:
    """A coin of 3/2 would always be true: it is caught where it is written down."""
    with pytest.raises(InvalidParameterError, match="must be a probability"):
        Channel(*chances)


@pytest.mark.parametrize("inside", [Fraction(3, 2), Fraction(1), Fraction(-1, 9)])
def test_a_window_of_no_probability_is_refused(inside: Fraction) -> None:
    """So is a window that leaves nothing outside, where the likelihood ratio would be infinite."""
    with pytest.raises(InvalidParameterError, match=r"^inside="):
        Window(1, 1, inside)
