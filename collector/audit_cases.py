"""What an audit looks at: for each family two values, and an event that tells them apart best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, runtime_checkable

from client_sdk.errors import InvalidParameterError
from client_sdk.mechanisms import (
    DistributionMechanism,
    FrequencyOracle,
    ItemMechanism,
    KeyValueMechanism,
    MeanMechanism,
    Mechanism,
    SetMechanism,
)


class Case(NamedTuple):
    """An event of payloads, said to be e^epsilon times likelier under *likely* than *unlikely*."""

    likely: Any
    unlikely: Any
    event: Callable[[bytes], bool]


@runtime_checkable
class StatesItsLaw(Protocol):
    """A mechanism that states the probability of every symbol, for an item or a bin."""

    def channel_law(self, position: int, /) -> Sequence[Fraction]:
        """Return the probabilities."""


def case_of(mechanism: Mechanism[Any]) -> Case:
    """Return the two extreme values and the event for the family of *mechanism*.

    Items: the report supports the first and not the last.  Sets: the same of sets of one item, so
    that padding is under attack too.  Key-values: the one pair is at the top and not at the bottom.
    Numbers: the noisy position is at least the largest true one.  Mechanisms that state their law:
    the symbol is one of those that the law says tell the first value from the last best; for
    distributions and ordered items they are in the half nearer to the first.
    One bit an item, or two a key, show all of epsilon only where one slot is drawn from.
    Raises: InvalidParameterError: a family without an event.
    """
    last = mechanism.domain_size - 1
    if isinstance(mechanism, FrequencyOracle):
        return Case(0, last, _supports_only(mechanism, 0, last))
    if isinstance(mechanism, SetMechanism):
        return Case(frozenset({0}), frozenset({last}), _supports_only(mechanism, 0, last))
    if isinstance(mechanism, KeyValueMechanism):
        top, bottom = ({0: Fraction(place)} for place in (mechanism.top, 0))
        return Case(top, bottom, _supports_only(mechanism, 0, mechanism.domain_size))
    if isinstance(mechanism, MeanMechanism):
        mean = mechanism
        return Case(
            Fraction(mean.top), Fraction(0), lambda payload: mean.decode(payload) >= mean.top
        )
    if isinstance(mechanism, DistributionMechanism):
        return _by_law(mechanism, mechanism.bins - 1, Fraction(mechanism.top))
    if isinstance(mechanism, ItemMechanism) and isinstance(mechanism, StatesItsLaw):
        return _by_law(mechanism, last, last)
    raise InvalidParameterError("mechanism", mechanism.name, "has no event to be audited by")


def _supports_only(
    mechanism: FrequencyOracle | SetMechanism | KeyValueMechanism, wanted: int, other: int
) -> Callable[[bytes], bool]:
    """Return the event that a report supports the cell *wanted* of the tally, and not *other*."""

    def supports(payload: bytes) -> bool:
        cells = set(mechanism.supports(payload))
        return wanted in cells and other not in cells

    return supports


def _by_law(mechanism: StatesItsLaw, last: int, unlikely: Any) -> Case:
    """Return the case of the symbols of the largest stated likelihood ratio of 0 to *last*."""
    ratios = [
        ours / theirs
        for ours, theirs in zip(mechanism.channel_law(0), mechanism.channel_law(last), strict=True)
    ]
    best = max(ratios)
    telling = frozenset(symbol for symbol, ratio in enumerate(ratios) if ratio == best)
    return Case(
        type(unlikely)(0), unlikely, lambda payload: int.from_bytes(payload, "big") in telling
    )
