"""One pass of stochastic gradients over devices, one gradient a device and life.

The pass begins at zero.  Devices report the gradient of their own row at the public model of the
round, which their report names; once enough reports name it, the model takes a step against their
mean, and the next round begins.  A report counts in the round that it names and in no other:

- what names an earlier round came too late for its step, stays in its tally, and is in no step;
- what had come before the model of its round was published is no gradient at it, and is taken off;
- what names no round is in no step, either;
- what operators exclude is in no later step.  A step that was taken stays, as devices have used its
  model.  Where exclusions change while reports of a round come, those that came before its model
  cannot be told from the others any more: then the round counts afresh (``restarted``).

The steps are fixed in advance: with T rounds, coefficients of length R at most, gradients of length
G at most and the mechanism's variance C G^2 of a coordinate of a report, each is

    R / (G sqrt(T (1 + C d / devices))),

the step of projected descent by which the sum of all gradients, noise included, is R sqrt(T) long
in expectation; and no longer than the curvature allows (``_LONGEST_STEP``).  The model is the mean
of the coefficients after the later half of the steps.

Interval.  Derived, approximately: let ξ be the error of a mean gradient, and 0 <= η H <= 1 for the
curvature H.  An error grows no more: after further steps it is -η M ξ with |M| <= 1.  Where ξ has
the variance σ^2 in every direction, a coordinate of M ξ has at most σ^2; errors of rounds are
independent, and of mean 0 if rounds are exchangeable, each a draw from the same people.  With w_s
the part of the averaged models that come after round s, a coefficient has at most the variance

    η^2 Σ w_s^2 σ_s^2,

σ_s^2 being the largest of the variances that the tally of round s shows.  To the interval is added
what the mechanism's bias can do: η b Σ w_s.  It covers what the reports leave open, drawing of
devices and noise together: the coefficients that the same pass would end at if every round had the
exact mean gradient of all people.  It does not cover how far that is from the best coefficients,
nor that who comes early differs from who comes late (``python -m benchmarks rounds_coverage``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Final

import numpy as np

from client_sdk.learning.model import Model, numbers_of
from client_sdk.learning.rounds import FINAL, ROUND, learning
from client_sdk.mechanisms import VectorMechanism
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.gradient import LINEAR, LOGISTIC

from ..core.errors import QueryError
from ..estimation.estimate import normal_quantile
from .reading import NOTHING, LeftOut

LEVEL: Final = 0.95
DAMAGED: Final = "the state of the pass is damaged; put the last good pass.json back"
_LONGEST_STEP: Final = {LOGISTIC: 4.0, LINEAR: 1.0}  # 1 over the most that a loss can curve


@dataclass(frozen=True)
class Reports:
    """Reports that name a round: how many, and the sums of their tally."""

    n: int
    tally: tuple[int, ...]

    def without(self, earlier: Reports | None) -> Reports:
        """Return those that came after *earlier*, exactly."""
        if earlier is None:
            return self
        tally = tuple(a - b for a, b in zip(self.tally, earlier.tally, strict=True))
        return Reports(self.n - earlier.n, tally)


@dataclass(frozen=True)
class Step:
    """A round that is over: the mean gradient of its reports, and the coefficients after it."""

    reports: int
    variance: float  # of the mean, the largest of all coordinates
    gradient: tuple[float, ...]
    theta: tuple[float, ...]
    left_out: LeftOut = NOTHING  # of the reports of all rounds, when it was taken


@dataclass(frozen=True)
class Pass:
    """The rounds so far.  ``early`` are reports that named the current round before it was.

    ``exclusions`` are the ids of those that were in force when these were counted.
    """

    metric: Metric
    steps: tuple[Step, ...] = ()
    early: Reports | None = None
    left_early: int = 0  # reports that came before the model of their round, of all rounds
    exclusions: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        """The current round, from 1 on; after the last, one more than there are."""
        return len(self.steps) + 1

    @property
    def is_over(self) -> bool:
        """Whether every round had its step."""
        return len(self.steps) == learning(self.metric).rounds

    @property
    def used(self) -> int:
        """How many reports are in steps."""
        return sum(step.reports for step in self.steps)

    @property
    def theta(self) -> tuple[float, ...]:
        """The coefficients of the current round; those of the first are 0."""
        return self.steps[-1].theta if self.steps else (0.0,) * learning(self.metric).size

    def begun(self, reports: Mapping[int, Reports], left_out: LeftOut = NOTHING) -> Pass:
        """Return the pass with its current round published; *reports* by round came before."""
        early = None if self.is_over else reports.get(self.number)
        left_early = self.left_early + (early.n if early else 0)
        ids = left_out.exclusions
        return replace(self, early=early, left_early=left_early, exclusions=ids)

    def restarted(self, reports: Mapping[int, Reports], left_out: LeftOut = NOTHING) -> Pass:
        """Return the pass with its round counting afresh, where exclusions make it.

        That is where *reports* by round are others than those that ``early`` were counted among.
        """
        before, now = set(self.exclusions), set(left_out.exclusions)
        is_apart = now >= before if self.early is None else now == before
        if self.is_over or is_apart:
            return self
        known = self.early.n if self.early else 0
        return replace(self, left_early=self.left_early - known).begun(reports, left_out)

    def stepped(self, reports: Mapping[int, Reports], left_out: LeftOut = NOTHING) -> Pass:
        """Return the pass after the step of the current round, given all *reports* by round.

        Raises: QueryError: too few name it.
        """
        least, mine = needed(self.metric), reports.get(self.number)
        own = None if mine is None else mine.without(self.early)
        if own is None or own.n < least:
            rule = f"has {own.n if own else 0} of at least {least} reports; wait for more"
            raise QueryError("round", rule, self.number)
        step = replace(_step_of(self.metric, own, self.theta), left_out=left_out)
        return replace(self, steps=(*self.steps, step)).begun(reports, left_out)


def needed(metric: Metric) -> int:
    """Return how many reports a step takes at least: no model tells of fewer than an answer may."""
    return max(learning(metric).devices, metric.min_reports)


def step_size(metric: Metric) -> float:
    """Return the length of a step for a gradient of length 1."""
    domain, mechanism = learning(metric), vectors_of(metric)
    noise = domain.size * (2 * mechanism.predict(domain.devices)) ** 2
    longest = float(domain.bound) * sqrt(domain.rounds * (1 + noise))
    return min(float(domain.radius) / longest, _LONGEST_STEP[domain.model])


def _step_of(metric: Metric, reports: Reports, theta: tuple[float, ...]) -> Step:
    """Return the step from *theta* against the mean of the gradients that *reports* are of."""
    totals, variances = vectors_of(metric).debias(
        np.array(reports.tally, dtype=np.int64), reports.n, np
    )
    domain, n = learning(metric), reports.n
    gradient = domain.least + domain.extent * np.asarray(totals) / n
    after = np.array(theta) - step_size(metric) * gradient
    after *= min(1.0, float(domain.radius) / max(sqrt(float(after @ after)), 1e-300))
    variance = float(np.max(variances)) * (domain.extent / n) ** 2
    return Step(n, variance, tuple(map(float, gradient)), tuple(map(float, after)))


def vectors_of(metric: Metric) -> VectorMechanism:
    """Return the mechanism of *metric*."""
    mechanism = metric.mechanism
    assert isinstance(mechanism, VectorMechanism)  # noqa: S101 - as its domain encodes tuples
    return mechanism


def averaged(done: Pass) -> tuple[float, ...]:
    """Return the mean of the coefficients after the later half of the steps."""
    later = [step.theta for step in done.steps[_first(done) - 1 :]]
    return tuple(map(float, np.mean(later, axis=0)))


def half_width(done: Pass, level: float = LEVEL) -> float:
    """Return half the width of the interval of a coefficient: that of every coordinate."""
    size, first, last = step_size(done.metric), _first(done), len(done.steps)
    whole = last - first + 1
    weights = [min(last - s, whole) / whole for s in range(last)]
    variance = sum(w * w * step.variance for w, step in zip(weights, done.steps, strict=True))
    bias = vectors_of(done.metric).bias * done.metric.domain.extent * sum(weights)
    return size * (normal_quantile(1 - level) * sqrt(variance) + bias)


def _first(done: Pass) -> int:
    """Return the first model that is averaged; there is one more than there were steps."""
    return len(done.steps) // 2 + 1


def current_model(state: Pass) -> Model:
    """Return what devices take part in next, or what was learned once the rounds are over."""
    domain, used = learning(state.metric), state.used
    left_out = state.steps[-1].left_out.parts() if state.steps else {}
    if not state.is_over:
        parts: dict[str, object] = {"round": state.number, "rounds": domain.rounds}
        parts["theta"] = list(state.theta)
        return Model.of(ROUND, state.metric, used, {**parts, **left_out})
    parts = {
        "model": domain.model,
        "names": list(domain.labels),
        "theta": list(averaged(state)),
        "half_width": half_width(state),
        "level": LEVEL,
        "covers": "drawing of devices and privacy noise, around the same pass without either",
        "rounds": [step.reports for step in state.steps],
        **left_out,
    }
    if otherwise := steps_otherwise(state, state.steps[-1].left_out):
        parts["steps_otherwise_excluded"] = otherwise
    return Model.of(FINAL, state.metric, used, parts)


def as_json(state: Pass) -> dict[str, object]:
    """Return the pass as what its file holds."""
    early = None if state.early is None else [state.early.n, *state.early.tally]
    return {
        "hearsay_pass": 1,
        "metric": state.metric.name,
        "definition": state.metric.digest.hex(),
        "steps": [
            [s.reports, s.variance, s.gradient, s.theta, *_written(s.left_out)] for s in state.steps
        ],
        "early": early,
        "left_early": state.left_early,
        "exclusions": list(state.exclusions),
    }


def from_json(form: Any, metric: Metric) -> Pass:
    """Return the pass of *metric* that a file holds.

    Raises: QueryError: it is damaged, or of another metric.
    """
    known = form if isinstance(form, dict) else {}
    if known.get("hearsay_pass") == 1 and known.get("definition") != metric.digest.hex():
        raise QueryError("metric", "is not what this pass learns; take another folder", metric.name)
    try:
        if known.get("hearsay_pass") != 1:
            raise ValueError("must be a pass")
        steps, early = known["steps"], known["early"]
        if not 0 <= len(steps) <= learning(metric).rounds:
            raise ValueError("must have at most a step of each round")
        return Pass(
            metric,
            tuple(_step(entry, learning(metric).size) for entry in steps),
            None if early is None else _reports(early, vectors_of(metric).tally_size),
            _count(known["left_early"]),
            _texts(known.get("exclusions", [])),
        )
    except (ValueError, TypeError, KeyError):
        raise QueryError("metric", DAMAGED, metric.name) from None


def _step(entry: Any, size: int) -> Step:
    """Return a step of a file.  Raises ValueError, TypeError."""
    n, variance, gradient, theta, *left_out = entry
    (spread,) = numbers_of([variance], "variance", 1, 0)
    return Step(
        _count(n),
        spread,
        numbers_of(gradient, "gradient", size),
        numbers_of(theta, "theta", size),
        _left_out(*left_out),
    )


def _written(left_out: LeftOut) -> list[Any]:
    """Return what the file of a pass says of what was left out."""
    if left_out == NOTHING:
        return []
    return [list(left_out.exclusions), left_out.reports, list(left_out.notes)]


def _left_out(ids: Any = (), reports: Any = 0, notes: Any = ()) -> LeftOut:
    """Return what was left out, of a file.  Raises ValueError, TypeError."""
    return LeftOut(_texts(ids), _count(reports), _texts(notes))


def _texts(entries: Any) -> tuple[str, ...]:
    """Return the texts of a list.  Raises ValueError, TypeError."""
    texts = tuple(entries)
    if isinstance(entries, str) or not all(isinstance(text, str) for text in texts):
        raise ValueError("must be texts")
    return texts


def _reports(entry: Any, size: int) -> Reports:
    """Return reports of a file.  Raises ValueError, TypeError."""
    n, *tally = entry
    if len(tally) != size or not all(type(total) is int for total in tally):
        raise ValueError("must have so many whole numbers")
    return Reports(_count(n), tuple(tally))


def _count(number: Any) -> int:
    """Return how many there are.  Raises ValueError."""
    if type(number) is not int or number < 0:
        raise ValueError("must be how many")
    return number


def waiting(state: Pass, reports: Mapping[int, Reports]) -> int:
    """Return how many of the *reports* by round wait for the next step."""
    mine = None if state.is_over else reports.get(state.number)
    return 0 if mine is None else mine.without(state.early).n


def unused(state: Pass, reports: Mapping[int, Reports]) -> int:
    """Return how many of the *reports* by round are in no step and wait for none.

    A step may have more reports than its round has now, if some were excluded since.
    """
    used = {number: step.reports for number, step in enumerate(state.steps, 1)}
    left = sum(max(part.n - used.get(number, 0), 0) for number, part in reports.items())
    return left - waiting(state, reports)


def steps_otherwise(state: Pass, left_out: LeftOut) -> int:
    """Return how many steps were taken while other exclusions than these were in force."""
    return sum(step.left_out.exclusions != left_out.exclusions for step in state.steps)


def interval_lines(done: Pass) -> list[str]:
    """Return every coefficient with its interval, as it is printed."""
    reach = half_width(done)
    named = zip(learning(done.metric).labels, averaged(done), strict=True)
    return [f"  {name}: {x:+.3f} ({x - reach:+.3f} to {x + reach:+.3f})" for name, x in named]
