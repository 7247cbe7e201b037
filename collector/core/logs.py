"""Logs as one JSON object a line.  They hold no payload, no value, no address and no credential.

Of a failure a line shows its types and where it happened, never its texts: these may repeat what
was sent.  A failure that goes on is logged when it begins and once a minute after that, not by each
request.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final, TextIO

MAX_TEXT: Final = 2_000  # characters of a message; what is cut ends in …
_MAX_FRAMES: Final = 30  # calls of a failure that are shown, the innermost ones
_NAME: Final = "hearsay"  # above all our loggers
PERIOD_S: Final = 60.0  # seconds between two lines on the same failure


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of ASCII: control characters and line ends are escaped."""

    def __init__(self, role: str = "") -> None:
        """Say on every line that it comes from a process of *role*."""
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        """Return *record* as JSON."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "role": self._role,
            "pid": record.process,
            "logger": record.name,
            "message": _cut(_text_of(record)),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["failure"] = list(_failures(record.exc_info[1]))
        return json.dumps(line)


def configure(role: str, stream: TextIO | None = None) -> None:
    """Log warnings of everybody and news of our own, as a process of *role*, to *stream*.

    Args: stream: standard error if left out.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter(role))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(_NAME).setLevel(logging.INFO)


def server_config(role: str) -> dict[str, object]:
    """Return how the HTTP server is to log: its own lines like ours, and of requests nothing."""
    return {
        "formatters": {"json": {"()": JsonFormatter, "role": role}},
        "handlers": {
            "console": {
                "class": "logging.StreamHandler",
                "formatter": "json",
                "stream": "ext://sys.stderr",
            }
        },
        "loggers": {
            "_granian": {"handlers": ["console"], "level": "WARNING", "propagate": False},
            "granian.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
        },
    }


def _text_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001  # a wrong log call must not end the work that it is about
        return f"{record.msg!s} (its arguments do not fit)"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def _failures(error: BaseException) -> Iterator[dict[str, object]]:
    """Yield an error and those behind it: type and places, no text."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        frames = traceback.extract_tb(error.__traceback__)[-_MAX_FRAMES:]
        places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        yield {"type": type(error).__name__, "at": places}
        behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if behind is None:
            return
        error = behind


class Incidents:
    """What this process has logged of late.  Any thread may log."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Measure by *monotonic*, in seconds."""
        self._monotonic, self._lock = monotonic, threading.Lock()
        self._seen: dict[str, tuple[float, int]] = {}  # by name: the last line, repeats since

    def tell(self, log: logging.Logger, name: str, text: str) -> None:
        """Log *text* as an error, unless *name*, one of our words, was logged shortly before."""
        now = self._monotonic()
        with self._lock:
            then, repeats = self._seen.get(name, (float("-inf"), 0))
            if now - then < PERIOD_S:
                self._seen[name] = then, repeats + 1
                return
            self._seen[name] = now, 0
        more = f" (and {repeats} times more since the last line)" if repeats else ""
        log.error("%s: %s%s", name, text, more)
