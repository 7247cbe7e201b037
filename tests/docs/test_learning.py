"""The page of all learners says what the pages of learners do, and their example runs."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from client_sdk.core.errors import RegistryError
from client_sdk.learning.model import Model
from client_sdk.learning.rounds import FINAL, learning, signed
from client_sdk.registry import Registry
from client_sdk.testing import MemoryClient
from client_sdk.wire.ed25519 import public_of
from collector.cli import main
from tests.docs.pages import only, text_of
from tests.support.device.learning import SEED, round_model

ABOVE: Final = 'schema = 1\napp = "shop"\n'
PAGE: Final = text_of("docs/learn/README.md")
ROW: Final = re.compile(r"^\| \[[^]]+\]\(([a-z-]+\.md)\), (\w+), .*$", re.MULTILINE)
FIGURE: Final = re.compile(r"\b0\.\d{3,4}\b")
TRIVIAL: Final = {"0.500"}  # the AUC of a constant, on any data


def rows() -> list[tuple[str, str, str]]:
    """Return page, data and text of each row with figures."""
    return [(row[1], row[2], row[0]) for row in ROW.finditer(PAGE)]


@pytest.mark.parametrize(("page", "data", "text"), rows(), ids=lambda part: str(part)[:20])
def test_a_figure_of_a_row_is_in_a_table_of_its_page(page: str, data: str, text: str) -> None:
    there = text_of(f"docs/learn/{page}")
    figures = [figure for figure in FIGURE.findall(text) if figure not in TRIVIAL]

    assert len(figures) >= 3
    for figure in figures:
        assert figure in there, (data, figure)


def test_there_is_a_row_of_each_learner() -> None:
    learners = {page for page, _, _ in rows()}

    assert learners == {"naive-bayes.md", "rounds.md", "factors.md"}


def test_each_command_of_learning_is_on_the_page() -> None:
    learn = main.commands["learn"]

    names = sorted(getattr(learn, "commands", {}))
    assert len(names) == 3
    assert [name for name in names if f"hearsay learn {name}`" not in PAGE] == []


@pytest.mark.parametrize(
    ("state", "reports"), [("open", 1), ("over", 0), ("absent", 0), ("refused", 0)]
)
def test_the_example_of_rounds_works_in_every_state(state: str, reports: int) -> None:
    """Run as it stands, with what a server may have sent, by the page's own registry."""
    toml = only("docs/learn/rounds.md", "toml")
    with pytest.raises(RegistryError, match=r"learning\.key: must be a public key"):
        Registry.from_text(ABOVE + toml)
    text = toml.replace("the 64 digits that your own command printed", public_of(SEED).hex())
    client = MemoryClient(Registry.from_text(ABOVE + text))
    metric = client.registry.metric("ranker")
    theta = [0.0] * learning(metric).size
    final = signed(Model.of(FINAL, metric, 9, {"theta": theta}), SEED)
    files = {"open": round_model(metric, 1, theta), "over": final, "refused": b"<html>"}
    names: dict[str, Any] = {"client": client, "fetched": files.get(state)}

    exec(only("docs/learn/rounds.md", "python"), names)  # noqa: S102  # the page's own lines

    assert names["current"].state.value == state
    assert client.stats()["recorded"] == reports
    assert names.get("chance") == (0.5 if state == "over" else None)
