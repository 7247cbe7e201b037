"""Commands that run Hearsay: ``hearsay init``, ``serve``, ``worker``, ``relay``, ``acl``, ``demo``.

They prepare the store and its users, each with the least that it needs, and run the processes;
the demo runs the whole of it here.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import click

from client_sdk.privacy.wording import counted

from ..core.config import VOLATILE, Config
from ..core.errors import ConfigError
from ..core.logs import configure
from ..core.settings import checked_origins
from .root import explained, json_option, main, override, setting_text


@main.command()
@explained
def init() -> None:
    """Prepare the store: load the function library, create the groups, check that it is safe."""
    from ..core.catalog import Catalog
    from ..operations.doctor.definitions import look
    from ..operations.processes import record_definitions
    from ..storage.connect import connect

    config = Config.from_env()
    catalog, storage = Catalog.from_files(config.registry_paths), connect(config)
    storage.prepare(renew=True)
    record_definitions(config, catalog)
    click.echo(f"store ready: {counted(storage.shards, 'shard')}")
    for finding in look(config, catalog):
        if finding.next:
            click.echo("\n".join(finding.lines()), err=True)


@main.command()
@click.option("--host", help="Address to listen on; HEARSAY_HOST, or 127.0.0.1.")
@click.option(
    "--port", type=click.IntRange(1, 65_535), help="Port to listen on; HEARSAY_PORT, or 8000."
)
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Web processes."
)
@click.option(
    "--development",
    is_flag=True,
    help="Keep the last reports in memory for hearsay tail; the profile is volatile.",
)
@explained
def serve(host: str | None, port: int | None, workers: int, development: bool) -> None:
    """Receive uploads and answer queries over HTTP."""
    from ..operations.processes import serve as run
    from ..operations.telemetry.activity import WEB

    override("HEARSAY_HOST", host)
    override("HEARSAY_PORT", port)
    if development:
        override("HEARSAY_DEVELOPMENT", 1)
        os.environ.setdefault("HEARSAY_PROFILE", VOLATILE)
        if workers > 1:  # each would keep its own, and tail would see some of them
            raise ConfigError("--workers", workers, "must be 1 with --development")
    configure(WEB)
    run(Config.from_env(), workers)


@main.command()
@click.option("--check", is_flag=True, help="Only say whether the running worker is alive.")
@explained
def worker(check: bool) -> None:
    """Fold stored reports into tallies until stopped."""
    from ..operations.processes import Heartbeat, is_fresh, run_worker
    from ..operations.telemetry.activity import WORKER
    from ..serving.stopping import on_stop

    heartbeat = setting_text("heartbeat")
    if check:
        if not heartbeat or not is_fresh(Path(heartbeat)):
            raise click.ClickException("the worker's heartbeat is missing or stale")
        return
    configure(WORKER)
    stop = threading.Event()
    on_stop(stop.set, lambda: os._exit(0))
    beat = Heartbeat(Path(heartbeat)) if heartbeat else None
    run_worker(Config.from_env(), stop, beat)


@main.command()
@click.option("--to", required=True, help="Address of the collector.")
@click.option(
    "--batch",
    type=click.IntRange(1, 4_096),
    default=100,
    show_default=True,
    help="Networks whose messages make a batch leave.",
)
@click.option("--within", default="15s", show_default=True, help="Or the longest that one gathers.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(1, 65_535),
    default=8100,
    show_default=True,
    help="Port to listen on.",
)
@click.option(
    "--per-network",
    type=click.IntRange(1),
    default=1_000,
    show_default=True,
    help="Messages that one network may send a minute.",
)
@click.option("--behind", multiple=True, help="A proxy whose X-Forwarded-For is believed.")
@click.option("--origin", multiple=True, help="A site whose pages may send from a browser.")
@click.option(
    "--certificate",
    default="",
    help="File of the certificate, to end TLS here.",
)
@click.option("--key", default="", help="File of its private key.")
@explained
def relay(within: str, origin: tuple[str, ...], **options: Any) -> None:
    """Pass sealed messages of devices on to a collector, many at a time, and keep none."""
    from ..relay.process import Settings, seconds

    origins = checked_origins("--origin", origin)
    Settings(within=seconds("--within", within), origins=origins, **options).start()


@main.command()
@click.option("--once", is_flag=True, help="Print the result and exit instead of serving it.")
@json_option
@click.option(
    "--devices",
    type=click.IntRange(1_000),
    default=3_000,
    show_default=True,
    help="People to simulate.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65_535),
    default=8000,
    show_default=True,
    help="Port of the result page.",
)
@click.option("--open", "show", is_flag=True, help="Open the result page in a browser.")
@explained
def demo(once: bool, as_json: bool, devices: int, port: int, show: bool) -> None:
    """Run the whole of Hearsay here, on real data, with simulated devices."""
    from ..demo.demo import run

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # tidies up as Ctrl-C does
    raise SystemExit(run(devices=devices, port=port, once=once, as_json=as_json, show=show))


@main.command()
@click.argument("urls", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--file",
    "as_file",
    is_flag=True,
    help="Print an ACL file; without it, commands, which a server forgets at a restart.",
)
@explained
def acl(urls: Path, as_file: bool) -> None:
    """Print the store's users, whose addresses with passwords are in the folder URLS.

    It holds USER_url of init, ingest, worker, query and archive, of prune and watch if needed,
    as make secrets does.  Passwords are printed as digests only.
    """
    from ..storage.access import acl_lines, database_in, passwords_in

    for line in acl_lines(setting_text("prefix"), passwords_in(urls), database_in(urls)):
        click.echo(line if as_file else f"ACL SETUSER {_quoted(line.removeprefix('user '))}")


def _quoted(line: str) -> str:
    """Return *line* as redis-cli reads it: a right in parentheses is one argument."""
    return line.replace("(", '"(').replace(")", ')"')
