"""The command itself, and what its groups share."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import click

# Before numpy is loaded: our matrices are small, and threads for them cost more than they save.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from client_sdk import __version__
from client_sdk.core.errors import HearsayError

from ..core.errors import CollectorError

P = ParamSpec("P")
T = TypeVar("T")


def explained(command: Callable[P, T]) -> Callable[P, T]:
    """Turn our errors into one line and exit status 1; a traceback would help nobody."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except (HearsayError, CollectorError) as error:
            raise click.ClickException(str(error)) from error

    return run


def override(name: str, value: Any) -> None:
    """Let an option win over the environment, also in the processes that inherit it."""
    if value is not None:
        os.environ[name] = str(value)


@click.group()
@click.version_option(__version__, prog_name="hearsay")
def main() -> None:
    """Telemetry that its users can deny."""
