"""Choosing a mechanism: by name, or ``auto`` by predicted error within a payload limit."""

from __future__ import annotations

from typing import Any, Final

from .errors import InvalidParameterError, UnknownMechanismError
from .mechanisms import FrequencyOracle, MeanMechanism, Mechanism, load, names

AUTO: Final = "auto"
MAX_AUTO_PAYLOAD: Final = 8 * 8  # bits; 64 fit every frequency oracle that is near the optimum


def choose(wanted: str, items: bool, epsilon: str, domain_size: int) -> tuple[str, Mechanism[Any]]:
    """Return the name and the mechanism for a domain of items, or of grid points if not *items*.

    Raises: UnknownMechanismError, InvalidParameterError: *wanted* cannot serve these parameters.
    """
    family: type[Mechanism[Any]] = FrequencyOracle if items else MeanMechanism
    fitting = [name for name in names() if issubclass(load(name), family)]
    if wanted == AUTO:
        mechanism = _best([load(name) for name in fitting], epsilon, domain_size)
        return mechanism.name, mechanism
    if wanted not in names():
        raise UnknownMechanismError(wanted, (AUTO, *fitting))
    if wanted not in fitting:
        rule = f"does not fit this type; fitting: {', '.join((AUTO, *fitting))}"
        raise InvalidParameterError("mechanism", wanted, rule)
    return wanted, load(wanted)(epsilon, domain_size)


def _best(candidates: list[type[Mechanism[Any]]], epsilon: str, domain_size: int) -> Mechanism[Any]:
    """Return the candidate of the smallest predicted error; ties go to the shorter payload."""
    able: list[Mechanism[Any]] = []
    refusal: InvalidParameterError | None = None
    for candidate in candidates:
        try:
            able.append(candidate(epsilon, domain_size))
        except InvalidParameterError as error:
            refusal = error
    short = [m for m in able if m.payload_size * 8 <= MAX_AUTO_PAYLOAD]
    if not short:
        raise refusal or InvalidParameterError("domain_size", domain_size, "fits no mechanism")
    return min(short, key=lambda m: (m.predict(1), m.payload_size, m.name))
