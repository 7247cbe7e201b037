"""Errors are one tree; logs are one JSON object a line; tables of text have equal columns."""

from __future__ import annotations

import inspect
import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.core import errors
from collector.core.errors import CollectorError, ConfigError, CredentialError, QueryError
from collector.core.logs import MAX_TEXT, JsonFormatter, configure
from collector.core.text_tables import table_lines

PUBLIC = [
    error
    for _, error in inspect.getmembers(errors, inspect.isclass)
    if error.__module__ == errors.__name__
]
DEPTH = 4  # characters by which a branch is drawn further right


def drawn() -> dict[str, tuple[str, ...]]:
    """Return the bases of each error as the docstring draws them, the builtin one last."""
    found: dict[str, tuple[str, ...]] = {}
    above = [CollectorError.__name__]
    for line in (inspect.getdoc(errors) or "").splitlines():
        branch = re.match(r"([│ ]*)[├└]── (\w+)(?: \((\w+)\))?  ", line)
        if branch:
            place, name, builtin = branch.groups()
            del above[1 + len(place) // DEPTH :]
            found[name] = (above[-1], *([builtin] if builtin else []))
            above.append(name)
    return found


@pytest.mark.parametrize("error", PUBLIC, ids=lambda error: error.__name__)
def test_every_error_is_a_collector_error_and_says_so_in_its_name(error: type[Exception]) -> None:
    assert issubclass(error, CollectorError)
    assert error.__name__.endswith("Error")


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    """Law: who catches a branch, or a builtin, catches what the drawing shows below it."""
    bases = {error.__name__: tuple(b.__name__ for b in error.__bases__) for error in PUBLIC}
    del bases[CollectorError.__name__]

    assert drawn() == bases


def test_errors_of_settings_and_credentials_keep_their_parts() -> None:
    setting = ConfigError("HEARSAY_PORT", 0, "must be from 1 to 65535")
    credential = CredentialError("expires", "must be a day to come")

    assert str(setting) == "HEARSAY_PORT=0: must be from 1 to 65535"
    assert (setting.name, setting.value, setting.rule) == (
        "HEARSAY_PORT",
        0,
        "must be from 1 to 65535",
    )
    assert str(credential) == "expires: must be a day to come"
    assert (credential.name, credential.rule) == ("expires", "must be a day to come")


def test_a_query_error_tells_place_and_rule_apart() -> None:
    error = QueryError("filters.0.1", "must be a dimension")

    assert (error.place, error.rule) == ("filters.0.1", "must be a dimension")


NASTY = "a\r\nb\x1b[31m\x00\x7f\u2028\ud800 {}%s"
SECRET = "canary-of-a-payload"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Where lines go; the loggers are as before afterwards."""
    root, ours = logging.getLogger(), logging.getLogger("hearsay")
    before = root.handlers[:], root.level, ours.level
    written = io.StringIO()
    configure("web", written)
    yield written
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


def formatted(message: str, *arguments: object) -> str:
    record = logging.LogRecord("hearsay.x", logging.ERROR, "f.py", 1, message, arguments, None)
    return JsonFormatter("worker").format(record)


def raise_chained() -> None:
    try:
        int(SECRET)
    except ValueError as error:
        raise KeyError(SECRET) from error


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_a_line_is_one_line_of_printable_ascii_whatever_is_logged(text: str) -> None:
    """No text can end a line, colour a terminal or look like a second record."""
    line = formatted("%s", text)

    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["level"] == "error"


def test_control_characters_arrive_escaped_and_can_be_read_back() -> None:
    assert json.loads(formatted("%s", NASTY))["message"] == NASTY


def test_a_long_message_is_cut() -> None:
    assert json.loads(formatted("x" * 10 * MAX_TEXT))["message"] == "x" * MAX_TEXT + "…"


def test_a_wrong_log_call_is_told_of_and_does_not_raise() -> None:
    """An operator must not lose the line, nor a request its answer."""
    assert "do not fit" in json.loads(formatted("%d", "word"))["message"]


def test_a_failure_is_told_by_its_types_and_places_and_never_by_its_texts(
    stream: io.StringIO,
) -> None:
    """The text of an exception may repeat what was sent."""
    try:
        raise_chained()
    except KeyError as error:
        logging.getLogger("hearsay.web").error("internal error", exc_info=error)

    line: dict[str, Any] = json.loads(stream.getvalue())
    assert [one["type"] for one in line["failure"]] == ["KeyError", "ValueError"]
    assert all("test_errors.py" in place for one in line["failure"] for place in one["at"])
    assert SECRET not in stream.getvalue()


def test_news_are_logged_of_our_own_and_warnings_of_everybody(stream: io.StringIO) -> None:
    logging.getLogger("hearsay.serving").info("ours")
    logging.getLogger("other").info("theirs")
    logging.getLogger("other").warning("bad")

    lines = [json.loads(line) for line in stream.getvalue().splitlines()]

    assert [line["message"] for line in lines] == ["ours", "bad"]
    assert {line["role"] for line in lines} == {"web"}
    assert all(line["time"].endswith("+00:00") for line in lines)


def test_columns_are_as_wide_as_their_widest_cell_and_aligned_as_asked() -> None:
    rows = [["name", "ε", "why"], ["a", "10.5", ""], ["longest", "2", "rare"]]

    assert list(table_lines(rows, "<><", indent="  ")) == [
        "  name        ε  why",
        "  a        10.5",
        "  longest     2  rare",
    ]


def test_a_cell_that_looks_like_a_format_is_printed_as_it_is() -> None:
    assert list(table_lines([["{width}", "%s"]], "><")) == ["{width}  %s"]
