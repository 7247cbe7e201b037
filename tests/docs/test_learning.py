"""The pages and the notebook of learners say what learners do, and run."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Final

import pytest

from benchmarks.lib.public_data import FOLDER
from client_sdk.core.errors import RegistryError
from client_sdk.learning.model import Model
from client_sdk.learning.rounds import FINAL, learning, signed
from client_sdk.registry import Registry
from client_sdk.testing import MemoryClient
from client_sdk.wire.ed25519 import public_of
from collector.cli import main
from tests.docs.pages import only, text_of
from tests.support.device.learning import SEED, round_model
from tests.support.notebook import code_cells, shown
from tests.support.store.servers import needs_real

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


NOTEBOOK: Final = json.loads(text_of("examples/learn.ipynb"))


def run() -> tuple[dict[str, Any], dict[str, str]]:
    """Return what the cells define, and what each prints."""
    names: dict[str, Any] = {}
    try:
        printed = {cell["id"]: text for cell, text, _ in shown(NOTEBOOK, names)}
    finally:
        if "running" in names:
            names["running"].close()
    return names, printed


@needs_real
@pytest.mark.real
def test_the_notebook_learns_of_made_up_people_what_is_true_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The area scatters by 0.01 between runs and is 0.81; shuffled labels would give 0.5."""
    monkeypatch.delenv(FOLDER, raising=False)

    names, printed = run()

    assert all(printed.values())
    assert printed["people-run"].startswith("made-up people: 6,000 devices")
    assert "not enough reports: 200 of at least 1,000 needed" in printed["few-run"]
    areas = {name: figure.value for name, figure in names["areas"].items()}
    assert 0.7 < areas["one report a device"] < areas["the true chances"] + 0.02
    assert areas["the true chances"] - areas["without noise"] < 0.05
    hits = {name: figure.value for name, figure in names["hits"].items()}
    assert hits["one report a device"] > hits["popular"] + 0.1
    assert not names["folder"].exists()


@needs_real
@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get(FOLDER), reason=f"{FOLDER} names no published data")
def test_the_notebook_learns_of_real_people(capsys: pytest.CaptureFixture[str]) -> None:
    """The bar is that of naive Bayes on Adult at this ε; half of what popularity leaves is kept."""
    names, printed = run()

    with capsys.disabled():
        print("\n" + printed["truth-run"] + printed["hits-run"])
    assert printed["people-run"].startswith("real people of the census (Adult): 32,561 devices")
    assert names["areas"]["one report a device"].value >= 0.86
    hits = {name: figure.value for name, figure in names["hits"].items()}
    gain = hits["without noise"] - hits["popular"]
    assert hits["one report a device"] >= hits["popular"] + gain / 2


def test_the_notebook_keeps_what_its_cells_print() -> None:
    """A code host shows nothing else; ``python -m tests.support.notebook learn`` keeps it."""
    kept = {cell["id"]: json.dumps(cell["outputs"]) for cell in code_cells(NOTEBOOK)}

    assert [name for name, outputs in kept.items() if outputs == "[]"] == []
    assert "made-up people" in kept["people-run"]
    assert not any("Traceback" in outputs for outputs in kept.values())
    assert [cell["execution_count"] for cell in code_cells(NOTEBOOK)] == [*range(1, len(kept) + 1)]
