"""A hostile collector, and files of another form: commands end with a message, and print no code.

Documents are good ones in which one part is another value, or is missing.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st

from collector.cli import main
from tests.support.crowds.asked import JANUARY, JANUARY_5, store
from tests.support.crowds.examples import trying
from tests.support.crowds.uploads import READ_TOKEN, bearer, registry, registry_text
from tests.support.device.terminals import shown_on_terminal
from tests.support.sites.in_memory import in_memory
from tests.support.sites.served import served
from tests.support.store.memory_storage import MemoryStorage

# What no terminal may be sent, but for tab and the end of a line.
ACTS: Final = re.compile(
    "[\0-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\r(?!\n)"
)
HOSTILE: Final = "\x1b]0;owned\x07\x1b[2J\u202e\u2066\x9b31m\r\x85\u2028"
GONE: Final = object()
EVIL: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0, 10**400, 1e308, float("nan"), float("inf"), "", "x", HOSTILE, "\ud800"),
    GONE,
    *([], {}, [[]], [None], {"": None}, [HOSTILE], {HOSTILE: HOSTILE}, ["x"] * 100),
)
TEXTS: Final = ("[" * 100_000, '{"a":' * 100_000, "1" * 5_000, "null", "[]", "{}", '"x"', "", "\0")
VERBS: Final = ("estimate", "top_k", "segments", "trend")
FORMATS: Final = ("table", "csv", "json", "svg")
REFUSED: Final = (201, 302, 400, 401, 404, 429, 500)
EXAMPLES: Final = 150
_HEARSAY: Final = "from collector.cli import main; main()"
NOTE: Final = {
    "name": "x", "at": "2026-11-20", "text": "2.4 out", "metric": "", "app": "", "url": "",
    "author": "ada", "planned": False,
}  # fmt: skip
RECENT: Final = {
    "reports": [
        {"number": 1, "metric": "page", "epoch": "2026-11-20", "every": "1d", "payload": "00",
         "segment": "", "sent": "a", "means": "b"}
    ]
}  # fmt: skip
PROBLEM: Final = {
    "type": "about:blank", "title": "Wrong", "status": 400, "detail": "options.k: must be 1",
    "errors": [{"place": "options.k", "rule": "must be 1"}],
}  # fmt: skip


COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    **{f"query {form}": ("query", "page", "--format", form) for form in FORMATS},
    "note": ("note", "2.4 out"),
    "tail": ("tail", "--once"),
}
KEYS_FILE: Final = {
    "plan": {"issuer": "issuer.example", "first": 2_900, "tokens": 16, "key_ids": ["00" * 32] * 2},
    "keys": ["MA", "MA"],
}
RELAY_KEYS: Final = {"keys": [{"key": 1, "since": "2026-01-01", "secret": "00" * 32}]}
FILES: Final[Mapping[str, tuple[tuple[str, ...], str, Any]]] = {
    "issuer-keys show": (("issuer-keys", "show"), "keys", KEYS_FILE),
    "oblivious-keys show": (("oblivious-keys", "show"), "keys", RELAY_KEYS),
}


class Collector:
    """Answers every request with the same bytes."""

    def __init__(self) -> None:
        self.status, self.body, self.url = 200, b"", ""

    def __call__(self, environ: Any, start: Callable[..., Any]) -> list[bytes]:
        start(f"{self.status} X", [("Content-Type", "application/json")])
        return [self.body]


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    made = Collector()
    app = Flask(__name__)
    app.wsgi_app = made  # type: ignore[assignment, method-assign]
    with served(app) as made.url:
        yield made


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """Good answers of a collector, by verb."""
    storage, metric = MemoryStorage(), registry().metric("page")
    for platform, n in (("linux", 4_000), ("mac", 2_000)):
        store(storage, metric, JANUARY_5, n, platform=platform)
    folder = tmp_path_factory.mktemp("foreign")
    client = in_memory(folder, registry_text(), storage=storage).test_client()
    return {
        verb: client.post(
            "/v1/query",
            json={"metrics": ["page"], "verb": verb, "date_range": list(JANUARY)},
            headers=bearer(READ_TOKEN),
        ).get_json()
        for verb in VERBS
    }


def places_in(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of each part of *value*."""
    yield place
    for key, part in value.items() if isinstance(value, dict) else ():
        yield from places_in(part, (*place, key))
    for number, part in enumerate(value[:3] if isinstance(value, list) else ()):
        yield from places_in(part, (*place, number))


def changed(value: Any, place: tuple[Any, ...], part: Any) -> Any:
    """Return *value* with *part* at *place*, or without anything there."""
    if not place:
        return None if part is GONE else part
    first, *rest = place
    copy = dict(value) if isinstance(value, dict) else list(value)
    if not rest and part is GONE:
        del copy[first]
    else:
        copy[first] = changed(copy[first], tuple(rest), part)
    return copy


