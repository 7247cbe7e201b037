"""One running collector for all hostile tests: what one of them breaks, another would see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.sites.attacked_site import AttackedSite, attacked_site

PROXY: Final = "127.0.0.7"  # of this machine, too, so that a test can come from there
LISTED: Final = "https://canary-page.example"  # an origin whose pages may report


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttackedSite]:
    """A collector with a real store and a worker."""
    settings = {
        "HEARSAY_ORIGINS": LISTED,
        "HEARSAY_TRUSTED_PROXIES": PROXY,
        "HEARSAY_GROUPS": "analysts=analyst",
    }
    with attacked_site(tmp_path_factory.mktemp("attacked"), settings=settings) as running:
        yield running


@pytest.fixture(autouse=True)
def sound(request: pytest.FixtureRequest) -> Iterator[None]:
    """After every attack the collector answers, and has nothing in its log."""
    yield
    if "site" in request.fixturenames:
        running = request.getfixturevalue("site")
        assert running.is_well()
        log = running.log.read_text(encoding="utf-8")
        assert '"level": "error"' not in log
        assert "Traceback" not in log
