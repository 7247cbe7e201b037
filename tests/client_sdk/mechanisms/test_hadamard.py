"""Facts about one-bit Hadamard response: the matrix, and a decode that stays exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from client_sdk.mechanisms import MAX_REPORTS
from client_sdk.mechanisms.items.hadamard import Hadamard


def signs(rows: int) -> Any:
    """Return the Sylvester matrix by its own recursion."""
    matrix = np.ones((1, 1), dtype=np.int64)
    while len(matrix) < rows:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


@pytest.mark.parametrize("domain_size", [2, 3, 8, 33, 64])
def test_a_report_supports_the_items_with_its_sign_in_the_matrix(domain_size: int) -> None:
    mechanism = Hadamard("1", domain_size)
    matrix = signs(mechanism.rows)

    for report in range(2 * mechanism.rows):
        payload = report.to_bytes(mechanism.payload_size, "big")
        wanted = 1 if report % 2 else -1
        expected = np.flatnonzero(matrix[report // 2, :domain_size] == wanted).tolist()
        assert list(mechanism.supports(payload)) == expected


def test_the_decode_is_exact_for_the_most_reports_of_a_large_domain() -> None:
    mechanism = Hadamard("1", 65_536)
    dice = np.random.default_rng(2)
    shares = dice.dirichlet(np.full(mechanism.tally_size, 0.01))
    tally = dice.multinomial(MAX_REPORTS, shares)
    rows = np.arange(mechanism.rows)

    found = mechanism.support_counts(tally, MAX_REPORTS, np)

    for item in (0, 1, 777, 32_768, 65_535):
        even = np.bitwise_count(rows & item) % 2 == 0
        supports = int(tally[1::2][even].sum() + tally[::2][~even].sum())
        assert found[item] == supports
