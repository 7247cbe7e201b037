"""docs/ask/release.md and its tables: printed by the command, or within their noise."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy import release
from collector.analytics.postprocess import PROMISES
from collector.query.release.release import refusal
from tests.support.crowds.releases import REGISTRY

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "ask" / "release.md").read_text(encoding="utf-8")
TABLES = (DOCS / "evidence" / "tables" / "release.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?")
TAIL = {"67 and older": np.arange(release.TAIL, 15), "27 to 41": np.arange(2, 5)}


def numbers(table: str) -> list[float]:
    return [float(text.replace(",", "")) for text in NUMBER.findall(table)]


def table_of(page: str, head: str) -> str:
    """Return the table of *page* whose first line begins with *head*."""
    (found,) = re.findall(rf"^{re.escape(head)}.*\n(?:\|.*\n)+", page, re.MULTILINE)
    return str(found)


def test_every_post_processing_is_on_the_page_with_its_promise() -> None:
    """In the words of the code."""
    for name, promise in PROMISES.items():
        assert f"| `{name}` | {promise} |" in PAGE


@pytest.mark.parametrize(
    ("head", "printed"),
    [
        (
            "| | one item | 67 and older",
            lambda: release.error_table(release.in_ranges(release.people()[0]), 200, TAIL),
        ),
        ("| buckets | bias", lambda: release.measured_buckets(40)),
        ("| analysis |", lambda: release.analysis_table(50)),
    ],
)
def test_what_is_drawn_is_on_the_page_within_its_noise(head: str, printed: object) -> None:
    """Fewer runs than those of the page give about the same figures."""
    assert callable(printed)
    shown, found = numbers(table_of(TABLES, head)), numbers(printed())

    assert len(shown) == len(found)
    assert found == pytest.approx(shown, rel=0.3, abs=0.45)


def test_the_page_says_of_every_type_whether_records_can_be_drawn() -> None:
    """By the code's own refusals."""
    rows = re.findall(r"^\| (`\w+`.*?|numbers.*?) \| (.*?) \|", table_of(PAGE, "| type |"), re.M)
    told = {
        name: "none" in cell or "refused" in cell
        for names, cell in rows
        for name in re.findall(r"`(\w+)`", names)
        if name != "square_wave"
    }

    for metric in REGISTRY:
        refused = refusal(metric, records=True) is not None
        if metric.name != "price":  # a number, of which another row tells by its mechanism
            assert told[metric.type] == refused, metric.type
