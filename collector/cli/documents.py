"""``hearsay documents``: what boards, questions, notes and links occupy, and how to free it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import click

from client_sdk.privacy.wording import counted

from ..core.text_tables import plain_line, table_lines
from .root import Deployment, json_option, main, show, yes_option

if TYPE_CHECKING:
    from ..storage.documents import Entry

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
def documents(context: click.Context, as_json: bool) -> None:
    """List what people keep next to the answers, by app, kind and author, with its bytes.

    See docs/operate/operate.md#what-people-keep.
    """
    from ..storage.documents import DocumentStore

    if context.invoked_subcommand:
        return
    config = Deployment().config
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
    most = config.documents_mb << 20
    names = [heading.replace(" ", "_") for heading in _HEADINGS]
    listed = [dict(zip(names, row, strict=True)) for row in rows]
    cells = [(*row[:4], *(f"{number:,}" for number in row[4:])) for row in rows]
    total = counted(sum(row[-1] for row in rows), "byte")
    lines = [*map(plain_line, table_lines([_HEADINGS, *cells], "<<<<>>>>"))]
    document = {"documents": listed, "most_bytes": most}
    show(document if as_json else None, [*lines, f"{total} of at most {most:,}"])


@documents.command()
@click.option("--app", help=f"Of this app; {_EVERY} for what is of all apps.")
@click.option("--kind", help="Of this kind: boards, questions, notes or links.")
@click.option("--author", help="Last saved by this author: a name, or an author id.")
@click.option("--name", help="Only this one, by the name in its address.")
@yes_option
def delete(
    app: str | None, kind: str | None, author: str | None, name: str | None, yes: bool
) -> None:
    """Delete documents for good, with all their versions: the bytes are free at once."""
    from ..storage.documents import DocumentStore

    if not any((app, kind, author, name)):
        raise click.UsageError("name --app, --kind, --author or --name, or several of them")
    store = DocumentStore.of(Deployment().config)
    chosen = {
        place: entry
        for place, entry in store.index().items()
        if app in (None, entry.app or _EVERY) and kind in (None, place.kind)
        if author in (None, entry.author, entry.versions[0].by) and name in (None, place.name)
    }
    for place in chosen if yes else ():
        store.remove(*place)
    size = sum(entry.size for entry in chosen.values())
    total = f"{counted(len(chosen), 'document')}, {counted(size, 'byte')}"
    click.echo(f"deleted: {total}" if yes else f"would be deleted: {total}; --yes deletes them")
