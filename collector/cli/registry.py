"""``hearsay registry``: check a metrics.toml, plan its mechanisms, generate its handles."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from client_sdk.core.errors import HearsayError
from client_sdk.registry.registry import Registry

from .root import explained, main


@main.group()
def registry() -> None:
    """Work with metrics.toml."""


@registry.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False))
def check(path: str) -> None:
    """Check a registry file and say what each metric will cost and tell."""
    from ..planning.registry_report import describe_metrics, problems, warnings

    loaded = _load(path)
    for line in (*describe_metrics(loaded), *warnings(loaded, datetime.now(UTC).date())):
        click.echo(line)
    wrong = list(problems(loaded))
    for line in wrong:
        click.echo(line, err=True)
    if wrong:
        raise SystemExit(1)


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
    from ..planning.registry_report import compare_mechanisms

    for metric in _load(path):
        for line in compare_mechanisms(metric, max_payload):
            click.echo(line)


@registry.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False))
def budget(path: str) -> None:
    """Tell what a device is charged at most: ε of a report, a week, a year and for life."""
    from ..planning.registry_report import budget_lines

    for line in budget_lines(_load(path)):
        click.echo(line)


@registry.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True),
    help="File to write; standard output by default.",
)
@explained
def codegen(path: str, output: str | None) -> None:
    """Write the Python module of typed handles, by which an application records."""
    from ..planning.codegen import module_of

    text = module_of(_load(path))
    if output is None:
        click.echo(text, nl=False)
    else:
        Path(output).write_text(text, encoding="utf-8")


def _load(path: str) -> Registry:
    """Return the registry, or list its problems on standard error and exit with status 1."""
    try:
        return Registry.from_file(path)
    except HearsayError as error:
        for problem in getattr(error, "problems", (str(error),)):
            click.echo(problem, err=True)
        raise SystemExit(1) from None
