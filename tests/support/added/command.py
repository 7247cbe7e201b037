"""``hearsay count``: how long a registry is."""

from __future__ import annotations

import click

from collector.cli.root import main, registry_file


@main.command()
@registry_file
def count(path: str) -> None:
    """Print how many metrics PATH has."""
    from client_sdk.registry import Registry

    click.echo(len(list(Registry.from_file(path))))
