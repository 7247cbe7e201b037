"""Slices of a boolean that went through GRR, as expected of devices or drawn from a seed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from client_sdk.mechanisms.items.grr import GRR
from client_sdk.registry.metric import Metric
from collector.analytics.verb import Slice
from tests.support.crowds.uploads import registry
from tests.support.enumeration.coverage import fits_rate

REGISTRY = registry(min_reports=100)
SHOWN, AGE, PAGE = (REGISTRY.metric(name) for name in ("crashed", "age", "page"))


def drawn(
    dimensions: Mapping[str, str],
    share: float,
    n: int,
    chance: np.random.Generator,
    epoch: int = 0,
    metric: Metric = SHOWN,
) -> Slice:
    """Return the reports of *n* devices, each of which says true by chance *share*."""
    assert isinstance(metric.mechanism, GRR)
    p, q = float(metric.mechanism.channel.p), float(metric.mechanism.channel.q)
    holders = int(chance.binomial(n, share))
    said = chance.binomial(holders, p) + chance.binomial(n - holders, q)
    return Slice(metric, dimensions, n, np.array([n - said, said]), (epoch,))


def exact(
    dimensions: Mapping[str, str], share: float, n: int, *epochs: int, metric: Metric = SHOWN
) -> Slice:
    """Return *n* reports whose estimate is *share*, as near as whole reports can be."""
    assert isinstance(metric.mechanism, GRR)
    p, q = float(metric.mechanism.channel.p), float(metric.mechanism.channel.q)
    said = round(n * (share * p + (1 - share) * q))
    return Slice(metric, dimensions, n, np.array([n - said, said]), epochs or (0,))


def is_at_most(hits: int, trials: int, rate: float) -> bool:
    """Return whether *hits* of *trials* may come from *rate* or less."""
    return hits <= rate * trials or fits_rate(hits, trials, rate)
