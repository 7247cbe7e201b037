"""Node and the built package: ``node.run``, ``node.evaluate``, ``node.tool``."""

from __future__ import annotations

import pytest

from tests.browser.conftest import browser as browser
from tests.support.node import NO_MODULES, NO_NODE, ModulesMissingError, Node, build, nodes


@pytest.fixture(scope="session")
def node() -> Node:
    """The Node of this machine; the package lies built in client_sdk_ts/dist and build."""
    best = next(nodes(), None)
    if best is None:
        pytest.skip(NO_NODE)
    try:
        build(best)
    except ModulesMissingError:
        pytest.skip(NO_MODULES)
    return best
