"""The answer to which keys devices hold, and to the mean of the numbers of each key."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import nan
from typing import Any

from client_sdk.mechanisms import KeyValueMechanism
from client_sdk.registry.domains import MEAN_OF, Domain
from client_sdk.registry.metric import Metric

from ...estimation.estimate import Estimate, key_means, key_shares


def mean_items(domain: Domain) -> tuple[str, ...]:
    """Return the names of the means, one a key."""
    return tuple(MEAN_OF + key for key in domain.labels)


def key_estimates(metric: Metric, tally: Any, n: int, alpha: float) -> dict[str, Estimate | None]:
    """Return the share of holders of each key, then the mean of its numbers, by name.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    domain, mechanism = metric.domain, metric.mechanism
    if not domain.numbers or not isinstance(mechanism, KeyValueMechanism):
        return {}
    held = key_shares(mechanism, tally, n, alpha)
    means = key_means(mechanism, domain.numbers, tally, n, alpha)
    return {
        **dict(zip(domain.labels, held, strict=True)),
        **dict(zip(mean_items(domain), means, strict=True)),
    }


def key_truth(metric: Metric, values: Mapping[object, int]) -> dict[str, float]:
    """Return the true answers from how many devices hold each mapping; for demos and tests.

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
    return dict(zip((*domain.labels, *mean_items(domain)), (*shares, *means), strict=True))
