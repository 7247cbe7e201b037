"""Naive Bayes from the tallies of records: how likely a label is, attribute by attribute.  Pure.

One report tells one attribute of a device and its label, so a tally is a table of each attribute by
label, and these tables are all that naive Bayes needs: no rounds, and no device twice.

*Weights.*  With the share P of the label among all, x of a value with the label and t of the value,
d = x - P t is 0 if value and label are independent.  Its variance s^2 is that of the noise of both
cells together and of the draw of devices.  The chance c of the label is taken to scatter from value
to value as Phi(a + SCATTER z), z normal and a so that its mean is P, and d normally around (c-P) t.
The estimated chance is the mean of c given d.  So a value whose cell is below its noise is shrunk
towards no weight, by a ``kept`` that the model tells: the variance of (c-P) t over all that d has.
A value that seems to be held by nobody has no weight.
The weight is the log-odds less those of P, at most LIMIT either way; ``limited`` counts where that
held.  Chances lie between 0 and 1, so noise below 0 makes a rare label rarer, and never impossible:
a normal law of c would, and the few values with such noise would outweigh all others.
Intervals are of the log-odds *before* they are shrunk, by Fieller's interval of x/t, and
hold for all values and P at once (Bonferroni).

*Calibration.*  Attributes tell the same twice, so the sum of weights is too sure of itself.  What a
sum tells is D/v, D being how far its means with the label and without it are apart, and v its
variance within either, as in Fisher's discriminant: log-odds are then P's plus D/v times the sum
less the middle of both means.  For an attribute D is the sum over values of d times the weight,
over P(1-P).  As the weight is of the same noise as d, the mean of this is too large by
s^2 dw/dd (Stein's identity), which is taken off; s^2 dc/dd is t times the variance of c given d.
v does not follow from the tables, as no report tells two attributes: it is taken as if every two
correlated by OVERLAP, fixed here for every metric.  The slope D/v is at most 1.  As D of few
reports is itself unsure, LEFT of what was seen is kept at least.  A single attribute tells nothing
twice: there the slope is only what is left of D, and the middle is 0.  How wrong that leaves
chances is measured by ``python -m benchmarks learn_bayes``, and can be by anybody who has public
rows with labels.

Source: Fisher, Annals of Eugenics 1936; Stein, Annals of Statistics 1981; Fieller, JRSS B 1954.
    What is made of them here is derived.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, sqrt
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from client_sdk.learning.model import Model
from client_sdk.learning.naive_bayes import KIND
from client_sdk.privacy.wording import counted
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.joint import PairDomain
from client_sdk.registry.types.record import ATTRIBUTE

from ..analytics.association import Finding, associations, words_of
from ..analytics.records import attributes_of, by_attribute, is_of_records
from ..analytics.sums import Shares
from ..analytics.verb import Slice
from ..core.errors import QueryError
from ..core.remarks import Remark
from ..estimation.arrays import Floats
from ..estimation.estimate import Estimate, normal_quantile
from ..estimation.significance import chi_square_tail

ERROR: Final = 0.05  # standard error of a cell, of all devices, beyond which nothing is learned
LIMIT: Final = 4.0  # of a weight in log-odds: 55 times as likely
_SCATTER: Final = 0.7  # of chances of the label, in standard deviations of a normal law
_PRIOR: Final = np.linspace(-5, 5, 801)  # z at which the law of chances is added up
LEFT: Final = 0.25  # of how far means are apart, at least, when noise is taken off
_OVERLAP: Final = 0.07  # correlation of the weights of two attributes that is assumed
NOISY: Final = 0.5  # part of a weight that is kept, below which it is mostly noise
DOUBT: Final = 0.01  # p above which so much evidence may well be noise


@dataclass(frozen=True)
class Table:
    """What is known of one attribute: the share that holds each value, and the values' weights."""

    name: str
    held: Floats  # at least 0, of sum 1
    weights: Floats
    kept: Floats  # which part of what was estimated is left of each weight
    apart: float  # how far the means of the weight are apart, with and without the label
    seen: float  # the same before what noise adds was taken off
    limits: tuple[tuple[float | None, float | None], ...]  # of the log-odds; None: no end
    limited: int  # values whose weight is LIMIT
    evidence: tuple[float, float, float]  # sum of w (d/s)^2, its mean and variance by chance

    def middle(self, label: float) -> float:
        """Return the middle of the means of the weight; *label* is the share of the label."""
        return float(self.held @ self.weights) + (1 - 2 * label) / 2 * self.apart

    def within(self, label: float) -> float:
        """Return the standard deviation of the weight among those alike in the label."""
        spread = float(self.held @ self.weights**2) - float(self.held @ self.weights) ** 2
        return sqrt(max(spread - label * (1 - label) * self.apart**2, 0.0))


