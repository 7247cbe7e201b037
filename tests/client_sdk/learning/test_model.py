"""Model files: what was written is read again, and what nobody wrote is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from client_sdk.core.errors import InvalidParameterError
from client_sdk.learning.model import MAX_MODEL, Model, numbers_of, read
from client_sdk.registry.contract import Registry

REGISTRY = """
schema = 1

[app]
name = "shop"

[metrics.theme]
title = "Theme"
question = "Which theme is in use?"
type = "category"
values = ["light", "dark"]
epsilon = "1.5"
every = "once"
longitudinal = "fresh"
expected_devices = 1000
owner = "team"
expires = 2099-01-01
"""
METRIC = Registry.from_text(REGISTRY).metric("theme")
MODEL = Model.of("plain", METRIC, 1_000, {"names": ["a", "b"], "rows": [[1, 2.5], [0, -1]]})


def form(**changes: object) -> dict[str, Any]:
    return {**json.loads(MODEL.text()), **changes}


def test_a_model_is_read_from_a_file_from_bytes_and_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(MODEL.text(), encoding="utf-8")

    for source in (path, str(path), path.read_bytes(), MODEL):
        model = read(source)

        assert model == MODEL
        assert model.labels("names") == ("a", "b")
        assert model.table("rows", 2, 2) == ((1.0, 2.5), (0.0, -1.0))
        model.require("plain", METRIC)


def test_the_head_of_a_file_says_of_what_it_was_learned() -> None:
    head = json.loads(MODEL.text())

    assert head["hearsay_model"] == 1
    assert head["definition"] == METRIC.digest.hex()
    assert (head["metric"], head["reports"], head["epsilon"]) == ("theme", 1_000, "3/2")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"hearsay_model": 1, "hearsay_model": 1}',
        b" " * (MAX_MODEL + 1),
        *(
            json.dumps(form(**change)).encode()
            for change in (
                {"hearsay_model": 2},
                {"hearsay_model": True},
                {"kind": None},
                {"definition": "00"},
                {"definition": 7},
                {"reports": -1},
                {"reports": 1.5},
                {"reports": True},
                {"epsilon": 1},
            )
        ),
    ],
)
def test_what_is_no_model_is_refused_and_never_repeated(text: bytes) -> None:
    with pytest.raises(InvalidParameterError, match=r"^model=\*\*\*: ") as refusal:
        read(text)

    assert len(str(refusal.value)) < 200


def test_a_file_may_be_as_long_as_is_said() -> None:
    assert read(MODEL.text().encode().ljust(MAX_MODEL)) == MODEL


@pytest.mark.parametrize(
    "entries",
    [
        None,
        "12",
        {},
        [1.0],
        [1.0, 2.0, 3.0],
        [1.0, "2"],
        [1.0, True],
        [1.0, float("nan")],
        [1.0, float("inf")],
        [1.0, 10**400],
        [1.0, 9.0],
    ],
)
def test_numbers_that_are_not_finite_or_not_as_many_are_refused(entries: object) -> None:
    assert numbers_of([1, 2.5], "weights", 2, -8, 8) == (1.0, 2.5)

    with pytest.raises(InvalidParameterError, match="weights must have 2 finite numbers"):
        numbers_of(entries, "weights", 2, -8, 8)


@pytest.mark.parametrize("names", [None, [], ["a", "a"], ["a", 1], "ab"])
def test_labels_are_different_texts(names: object) -> None:
    with pytest.raises(InvalidParameterError, match="names must be a list of different texts"):
        read(json.dumps(form(names=names)).encode()).labels("names")


@pytest.mark.parametrize("rows", [None, [], [[1, 2]], [[1, 2], [3]], [[1, 2], 3]])
def test_a_table_has_the_rows_and_columns_that_are_asked_for(rows: object) -> None:
    with pytest.raises(InvalidParameterError, match="rows must"):
        read(json.dumps(form(rows=rows)).encode()).table("rows", 2, 2)


def test_a_model_of_another_kind_or_definition_is_refused() -> None:
    other = Registry.from_text(REGISTRY.replace('"1.5"', '"1"')).metric("theme")

    with pytest.raises(InvalidParameterError, match="of kind naive_bayes"):
        MODEL.require("naive_bayes")
    with pytest.raises(InvalidParameterError, match="learned of theme as this registry"):
        MODEL.require("plain", other)


@pytest.mark.parametrize("source", [None, 3, ["model.json"]])
def test_what_is_no_path_is_refused_by_its_type(source: Any) -> None:
    with pytest.raises(InvalidParameterError, match="must be a path or bytes"):
        read(source)


@pytest.mark.parametrize("text", [MODEL.text(), '  {"label": "x"}', "[1]", '"x"', "a\nb", "\0"])
def test_the_text_of_a_file_is_no_path_and_never_repeated(text: str) -> None:
    with pytest.raises(InvalidParameterError, match=r"^model=\*\*\*: is no path; .* as bytes$"):
        read(text)


@pytest.mark.parametrize("path", [b"model.json", b"/etc/models/churn.json", b"C:\\model.json"])
def test_a_path_is_not_the_bytes_of_a_file(path: bytes) -> None:
    with pytest.raises(InvalidParameterError, match="a path is given as str, not as bytes") as no:
        read(path)

    assert "model.json" not in str(no.value)
    assert "churn" not in str(no.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match=r"none\.json: cannot be read: No such file"):
        read(tmp_path / "none.json")


def test_a_number_that_is_not_finite_is_never_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        Model.of("plain", METRIC, 1, {"weight": float("nan")}).text()


@pytest.mark.parametrize("module", ["factors", "naive_bayes", "rounds"])
def test_a_device_that_learns_loads_nothing_but_the_standard_library(module: str) -> None:
    code = f"import sys, client_sdk.learning.{module}; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = set(done.stdout.split())
    assert f"client_sdk.learning.{module}" in loaded
    assert not loaded & {"numpy", "collector", "requests", "sqlite3", "ssl", "msgspec"}
