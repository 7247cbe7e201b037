"""How often the intervals of key-value metrics hold the truth, from common keys down to rare ones.

Supports of a key are simulated as what they are: a draw of plus, minus or neither by each device,
with the chances of the mechanism's channel.  Every key is one replication.  The estimates and
intervals are those of the collector.  Beside the interval of the mean stands the normal one around
the ratio, by the delta method.

Run: ``python -m benchmarks key_values``; the numbers are seeded.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import Any, Final, NamedTuple, cast

import numpy as np

from benchmarks.lib import page
from client_sdk.mechanisms import KeyValueMechanism, load
from client_sdk.registry.types.numbers import NumberDomain
from collector.estimation.estimate import key_means, key_shares, normal_quantile

REPLICATIONS: Final = 20_000  # they leave a standard error of 0.15 points in 95 %
ALPHA: Final = 0.05
RANGE: Final = NumberDomain(Fraction(0), Fraction(1), Fraction(1), "of the range")
POPULATIONS: Final = {  # shares of the holders by the place of their number
    "all in the middle": {0.5: 1.0},
    "all at the top": {1.0: 1.0},
    "half at either end": {0.0: 0.5, 1.0: 0.5},
}
MULTIPLES: Final = (1, 2, 4, 8)  # of the standard error of a share of 0


class Setting(NamedTuple):
    """A metric and its reports."""

    mechanism: str
    epsilon: str
    keys: int
    most: int
    devices: int


SETTINGS: Final = (
    Setting("pckv_ue", "1", 16, 1, 20_000),
    Setting("pckv_grr", "1", 16, 16, 20_000),
    Setting("pckv_grr", "4", 8, 4, 5_000),
)


class Found(NamedTuple):
    """Shares of all replications, but for ``covered`` and ``delta``, which are of those shown."""

    share: float  # true
    share_covered: float
    shown: float
    covered: float
    delta: float
    wrong: float  # shown with an interval that misses


def built(setting: Setting) -> KeyValueMechanism:
    """Return the mechanism of *setting*."""
    made = load(setting.mechanism)(setting.epsilon, setting.keys, pad=setting.most)  # type: ignore[call-arg]  # of the family
    return cast("KeyValueMechanism", made)


def replicated(mechanism: KeyValueMechanism) -> KeyValueMechanism:
    """Return *mechanism* with the channel it has, over REPLICATIONS keys."""

    class Replicated(type(mechanism)):  # type: ignore[misc]  # a class known at run time only
        channel = mechanism.channel
        most_supports = REPLICATIONS

    return cast("KeyValueMechanism", Replicated(mechanism.epsilon, REPLICATIONS, pad=mechanism.pad))


def tally_of(
    mechanism: KeyValueMechanism, holders: int, n: int, places: dict[float, float], seed: int
) -> Any:
    """Return the tally of a key, once a replication; *places* gives the parts of the holders."""
    dice = np.random.default_rng([seed, holders, n])
    same, opposite, foreign = map(float, mechanism.channel)
    groups = [(round(part * holders), place) for place, part in places.items()]
    shown = dice.multinomial(n - holders, [foreign, foreign, 1 - 2 * foreign], REPLICATIONS)
    for devices, x in groups:
        rest = (mechanism.pad - 1) * foreign
        plus = (x * same + (1 - x) * opposite + rest) / mechanism.pad
        minus = (x * opposite + (1 - x) * same + rest) / mechanism.pad
        shown = shown + dice.multinomial(devices, [plus, minus, 1 - plus - minus], REPLICATIONS)
    return np.concatenate([shown[:, 0], shown[:, 1]])


def holders_of(setting: Setting, multiple: float) -> int:
    """Return how many holders are *multiple* standard errors of a share of 0; even."""
    held = built(setting).holding
    p, q = float(held.p), float(held.q)
    return 2 * round(multiple * sqrt(setting.devices * q * (1 - q)) / (p - q) / 2)


def measure(setting: Setting, holders: int, places: dict[float, float]) -> Found:
    """Return how the intervals of a key with *holders* fare."""
    mechanism, n = replicated(built(setting)), setting.devices
    tally = tally_of(mechanism, holders, n, places, seed=7)
    truth = sum(place * part for place, part in places.items())
    shares = key_shares(mechanism, tally, n, ALPHA)
    held = np.mean([row.ci_low <= holders / n <= row.ci_high for row in shares])
    means = [row for row in key_means(mechanism, RANGE, tally, n, ALPHA) if row is not None]
    covered = np.array([row.ci_low <= truth <= row.ci_high for row in means])
    z = normal_quantile(ALPHA)
    delta = np.array([abs(row.value - truth) <= z * row.std_error for row in means])
    wrong = float((~covered).sum()) / REPLICATIONS
    shown = len(means) / REPLICATIONS
    return Found(holders / n, float(held), shown, float(covered.mean()), float(delta.mean()), wrong)


def measure_all() -> dict[tuple[Setting, float], list[Found]]:
    """Return by setting and multiple what was found in each of the POPULATIONS."""
    return {
        (setting, multiple): [
            measure(setting, holders_of(setting, multiple), places)
            for places in POPULATIONS.values()
        ]
        for setting in SETTINGS
        for multiple in MULTIPLES
    }


def table(found: dict[tuple[Setting, float], list[Found]]) -> str:
    """Return the measurements as Markdown; of the populations the least and the most."""
    heads = ("metric", "share of holders", "its interval covers", "mean shown",
             "its interval covers, where shown", "delta method", "shown and wrong")  # fmt: skip
    rows = []
    for (setting, _), ones in found.items():
        name = f"`{setting.mechanism}`, ε = {setting.epsilon}, {setting.devices:,} devices"
        rows.append((name, *(_span(rates) for rates in zip(*ones, strict=True))))
    return page.table(heads, rows)


def _span(rates: tuple[float, ...]) -> str:
    low, high = (f"{100 * rate:.1f}" for rate in (min(rates), max(rates)))
    return f"{low} %" if low == high else f"{low}–{high} %"


def main() -> None:
    """Print the table."""
    print(table(measure_all()))
