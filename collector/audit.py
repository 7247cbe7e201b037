"""Audit mechanisms from outside: draw reports of two values, and bound epsilon from below.

Whatever a mechanism is inside, an event that it makes a times likelier under one value than under
another shows an epsilon of at least ln a.  The event is public and chosen before anything is drawn;
the counts are turned into a bound that is wrong with probability ALPHA at most.

Source: Clopper, Pearson, Biometrika 1934: the limits of both probabilities, ALPHA / 2 each.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import exp, log, sqrt
from typing import Any, Final

from client_sdk.errors import InvalidParameterError
from client_sdk.mechanisms import Mechanism
from client_sdk.randomness import Randomness

from .audit_cases import Case
from .binomial import lower_limit, upper_limit

ALPHA: Final = 1e-9  # chance that an honest mechanism is called a liar
DRAWS: Final = (
    200_000  # reports a side; at epsilon 1, 4.4 % too much is then found 999 times in 1,000
)
LOOSE: Final = 6  # standard errors below the expected bound; a chance of 1e-9 if honest

HOLDS: Final = "holds"
LOOSE_VERDICT: Final = "shows less than claimed"  # needless noise, or a tamer event than the worst
FAILS: Final = "FAILS"


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


def _spread(likely: int, unlikely: int, draws: int) -> float:
    """Return the standard error of the logarithm of the ratio of two shares."""
    return sqrt(sum((1 - hits / draws) / max(hits, 1) for hits in (likely, unlikely)))
