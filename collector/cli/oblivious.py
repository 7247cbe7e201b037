"""``hearsay oblivious-key``: the keys that open what devices send through a relay."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from .root import json_option, main, show


@main.group("oblivious-key")
def group() -> None:
    """Make the keys that open capsules, and print them as applications need them."""


@group.command("new")
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--drop", type=int, help="Number of the key to delete, of two.")
def new(path: Path, drop: int | None) -> None:
    """Write a new key to the file PATH, and print what applications take as relay_key.

    An older key in it stays good for applications that were built with it.  Serve the file as
    HEARSAY_OBLIVIOUS_KEYS, and restart the web processes.  See docs/operate/relay.md.
    """
    from ..intake.oblivious_keys import add_key, relay_key

    keys = add_key(str(path), datetime.now(UTC).date(), drop)
    click.echo(relay_key(keys))
    for key in keys[1:]:
        click.echo(f"key {key.key_id} of {key.since} stays good", err=True)
    if drop is not None:
        click.echo(f"key {drop} is gone: applications that hold it cannot report", err=True)


@group.command("show")
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@json_option
def show_key(path: Path, as_json: bool) -> None:
    """Print what applications take as relay_key: the newest key in the file PATH.

    With --json: each key with its number and day.
    """
    from ..intake.oblivious_keys import read_keys, relay_key

    keys = read_keys(str(path))
    rows = [{"key": key.key_id, "since": key.since, "relay_key": relay_key([key])} for key in keys]
    show(rows if as_json else None, [relay_key(keys)])
