"""The seed of a run, and the lines that say what each fault did."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import TypeAlias

import pytest

Tell: TypeAlias = Callable[[str], None]
_LINES = pytest.StashKey[list[str]]()
_ROOTS = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Draw the seed of this run, or take that of an earlier one."""
    config.stash[_LINES] = []
    config.stash[_ROOTS] = int(
        os.environ.get("HEARSAY_TESTS_SEED") or random.SystemRandom().getrandbits(32)
    )


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print what the faults did, beneath the results."""
    if config.stash[_LINES]:
        terminalreporter.section(f"faults, HEARSAY_TESTS_SEED={config.stash[_ROOTS]}")
        for line in config.stash[_LINES]:
            terminalreporter.write_line(line)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of this test: another one for each, the same again from the same root."""
    root = request.config.stash[_ROOTS]
    return random.Random(f"{root} {request.node.name}").getrandbits(32)


@pytest.fixture
def chance(seed: int) -> random.Random:
    """When and where the faults of a test strike."""
    return random.Random(f"{seed} faults")


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Tell:
    """Add a line to the summary."""
    return request.config.stash[_LINES].append
