"""The pages that people read: server-rendered, complete without a script, one module a page."""

from __future__ import annotations

from typing import Final

from .ask import blueprint as _ask
from .compare import blueprint as _compare
from .metric import blueprint as _metric
from .operations import blueprint as _operations
from .overview import blueprint as _overview
from .plan import blueprint as _plan
from .privacy import blueprint as _privacy
from .session import blueprint as _session
from .watches import blueprint as _watches

BLUEPRINTS: Final = (
    _session,
    _overview,
    _metric,
    _compare,
    _ask,
    _plan,
    _privacy,
    _operations,
    _watches,
)
