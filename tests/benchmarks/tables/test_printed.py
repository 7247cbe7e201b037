"""What benchmarks print without a draw, or by a fixed seed, stands on its page to the digit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from benchmarks.accuracy import (
    accuracy,
    exactness,
    learn_factors,
    poisoning,
    ranges,
    release,
    vectors,
)
from benchmarks.accuracy import poisoning_beginnings as beginnings
from benchmarks.lib.page import head
from benchmarks.tables import numbers_table, shuffled_table
from tests.client_sdk.mechanisms.test_mutation_bank import table as bank
from tests.docs.pages import text_of

TABLES: Final = "docs/evidence/tables"
# The draws of fakes that begin are seeded; the suite draws the first line, which is the cheapest.
PRINTED: Final[list[tuple[str, Callable[[], str]]]] = [
    (f"{TABLES}/accuracy.md", accuracy.table),
    (f"{TABLES}/accuracy.md", accuracy.worst),
    ("docs/evidence/accuracy.md", accuracy.worst),
    (f"{TABLES}/exactness.md", exactness.table),
    (f"{TABLES}/mutants.md", bank),
    (f"{TABLES}/ranges.md", ranges.table),
    (f"{TABLES}/release.md", lambda: release.example_table(release.example())),
    (f"{TABLES}/release.md", release.bucket_table),
    ("docs/ask/numbers.md", numbers_table.error_table),
    ("docs/ask/numbers.md", numbers_table.laplace_example),
    ("docs/ask/numbers.md", numbers_table.gauss_table),
    ("docs/ask/shuffled.md", shuffled_table.shuffled_table),
    ("docs/ask/vectors.md", vectors.table),
    ("docs/learn/factors.md", learn_factors.needs),
    ("docs/operate/poisoning.md", lambda: "\n".join(poisoning.worth())),
    ("docs/operate/poisoning.md", lambda: "\n".join(poisoning.means())),
    (
        "docs/operate/poisoning.md",
        lambda: head("earlier epochs", *(case.title for case in beginnings.CASES)),
    ),
    ("docs/operate/poisoning.md", lambda: beginnings.line(beginnings.BEFORE[0])),
    ("docs/operate/poisoning.md", beginnings.number_heads),
    ("docs/operate/poisoning.md", lambda: beginnings.numbers(beginnings.BEFORE[1])),
]


@pytest.mark.parametrize(("page", "printed"), PRINTED)
def test_what_a_command_prints_is_on_its_page(page: str, printed: Callable[[], str]) -> None:
    assert printed() in text_of(page)
