"""``hearsay acl``: the users of the store, each with the least that it needs."""

from __future__ import annotations

import os
from pathlib import Path

import click

from .root import explained, main


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

    It holds <user>_url of init, ingest, worker, query and archive, and of prune if somebody prunes,
    as make secrets does.  Passwords are printed as digests only.
    """
    from ..storage.access import acl_lines, database_in, passwords_in

    prefix = os.environ.get("HEARSAY_PREFIX", "hearsay")
    for line in acl_lines(prefix, passwords_in(urls), database_in(urls)):
        click.echo(line if as_file else f"ACL SETUSER {_quoted(line.removeprefix('user '))}")


def _quoted(line: str) -> str:
    """Return *line* as redis-cli reads it: a right in parentheses is one argument."""
    return line.replace("(", '"(').replace(")", ')"')
