"""Behind a real Caddy with the file that we ship: nothing is lost, and nothing counted twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.test_nginx import (
    DEVICES,
    deliver_wide,
    gateway_at,
    port_of,
    registry,
    site,
)
from tests.support.sites.caddy import needs_caddy, shipped_caddy
from tests.support.sites.site import Site
from tests.support.store.servers import needs_real

__all__ = ["registry", "site"]  # fixtures
pytestmark = [pytest.mark.real, needs_real, needs_caddy]


@pytest.mark.parametrize(("path", "refused"), [("/gateway", 0), ("", 2)])
def test_a_gateway_behind_the_file_that_ships_delivers_all(
    site: Site, registry: Path, tmp_path: Path, path: str, refused: int
) -> None:
    """Law: whole at the address of gateways, and in pieces of 64 KiB at that of devices."""
    with shipped_caddy(tmp_path / "caddy", port_of(site)) as caddy:
        stats = deliver_wide(gateway_at(caddy.url + path, registry, tmp_path / "data"))

    assert stats.pop("refused", 0) == refused
    assert stats == {"recorded": DEVICES, "uploaded": DEVICES}
    site.wait_until_folded()
    assert site.reports("wide") == DEVICES
