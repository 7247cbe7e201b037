"""What an audit looks at: pairs of values drawn at random, and an event that tells a pair apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms import (
    DistributionMechanism,
    FrequencyOracle,
    ItemMechanism,
    KeyValueMechanism,
    MeanMechanism,
    Mechanism,
    SetMechanism,
    TextMechanism,
)

_STRINGS: Final = 1 << 16  # of two bytes


class Case(NamedTuple):
    """An event of payloads, said to be e^epsilon times likelier under *likely* than *unlikely*."""

    likely: Any
    unlikely: Any
    event: Callable[[bytes], bool]
    pair: str  # what is printed: the likely value, ">", the other


class Dice(Protocol):
    """What pairs are drawn by."""

    def uniform(self, n: int, /) -> int:
        """Return an integer in [0, n), each with probability 1/n."""


@runtime_checkable
class StatesItsLaw(Protocol):
    """A mechanism that states the probability of every symbol, for an item or a bin."""

    def channel_law(self, position: int, /) -> Sequence[Fraction]:
        """Return the probabilities."""


def cases_of(mechanism: Mechanism[Any], dice: Dice, most: int) -> list[Case]:
    """Draw up to *most* pairs, no value in two of them, for the family of *mechanism*.

    Items: the report supports one and not the other.  Sets: the same of sets of one item, so that
    padding is under attack too.  Strings: the report supports the cell of one and not that of the
    other.  Key-values: the one pair is at one end and not at the other.
    Numbers: the noisy position is as far as one end of the range or beyond; only the two ends, in
    either order, since only they show all of epsilon.  Mechanisms that state their law: the symbol
    is one of those that the law says tell one end from the other best; for distributions and
    ordered items they are in the half nearer to it.
    One bit an item, or two a key, show all of epsilon only where one slot is drawn from.
    Raises: InvalidParameterError: a family without an event.
    """
    size = mechanism.domain_size
    if isinstance(mechanism, FrequencyOracle | SetMechanism):
        drawn = _distinct(2 * min(most, size // 2), size, dice)
        return [_of_items(mechanism, *pair) for pair in zip(drawn[::2], drawn[1::2], strict=True)]
    if isinstance(mechanism, KeyValueMechanism):
        keys = _distinct(min(most, size), size, dice)
        return [_of_key(mechanism, key, bool(dice.uniform(2))) for key in keys]
    if isinstance(mechanism, TextMechanism):
        drawn = _distinct(2 * most, _STRINGS, dice)
        return [_of_texts(mechanism, *pair) for pair in zip(drawn[::2], drawn[1::2], strict=True)]
    up = bool(dice.uniform(2))
    if isinstance(mechanism, MeanMechanism):
        return [_of_ends(mechanism, up)]
    if isinstance(mechanism, DistributionMechanism):
        return [_by_law(mechanism, mechanism.bins - 1, Fraction(mechanism.top), up)]
    if isinstance(mechanism, ItemMechanism) and isinstance(mechanism, StatesItsLaw):
        return [_by_law(mechanism, size - 1, size - 1, up)]
    raise InvalidParameterError("mechanism", mechanism.name, "has no event to be audited by")


def _distinct(count: int, size: int, dice: Dice) -> list[int]:
    """Return *count* different numbers below *size*, in random order."""
    numbers: dict[int, None] = {}
    while len(numbers) < count:
        numbers[dice.uniform(size)] = None
    return list(numbers)


def _of_items(mechanism: FrequencyOracle | SetMechanism, likely: int, unlikely: int) -> Case:
    """Return the case of two items, or of the sets of one of them."""
    event, pair = _supports_only(mechanism, likely, unlikely), f"{likely}>{unlikely}"
    if isinstance(mechanism, SetMechanism):
        return Case(frozenset({likely}), frozenset({unlikely}), event, pair)
    return Case(likely, unlikely, event, pair)


def _of_key(mechanism: KeyValueMechanism, key: int, up: bool) -> Case:
    """Return the case of *key* alone, at the top or, unless *up*, at the bottom."""
    ends = [{key: Fraction(place)} for place in (mechanism.top, 0)]
    cells = [key, key + mechanism.domain_size]
    likely, unlikely = ends if up else ends[::-1]
    wanted, other = cells if up else cells[::-1]
    pair = f"{key}:max>min" if up else f"{key}:min>max"
    return Case(likely, unlikely, _supports_only(mechanism, wanted, other), pair)


def _of_texts(mechanism: TextMechanism, likely: int, unlikely: int) -> Case:
    """Return the case of two strings of two bytes each, which are printed as digits."""
    wanted, other = (number.to_bytes(2, "big") for number in (likely, unlikely))

    def tells(payload: bytes) -> bool:
        return mechanism.agrees(payload, wanted) and not mechanism.agrees(payload, other)

    return Case(wanted, other, tells, f"{wanted.hex()}>{other.hex()}")


def _of_ends(mechanism: MeanMechanism, up: bool) -> Case:
    """Return the case of both ends of the range, the upper one being likely if *up*."""
    top = mechanism.top
    if up:
        return Case(Fraction(top), Fraction(0), lambda r: mechanism.decode(r) >= top, f"{top}>0")
    return Case(Fraction(0), Fraction(top), lambda r: mechanism.decode(r) <= 0, f"0>{top}")


def _supports_only(
    mechanism: FrequencyOracle | SetMechanism | KeyValueMechanism, wanted: int, other: int
) -> Callable[[bytes], bool]:
    """Return the event that a report supports the cell *wanted* of the tally, and not *other*."""

    def supports(payload: bytes) -> bool:
        cells = set(mechanism.supports(payload))
        return wanted in cells and other not in cells

    return supports


def _by_law(mechanism: StatesItsLaw, last: int, end: Any, up: bool) -> Case:
    """Return the case of the symbols of the largest stated ratio of one end to the other.

    *last* is the position of the upper end in the law, *end* its value; it is likely if *up*.
    """
    positions = (last, 0) if up else (0, last)
    ours, theirs = (mechanism.channel_law(position) for position in positions)
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    best = max(ratios)
    telling = frozenset(symbol for symbol, ratio in enumerate(ratios) if ratio == best)
    likely, unlikely = (end, type(end)(0)) if up else (type(end)(0), end)

    def tells(payload: bytes) -> bool:
        return int.from_bytes(payload, "big") in telling

    return Case(likely, unlikely, tells, f"{likely}>{unlikely}")
