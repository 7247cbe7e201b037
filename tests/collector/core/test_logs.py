"""Logs: one JSON object a line whatever is logged, and nothing in it that was sent."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.core.logs import MAX_TEXT, JsonFormatter, configure

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
    assert all("test_logs.py" in place for one in line["failure"] for place in one["at"])
    assert SECRET not in stream.getvalue()


def test_news_are_logged_of_our_own_and_warnings_of_everybody(stream: io.StringIO) -> None:
    logging.getLogger("hearsay.serving").info("ours")
    logging.getLogger("other").info("theirs")
    logging.getLogger("other").warning("bad")

    lines = [json.loads(line) for line in stream.getvalue().splitlines()]

    assert [line["message"] for line in lines] == ["ours", "bad"]
    assert {line["role"] for line in lines} == {"web"}
    assert all(line["time"].endswith("+00:00") for line in lines)
