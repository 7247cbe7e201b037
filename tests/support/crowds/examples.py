"""How many examples Hypothesis tries, where a test says so itself."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, settings

FEW: Final = 500
MANY: Final = pytest.param(10_000, marks=pytest.mark.slow)


def trying(examples: int) -> settings:
    """Return settings for so many *examples*."""
    return settings(
        max_examples=examples,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