@dataclass(frozen=True)
class Chances:
    """How likely the label is from value to value, before any report: *mean* P, and *variance*."""

    mean: float
    variance: float
    chances: Floats  # at equal steps of a normal law, shape (steps,)

    def given(self, off: Floats, held: Floats, noise: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of the chances of values that are *off* by d, shape (values,).

        Args: held: the share t of each value.  noise: the variance of d.
        """
        apart = off[:, None] - held[:, None] * (self.chances - self.mean)
        powers = -(apart**2) / (2 * noise[:, None]) - _PRIOR**2 / 2
        weights = np.exp(powers - powers.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        means = weights @ self.chances
        return means, weights @ self.chances**2 - means**2


@lru_cache(maxsize=16)  # of one share for all attributes of a model
def _chances(mean: float) -> Chances:
    normal = NormalDist()
    middle = normal.inv_cdf(mean) * sqrt(1 + _SCATTER**2)  # the mean of Phi(a + s z), closed
    chances = np.array([normal.cdf(middle + _SCATTER * float(z)) for z in _PRIOR])
    law = np.exp(-(_PRIOR**2) / 2)
    variance = law @ (chances - mean) ** 2 / law.sum()
    return Chances(mean, float(variance), chances)


def least_reports(metric: Metric) -> int:
    """Return the reports below which nothing is learned: cells err by more than ERROR."""
    error = metric.mechanism.predict(1) / ERROR
    return ceil(error * error)


def learn(part: Slice, label: str | None = None, alpha: float = 0.05) -> Model:
    """Return the model of how likely *label* is, from the reports of a metric of records.

    Args:   label: the last one of the metric if left out.  alpha: 1 - level of the intervals.
    Raises: QueryError: no records, no such label, too few reports, or nothing above the noise.
            InvalidTallyError: the tally cannot have come from its reports.
    """
    metric = part.metric
    if not is_of_records(metric):
        raise QueryError("metric", "has no records; declare type record", metric.address)
    labels = metric.domain.parts["label"]
    label = labels[-1] if label is None else label
    if label not in labels:
        raise QueryError("label", f"must be one of the {len(labels)} labels of {metric.address}")
    least = least_reports(metric)
    if part.n < least:
        rule = f"has {part.n:,} reports, and needs {least:,} to learn from at this ε"
        raise QueryError("metric", rule, metric.address)
    place = labels.index(label)
    parts = list(by_attribute(part))
    comparisons = 1 + sum(len(attribute.values.labels) for attribute in attributes_of(metric))
    prior = _prior(metric.address, parts, place, alpha / comparisons)
    about = [each for each in parts if each.n]
    tables = [_table(each, place, prior, alpha / comparisons) for each in about]
    slope, centres = _slope(metric.address, tables, prior.value)
    strengths = associations(about, alpha / len(about))
    entries = [_entry(*each, metric) for each in zip(tables, centres, strengths, strict=True)]
    form: dict[str, Any] = {
        "label": label,
        "labels": list(labels),
        "prior": prior.value,
        "prior_interval": [prior.ci_low, prior.ci_high],
        "slope": slope,
        "calibration": {"by": "tallies", "overlap": _OVERLAP},
        "alpha": alpha,
        "intervals": "simultaneous, of the log-odds before they are shrunk",
        "p_value": _by_chance(tables),
        "limited": sum(table.limited for table in tables),
        "left_out": [each.dimensions[ATTRIBUTE] for each in parts if not each.n],
        "attributes": entries,
    }
    return Model.of(KIND, metric, part.n, form)


def _prior(name: str, parts: Sequence[Slice], place: int, alpha: float) -> Estimate:
    """Return the share of the label, from the reports about all attributes, each by its error.

    Raises: QueryError: it is perhaps 0 or 1.
    """
    values, weights = [], []
    for part in (part for part in parts if part.n):
        shares, (_, inside) = Shares.of_slice(part), _members(part, place)
        (noise,) = shares.variances(inside.sum(axis=0)[None])
        values.append(float(inside.sum(axis=0) @ shares.values))
        weights.append(1 / (float(noise) + shares.drawn / 4))
    value, error = float(np.average(values, weights=weights)), sum(weights) ** -0.5
    reach = normal_quantile(alpha) * error
    if not 0 < value - reach <= value + reach < 1:
        rule = "not enough reports: whether anybody has the label, or has not, is not sure"
        raise QueryError("metric", rule, name)
    return Estimate(value, error, value - reach, value + reach)


def _members(part: Slice, place: int) -> tuple[Floats, Floats]:
    """Return which items are of each value, and of it with the label: 0 or 1, (values, items)."""
    domain = part.metric.domain
    assert isinstance(domain, PairDomain)  # noqa: S101 - as ``by_attribute`` makes them
    wholes = np.repeat(np.eye(domain.first.size), domain.second.size, axis=1)
    return wholes, wholes * (np.arange(domain.size) % domain.second.size == place)


def _table(part: Slice, place: int, prior: Estimate, alpha: float) -> Table:
    """Return what the reports about one attribute tell."""
    shares, label = Shares.of_slice(part), prior.value
    wholes, inside = _members(part, place)
    values, both = wholes @ shares.values, inside @ shares.values
    apart = inside - label * wholes
    held = np.maximum(values, 0)
    noise = shares.variances(apart) + shares.drawn * held * label * (1 - label)
    law, off = _chances(label), both - label * values
    around = law.variance * held**2
    kept = around / (around + noise)
    chances, spread = law.given(off, held, noise)
    weights = np.where(held > 0, np.log(chances / (1 - chances)) - _logit(label), 0)
    limited = np.abs(weights) > LIMIT
    weights = np.clip(weights, -LIMIT, LIMIT)
    added = np.where(limited, 0, held * spread / (chances * (1 - chances)))
    return Table(
        name=part.dimensions[ATTRIBUTE],
        held=held / held.sum(),
        weights=weights,
        kept=kept,
        apart=float((off * weights - added).sum() / (label * (1 - label))),
        seen=float((off * weights).sum() / (label * (1 - label))),
        limits=tuple(
            _limits(shares.ratio(both_of, whole, alpha), prior)
            for both_of, whole in zip(inside, wholes, strict=True)
        ),
        limited=int(limited.sum()),
        evidence=(
            float((kept * off**2 / noise).sum()),
            float(kept.sum()),
            2 * len(kept) / (len(kept) - 1) * float((kept**2).sum()),
        ),
    )


def _limits(ratio: Estimate | None, prior: Estimate) -> tuple[float | None, float | None]:
    """Return the ends of the log-odds of the label, less those of its share among all."""
    if ratio is None:
        return None, None
    low = _logit(ratio.ci_low) - _logit(prior.ci_high) if ratio.ci_low > 0 else None
    high = _logit(ratio.ci_high) - _logit(prior.ci_low) if ratio.ci_high < 1 else None
    return low, high


def _slope(name: str, tables: Sequence[Table], label: float) -> tuple[float, list[float]]:
    """Return what a sum of weights tells, and for each attribute the middle of its two means.

    Raises: QueryError: no weight differs from 0.
    """
    seen = sum(table.seen for table in tables)
    apart = max(sum(table.apart for table in tables), LEFT * seen)
    if seen <= 0:
        rule = "not enough reports: no value makes the label more or less likely"
        raise QueryError("metric", rule, name)
    if len(tables) == 1:  # nothing is told twice: weights are log-odds, and only noise is too sure
        return apart / seen, [0.0]
    spreads = [table.within(label) for table in tables]
    alone = sum(spread**2 for spread in spreads)
    within = alone + _OVERLAP * (sum(spreads) ** 2 - alone)
    slope = min(apart / within, 1.0) if within > 0 else 1.0
    return slope, [table.middle(label) for table in tables]


def _by_chance(tables: Sequence[Table]) -> float:
    """Return how likely so much evidence is if the label goes with no attribute.

    Derived: the sum over values of w (d/s)^2 is of mean w each then.  Two of the k values of an
    attribute have a correlation of about -1/(k-1), as d sums to 0, so that the variance is
    2 (1 + 1/(k-1)) times the sum of w^2.  The sum is taken for a scaled chi-square of this mean and
    variance (Satterthwaite), with whole degrees of freedom, rounded up.
    """
    evidence, mean, variance = (
        sum(column) for column in zip(*(t.evidence for t in tables), strict=True)
    )
    scale = variance / (2 * mean)
    return chi_square_tail(evidence / scale, ceil(mean / scale))


def _entry(table: Table, centre: float, strength: Finding, metric: Metric) -> dict[str, Any]:
    (attribute,) = (each for each in attributes_of(metric) if each.name == table.name)
    edges = {"edges": list(map(float, attribute.edges))} if attribute.edges else {}
    return {
        "name": table.name,
        "values": list(attribute.values.labels),
        **edges,
        "weights": table.weights.tolist(),
        "low": [low for low, _ in table.limits],
        "high": [high for _, high in table.limits],
        "kept": table.kept.tolist(),
        "centre": centre,
        "association": _strength(strength),
    }


def _strength(finding: Finding) -> dict[str, Any]:
    """Return how strongly an attribute goes with the labels, of all of them."""
    if isinstance(finding, Remark):
        return {"cramers_v": None, "reason": finding.text}
    ends = {"low": finding.ci_low, "high": finding.ci_high}
    return {"cramers_v": finding.value, **ends, "p_value": finding.p_value}


def summary(model: Model) -> Iterator[str]:
    """Yield what a model that was learned here tells, in words, and how far to believe it."""
    parts = model.parts
    entries, p_value = parts["attributes"], parts["p_value"]
    yield f"the chance of {parts['label']!r}, from {model.reports:,} reports at ε {model.epsilon}"
    for entry in entries:
        yield f"{entry['name']} and the label: {_strength_in_words(entry['association'])}"
    if len(entries) > 1:
        counts = f"counts all {len(entries)} attributes (Holm), and the intervals hold at once"
        yield f"p, the chance of as much by noise, {counts}"
    sure = [value for entry in entries for value in _sure_values(entry)]
    values = counted(sum(len(entry["values"]) for entry in entries), "value")
    whole = f"{len(sure)} of {values}{': ' if sure else ''}{'; '.join(sure)}"
    yield f"surely more or less likely with {whole}"
    noisy = [
        f"{entry['name']}: {value}"
        for entry in entries
        for value, kept in zip(entry["values"], entry["kept"], strict=True)
        if kept < NOISY
    ]
    if noisy:
        yield f"of too few devices, so shrunk to little: {'; '.join(noisy)}"
    yield f"so much evidence, if no attribute tells anything, has the chance {p_value:.2g}"
    if p_value > DOUBT:
        yield f"do not use this model: above {DOUBT:g} it may be noise; wait for more reports"
    if (labels := len(parts["labels"])) > 2:
        yield f"that counts this label alone: if you learn all {labels}, multiply it by {labels}"


def _strength_in_words(entry: Mapping[str, Any]) -> str:
    if entry["cramers_v"] is None:
        return str(entry["reason"])
    return words_of(entry["cramers_v"], entry["low"], entry["high"], entry["p_value"])


def _sure_values(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values of an attribute of a model whose interval lies on one side of 0."""
    for value, low, high in zip(entry["values"], entry["low"], entry["high"], strict=True):
        if (low is not None and low > 0) or (high is not None and high < 0):
            yield f"{entry['name']}: {value}"


def _logit(chance: float) -> float:
    return log(chance / (1 - chance))
