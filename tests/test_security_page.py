"""SECURITY.md tells the truth in figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from client_sdk.mechanisms import MeanMechanism, load

TOP = 100  # steps of the range; the figures do not depend on it
PAGE = " ".join((Path(__file__).parents[1] / "SECURITY.md").read_text("utf-8").split())


def heaviest(name: str) -> float:
    """Return by how many full ranges one report of *name* at ε = 1 can raise the sum."""
    mechanism = cast("MeanMechanism", load(name)("1", TOP + 1))
    count: int = mechanism.payload_count  # type: ignore[attr-defined]  # these are one number
    payloads = (number.to_bytes(mechanism.payload_size, "big") for number in range(count))
    sums = (mechanism.debias(mechanism.tally(one, np), 1, np).totals for one in payloads)
    return max(float(np.ravel(total)[0]) for total in sums) / TOP


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("discrete_laplace", r"about (41) full ranges"),
        ("discrete_gaussian", r"about (41) full ranges"),
        ("hybrid", r"of `hybrid` by (2\.5)"),
    ],
)
def test_the_weight_of_a_forged_number_is_what_the_page_says(name: str, said: str) -> None:
    """A reader who compares mechanisms by it must not be misled."""
    found = re.search(said, PAGE)

    assert found is not None
    assert heaviest(name) == pytest.approx(float(found[1]), rel=0.02)
