"""Registry files of benchmarks: what all of their metrics say, and each of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

_HEAD: Final = 'schema = 1\napp = "benchmark"\n'
_METRIC: Final = """
[metrics.{name}]
title = "{name}"
question = "What does it cost?"
{own}
epsilon = "{epsilon}"
every = "1d"
longitudinal = "fresh"
expected_devices = 50000
min_reports = 100
owner = "benchmarks"
expires = 2099-12-31
"""


def registry_text(metrics: Mapping[str, str], head: str = "", epsilon: str = "1.0") -> str:
    """Return a registry file of *metrics*, each name with the lines of its own."""
    tables = (_METRIC.format(name=name, own=own, epsilon=epsilon) for name, own in metrics.items())
    return "".join([_HEAD, head, *tables])


def items(mechanism: str, size: int) -> str:
    """Return the lines of a metric of *size* items."""
    values = json.dumps([f"v{number}" for number in range(size)])
    return f'type = "category"\nvalues = {values}\nmechanism = "{mechanism}"'
