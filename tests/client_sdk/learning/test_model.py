"""Files of models: read whole or refused unseen, also those that an adversary writes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk.core.errors import InvalidParameterError, InvalidValueError
from client_sdk.learning import factors, naive_bayes, rounds
from client_sdk.learning.model import MAX_MODEL, Model, numbers_of, read
from client_sdk.registry import Registry
from client_sdk.testing import MemoryClient
from tests.support.device.learning import SEED, registry, round_model
from tests.support.device.registries import HEAD, RECORD, TASTE, table

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


CHANGES: Final = 600  # of each kind
WRONG: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0, 5e-324, 1e308, -1e308, 10**400, float("inf"), float("nan")),
    *("", "\ud800", "x" * 5_000, "__class__", [], {}, [[]], {"a": 1}, [1] * 50),
)
LEARNING: Final = Registry.from_text(HEAD + table("m", RECORD) + table("likes", TASTE))
LEARNER: Final = registry()
RANKER: Final = LEARNER.metric("ranker")
ATTRIBUTES: Final = [
    {
        "name": name,
        "values": list(values),
        **edges,
        "weights": [0.5, 0.0, -0.5],
        "centre": 0.1,
    }
    for name, values, edges in (
        ("plan", ("free", "pro", "team"), {}),
        ("age", ("below 30", "30 to 50.5", "50.5 or more"), {"edges": [30.0, 50.5]}),
    )
]
BAYES: Final = Model.of(
    naive_bayes.KIND,
    LEARNING.metric("m"),
    4_000,
    {"label": "left", "prior": 0.3, "slope": 0.8, "left_out": [], "attributes": ATTRIBUTES},
)
LIKED: Final = Model.of(
    factors.KIND,
    LEARNING.metric("likes"),
    4_000,
    {
        "items": ["news", "chess", "sport"],
        "rank": 1,
        "eigenvalues": [[0.6, 0.5, 0.7]],
        "factors": [[0.7], [0.7], [0.1]],
        "shares": [[0.4, 0.3, 0.5], [0.3, 0.2, 0.4], [0.2, 0.1, 0.3]],
    },
)


def chance(body: bytes) -> bool:
    """Whether a naive Bayes file tells a chance."""
    model = naive_bayes.load(body, LEARNING.metric("m"))
    return 0 <= model.probability({"plan": "free", "age": 41}) <= 1


def liked(body: bytes) -> bool:
    """Whether a file of factors recommends items of the registry."""
    best = factors.recommend(LEARNING.metric("likes"), body, 2, ["news"])
    return set(best) == {"chess", "sport"}


def predicted(body: bytes) -> bool:
    """Whether a final model tells a chance."""
    return 0 <= rounds.predict(RANKER, body, {"age": 30, "plan": "paid"}) <= 1


FINAL: Final = rounds.signed(
    Model.of(rounds.FINAL, RANKER, 400, {"theta": [0.0, 1.0, 0.0, 0.0]}), SEED
)
KINDS: Final[dict[str, tuple[Model, Callable[[bytes], bool]]]] = {
    "naive Bayes": (BAYES, chance),
    "factors": (LIKED, liked),
    "rounds": (FINAL, predicted),
}


def changed(form: Any, dice: random.Random) -> Any:
    """Return a copy of *form* with something replaced, removed or added somewhere."""
    copy = json.loads(json.dumps(form))
    whole, key = dice.choice(list(_places(copy)))
    what = dice.randrange(3)
    if what == 0:
        whole[key] = dice.choice(WRONG)
    elif what == 1:
        del whole[key]
    elif isinstance(whole, list):
        whole.insert(key, dice.choice(WRONG))
    else:
        whole[dice.choice(("name", "edges", "values", "more"))] = dice.choice(WRONG)
    return copy


def _places(form: Any) -> Iterator[tuple[Any, Any]]:
    keys = form if isinstance(form, dict) else range(len(form)) if isinstance(form, list) else ()
    for key in list(keys):
        yield form, key
        yield from _places(form[key])


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_file_is_refused_or_says_what_a_model_may_say(kind: str) -> None:
    model, says = KINDS[kind]
    form, dice, refused = json.loads(model.text()), random.Random(20261123), 0
    assert says(model.text().encode())

    for _ in range(CHANGES):
        other = changed(form, dice)
        if other and dice.random() < 0.3:
            other = changed(other, dice)
        body = json.dumps(other, ensure_ascii=dice.random() < 0.9).encode("utf-8", "surrogatepass")
        try:
            right, reason = says(body), ""
        except (InvalidParameterError, InvalidValueError) as error:
            right, reason = True, str(error)
        assert right
        assert len(reason) < 250
        refused += bool(reason)

    assert refused > CHANGES // 4


def test_no_changed_file_of_a_round_makes_a_device_report() -> None:
    """Not even a change that no publisher would make by mistake; the signature is over all."""
    form = json.loads(round_model(RANKER, 1, [0.0] * 4).text())
    dice, client = random.Random(20261123), MemoryClient(LEARNER)

    for _ in range(CHANGES):
        other = changed(form, dice)
        current = rounds.Round(client, "ranker", json.dumps(other).encode())
        current.record({"age": 30}, True)
        assert current.state is rounds.State.REFUSED or other == form

    assert client.stats()["recorded"] == 0
