"""``hearsay documents``: what boards, questions, notes and links occupy, and how to free it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from client_sdk.privacy.wording import counted

from ..core.config import Config
from ..core.text_tables import plain_line, table_lines
from .root import explained, json_option, main

if TYPE_CHECKING:
    from ..storage.documents import Entry, Place

_EVERY = "all"  # in place of the name of an app: what is of all apps
_HEADINGS = (
    "app",
    "kind",
    "author",
    "author id",
    "documents",
    "deleted",
    "older versions",
    "bytes",
)


@main.group(invoke_without_command=True)
@json_option
@click.pass_context
@explained
def documents(context: click.Context, as_json: bool) -> None:
    """List what is kept beside the answers, by app, kind and author, with its bytes."""
    from ..storage.documents import DocumentStore

    if context.invoked_subcommand:
        return
    config = Config.from_env()
    groups: dict[tuple[str, str, str, str], list[Entry]] = defaultdict(list)
    for place, entry in DocumentStore.of(config).index().items():
        by = entry.versions[0].by
        groups[entry.app or _EVERY, place.kind, entry.author, by].append(entry)
    rows = [
        (
            *group,
            len(entries),
            sum(entry.deleted for entry in entries),
            sum(len(entry.versions) - 1 for entry in entries),
            sum(entry.size for entry in entries),
        )
        for group, entries in groups.items()
    ]
    rows.sort(key=lambda row: -row[-1])
    if as_json:
        names = [heading.replace(" ", "_") for heading in _HEADINGS]
        listed = [dict(zip(names, row, strict=True)) for row in rows]
        click.echo(json.dumps({"documents": listed, "most_bytes": config.documents_mb << 20}))
        return
    cells = [(*row[:4], *(f"{number:,}" for number in row[4:])) for row in rows]
    for line in table_lines([_HEADINGS, *cells], "<<<<>>>>"):
        click.echo(plain_line(line))
    total = sum(row[-1] for row in rows)
    click.echo(f"{counted(total, 'byte')} of at most {config.documents_mb << 20:,}")


@documents.command()
@click.option("--app", help=f"Of this app; {_EVERY} for what is of all apps.")
@click.option("--kind", help="Of this kind: boards, questions, notes or links.")
@click.option("--author", help="Last saved by this author: a name, or an author id.")
@click.option("--name", help="Only this one, by the name in its address.")
@click.option("--yes", is_flag=True, help="Delete; without it only say what would be deleted.")
@explained
def delete(
    app: str | None, kind: str | None, author: str | None, name: str | None, yes: bool
) -> None:
    """Delete documents for good, with all their versions: the bytes are free at once."""
    from ..storage.documents import DocumentStore

    if not any((app, kind, author, name)):
        raise click.UsageError("say which: --app, --kind, --author or --name, or several of them")
    store = DocumentStore.of(Config.from_env())
    chosen = {
        place: entry
        for place, entry in store.index().items()
        if app in (None, entry.app or _EVERY) and kind in (None, place.kind)
        if author in (None, entry.author, entry.versions[0].by) and name in (None, place.name)
    }
    for place in chosen if yes else ():
        store.remove(*place)
    _say(chosen, yes)


def _say(chosen: Mapping[Place, Entry], yes: bool) -> None:
    size = sum(entry.size for entry in chosen.values())
    total = f"{counted(len(chosen), 'document')}, {counted(size, 'byte')}"
    click.echo(f"deleted: {total}" if yes else f"would be deleted: {total}; --yes deletes them")
