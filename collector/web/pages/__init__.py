"""The pages that people read: server-rendered, complete without a script, one module a page."""

from __future__ import annotations

from typing import Final

from .ask import blueprint as _ask
from .board_edit import blueprint as _board_edit
from .boards import blueprint as _boards
from .compare import blueprint as _compare
from .documents import blueprint as _documents
from .metric import blueprint as _metric
from .notes import blueprint as _notes
from .operations import blueprint as _operations
from .overview import blueprint as _overview
from .plan import blueprint as _plan
from .privacy import blueprint as _privacy
from .session import blueprint as _session
from .shared import blueprint as _shared
from .watches import blueprint as _watches

BLUEPRINTS: Final = (
    *(_session, _overview, _metric, _boards, _board_edit, _documents, _notes, _shared),
    *(_compare, _ask, _plan, _privacy, _operations, _watches),
)
