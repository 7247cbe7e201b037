"""One honest end to end over the operating system's entropy, where only statistics can look."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, cast

import numpy as np
import pytest

from client_sdk.core.randomness import Randomness, system_randomness
from client_sdk.mechanisms import FrequencyOracle, load, names
from client_sdk.mechanisms.items.grr import GRR
from tests.support.enumeration.vectors import is_pure

REPORTS: Final = 20_000  # reports; 60 ms of GRR
FALSE_ALARM: Final = 1e-9  # a test run, for all items together

ORACLES: Final = [n for n in names() if is_pure(load(n))]


def margin(items: int) -> float:
    """Return how far a share of supports may lie from its expectation.

    Hoeffding: Pr[|share - p| >= t] <= 2 exp(-2 n t^2), shared out over the items.
    """
    return math.sqrt(math.log(2 * items / FALSE_ALARM) / (2 * REPORTS))


def share_of_supports(oracle: FrequencyOracle, value: int, randomness: Randomness) -> list[float]:
    """Return the share of REPORTS reports of *value* that support each item."""
    payloads = b"".join(oracle.randomize(value, randomness) for _ in range(REPORTS))
    tally = oracle.tally(oracle.check(payloads, np).payloads, np)
    return cast("list[float]", (oracle.support_counts(tally, REPORTS, np) / REPORTS).tolist())


def fits(oracle: FrequencyOracle, value: int, shares: Sequence[float]) -> bool:
    """Whether the shares of supports lie within the margin of the channel."""
    p, q = float(oracle.channel.p), float(oracle.channel.q)
    return all(
        abs(share - (p if item == value else q)) < margin(oracle.domain_size)
        for item, share in enumerate(shares)
    )


@pytest.mark.parametrize("name", ORACLES)
def test_reports_drawn_from_the_system_follow_the_channel(name: str) -> None:
    oracle = cast("FrequencyOracle", load(name)("1", 5))

    shares = share_of_supports(oracle, 3, system_randomness())

    assert fits(oracle, 3, shares)


class _TruthKeptTooOften(GRR):
    """Planted fault: a lie may be the truth, as if e^ε/(e^ε+k-1) were only the first coin."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        if not randomness.bernoulli(self.channel.p):
            value = randomness.uniform(self.domain_size)
        return bytes([value])


def test_reports_of_a_planted_fault_do_not_follow_the_channel() -> None:
    faulty = _TruthKeptTooOften("1", 5)

    shares = share_of_supports(faulty, 3, system_randomness())

    assert not fits(faulty, 3, shares)
