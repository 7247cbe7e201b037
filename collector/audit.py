"""Audit mechanisms from outside: draw reports of two values, and bound epsilon from below.

Whatever a mechanism is inside, an event that it makes a times likelier under one value than under
another shows an epsilon of at least ln a.  The event is public and chosen before anything is drawn;
the counts are turned into a bound that is wrong with probability ALPHA at most.

Source: Clopper, Pearson, Biometrika 1934: the limits of both probabilities, ALPHA / 2 each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import exp, log, sqrt
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from client_sdk.errors import InvalidParameterError
from client_sdk.mechanisms import (
    DistributionMechanism,
    FrequencyOracle,
    ItemMechanism,
    MeanMechanism,
    Mechanism,
)
from client_sdk.randomness import Randomness

from .binomial import lower_limit, upper_limit

ALPHA: Final = 1e-9  # chance that an honest mechanism is called a liar
DRAWS: Final = (
    200_000  # reports a side; at epsilon 1, 4.4 % too much is then found 999 times in 1,000
)
LOOSE: Final = 6  # standard errors below the expected bound; a chance of 1e-9 if honest

HOLDS: Final = "holds"
LOOSE_VERDICT: Final = "shows less than claimed"  # needless noise, or a tamer event than the worst
FAILS: Final = "FAILS"


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


@dataclass(frozen=True)
class Audit:
    """What was found about one mechanism.  Epsilons are in nats per report."""

    mechanism: str
    epsilon: float
    lower_bound: float
    expected_bound: float
    draws: int
    verdict: str

    @property
    def passed(self) -> bool:
        """Whether the claim was not refuted."""
        return self.verdict != FAILS

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, for JSON."""
        return asdict(self)


def case_of(mechanism: Mechanism[Any]) -> Case | None:
    """Return the two extreme values and the event for the family of *mechanism*, if it has one.

    Items: the report supports the first and not the last.  Numbers: the noisy position is at least
    the largest true one.  Mechanisms that state their law: the symbol is one of those
    that the law says tell the first value from the last best; for distributions and ordered items
    they are in the half nearer to the first.
    """
    if isinstance(mechanism, FrequencyOracle):
        oracle, last = mechanism, mechanism.domain_size - 1

        def only_first(payload: bytes) -> bool:
            items = set(oracle.supports(payload))
            return 0 in items and last not in items

        return Case(0, last, only_first)
    if isinstance(mechanism, MeanMechanism):
        mean = mechanism
        return Case(
            Fraction(mean.top), Fraction(0), lambda payload: mean.decode(payload) >= mean.top
        )
    if isinstance(mechanism, DistributionMechanism):
        return _by_law(mechanism, mechanism.bins - 1, Fraction(mechanism.top))
    if isinstance(mechanism, ItemMechanism) and isinstance(mechanism, StatesItsLaw):
        return _by_law(mechanism, mechanism.domain_size - 1, mechanism.domain_size - 1)
    return None


def audit(
    mechanism: Mechanism[Any], case: Case, randomness: Randomness, draws: int = DRAWS
) -> Audit:
    """Draw *draws* reports of either value of *case* and compare what they show with the claim.

    Raises: InvalidParameterError: too few draws to say anything.
    """
    if draws < 1_000:
        raise InvalidParameterError("draws", draws, "must be at least 1000")
    likely, unlikely = (
        sum(case.event(mechanism.randomize(value, randomness)) for _ in range(draws))
        for value in (case.likely, case.unlikely)
    )
    claimed = float(mechanism.epsilon)
    found = lower_bound(likely, unlikely, draws)
    honest = min(draws, round(exp(claimed) * unlikely))
    expected = lower_bound(honest, unlikely, draws)
    if found > claimed:
        verdict = FAILS
    elif found < expected - LOOSE * _spread(honest, unlikely, draws):
        verdict = LOOSE_VERDICT
    else:
        verdict = HOLDS
    return Audit(mechanism.name, claimed, found, expected, draws, verdict)


def lower_bound(likely: int, unlikely: int, draws: int) -> float:
    """Return the epsilon that the hits of both values show: 0 if they show none."""
    least = lower_limit(likely, draws, ALPHA / 2)
    most = upper_limit(unlikely, draws, ALPHA / 2)
    return max(0.0, log(least / most)) if least > 0 else 0.0


def table(audits: list[Audit]) -> str:
    """Return one line a mechanism."""
    lines = [f"{'mechanism':<20} {'claimed':>8} {'found >=':>9} {'expected':>9}  verdict"]
    lines += [
        f"{a.mechanism:<20} {a.epsilon:>8.4f} {a.lower_bound:>9.4f} {a.expected_bound:>9.4f}"
        f"  {a.verdict}"
        for a in audits
    ]
    return "\n".join(lines)


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


def _spread(likely: int, unlikely: int, draws: int) -> float:
    """Return the standard error of the logarithm of the ratio of two shares."""
    return sqrt(sum((1 - hits / draws) / max(hits, 1) for hits in (likely, unlikely)))
