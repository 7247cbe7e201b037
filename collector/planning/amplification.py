"""How much less shuffled reports reveal of a device than its report: bounds from both sides.  Pure.

A relay that shuffles the reports of n devices hides which of them is whose.  Then the collector
cannot tell two answers of one device apart by more than a smaller ε, with a small chance δ of more.
Neighbours differ in what one device holds; that, and how many, devices report is no secret.

Source: Balle, Bell, Gascón, Nissim, *The Privacy Blanket of the Shuffle Model*, CRYPTO 2019,
    Lemma 5.3: with laws P, Q of two values, w the least law of all values at each report, and
    l = (P - e^ε Q)/w, the divergence is at most 1/n of the mean positive part of the sum over n
    devices of l with chance w, else 0.
Derived: that mean over all mechanisms of e^ε0 = E whose laws have a total variation of β at most.
    A spread that keeps the mean raises the mean of a convex function.  Lowering w to max(P, Q)/E is
    one.  Splitting a report of P > Q into (E a, a) and (c, c) is one, a = (P-Q)/(E-1), c = Q-a; so
    with α = β/(E-1) a device adds E - e^ε with chance α, 1 - e^ε E with α, and E (1 - e^ε) with
    (1 - α(E+1))/E.  So is a larger β, as the third lies between the first two.
    Given how many, m, add one of the first two, the excess is a tail of a binomial, from a
    threshold that rises with m by 0 or 1; tails of neighbouring m differ by one or two terms, so
    all follow from one by sums.  The number of those that add the third is spread to a few values.
    The reduction of Wang et al., arXiv 2304.05007, puts its mean in its place, which is too little:
    enumerating GRR of four items, a test passes that.
Attack: if all others hold a third value, of law w itself, the same sum is no bound but the
    divergence, so an observer who knows the others can reach the ε at which it is δ.  To
    look only at which of two items a report supports is a choice of the attacker.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

import numpy as np

from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms import MAX_REPORTS

from .binomials import Floats, binomial, halves
from .composition import Profile
from .two_reports import ROUGH, SPARE, TwoReports

_ROUNDED: Final = 1 + 1e-12  # of a variation that was computed in floats
_NEAR: Final = 1e-5  # of itself: how near a stated end is to the other side
_MOST_STEPS: Final = 64
_RAISED: Final = 1.002  # an ε of two reports, until it holds for all crowds
_CROWD: Final = 1_000  # devices, up to which spreading can cost more than less variation gains
_SLACK: Final = 1e-6  # of delta: kept back for rounding, and as much for what is not summed
_TAIL: Final = 20.0  # standard deviations of a binomial tail, from above its mean, that are summed
_STEPS: Final = (-4.0, -2.5, -1.25, 0.0, 1.25, 2.5, 4.0)  # deviations
_FEW_STEPS: Final = (-2.0, 0.0, 2.0)
_MANY: Final = 2_000  # counts, from which the third hardly matters
_NONE: Final = 1e-12  # a chance that is rounding
_EVERY: Final = 64  # counts that are taken one by one
_LEAST_DELTA: Final = 1e-30

_END: Final = 1e-12  # divergence at which a profile ends
_POINTS: Final = 24  # steps of a profile


@dataclass(frozen=True)
class Shuffled:
    """A bound on what shuffled reports reveal of one device: *epsilon* nats, but for *delta*."""

    epsilon: float
    delta: float
    devices: int


@dataclass(frozen=True)
class Crossing:
    """The chances that a report speaks for the first of two values and not for the other.

    *own* where the device holds the first, *other* where the other, *crowd* where a third; those
    of the other value are the same the other way round.
    """

    own: float
    other: float
    crowd: float


@lru_cache(maxsize=4096)
def shuffled(
    epsilon: float, devices: int, delta: float, variation: float | None = None, two: bool = False
) -> Shuffled:
    """Return the least ε that holds for one report of each of *devices*, shuffled.

    Args:   epsilon: nats of the whole upload, whose columns are linked.
            variation: the largest total variation between the laws of two values; that of the worst
                mechanism of this epsilon if left out.
            two: whether there are two reports only, of which nearly the least is known.
    Raises: InvalidParameterError: names the number at fault.
    """
    worst = math.tanh(epsilon / 2)  # (e^ε - 1)/(e^ε + 1), of randomized response
    beta = worst if variation is None else min(variation * _ROUNDED, worst)
    _require(0 < epsilon <= 64, "epsilon", epsilon, "must be above 0 and at most 64")
    _require(1 <= devices <= MAX_REPORTS, "devices", devices, f"must be from 1 to {MAX_REPORTS}")
    _require(_LEAST_DELTA <= delta < 1, "delta", delta, f"must be from {_LEAST_DELTA:g} to below 1")
    _require(beta > 0, "variation", variation, "must be above 0")
    guess = closed_form(epsilon, devices, delta) / 2
    if two:
        return Shuffled(_least_of_two(epsilon, devices, delta, guess), delta, devices)
    total = _bounded(epsilon, devices, beta, delta * _SLACK)
    _, least = _bracket(total.divergence, delta * (1 - 2 * _SLACK), epsilon, guess)
    if beta < worst and devices <= _CROWD:
        least = min(least, shuffled(epsilon, devices, delta).epsilon)
    return Shuffled(least, delta, devices)


def _least_of_two(epsilon: float, devices: int, delta: float, guess: float) -> float:
    """Return the least ε of two reports: that of others who are alike, raised until all hold."""
    enough = delta * (1 - 2 * _SLACK)
    alike = partial(_alike, epsilon, devices)
    least = max(_bracket(alike, enough / (1 + SPARE), epsilon, guess)[1], epsilon * _NEAR)
    while least < epsilon and TwoReports(epsilon, devices, least).most() > enough:
        least = min(least * _RAISED, epsilon)
    return least


def divergence(
    epsilon_shuffled: float,
    epsilon: float,
    devices: int,
    variation: float | None = None,
    two: bool = False,
) -> float:
    """Return the δ at which *epsilon_shuffled* holds: the other direction of ``shuffled``."""
    if two:
        return _of_two(epsilon_shuffled, epsilon, devices, SPARE)
    beta = math.tanh(epsilon / 2) if variation is None else variation
    return _bounded(epsilon, devices, beta, _LEAST_DELTA).divergence(epsilon_shuffled)


def _alike(epsilon: float, devices: int, at: float) -> float:
    return TwoReports(epsilon, devices, at).alike()


def _of_two(at: float, epsilon: float, devices: int, spare: float) -> float:
    return TwoReports(epsilon, devices, at).most(spare) if at < epsilon else 0.0


@lru_cache(maxsize=1024)
def profile_of(
    epsilon: float, devices: int, variation: float | None = None, two: bool = False
) -> Profile:
    """Return the divergence at several ε, for what windows reveal together; see ``shuffled``."""
    end = shuffled(epsilon, devices, _END, variation, two).epsilon
    worst = math.tanh(epsilon / 2)
    betas = {worst, worst if variation is None else min(variation * _ROUNDED, worst)}
    epsilons = [end * i / _POINTS for i in range(_POINTS + 1)]
    if two:
        deltas = [_of_two(at, epsilon, devices, ROUGH) * (1 + _SLACK) for at in epsilons]
        return Profile(tuple(epsilons), tuple(deltas))
    sums = [
        _bounded(epsilon, devices, beta, _END * _SLACK)
        for beta in (betas if devices <= _CROWD else {min(betas)})
    ]
    deltas = [min(total.divergence(at) for total in sums) * (1 + _SLACK) for at in epsilons]
    return Profile(tuple(epsilons), tuple(deltas))


def reached(crossing: Crossing, devices: int, delta: float) -> float:
    """Return an ε that does not hold of *devices* shuffled reports: an attack reveals more.

    It knows what all others hold, and counts which of two values each report speaks for.
    """
    if crossing.own + crossing.other > 1 - _NONE:  # there is no third report: others are alike
        epsilon = math.log(crossing.own / crossing.other)
        guess = closed_form(epsilon, devices, delta) / 2
        alone = partial(_alike, epsilon, devices)
        return _bracket(alone, delta * (1 + _SLACK), epsilon, guess)[0]
    attack = _attacked(crossing, devices, delta * _SLACK)
    highest = math.log(crossing.own / crossing.other)
    guess = closed_form(highest, devices, delta) / 2
    return _bracket(attack.divergence, delta * (1 + _SLACK), highest, guess)[0]


def closed_form(epsilon: float, devices: int, delta: float) -> float:
    """Return the bound that can be done by hand: never below ``shuffled``, and looser.

    Source: Feldman, McMillan, Talwar, *Stronger Privacy Amplification by Shuffling*, SODA 2023.
        It holds where e^ε0 is at most n / (8 ln(2/δ)) - 1; elsewhere it is that of a report.
    """
    odds = math.exp(epsilon)
    if odds > devices / (8 * math.log(2 / delta)) - 1:
        return epsilon
    noise = 4 * math.sqrt(2 * math.log(4 / delta)) / math.sqrt((odds + 1) * devices)
    return min(epsilon, math.log1p((odds - 1) * (noise + 4 / devices)))


def _bounded(epsilon: float, devices: int, variation: float, omitted: float) -> _Sum:
    """Return the sum of the worst mechanism of *epsilon* and *variation*."""
    odds = math.exp(epsilon)
    alpha = variation / math.expm1(epsilon)
    neither = 1 - alpha * (odds + 1)
    neither = neither if neither > _NONE else 0.0  # it only lowers the sum
    rest = 1 - 2 * alpha
    third = neither / odds / rest if neither else 0.0
    return _Sum(
        devices, odds=odds, scale=1.0, chance=alpha, third=third, weight=odds, omitted=omitted
    )


def _attacked(crossing: Crossing, devices: int, omitted: float) -> _Sum:
    """Return the sum of *crossing*, whose third kind are all that are of neither of two."""
    own, other, crowd = crossing.own, crossing.other, crossing.crowd
    rest = 1 - 2 * crowd
    weight = (1 - own - other) / rest if rest > _NONE else 0.0
    return _Sum(
        devices, odds=own / other, scale=other / crowd, chance=crowd,
        third=1.0, weight=weight, omitted=omitted, is_bound=False,
    )  # fmt: skip


def _bracket(
    divergence: Callable[[float], float], enough: float, high: float, guess: float
) -> tuple[float, float]:
    """Return ε of a divergence above *enough*, and one little above it of at most *enough*.

    The latter is *high* at most, at which there is no divergence.  Where it is nowhere above
    *enough*, both are 0.  From *guess*, by false position: the logarithm falls about with ε².
    """
    low, above, below = 0.0, _nats(divergence(0.0), enough), -math.inf
    if above <= 0:
        return 0.0, 0.0
    middle = guess
    for step in range(_MOST_STEPS):
        nats = _nats(divergence(middle), enough) if middle < high else -math.inf
        if nats <= 0:
            high, below = min(middle, high), nats
        else:
            low, above = middle, nats
        if high - low <= _NEAR * high:
            break
        middle = (low + high) / 2
        if math.isfinite(below) and step % 4 < 3:
            middle = math.sqrt(low**2 + (high**2 - low**2) * above / (above - below))
            nearer = _NEAR * high / 2  # beyond the guess, so that the other end comes near, too
            middle += nearer if above < -below else -nearer
            middle = min(max(middle, low + nearer), high - nearer)
    return low, high


def _nats(divergence: float, enough: float) -> float:
    return math.log(divergence / enough) if divergence > 0 else -math.inf


class _Sum:
    """The sum whose mean positive part is the divergence, by how many add one of the first two.

    With B = e^epsilon a device adds scale (odds - B) with *chance*, scale (1 - B odds) with
    *chance*, and of the rest the part *third* adds weight (1 - B).
    """

    def __init__(
        self,
        devices: int,
        *,
        odds: float,
        scale: float,
        chance: float,
        third: float,
        weight: float,
        omitted: float,
        is_bound: bool = True,
    ) -> None:
        """Leave out counts that together add *omitted* at most, which a bound adds again."""
        self.odds, self.scale = odds, scale
        pair = min(1.0, 2 * chance)
        rare = omitted / (2 * odds)  # a device of a bound adds less than the odds
        self.omitted = omitted if is_bound else 0.0
        self.first, last = _range(devices, pair, rare)
        self.first = max(self.first, 1)
        self.m = np.arange(self.first, last + 1, dtype=np.float64)
        self.before = chance * scale * binomial(devices - 1, self.m - 1, pair)
        self.same = binomial(devices, self.m, pair) / devices
        offsets, self.weights = _spread(devices - self.first, third, rare, many=self.m.size > _MANY)
        # What those of the third kind add to each m, shape (offsets, m).
        self.third = weight * (third * (devices - self.m) + offsets[:, None])

    def divergence(self, epsilon: float) -> float:
        """Return what the law of one value exceeds e^epsilon times another's by."""
        bound, odds = math.exp(epsilon), self.odds
        from_third = self.third / self.scale * (bound - 1)
        least = (from_third + self.m * (bound * odds - 1)) / ((odds - 1) * (1 + bound))
        least = np.clip(np.floor(least) + 1, 0, self.m + 1)  # of the first kind, from which it is
        tail, edge = self._tails(least)
        pair = self.before * ((odds - bound) * (tail + edge) + (1 - bound * odds) * tail)
        rest = self.same * self.third * (1 - bound) * (tail + edge / 2)
        return self.omitted + float(self.weights @ (pair + rest).sum(axis=1))

    def _tails(self, least: Floats) -> tuple[Floats, Floats]:
        """Return Pr[Bin(m - 1, 1/2) >= least] of every m, and the chance of least - 1."""
        edge = halves(self.m - 1, least - 1)
        size = self.m[:1] - 1
        beyond = np.arange(_TAIL * math.sqrt(size[0] + 1) + 2)
        begin = halves(size, least[:, :1] + beyond).sum(axis=1, keepdims=True)
        rises = np.diff(least) > 0
        lost = np.where(rises, halves(self.m[1:] - 1, least[:, :-1]), 0.0)
        steps = np.cumsum(edge[:, :-1] / 2 - lost, axis=1)
        tails = begin + np.concatenate((np.zeros_like(begin), steps), axis=1)
        return np.maximum(tails, 0.0), edge


