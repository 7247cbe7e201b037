"""A real nginx on loopback: with the file that we ship, or with as little as people write."""

from __future__ import annotations

import os
import shutil
import subprocess
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

SHIPPED: Final = Path(__file__).parents[3] / "examples" / "nginx" / "hearsay.conf"
NONE: Final = "no nginx on PATH or in /usr/sbin"
_PROGRAM: Final = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
_MAIN: Final = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
{user}
events {{ worker_connections 2048; }}
http {{
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    access_log off;
    {servers}
}}
"""
_BARE: Final = (
    "server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {upstream}; {more} }} }}"
)

needs_nginx = pytest.mark.skipif(_PROGRAM is None, reason=NONE)


@contextmanager
def shipped_nginx(folder: Path, upstream: int) -> Iterator[ReverseProxy]:
    """Run nginx with our file before the collector on port *upstream*: TLS, as ``localhost``."""
    port = free_port()
    text = SHIPPED.read_text(encoding="utf-8")
    for shipped, here in (
        ("listen 443", f"listen 127.0.0.1:{port}"),
        ("server_name stats", "server_name localhost stats"),
        ("127.0.0.1:8000", f"127.0.0.1:{upstream}"),
        ("/etc/nginx/hearsay/certificate.pem", str(CERTIFICATES / "good.pem")),
        ("/etc/nginx/hearsay/key.pem", str(CERTIFICATES / "good.pem")),
        ("/var/log/nginx", str(folder)),
    ):
        assert shipped in text, shipped
        text = text.replace(shipped, here)
    with _running(folder, port, text):
        yield ReverseProxy(folder, port)


@contextmanager
def bare_nginx(folder: Path, upstream: int, more: str = "") -> Iterator[ReverseProxy]:
    """Run nginx with ``proxy_pass`` and no more than the directives *more*."""
    port = free_port()
    address = f"http://127.0.0.1:{upstream}"
    with _running(folder, port, _BARE.format(port=port, upstream=address, more=more)):
        yield ReverseProxy(folder, port, tls=False)


@contextmanager
def _running(folder: Path, port: int, servers: str) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    user = "user root;" if os.geteuid() == 0 else ""  # who may read the folder of a test
    path = folder / "nginx.conf"
    path.write_text(_MAIN.format(folder=folder, user=user, servers=servers), encoding="utf-8")
    command = [str(_PROGRAM), "-p", str(folder), "-c", str(path), "-e", str(folder / "error.log")]
    with (folder / "said").open("wb") as said:
        running = subprocess.Popen(die_with_parent(command), stderr=said)
    with until_ended(running):
        wait_for(lambda: listens(port), (folder / "said").read_text, running=(running,))
        yield