def bad(data: st.DataObject, good: Any) -> bytes:
    """Draw a document that is *good* but for one or two parts, or none at all."""
    if data.draw(st.integers(0, 9)) == 0:
        return data.draw(st.sampled_from(TEXTS)).encode()
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(list(places_in(good))))
        good = changed(good, place, data.draw(st.sampled_from(EVIL)))
    return json.dumps(good).encode()


def require_message(result: Result, document: bytes, *, is_exact: bool = False) -> None:
    """Fail unless a command ended by itself, and printed what a terminal may be sent.

    Args: is_exact: what it printed is for a program, which reads all.
    """
    ended = result.exception is None or isinstance(result.exception, SystemExit)
    assert ended, (result.exc_info, document[:2_000])
    assert is_exact or not ACTS.search(result.output), (result.output, document[:2_000])


@pytest.mark.parametrize("name", COMMANDS)
@trying(EXAMPLES)
@given(data=st.data())
def test_a_command_ends_with_a_message_whatever_a_collector_answers(
    collector: Collector, answers: Mapping[str, Any], name: str, data: st.DataObject
) -> None:
    good = {"note": NOTE, "tail": RECENT}.get(name) or answers[data.draw(st.sampled_from(VERBS))]
    collector.status = 200 if data.draw(st.integers(0, 9)) else data.draw(st.sampled_from(REFUSED))
    collector.body = bad(data, good if collector.status == 200 else PROBLEM)
    environment = {"HEARSAY_URL": collector.url, "HEARSAY_READ_TOKEN": READ_TOKEN}

    result = CliRunner().invoke(main, COMMANDS[name], env=environment)

    is_exact = name in ("query csv", "query json") and result.exit_code == 0  # for a program
    require_message(result, collector.body, is_exact=is_exact)


@pytest.mark.parametrize("name", FILES)
@trying(EXAMPLES)
@given(data=st.data())
def test_a_command_ends_with_a_message_whatever_a_file_holds(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    words, file, good = FILES[name]
    path, document = tmp_path_factory.mktemp("foreign") / file, bad(data, good)
    path.write_bytes(document)
    path.chmod(0o600)

    result = CliRunner().invoke(main, [*words, str(path)])

    require_message(result, document)


@pytest.mark.parametrize("text", [*TEXTS, '{"v": 1}', '{"v": 1, "name": [], "pruned": "x"}'])
def test_refold_ends_with_a_message_whatever_its_manifest_is(tmp_path: Path, text: str) -> None:
    (tmp_path / "metrics.toml").write_text(registry_text(), encoding="utf-8")
    archive = tmp_path / "archive"
    archive.mkdir()
    (archive / "archive.json").write_text(text, encoding="utf-8")
    environment = {"HEARSAY_REGISTRY": str(tmp_path / "metrics.toml")}

    result = CliRunner().invoke(
        main, ["refold", "--print", "--archive", str(archive)], env=environment
    )

    require_message(result, text.encode())


def test_a_terminal_is_shown_a_hostile_text_with_escapes_and_a_program_reads_the_text_itself(
    collector: Collector, answers: Mapping[str, Any]
) -> None:
    """What a person reads never has it; a JSON document stays the same on a terminal, too."""
    text = f"Page {HOSTILE}"
    good = changed(answers["estimate"], ("rows", 0, "dimensions", "item"), text)
    good = changed(good, ("meta", "metrics", 0, "title"), text)
    collector.status, collector.body = 200, json.dumps(good).encode()
    environment = {"HEARSAY_URL": collector.url, "HEARSAY_READ_TOKEN": READ_TOKEN}

    printed = {
        form: CliRunner().invoke(main, COMMANDS[f"query {form}"], env=environment)
        for form in FORMATS
    }
    shown = {
        form: shown_on_terminal(
            [sys.executable, "-c", _HEARSAY, *COMMANDS[f"query {form}"]],
            os.environ | environment,
        ).decode()
        for form in ("csv", "json")
    }

    assert "\\u001b]0;owned\\u0007" in printed["table"].output
    assert not any(ACTS.search(printed[form].output) for form in ("table", "svg"))
    rows = csv.reader(io.StringIO(printed["csv"].stdout_bytes.decode(), newline=""))
    assert [row[0] for row in rows][:2] == ["item", text]
    assert json.dumps(text, ensure_ascii=False) in printed["json"].stdout_bytes.decode()
    assert not any(ACTS.search(document) for document in shown.values())
    assert "\\u001b]0;owned\\u0007" in shown["csv"]
    assert json.loads(shown["json"]) == json.loads(printed["json"].stdout_bytes)
