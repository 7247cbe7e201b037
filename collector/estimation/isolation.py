"""How well one person can be isolated by two answers that differ by that person.  Pure, no draw.

A hundred people spent 10,000 each; then there are 101, and the mean is 20,000.  Who subtracts one
sum from the other has isolated the newcomer.  The intervals here are those that an attacker can
state beforehand: of exact means, of means with Laplace noise of a server, and of Hearsay.  The demo
draws all of it and uses what stands here; the page of the attack shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Final

from client_sdk.mechanisms import load

from .arrays import AnyMechanism
from .estimate import normal_quantile
from .precision import ALPHA, half_width

PEOPLE: Final = 100
EACH: Final = 10_000  # that each of them spent
NEWCOMER: Final = 1_020_000
RANGE: Final = 2_000_000  # declared before anybody spent anything
STEP: Final = 1_000  # of the range
MEAN_AFTER: Final = (PEOPLE * EACH + NEWCOMER) // (PEOPLE + 1)
TIMES: Final = (1, 100, 10_000)  # that both means are asked for
MECHANISM: Final = "hybrid"
EPSILON: Final = 1  # of an answer of a server, and of a report
_LAPLACE: Final = sqrt(2)  # standard deviation of Laplace noise of scale 1


@dataclass(frozen=True)
class Interval:
    """What is known of the newcomer's amount after some answers."""

    queries: int
    epsilon: float  # that the newcomer has lost, in nats; infinite without noise
    half_width: float  # of the interval of 95 %

    def ends(self) -> tuple[float, float]:
        """Return the ends of the interval around the truth, as parts of the range, cut to it."""
        low, high = NEWCOMER - self.half_width, NEWCOMER + self.half_width
        return max(low, 0.0) / RANGE, min(high, float(RANGE)) / RANGE


def of_exact(times: int = 1) -> Interval:
    """Return what exact means yield: all."""
    return Interval(2 * times, inf, 0.0)


def of_server(times: int) -> Interval:
    """Return what means with fresh noise of ε 1 an answer yield if both are asked for *times*.

    A mean of n people is changed by RANGE/n at most, which is the scale of its noise; so each sum
    has noise of the scale RANGE, and the average of *times* differences the root of it.  The
    newcomer is in one of the two means and loses its ε each time.
    """
    deviation = RANGE * _LAPLACE * sqrt(2 / times) / EPSILON
    return Interval(2 * times, float(EPSILON * times), normal_quantile(ALPHA) * deviation)


def of_answers(times: int = 1) -> Interval:
    """Return what Hearsay's two answers yield, however often they are asked for.

    An answer is computed of the same reports each time.  The people of the first answer sent a
    fresh report for the second, so the difference has the noise of all of these reports.
    """
    reports = 2 * PEOPLE + 1
    return Interval(2 * times, float(EPSILON), of_report(mechanism()) * sqrt(reports) * RANGE)


def of_newcomer() -> Interval:
    """Return what the newcomer's report by itself yields, the most that anybody can isolate."""
    return Interval(1, float(EPSILON), of_report(mechanism()) * RANGE)


def of_report(used: AnyMechanism) -> float:
    """Return the half-width of what one report of a number tells, as a part of its range."""
    return half_width(used, 1)


def mechanism() -> AnyMechanism:
    """Return the mechanism that the hundred and one report with."""
    return load(MECHANISM)(str(EPSILON), RANGE // STEP + 1)