def _spread(size: int, chance: float, omitted: float, *, many: bool) -> tuple[Floats, Floats]:
    """Return values of Bin(size, chance) less its mean, and their chances: a spread of that law.

    Each count is shared out between the values next to it such that its mean is kept.  A smaller
    *size* has less spread, so that it serves, too.
    """
    deviation = math.sqrt(size * chance * (1 - chance))
    if not deviation:
        return np.zeros(1), np.ones(1)
    mean = size * chance
    first, last = _range(size, chance, omitted)
    inner = [deviation * step for step in (_FEW_STEPS if many else _STEPS)]
    if last - first <= _EVERY:
        inner = [count - mean for count in range(first + 1, last)]
    ends = [first - mean, last - mean]
    nodes = np.array([ends[0], *(x for x in inner if ends[0] < x < ends[1]), ends[1]])
    counts = np.arange(first, last + 1, dtype=np.float64)
    law = binomial(float(size), counts, chance)
    weights = [float(np.interp(counts - mean, nodes, row) @ law) for row in np.eye(nodes.size)]
    return nodes, np.array(weights)


def _range(size: int, chance: float, omitted: float) -> tuple[int, int]:
    """Return the first and the last count of Bin(size, chance) that is not left out.

    Source: Bernstein's inequality, for the chance of counts further from their mean.
    """
    mean, variance = size * chance, size * chance * (1 - chance)
    nats = math.log(2 / omitted)
    reach = nats / 3 + math.sqrt(nats * nats / 9 + 2 * variance * nats)
    return max(0, math.floor(mean - reach)), min(size, math.ceil(mean + reach))


def _require(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise InvalidParameterError(name, value, rule)
