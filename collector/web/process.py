"""A web process as the server starts it."""

from __future__ import annotations

import gc
from typing import Final

from ..core.logs import configure
from ..operations.parent_death import end_with_parent
from ..operations.telemetry.activity import WEB
from .app import create_app
from .front import Front
from .sockets import limit_answers

_ALLOCATIONS: Final = 10_000  # objects between two collections; an upload of ten columns makes 100


def create_process() -> Front:
    """Return the application of a process that ends with the server that started it."""
    end_with_parent()  # otherwise a killed server would leave it answering, under old keys
    configure(WEB)
    front = Front(create_app(), listens=limit_answers)
    gc.collect()
    gc.freeze()  # what is loaded stays: it need not be looked through again and again
    gc.set_threshold(_ALLOCATIONS)
    return front
