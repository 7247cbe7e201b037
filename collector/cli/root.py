"""The command itself, and what its groups share."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import click

# Before numpy is loaded: our matrices are small, and threads for them cost more than they save.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from client_sdk import __version__
from client_sdk.core.errors import HearsayError

from ..core.config import Config
from ..core.errors import CollectorError, StorageFullError, StorageUnavailableError
from ..core.text_tables import plain

P = ParamSpec("P")
T = TypeVar("T")

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
)


_OF_WINDOW = (
    click.option("--range", "words", help="Window in words, such as 28d or 12mo; or:"),
    click.option("--from", "first", help="First day, such as 2026-01-01, and"),
    click.option("--to", "last", help="last day."),
)


def window_options(command: Callable[P, T]) -> Callable[P, T]:
    """Add the options of a window: ``words``, or ``first`` and ``last``."""
    for option in reversed(_OF_WINDOW):
        command = option(command)
    return command


def explained(command: Callable[P, T]) -> Callable[P, T]:
    """Turn our errors into one line and exit status 1; a traceback would help nobody."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except (HearsayError, CollectorError) as error:
            raise click.ClickException(plain(str(error))) from error

    return run


def repeat(run: Callable[[], object], every: int) -> None:
    """Call *run* until the process is stopped; a store that is away or full is tried again."""
    from ..serving.stopping import on_stop

    stop = threading.Event()
    on_stop(stop.set, lambda: os._exit(0))
    while not stop.is_set():
        try:
            run()
        except (StorageUnavailableError, StorageFullError) as error:
            click.echo(f"{error}; trying again in {every} s", err=True)
        stop.wait(every)


def setting_text(field: str) -> str:
    """Return what the environment says of one setting of ``Config``, where no other is needed."""
    return Config.rows()[field].text()


def override(name: str, value: Any) -> None:
    """Let an option win over the environment, also in the processes that inherit it."""
    if value is not None:
        os.environ[name] = str(value)


@click.group()
@click.version_option(__version__, prog_name="hearsay")
def main() -> None:
    """Telemetry that its users can deny."""
