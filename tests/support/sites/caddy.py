"""A real Caddy on loopback with the file that we ship."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from collector.operations.parent_death import die_with_parent
from tests.support.device.tls import CERTIFICATES
from tests.support.patience import wait_for
from tests.support.sites.reverse_proxy import ReverseProxy
from tests.support.store.cluster import free_port, listens
from tests.support.store.processes import until_ended

SHIPPED: Final = Path(__file__).parents[3] / "deploy" / "caddy" / "Caddyfile"
NAME: Final = "stats.example.org"  # in our file
NO_CADDY: Final = "no caddy 2.8 or later on PATH"
_LEAST: Final = (2, 8)
# Its own certificates stay in its folder: as root it would change what this machine trusts.
_ALONE: Final = """
{
	admin off
	skip_install_trust
	auto_https disable_redirects
	default_bind 127.0.0.1
"""


def _program() -> str | None:
    """Return the path of a Caddy that reads our file, if there is one."""
    found = shutil.which(
        "caddy", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    )
    if found is None:
        return None
    said = subprocess.run([found, "version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v?(\d+)\.(\d+)", said)
    return found if version and tuple(map(int, version.groups())) >= _LEAST else None


PROGRAM: Final = _program()
needs_caddy = pytest.mark.skipif(PROGRAM is None, reason=NO_CADDY)


@contextmanager
def shipped_caddy(folder: Path, upstream: int, text: str = "") -> Iterator[ReverseProxy]:
    """Run Caddy before the collector on port *upstream*, with our file or another *text*."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    pair = CERTIFICATES / "good.pem"
    text = text or SHIPPED.read_text(encoding="utf-8")
    for shipped, here in (
        ("\n{\n", _ALONE),
        (
            "\nstats.example.org {\n",
            f"\nhttps://localhost:{port}, https://{NAME}:{port} {{\n\ttls {pair} {pair}\n",
        ),
        ("127.0.0.1:8000", f"127.0.0.1:{upstream}"),
    ):
        assert text.count(shipped) == 1, shipped
        text = text.replace(shipped, here)
    path = folder / "Caddyfile"
    path.write_text(text, encoding="utf-8")
    command = [str(PROGRAM), "run", "--adapter", "caddyfile", "--config", str(path)]
    own = os.environ | {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(die_with_parent(command), stderr=log, stdout=log, env=own)
    with until_ended(running):
        caddy = ReverseProxy(folder, port)
        wait_for(lambda: listens(port), caddy.log, running=(running,))
        yield caddy
