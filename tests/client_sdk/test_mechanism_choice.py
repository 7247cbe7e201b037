"""Choosing a mechanism: ``auto`` takes the most accurate one that is short enough to send."""

from __future__ import annotations

import pytest

from client_sdk.errors import InvalidParameterError, UnknownMechanismError
from client_sdk.mechanism_choice import AUTO, choose
from client_sdk.mechanisms import FrequencyOracle, MeanMechanism, load, names


def _able(epsilon: str, size: int) -> list[FrequencyOracle]:
    """Return every frequency oracle that accepts these parameters."""
    able = []
    for name in names():
        mechanism = load(name)
        if issubclass(mechanism, FrequencyOracle):
            try:
                able.append(mechanism(epsilon, size))
            except InvalidParameterError:
                continue
    return able


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "5", "16"])
@pytest.mark.parametrize("size", [2, 3, 8, 64, 65, 500])
def test_auto_takes_the_smallest_predicted_error_within_64_bits(epsilon: str, size: int) -> None:
    name, chosen = choose(AUTO, True, epsilon, size)

    candidates = [m for m in _able(epsilon, size) if m.payload_size <= 8]
    assert chosen.payload_size <= 8
    assert chosen.predict(1) == min(m.predict(1) for m in candidates)
    assert name == chosen.name


def test_auto_takes_a_mean_mechanism_for_numbers() -> None:
    name, chosen = choose(AUTO, False, "1", 101)

    assert isinstance(chosen, MeanMechanism)
    assert name == chosen.name


def test_a_wanted_mechanism_is_taken_whatever_its_error() -> None:
    name, chosen = choose("grr", True, "0.1", 500)

    assert (name, chosen) == ("grr", load("grr")("0.1", 500))


def test_a_mechanism_of_another_family_is_refused_and_fitting_ones_are_shown() -> None:
    with pytest.raises(InvalidParameterError, match=r"^mechanism=grr: does not fit .*auto, discr"):
        choose("grr", False, "1", 10)


def test_an_unknown_mechanism_is_refused_and_fitting_ones_are_shown() -> None:
    with pytest.raises(UnknownMechanismError, match=r"known: auto, discrete_laplace"):
        choose("magic", False, "1", 10)


def test_parameters_that_no_mechanism_accepts_are_refused_by_name() -> None:
    with pytest.raises(InvalidParameterError, match=r"^epsilon=0: "):
        choose(AUTO, True, "0", 10)
