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

from ..core.config import VOLATILE
from ..core.errors import ConfigError
from ..core.logs import configure
from ..core.settings import checked_origins
from .root import (
    PORT,
    Deployment,
    json_option,
    listen_options,
    main,
    say,
    setting_option,
    setting_text,
)


@main.command()
def init() -> None:
    """Prepare the store: load the function library, create the groups, check that it is safe.

    For stores whose other users may not; hearsay serve and hearsay worker do it where they may.
    """
    from ..operations.doctor.definitions import look
    from ..operations.processes import record_definitions

    site = Deployment()
    site.catalog  # noqa: B018  # a registry that is wrong leaves the store as it is
    site.store.prepare(renew=True)
    record_definitions(site.config, site.catalog)
    click.echo(f"store ready: {counted(site.store.shards, 'shard')}")
    for finding in look(site.config, site.catalog):
        if finding.next:
            click.echo("\n".join(finding.lines()), err=True)


@main.command()
@setting_option("host")
@setting_option("port")
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Web processes."
)
@click.option(
    "--development",
    is_flag=True,
    help="Keep the last reports in memory for hearsay tail; the profile is volatile.",
)
def serve(workers: int, development: bool) -> None:
    """Receive uploads and answer queries over HTTP."""
    from ..operations.processes import serve as run
    from ..operations.telemetry.activity import WEB

    if development:
        os.environ["HEARSAY_DEVELOPMENT"] = "1"
        os.environ.setdefault("HEARSAY_PROFILE", VOLATILE)
        if workers > 1:  # each would keep its own, and tail would see some of them
            raise ConfigError("--workers", workers, "must be 1 with --development")
    configure(WEB)
    run(Deployment().config, workers)


@main.command()
@click.option("--check", is_flag=True, help="Only check that the running worker is alive.")
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
    run_worker(Deployment().config, stop, beat)


@main.command()
@click.option("--to", required=True, help="Address of the collector.")
@click.option(
    "--batch",
    type=click.IntRange(1, 4_096),
    default=100,
    show_default=True,
    help="Send a batch once it holds messages of this many networks.",
)
@click.option(
    "--within", default="15s", show_default=True, help="Send a batch after this time at the latest."
)
@listen_options(8100)
@click.option(
    "--per-network",
    type=click.IntRange(1),
    default=1_000,
    show_default=True,
    help="Messages that one network may send a minute.",
)
@click.option("--behind", multiple=True, help="Trust X-Forwarded-For from this proxy.")
@click.option("--origin", multiple=True, help="Allow the pages of this origin (CORS).")
@click.option(
    "--certificate",
    default="",
    help="File of the certificate, to end TLS here.",
)
@click.option("--key", default="", help="File of its private key.")
def relay(within: str, origin: tuple[str, ...], **options: Any) -> None:
    """Pass sealed messages of devices on to a collector, many at a time, and keep none.

    The collector sees no address of a device.  See docs/operate/relay.md.
    """
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
    type=PORT,
    default=8000,
    show_default=True,
    help="Port of the result page.",
)
@click.option("--open", "show", is_flag=True, help="Open the result page in a browser.")
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
    help="Print an ACL file, not commands, which a server forgets at a restart.",
)
def acl(urls: Path, as_file: bool) -> None:
    """Print the store's users with the least rights, for the addresses in the folder URLS.

    It holds USER_url with the password of init, ingest, worker, query and archive, of prune and
    watch if needed, as make secrets writes them.  Passwords are printed as digests only.  See
    docs/operate/security.md#users-of-the-store.
    """
    from ..storage.access import acl_lines, database_in, passwords_in

    lines = acl_lines(setting_text("prefix"), passwords_in(urls), database_in(urls))
    commands = (f"ACL SETUSER {_quoted(line.removeprefix('user '))}" for line in lines)
    say(lines if as_file else commands)


def _quoted(line: str) -> str:
    """Return *line* as redis-cli reads it: a right in parentheses is one argument."""
    return line.replace("(", '"(').replace(")", ')"')
