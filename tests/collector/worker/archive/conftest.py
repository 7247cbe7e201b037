"""The archive is tested on a real server; what it asks of a store is tested on each kind."""

from __future__ import annotations

import pytest

from tests.support.store.servers import REAL


@pytest.fixture(params=[REAL])
def server_kind(request: pytest.FixtureRequest) -> str:
    """Replace the one for all kinds."""
    return str(request.param)
