"""``hearsay init``, ``serve`` and ``worker``: prepare the store, and run the two processes."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import click

from client_sdk.privacy.wording import counted

from ..core.config import Config
from ..core.logs import configure
from .root import explained, main, override


@main.command()
@explained
def init() -> None:
    """Prepare the store: load the function library, create the groups, check that it is safe."""
    from ..storage.connect import connect

    storage = connect(Config.from_env())
    storage.prepare(renew=True)
    click.echo(f"store ready: {counted(storage.shards, 'shard')}")


@main.command()
@click.option("--host", help="Address to listen on; HEARSAY_HOST, or 127.0.0.1.")
@click.option(
    "--port", type=click.IntRange(1, 65_535), help="Port to listen on; HEARSAY_PORT, or 8000."
)
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Web processes."
)
@explained
def serve(host: str | None, port: int | None, workers: int) -> None:
    """Receive uploads and answer queries over HTTP."""
    from ..operations.processes import serve as run
    from ..operations.telemetry.activity import WEB

    override("HEARSAY_HOST", host)
    override("HEARSAY_PORT", port)
    configure(WEB)
    run(Config.from_env(), workers)


@main.command()
@click.option("--check", is_flag=True, help="Only say whether the running worker is alive.")
@explained
def worker(check: bool) -> None:
    """Fold stored reports into tallies until stopped."""
    from ..operations.processes import Heartbeat, is_fresh, on_stop, run_worker
    from ..operations.telemetry.activity import WORKER

    heartbeat = os.environ.get("HEARSAY_HEARTBEAT")
    if check:
        if not heartbeat or not is_fresh(Path(heartbeat)):
            raise click.ClickException("the worker's heartbeat is missing or stale")
        return
    configure(WORKER)
    stop = threading.Event()
    on_stop(stop.set, lambda: os._exit(0))
    beat = Heartbeat(Path(heartbeat)) if heartbeat else None
    run_worker(Config.from_env(), stop, beat)
