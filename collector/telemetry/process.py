"""What this process has used of its machine."""

from __future__ import annotations

import sys
import time
from typing import Final, NamedTuple

_KIB: Final = 1 if sys.platform == "darwin" else 1024  # bytes of a unit of ru_maxrss
_STARTED: Final = time.time()  # of this module: the process's beginning, to a second


class Usage(NamedTuple):
    """Seconds of processor time, bytes of memory at most, and Unix time of the start."""

    cpu: float
    memory: int
    started: float


def usage() -> Usage:
    """Return what this process has used so far; no memory where the platform does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return Usage(time.process_time(), 0, _STARTED)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Usage(time.process_time(), most * _KIB, _STARTED)
