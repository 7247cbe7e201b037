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
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import exp, log, sqrt
from typing import Any, Final

from client_sdk.core.errors import InvalidParameterError
from client_sdk.core.randomness import Randomness, system_randomness
from client_sdk.mechanisms import Mechanism, load, names

from ..core.text_tables import table_lines
from ..estimation.significance import lower_limit, upper_limit
from .cases import Case, cases_of

ALPHA: Final = 1e-9  # chance that an honest mechanism is called a liar
DRAWS: Final = (
    200_000  # reports a side; at epsilon 1, 4.4 % too much of one pair is found 999 times in 1,000
)
LEAST_DRAWS: Final = 1_000  # reports a side; below, nothing can be said
PAIRS: Final = 4  # that share the draws; 8 of 16 items are then looked at in every run
LOOSE: Final = 6  # standard errors below the expected bound; a chance of 1e-9 if honest

HOLDS: Final = "holds"
LOOSE_VERDICT: Final = "shows less than claimed"  # needless noise, or a tamer event than the worst
NOTHING: Final = "shows nothing"  # the event never tells the values apart, or too few draws
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

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and the gravest trial, for JSON."""
        return {**asdict(self), **asdict(self.gravest)}


def audit(
    mechanism: Mechanism[Any], randomness: Randomness, draws: int = DRAWS, pairs: int = PAIRS
) -> Audit:
    """Draw up to *pairs* pairs, then *draws* reports of either side, and compare with the claim.

    Raises: InvalidParameterError: too few draws to say anything, or no pair.
    """
    if draws < LEAST_DRAWS:
        raise InvalidParameterError("draws", draws, f"must be at least {LEAST_DRAWS}")
    if pairs < 1:
        raise InvalidParameterError("pairs", pairs, "must be at least 1")
    cases = cases_of(mechanism, randomness, pairs)
    each, alpha = draws // len(cases), ALPHA / len(cases)
    trials = tuple(_try(mechanism, case, randomness, each, alpha) for case in cases)
    return Audit(mechanism.name, float(mechanism.epsilon), draws, trials)


def _try(
    mechanism: Mechanism[Any], case: Case, randomness: Randomness, draws: int, alpha: float
) -> Trial:
    """Draw *draws* reports of either value of *case* and judge what they show."""
    likely, unlikely = (
        sum(case.event(mechanism.randomize(value, randomness)) for _ in range(draws))
        for value in (case.likely, case.unlikely)
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
    elif bound < expected - LOOSE * _spread(honest, unlikely, draws):
        verdict = LOOSE_VERDICT
    else:
        verdict = HOLDS
    return Trial(case.pair, bound, expected, verdict)


def lower_bound(
    likely: int, unlikely: int, draws: int, alpha: float = ALPHA, delta: float = 0.0
) -> float:
    """Return the epsilon that the hits of both values show beside *delta*: 0 if they show none."""
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


def mechanisms_of(chosen: Sequence[str], epsilon: str, domain_size: int) -> list[Mechanism[Any]]:
    """Return the *chosen* mechanisms, or all of them, with these parameters.

    Raises: UnknownMechanismError, InvalidParameterError: there is no such mechanism.
    """
    return [load(name)(epsilon, domain_size) for name in chosen or names()]


def run(
    mechanisms: Sequence[Mechanism[Any]],
    draws: int,
    as_json: bool,
    show: Callable[[str], object],
    pairs: int = PAIRS,
) -> int:
    """Audit *mechanisms*, show what was found, and return the exit status: 1 if a claim fails.

    Raises: InvalidParameterError: too few draws to say anything, or no pair.
    """
    audits = [audit(mechanism, system_randomness(), draws, pairs) for mechanism in mechanisms]
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
