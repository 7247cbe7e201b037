"""How long a test waits for what must happen: no law, and free where it does happen.

A limit that is a law of the product stands in the test of that law.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from subprocess import Popen
from typing import Any, Final, TypeVar

PATIENCE: Final = 60.0 * float(os.environ.get("HEARSAY_TESTS_PATIENCE", "1"))  # seconds
_POLL: Final = 0.02  # seconds

Seen = TypeVar("Seen")


def wait_for(
    ask: Callable[[], Seen],
    why: Callable[[], object] = str,
    *,
    running: tuple[Popen[Any], ...] = (),
    despite: tuple[type[Exception], ...] = (),
) -> Seen:
    """Return what *ask* returns once that is true.

    Args: why: what a failure shows; running: processes without which waiting is in vain;
        despite: errors that mean: not yet.
    Raises: AssertionError: patience ends, or one of the processes has.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        with suppress(*despite):
            if seen := ask():
                return seen
        assert all(process.poll() is None for process in running), why()
        assert time.monotonic() < deadline, why()
        time.sleep(_POLL)
