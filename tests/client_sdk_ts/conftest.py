"""Node and the built package: ``node.run``, ``node.evaluate``, ``node.tool``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.node import NO_MODULES, NO_NODE, ModulesMissingError, Node, build, nodes
from tests.support.sites.browsing import running_browser


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


@pytest.fixture(scope="module")
def browser(browser_program: str) -> Iterator[Browser]:
    """A browser for one module: while it runs, this thread has an event loop, which others need."""
    with running_browser(browser_program) as running:
        yield running
