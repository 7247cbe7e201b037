"""Estimates of simulated devices lie within the stated errors, which are those predicted."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from client_sdk.mechanisms import UNIT, Mechanism, Record, VectorMechanism, starts_of
from client_sdk.mechanisms.composite.sampled_attribute import SampledAttribute
from client_sdk.mechanisms.deployed.cms import CMS
from client_sdk.mechanisms.deployed.hcms import HCMS
from client_sdk.mechanisms.deployed.rappor import RAPPOR
from client_sdk.mechanisms.numbers.codebook import Codebook
from client_sdk.mechanisms.numbers.sampled_number import SampledNumber
from tests.support.enumeration.seeded import SeededRandomness

ERRORS: Final = 6.5  # standard errors; a normal number is farther away with 8e-11
ITEMS: Final = {item: 100 * (item % 5) for item in range(40)}
RECORDS: Final = {Record(items): 4_000 for items in ((0, 2, 5), (0, 3, 6), (1, 3, 8))}
CORNERS: Final = {(UNIT,) * 4: 10_000, (-UNIT,) * 4: 10_000}  # where devices differ the most
SHORT: Final = {(9, *[0] * 59): 2_000}  # devices, by what they hold
# Mechanisms, and how far the stated error may be from the one that was predicted.
CROWDS: Final[list[tuple[Mechanism[Any], dict[Any, int], float]]] = [
    (RAPPOR("3", 6, bits=32, cohorts=4), {2: 200, 3: 400, 4: 600, 5: 800}, 0.3),
    (CMS("4", 40, rows=16, columns=64), ITEMS, 0.25),
    (HCMS("4", 40, rows=16, columns=64), ITEMS, 0.25),
    (SampledAttribute("1", 9, starts=starts_of((2, 3, 4))), RECORDS, 0.25),
    (SampledNumber("1", 4, cube=1), CORNERS, 0.1),
    (Codebook("2", 60), SHORT, 1 / 40),  # 6 standard errors of so many reports and coordinates
    (Codebook("2", 60, cube=1), SHORT, 1 / 40),
]


def counted(mechanism: Mechanism[Any], value: Any) -> Any:
    """Return what a device adds to each total: to items 1, to coordinates its place in 0 … 1."""
    if isinstance(mechanism, VectorMechanism):
        return (np.array(value) / UNIT + 1) / 2
    held = [value] if isinstance(value, int) else list(value)
    return np.isin(np.arange(mechanism.domain_size), held).astype(float)


@pytest.mark.parametrize(
    ("mechanism", "crowd", "near"), CROWDS, ids=lambda m: getattr(m, "name", "")
)
def test_totals_lie_within_errors_as_stated_and_predicted(
    mechanism: Mechanism[Any], crowd: dict[Any, int], near: float
) -> None:
    randomness, n = SeededRandomness(b"devices"), sum(crowd.values())
    values = [value for value, devices in crowd.items() for _ in range(devices)]
    column = b"".join(mechanism.randomize(value, randomness) for value in values)
    truth = sum(devices * counted(mechanism, value) for value, devices in crowd.items())

    totals, variances = mechanism.debias(mechanism.tally(column, np), n, np)

    bias = n * getattr(mechanism, "bias", 0.0)
    assert (np.abs(totals - truth) <= ERRORS * np.sqrt(variances) + bias).all()
    assert np.sqrt(variances.mean()) / n == pytest.approx(mechanism.predict(n), rel=near)
