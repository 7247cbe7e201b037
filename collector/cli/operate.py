"""``hearsay doctor`` and ``hearsay check-config``: say what is wrong before a user does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ..core.config import Config
from .root import explained, main

if TYPE_CHECKING:
    from ..operations.doctor.findings import Finding

_strict = click.option("--strict", is_flag=True, help="Exit with status 1 on a warning, too.")
_as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
)


@main.command()
@_strict
@_as_json
@explained
def doctor(strict: bool, as_json: bool) -> None:
    """Ask the store how the deployment does; exit status 1 if something is at fault."""
    from ..operations.doctor.checkup import check_deployment

    _tell(check_deployment(Config.from_env()), strict, as_json)


@main.command("check-config")
@_strict
@_as_json
@explained
def check_config(strict: bool, as_json: bool) -> None:
    """Check settings and registries without a store; exit status 1 if it would not start."""
    from ..operations.doctor.checkup import check_settings, shown

    config = Config.from_env()
    found = check_settings(config)
    if not as_json:
        for line in shown(config):
            click.echo(line)
    _tell(found, strict, as_json)


def _tell(found: Sequence[Finding], strict: bool, as_json: bool) -> None:
    """Print *found* and end with the status that it deserves."""
    from ..operations.doctor.findings import FAULT, WARNING, worst

    level = worst(found)
    if as_json:
        click.echo(json.dumps({"worst": level, "findings": [one.row() for one in found]}))
    else:
        for one in found:
            click.echo("\n".join(one.lines()))
    raise SystemExit(level == FAULT or (strict and level == WARNING))
