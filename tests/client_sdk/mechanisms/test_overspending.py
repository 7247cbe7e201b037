"""A channel that spends more than its epsilon is refused when it is built, never cut to it."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

import pytest

from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms import Channel, load, names
from client_sdk.mechanisms.composite.padding_sampling import PaddingSampling
from client_sdk.mechanisms.composite.pckv_grr import PCKVGRR
from client_sdk.mechanisms.deployed.loloha import LOLOHA
from client_sdk.mechanisms.exact import exp_ceil
from client_sdk.mechanisms.items.exponential import Exponential
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.key_value import KeyChannel
from client_sdk.mechanisms.numbers._wave import Window, inside_of
from client_sdk.mechanisms.numbers.duchi import Duchi
from client_sdk.mechanisms.numbers.square_wave import SquareWave
from tests.support.loops import in_turn

STEP = Fraction(1, 1 << 128)  # of the grid of thresholds
EXACT = {"discrete_gaussian", "discrete_laplace"}  # noise of a rational epsilon: no channel is cut


class _GRR(GRR):
    """Planted fault: the truth is told one step of the grid too often."""

    @cached_property
    def channel(self) -> Channel:
        p = super().channel.p + STEP
        return Channel(p, (1 - p) / (self.domain_size - 1))


class _Padding(PaddingSampling):
    """Planted fault: the drawn symbol is told one step of the grid too often."""

    @property
    def symbol_channel(self) -> Channel:
        p = super().symbol_channel.p + STEP
        return Channel(p, (1 - p) / (self.symbols - 1))


class _Duchi(Duchi):
    """Planted fault: the bit is kept one step of the grid too often."""

    @cached_property
    def window(self) -> Window:
        return Window(1, 1, inside_of(self.epsilon, 1, 1, self.precision) + STEP)


class _SquareWave(SquareWave):
    """Planted fault: a near symbol is told one step of the grid too often."""

    @cached_property
    def inside(self) -> Fraction:
        return super().inside + STEP


class _PCKVGRR(PCKVGRR):
    """Planted fault: the pair is told one step of the grid too often."""

    @cached_property
    def channel(self) -> KeyChannel:
        truth = super().channel.same + STEP
        lie = (1 - truth) / (self.payload_count - 1)
        return KeyChannel(truth, lie, lie)


class _LOLOHA(LOLOHA):
    """Planted fault: the second round tells the truth one step of the grid too often."""

    @cached_property
    def second_truth(self) -> Fraction:
        return super().second_truth + STEP


class _Exponential(Exponential):
    """Planted fault: weights fall by one step of the grid too much."""

    @cached_property
    def decay(self) -> Fraction:
        return super().decay - STEP


class _Permanent(LOLOHA):
    """Planted fault: the first round tells the truth one step of the grid too often."""

    @cached_property
    def first_truth(self) -> Fraction:
        return super().first_truth + STEP


@pytest.mark.parametrize(
    "planted", [_GRR, _Padding, _Duchi, _SquareWave, _PCKVGRR, _LOLOHA, _Exponential]
)
@pytest.mark.parametrize("epsilon", ["0.5", "1", "4"])
def test_a_channel_one_grid_step_above_epsilon_is_refused(planted: Any, epsilon: str) -> None:
    """The smallest fault that thresholds can have is seen by the constructor of every family."""
    honest = planted.__mro__[1](epsilon, 5)

    assert honest.spent <= honest.epsilon
    with pytest.raises(InvalidParameterError, match="at least what the channel spends"):
        planted(epsilon, 5)


def test_a_permanent_round_above_its_epsilon_has_no_spent_bucket() -> None:
    """The cost of a bucket for life is a bound, or there is no number."""
    with pytest.raises(InvalidParameterError, match="at least what the channel spends"):
        _ = _Permanent("1", 5).spent_bucket


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
