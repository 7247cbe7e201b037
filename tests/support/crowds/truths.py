"""The true answers of metrics of every type, from how many devices hold each value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from math import nan
from typing import Any

import numpy as np

from client_sdk.mechanisms import UNIT, DistributionMechanism, RecordMechanism, VectorMechanism
from client_sdk.registry.keys import SMOOTH
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.items import MEAN_OF
from collector.analytics.answer import QUANTILES
from collector.demo import fleet
from collector.estimation.estimate import quantile_positions


def label_truth(metric: Metric, values: Mapping[object, int]) -> dict[str, float]:
    """Return the true answer of each row."""
    if isinstance(metric.mechanism, VectorMechanism):
        return vector_truth(metric, values)
    if isinstance(metric.mechanism, RecordMechanism):
        return record_truth(metric, values)
    if metric.domain.numbers and not metric.domain.grid:
        return key_truth(metric, values)
    exact = fleet.label_truth(metric, values)
    is_smooth = metric.shape == SMOOTH and isinstance(metric.mechanism, DistributionMechanism)
    return exact | smooth_truth(metric, values) if is_smooth else exact


def smooth_truth(metric: Metric, values: Mapping[object, int]) -> dict[str, float]:
    """Return the quantiles of numbers; the share of a bin is spread evenly over it."""
    grid, mechanism = metric.domain.grid, metric.mechanism
    assert grid is not None
    assert isinstance(mechanism, DistributionMechanism)
    shares = np.zeros(mechanism.bins)
    step = mechanism.top / (mechanism.bins - 1)
    for value, devices in values.items():
        below, rest = divmod(float(grid.encode(value, metric.name)) / step, 1)
        shares[int(below)] += devices * (1 - rest)
        if rest:
            shares[int(below) + 1] += devices * rest
    steps = quantile_positions(shares / shares.sum(), tuple(QUANTILES.values())) * step
    numbers = float(grid.minimum) + steps * float(grid.step)
    return dict(zip(QUANTILES, numbers.tolist(), strict=True))


def record_truth(metric: Metric, values: Mapping[object, int]) -> dict[str, float]:
    """Return the share of the devices in each cell of the table of each attribute."""
    domain, held = metric.domain, Counter[str]()
    for value, devices in values.items():
        answers = dict(zip(domain.parts, value, strict=True)) if isinstance(value, tuple) else value
        cells: Any = domain.encode(answers, metric.name)
        held.update(dict.fromkeys((domain.labels[cell] for cell in cells), devices))
    return {item: held[item] / sum(values.values()) for item in domain.answer_items()}


def key_truth(metric: Metric, values: Mapping[object, int]) -> dict[str, float]:
    """Return the true answers from how many devices hold each mapping.

    The mean of a key that nobody holds is NaN.
    """
    domain: Any = metric.domain
    holders = dict.fromkeys(range(domain.size), 0)
    sums = dict.fromkeys(range(domain.size), Fraction(0))
    for value, devices in values.items():
        for key, position in domain.encode(value, metric.name).items():
            holders[key] += devices
            sums[key] += devices * position
    low, step, total = domain.numbers.minimum, domain.numbers.step, sum(values.values())
    means = [float(low + step * sums[key] / n) if n else nan for key, n in holders.items()]
    shares = [n / total for n in holders.values()]
    return dict(
        zip(
            (*domain.labels, *(MEAN_OF + key for key in domain.labels)),
            (*shares, *means),
            strict=True,
        )
    )


def vector_truth(metric: Metric, values: Mapping[object, int]) -> dict[str, float]:
    """Return the mean of each labelled coordinate from how many devices hold each value."""
    domain: Any = metric.domain
    sums = [0] * domain.size
    for value, devices in values.items():
        parts = domain.encode(value, metric.name)
        sums = [sum_ + devices * part for sum_, part in zip(sums, parts, strict=True)]
    whole = sum(values.values()) * UNIT
    return {
        label: domain.least + domain.extent * (sum_ / whole + 1) / 2
        for label, sum_ in zip(domain.labels, sums, strict=False)
    }
