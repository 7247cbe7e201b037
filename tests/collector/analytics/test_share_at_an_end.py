"""Many devices at an end of the range: shares beside that end hold, declared smooth or not."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from client_sdk.registry.metric import Metric
from collector.analytics.verb import Slice
from tests.support.crowds.asking import ask, holds
from tests.support.crowds.boolean_slices import is_at_most
from tests.support.device.registries import NUMBER
from tests.support.enumeration.populations import metric_of

DEVICES: Final = 20_000
ANSWERS: Final = 150
ALPHA: Final = 0.05
AT_ZERO: Final = 0.4


def waits(shape: str) -> Metric:
    """Return a metric of milliseconds whose bins are wider than its grid."""
    return metric_of(
        NUMBER,
        mechanism='"square_wave"',
        min="0",
        max="2000",
        step="1",
        epsilon='"2"',
        shape=f'"{shape}"',
    )


def population() -> Any:
    """Return devices by millisecond: four of ten wait not at all, the others about 900."""
    places = np.arange(2_001)
    bell = np.exp(-((places - 900) ** 2) / 2 / 250**2)
    held = np.rint(DEVICES * (1 - AT_ZERO) * bell / bell.sum()).astype(np.int64)
    held[0] += DEVICES - held.sum()
    return held


def tallies(metric: Metric, held: Any, chance: np.random.Generator) -> Any:
    """Yield tallies of devices that round to a bin by chance and report by the channel."""
    mechanism: Any = metric.mechanism
    law = mechanism.spread(np.eye(mechanism.bins), np)
    law /= law.sum(axis=1, keepdims=True)
    places = np.arange(held.size) * (mechanism.bins - 1) / (held.size - 1)
    below = np.minimum(places.astype(int), mechanism.bins - 2)
    for _ in range(ANSWERS):
        up = chance.binomial(held, places - below)
        bins = np.bincount(below, held - up, mechanism.bins)
        bins += np.bincount(below + 1, up, mechanism.bins)
        yield chance.multinomial(bins.astype(np.int64), law).sum(axis=0)


@pytest.mark.parametrize("shape", ["smooth", "any"])
def test_shares_within_the_first_bin_hold_beside_an_atom_at_the_end(shape: str) -> None:
    """Up to 0, up to 1, and 1 to 50: at most 5 of 100 intervals miss, at 1e-9."""
    metric, held = waits(shape), population()
    true = {
        "0": held[0] / DEVICES,
        "1": held[:2].sum() / DEVICES,
        "1 to 50": held[1:51].sum() / DEVICES,
        "2 to 2000": held[2:].sum() / DEVICES,
    }
    missed = dict.fromkeys(true, 0)
    for tally in tallies(metric, held, np.random.default_rng(20261122)):
        one = Slice(metric, {}, DEVICES, tally, (0,))
        ranges = [[1, 50], [2, 2000]]
        rows = ask("cdf", [one], options={"points": [0, 1]}).rows
        rows += ask("range", [one], options={"ranges": ranges}).rows
        for row in rows:
            missed[row.item] += not any(holds(row, true[row.item] + e) for e in (-1e-9, 0, 1e-9))
            assert row.quality != "good" or abs((row.value or 0) - true[row.item]) < 0.05

    assert {item: is_at_most(misses, ANSWERS, ALPHA) for item, misses in missed.items()} == (
        dict.fromkeys(true, True)
    )
