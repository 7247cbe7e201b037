"""The seed of a run, and the lines that say what each fault did."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import pytest

from tests.conftest import FAULT, SEED

Tell: TypeAlias = Callable[[str], None]
SIGN_S: Final = 30.0  # seconds between two signs of life


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of this test: another one for each, the same again from the same root."""
    root = os.environ[SEED]
    return random.Random(f"{root} {request.node.name}").getrandbits(32)


@pytest.fixture
def chance(seed: int) -> random.Random:
    """When and where the faults of a test strike."""
    return random.Random(f"{seed} faults")


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Tell:
    """Add a line to the summary."""
    return lambda line: request.node.user_properties.append((FAULT, line))


@pytest.fixture
def progress(request: pytest.FixtureRequest) -> Iterator[Tell]:
    """Note how far a test is; the terminal shows the last note of a long test now and then."""
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    capture = request.config.pluginmanager.get_plugin("capturemanager")
    notes, ended, began = ["it runs"], threading.Event(), time.monotonic()

    def watch() -> None:
        while not ended.wait(SIGN_S):
            if reporter and capture:  # a worker of a run has no terminal
                sign = f"{request.node.name}: {time.monotonic() - began:.0f} s: {notes[-1]}\n"
                with capture.global_and_fixture_disabled():
                    reporter.ensure_newline()
                    reporter.write(sign, flush=True)

    watching = threading.Thread(target=watch)
    watching.start()
    yield notes.append
    ended.set()
    watching.join()


@pytest.fixture(autouse=True)
def sign_of_life(request: pytest.FixtureRequest) -> None:
    """Have every fault at full scale show that it runs."""
    if request.node.get_closest_marker("faults"):
        request.getfixturevalue("progress")
