"""examples/learn.ipynb runs from a registry to a result, on made-up people and on real ones."""

from __future__ import annotations

import json
import os
from typing import Any, Final

import pytest

from benchmarks.lib.public_data import FOLDER
from tests.docs.pages import text_of
from tests.support.notebook import code_cells, shown
from tests.support.store.servers import needs_real

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
