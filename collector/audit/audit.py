"""Audit mechanisms from outside: draw reports of pairs of values, and bound epsilon from below.

Whatever a mechanism is inside, an event that it makes a times likelier under one value than under
another shows an epsilon of at least ln a.  The pairs are drawn at random, and with them the event
is settled, before any report is drawn, from the operating system's entropy.  The counts are turned
into bounds that are wrong with probability ALPHA at most, all pairs of a mechanism together
(Bonferroni).  Of a claim with a delta that part is taken off first.

Source: Clopper, Pearson, Biometrika 1934: the limits of both probabilities, half of the chance of
    error each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import exp, log, sqrt
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from client_sdk.core.errors import InvalidParameterError
from client_sdk.core.randomness import Randomness, system_randomness
from client_sdk.mechanisms import (
    UNIT,
    DistributionMechanism,
    FrequencyOracle,
    ItemMechanism,
    KeyValueMechanism,
    MeanMechanism,
    Record,
    RecordMechanism,
    SetMechanism,
    TextMechanism,
    VectorMechanism,
    load,
    names,
)

from ..core.text_tables import table_lines
from ..estimation.arrays import AnyMechanism
from ..estimation.significance import lower_limit, upper_limit

ALPHA: Final = 1e-9  # chance that an honest mechanism is called a liar
DRAWS: Final = (
    200_000  # reports a side; at epsilon 1, 4.4 % too much of one pair is found 999 times in 1,000
)
_LEAST_DRAWS: Final = 1_000  # reports a side; below, nothing can be said
PAIRS: Final = 4  # that share the draws; 8 of 16 items are then looked at in every run
_LOOSE: Final = 6  # standard errors below the expected bound; a chance of 1e-9 if honest

Reports: TypeAlias = Callable[[Any, int], Iterable[bytes]]  # payloads of a value, so many

HOLDS: Final = "holds"
LOOSE_VERDICT: Final = "shows less than claimed"  # needless noise, or a tamer event than the worst
NOTHING: Final = "shows nothing"  # the event never separates the values, or too few draws
FAILS: Final = "FAILS"
_BY_WEIGHT: Final = (HOLDS, LOOSE_VERDICT, NOTHING, FAILS)  # one pair's verdict outweighs others'


@dataclass(frozen=True)
class Trial:
    """What one pair of values showed.  Epsilons are in nats per report."""

    pair: str
    lower_bound: float
    expected_bound: float
    verdict: str


@dataclass(frozen=True)
class Audit:
    """What was found about one mechanism: its gravest trial, and all of them."""

    mechanism: str
    epsilon: float
    draws: int
    trials: tuple[Trial, ...]

    @property
    def gravest(self) -> Trial:
        """The trial that decides; among equals the one that shows most."""
        return max(self.trials, key=lambda t: (_BY_WEIGHT.index(t.verdict), t.lower_bound))

    @property
    def verdict(self) -> str:
        """What the gravest trial says."""
        return self.gravest.verdict

    @property
    def passed(self) -> bool:
        """Whether the claim was not refuted."""
        return self.verdict != FAILS

    def as_dict(self) -> dict[str, object]:
        """Return the fields and the gravest trial, for JSON."""
        return {**asdict(self), **asdict(self.gravest)}


def audit(
    mechanism: AnyMechanism,
    randomness: Randomness,
    draws: int = DRAWS,
    pairs: int = PAIRS,
    *,
    reports: Reports | None = None,
    name: str | None = None,
) -> Audit:
    """Draw up to *pairs* pairs, then *draws* reports of either side, and compare with the claim.

    Args: reports: makes reports of a value; *mechanism* itself if left out.
            name: of the audited code; the mechanism's if left out.
    Raises: InvalidParameterError: too few draws to say anything, or no pair.
    """
    if draws < _LEAST_DRAWS:
        raise InvalidParameterError("draws", draws, f"must be at least {_LEAST_DRAWS}")
    if pairs < 1:
        raise InvalidParameterError("pairs", pairs, "must be at least 1")
    cases = cases_of(mechanism, randomness, pairs)
    each, alpha = draws // len(cases), ALPHA / len(cases)

    def own(value: Any, count: int) -> Iterable[bytes]:
        return (mechanism.randomize(value, randomness) for _ in range(count))

    trials = tuple(_try(mechanism, case, reports or own, each, alpha) for case in cases)
    return Audit(name or mechanism.name, float(mechanism.epsilon), draws, trials)


def _try(mechanism: AnyMechanism, case: Case, reports: Reports, draws: int, alpha: float) -> Trial:
    """Draw *draws* reports of either value of *case* and judge what they show."""
    likely, unlikely = (
        sum(map(case.event, reports(value, draws))) for value in (case.likely, case.unlikely)
    )
    claimed, delta = float(mechanism.epsilon), float(mechanism.delta)
    honest = min(draws, round(exp(claimed) * unlikely + delta * draws))
    bound, expected, reach = (
        lower_bound(hits, others, draws, alpha, delta)
        for hits, others in ((likely, unlikely), (honest, unlikely), (draws, 0))
    )
    if bound > claimed:
        verdict = FAILS
    elif expected <= 0 or claimed > reach:
        verdict = NOTHING
    elif bound < expected - _LOOSE * _spread(honest, unlikely, draws):
        verdict = LOOSE_VERDICT
    else:
        verdict = HOLDS
    return Trial(case.pair, bound, expected, verdict)


def lower_bound(
    likely: int, unlikely: int, draws: int, alpha: float = ALPHA, delta: float = 0.0
) -> float:
    """Return the epsilon that the hits of both values show, given *delta*: 0 if they show none."""
    least = lower_limit(likely, draws, alpha / 2) - delta
    most = upper_limit(unlikely, draws, alpha / 2)
    return max(0.0, log(least / most)) if least > 0 else 0.0


def table(audits: list[Audit]) -> str:
    """Return one line a mechanism: its gravest trial, and the pairs that were drawn."""
    rows = [["mechanism", "claimed", "found >=", "expected", "verdict", "pairs"]]
    for report in audits:
        trial = report.gravest
        numbers = report.epsilon, trial.lower_bound, trial.expected_bound
        pairs = " ".join(trial.pair for trial in report.trials)
        digits = (f"{number:.4f}" for number in numbers)
        rows.append([report.mechanism, *digits, trial.verdict, pairs])
    return "\n".join(table_lines(rows, "<>>><<"))


def _spread(likely: int, unlikely: int, draws: int) -> float:
    """Return the standard error of the logarithm of the ratio of two shares."""
    return sqrt(sum((1 - hits / draws) / max(hits, 1) for hits in (likely, unlikely)))


def mechanisms_of(chosen: Sequence[str], epsilon: str, domain_size: int) -> list[AnyMechanism]:
    """Return the *chosen* mechanisms, or all of them, with these parameters.

    Raises: UnknownMechanismError, InvalidParameterError: there is no such mechanism.
    """
    return [load(name)(epsilon, domain_size) for name in chosen or names()]


def run(
    mechanisms: Sequence[AnyMechanism],
    draws: int,
    as_json: bool,
    show: Callable[[str], object],
    pairs: int = PAIRS,
) -> int:
    """Audit *mechanisms*, show what was found, and return the exit status: 1 if a claim fails.

    Raises: InvalidParameterError: too few draws to say anything, or no pair.
    """
    audits = [audit(mechanism, system_randomness(), draws, pairs) for mechanism in mechanisms]
    return tell(audits, draws, as_json, show)


def tell(audits: list[Audit], draws: int, as_json: bool, show: Callable[[str], object]) -> int:
    """Show what was found, and return the exit status: 1 if a claim fails."""
    if as_json:
        show(json.dumps({"alpha": ALPHA, "audits": [a.as_dict() for a in audits]}))
    else:
        show(table(audits))
        show(closing(draws))
    return 0 if all(result.passed for result in audits) else 1


def closing(draws: int) -> str:
    """Return the last line: what the bounds rest on."""
    return (
        f"{draws:,} reports a side, shared by the pairs;"
        f" an honest mechanism fails with probability {ALPHA:g}"
    )


_STRINGS: Final = 1 << 14  # of two characters of ASCII, which are a text in any language


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


def cases_of(mechanism: AnyMechanism, dice: Dice, most: int) -> list[Case]:
    """Draw up to *most* pairs, no value in two of them, for the family of *mechanism*.

    Items: the report supports one and not the other.  Sets: the same of sets of one item, so that
    padding is under attack too.  Strings: the report supports the cell of one and not the cell of
    the other.  Key-values: the one pair is at one end and not at the other.
    Records: the report supports the first attribute's item of one and not of the other.
    Vectors: a report is likelier under a vector at its bound than under the opposite one.
    Numbers: the noisy position is as far as one end of the range or beyond; only the two ends, in
    either order, since only they show all of epsilon.  Mechanisms that state their law: the symbol
    is one that, by this law, best separates the two ends; for distributions and
    ordered items they are in the half nearer to it.
    One bit an item, or two a key, show all of epsilon only where one slot is drawn from.
    Raises: InvalidParameterError: a family without an event.
    """
    size = mechanism.domain_size
    if isinstance(mechanism, FrequencyOracle | SetMechanism):
        drawn = _distinct(2 * min(most, size // 2), size, dice)
        return [_of_items(mechanism, *pair) for pair in zip(drawn[::2], drawn[1::2], strict=True)]
    if isinstance(mechanism, RecordMechanism):
        ends = _distinct(2, mechanism.sizes[0], dice)
        return [_of_records(mechanism, *ends)]
    if isinstance(mechanism, KeyValueMechanism):
        keys = _distinct(min(most, size), size, dice)
        return [_of_key(mechanism, key, bool(dice.uniform(2))) for key in keys]
    if isinstance(mechanism, TextMechanism):
        drawn = _distinct(2 * most, _STRINGS, dice)
        return [_of_texts(mechanism, *pair) for pair in zip(drawn[::2], drawn[1::2], strict=True)]
    up = bool(dice.uniform(2))
    if isinstance(mechanism, VectorMechanism):
        return [_of_vectors(mechanism, up)]
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


def _of_records(mechanism: RecordMechanism, likely: int, unlikely: int) -> Case:
    """Return the case of two records that differ in the first attribute."""
    others = [attribute.first for attribute in mechanism.attributes[1:]]
    event, pair = _supports_only(mechanism, likely, unlikely), f"{likely}>{unlikely}"
    return Case(Record((likely, *others)), Record((unlikely, *others)), event, pair)


def _of_key(mechanism: KeyValueMechanism, key: int, up: bool) -> Case:
    """Return the case of *key* alone, at the top or, unless *up*, at the bottom."""
    ends = [{key: Fraction(place)} for place in (mechanism.top, 0)]
    cells = [key, key + mechanism.domain_size]
    likely, unlikely = ends if up else ends[::-1]
    wanted, other = cells if up else cells[::-1]
    pair = f"{key}:max>min" if up else f"{key}:min>max"
    return Case(likely, unlikely, _supports_only(mechanism, wanted, other), pair)


def _of_texts(mechanism: TextMechanism, likely: int, unlikely: int) -> Case:
    """Return the case of two strings of two characters each, which are printed as digits."""
    wanted, other = (bytes(divmod(number, 128)) for number in (likely, unlikely))

    def tells(payload: bytes) -> bool:
        return mechanism.agrees(payload, wanted) and not mechanism.agrees(payload, other)

    return Case(wanted, other, tells, f"{wanted.hex()}>{other.hex()}")


def _of_ends(mechanism: MeanMechanism, up: bool) -> Case:
    """Return the case of both ends of the range, the upper one being likely if *up*."""
    top = mechanism.top
    if up:
        return Case(Fraction(top), Fraction(0), lambda r: mechanism.decode(r) >= top, f"{top}>0")
    return Case(Fraction(0), Fraction(top), lambda r: mechanism.decode(r) <= 0, f"0>{top}")


def _of_vectors(mechanism: VectorMechanism, up: bool) -> Case:
    """Return the case of the ends of the range of the first coordinate, or of all in a cube."""
    held = mechanism.domain_size if mechanism.cube else 1
    ends = [(place,) * held + (0,) * (mechanism.domain_size - held) for place in (UNIT, -UNIT)]
    likely, unlikely = ends if up else ends[::-1]
    pair = "max>min" if up else "min>max"
    return Case(likely, unlikely, lambda report: mechanism.agrees(report, likely), pair)


def _supports_only(
    mechanism: FrequencyOracle | SetMechanism | KeyValueMechanism | RecordMechanism,
    wanted: int,
    other: int,
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
