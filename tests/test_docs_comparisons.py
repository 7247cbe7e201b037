"""docs/ask/comparisons.md asks questions that are answered as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from client_sdk.registry import Registry
from collector.analytics.verb import load
from collector.catalog import Catalog
from collector.query import plan, read, run
from tests.support.memory_storage import MemoryStorage

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "ask" / "comparisons.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
ASKED = [
    (verb, question)
    for verb, text in SECTIONS
    for question in re.findall(r"```json\n(.*?)```", text, re.DOTALL)
]
NOW = 1_798_000_000.0  # a day at the end of 2026


@pytest.mark.parametrize(("verb", "question"), ASKED, ids=[verb for verb, _ in ASKED])
def test_a_question_of_the_page_is_answered(verb: str, question: str) -> None:
    """It is of the verb of its section, and can be asked of the example's metrics."""
    catalog = Catalog([Registry.from_file(ROOT / "examples" / "metrics.toml")])
    query = read(question.encode())

    assert query.verb == verb
    assert run(plan(query, catalog, NOW), MemoryStorage()).meta["verb"] == verb


def test_the_page_has_every_option_of_its_verbs() -> None:
    """And a question for each verb."""
    verbs = dict(SECTIONS)
    for verb in ("trend", "compare", "lift", "adoption", "actives", "segments"):
        options = load(verb).options.__struct_fields__

        assert "```json" in verbs[verb]
        assert [name for name in options if name not in PAGE] == []
