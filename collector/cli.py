"""The command ``hearsay``."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click

from client_sdk import __version__
from client_sdk.errors import HearsayError
from client_sdk.registry import Registry

from .config import LOG_FORMAT, Config
from .errors import CollectorError

P = ParamSpec("P")
T = TypeVar("T")


def _explained(command: Callable[P, T]) -> Callable[P, T]:
    """Turn our errors into one line and exit status 1; a traceback would help nobody."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except (HearsayError, CollectorError) as error:
            raise click.ClickException(str(error)) from error

    return run


@click.group()
@click.version_option(__version__, prog_name="hearsay")
def main() -> None:
    """Telemetry that its users can deny."""


@main.group()
def registry() -> None:
    """Work with metrics.toml."""


@registry.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False))
def check(path: str) -> None:
    """Check a registry file and say what each metric will cost and tell."""
    from .lint import warnings
    from .planning import describe_metrics

    loaded = _load(path)
    for line in (*describe_metrics(loaded), *warnings(loaded, datetime.now(UTC).date())):
        click.echo(line)


@registry.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--max-payload",
    type=click.IntRange(1),
    default=8,
    show_default=True,
    help="Longest payload of a report, in bytes.",
)
def plan(path: str, max_payload: int) -> None:
    """Compare the mechanisms that could serve each metric, the most accurate first."""
    from .planning import compare_mechanisms

    for metric in _load(path):
        for line in compare_mechanisms(metric, max_payload):
            click.echo(line)


def _load(path: str) -> Registry:
    """Return the registry, or list its problems on standard error and exit with status 1."""
    try:
        return Registry.from_file(path)
    except HearsayError as error:
        for problem in getattr(error, "problems", (str(error),)):
            click.echo(problem, err=True)
        raise SystemExit(1) from None


@main.command()
@_explained
def init() -> None:
    """Prepare the store: load the function library, create the groups, check that it is safe."""
    from .storage.connect import connect

    storage = connect(Config.from_env())
    storage.prepare()
    click.echo(f"store ready: {storage.shards} shards")


@main.command()
@click.option("--host", help="Address to listen on; HEARSAY_HOST, or 127.0.0.1.")
@click.option(
    "--port", type=click.IntRange(1, 65_535), help="Port to listen on; HEARSAY_PORT, or 8000."
)
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Web processes."
)
@_explained
def serve(host: str | None, port: int | None, workers: int) -> None:
    """Receive uploads and answer queries over HTTP."""
    from .serving import serve as run

    _override("HEARSAY_HOST", host)
    _override("HEARSAY_PORT", port)
    run(Config.from_env(), workers)


@main.command()
@click.option("--check", is_flag=True, help="Only say whether the running worker is alive.")
@_explained
def worker(check: bool) -> None:
    """Fold stored reports into tallies until stopped."""
    from .heartbeat import Heartbeat, is_fresh
    from .serving import make_worker

    heartbeat = os.environ.get("HEARSAY_HEARTBEAT")
    if check:
        if not heartbeat or not is_fresh(Path(heartbeat)):
            raise click.ClickException("the worker's heartbeat is missing or stale")
        return
    logging.basicConfig(level=logging.WARNING, format=LOG_FORMAT)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    beat = Heartbeat(Path(heartbeat)) if heartbeat else None
    make_worker(Config.from_env(), beat).run(stop)


@main.command()
@click.option("--once", is_flag=True, help="Print the result and exit instead of serving it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.option(
    "--devices",
    type=click.IntRange(1_000),
    default=5_000,
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
@_explained
def demo(once: bool, as_json: bool, devices: int, port: int) -> None:
    """Run the whole of Hearsay here, on real data, with simulated devices."""
    from .demo import run

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # tidies up as Ctrl-C does
    raise SystemExit(run(devices=devices, port=port, once=once, as_json=as_json))


@main.command()
@click.option("--mechanism", "wanted", multiple=True, help="Only this one; may be repeated.")
@click.option("--epsilon", default="1", show_default=True, help="Epsilon to claim, per report.")
@click.option(
    "--domain-size", default=16, show_default=True, help="Items, or grid points of a number."
)
@click.option("--draws", default=200_000, show_default=True, help="Reports for either value.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@_explained
def audit(
    wanted: tuple[str, ...], epsilon: str, domain_size: int, draws: int, as_json: bool
) -> None:
    """Attack the mechanisms as installed here; exit status 1 if one tells more than it claims."""
    from .auditing import mechanisms_of, run

    raise SystemExit(run(mechanisms_of(wanted, epsilon, domain_size), draws, as_json, click.echo))


def _override(name: str, value: Any) -> None:
    """Let an option win over the environment, also in the processes that inherit it."""
    if value is not None:
        os.environ[name] = str(value)


if __name__ == "__main__":
    sys.exit(main())
