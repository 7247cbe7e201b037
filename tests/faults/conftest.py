"""The seed of a run, and the lines that say what each fault did."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import TypeAlias

import pytest

from tests.conftest import FAULT, SEED

Tell: TypeAlias = Callable[[str], None]


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
