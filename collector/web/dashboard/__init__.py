"""The pages that people read: server-rendered, complete without a script, one module a page."""

from __future__ import annotations

from typing import Final

from . import ask, compare, metric, operations, overview, plan, privacy, session

BLUEPRINTS: Final = tuple(
    module.blueprint
    for module in (session, overview, metric, compare, ask, plan, privacy, operations)
)
