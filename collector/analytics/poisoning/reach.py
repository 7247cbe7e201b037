"""What the one report of a fake device can stand for in the mean of numbers.  Pure.

An estimate is the mean of what its reports stand for.  Honest reports stand for the truth on
average; one that was made up can stand for anything between two limits, which follow from the
mechanism alone.  With a pure channel a report stands for (1-q)/(p-q) devices that hold an item if
it supports it, and for -q/(p-q) if not.

Source: Cao, Jia, Gong, *Data Poisoning Attacks to Local Differential Privacy Protocols*, USENIX
    Security 2021, for the attacks on pure protocols; the limits of all others are derived here,
    from the estimator of each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from client_sdk.mechanisms import KeyValueMechanism, Mechanism, Reach
from client_sdk.registry.domains import NumberDomain


def mean_reach(mechanism: Mechanism[Any], domain: NumberDomain) -> Reach | None:
    """Return the reach of the mean of numbers, in their unit; None if none is known."""
    reach = mechanism.position_reach(np)
    return None if reach is None else reach.in_unit(float(domain.step), float(domain.minimum))


def key_mean_reach(
    mechanism: KeyValueMechanism, domain: NumberDomain, share: float
) -> Reach | None:
    """Return the reach of the mean of a key that a *share* of the devices holds, in its unit.

    Made-up reports of the key at one sign: each weighs as much as the holders it stands for, and
    stands for a number far beyond the range.  None where nobody holds the key.
    """
    if share <= 0:
        return None
    p, q = float(mechanism.holding.p), float(mechanism.holding.q)
    weight = (1 - q) / (p - q)
    beyond = 1 / (float(mechanism.gain) * weight)  # of 1, half the range
    extent, low = float(domain.maximum - domain.minimum), float(domain.minimum)
    return Reach((1 - beyond) / 2, (1 + beyond) / 2, weight / share).in_unit(extent, low)
