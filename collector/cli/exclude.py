"""``hearsay exclude``, ``include``, ``exclusions``: take a source out of answers, and back.

Nothing is deleted, so whatever is taken out can be put back.  Nothing else takes anything out.
"""

from __future__ import annotations

import getpass
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from client_sdk.privacy.wording import counted

from ..core.config import Config
from ..core.text_tables import table_lines
from .root import explained, json_option, main

if TYPE_CHECKING:
    from ..core.exclusions import Exclusion
    from ..query.repair import Effect

_because = click.option(
    "--because", required=True, help="Why, in words for everybody who reads the answers."
)
_author = click.option(
    "--author", default="", help="Who does it; the user of this machine by default."
)
_HEADINGS = ("id", "source", "metrics", "from", "to", "by", "on", "because", "taken back")


@main.command()
@click.option("--key", help="Id of a write or gateway key, as hearsay keys list shows it.")
@click.option("--version", help="A version that devices declare (dimension version).")
@click.option("--metric", "metrics", multiple=True, help="Only this one; may be repeated.")
@click.option("--from", "first", default="", help="First day, such as 2026-01-31, in UTC.")
@click.option(
    "--to", "last", default="", help="Last day. Epochs that have a day in common go whole."
)
@_because
@_author
@click.option("--dry-run", is_flag=True, help="Say what it would do, and do nothing.")
@explained
def exclude(
    key: str | None,
    version: str | None,
    metrics: tuple[str, ...],
    first: str,
    last: str,
    because: str,
    author: str,
    dry_run: bool,
) -> None:
    """Take reports of a key or version out of all answers; `hearsay include` puts them back."""
    from ..core.catalog import Catalog
    from ..core.credentials import REPORT, id_of, readable
    from ..query.repair import ExclusionRequest, kept_once_only, proposed
    from ..query.repair import exclude as write
    from ..storage.connect import connect
    from ..storage.documents import ExclusionStore
    from ..storage.records import CredentialStore

    if (key is None) == (version is None):
        raise click.UsageError("give --key or --version")
    by: Literal["key", "version"] = "key" if version is None else "version"
    config = Config.from_env()
    store, catalog = connect(config), Catalog.from_files(config.registry_paths)
    stored = readable(CredentialStore.of(config).records())
    known = {**stored, **config.credentials}
    keys = {id_of(digest) for digest, each in known.items() if REPORT in each.scopes}
    wish = ExclusionRequest(
        by=by,
        name=key or version or "",
        because=because,
        author=author or getpass.getuser(),
        metrics=metrics,
        first=first,
        last=last,
    )
    exclusion, effects = proposed(wish, catalog, store, keys)
    for line in _effect_lines(effects):
        click.echo(line)
    for metric in kept_once_only(wish, exclusion, catalog, store):
        rule = "is asked once, so it has no days and stays; the same without --from and --to"
        click.echo(f"{metric.address}: {rule} takes out its reports, too")
    if dry_run:
        click.echo("nothing was changed")
        return
    write(exclusion, store, ExclusionStore.of(config))
    undoing = f"hearsay include {exclusion.id} --because WHY"
    click.echo(f"excluded: {exclusion.source}, {exclusion.id}; {undoing} puts it back")


@main.command()
@click.argument("id")
@_because
@_author
@explained
def include(id: str, because: str, author: str) -> None:
    """Put back into answers what the exclusion ID took out."""
    from ..query.repair import include as take_back
    from ..storage.connect import connect
    from ..storage.documents import ExclusionStore

    config = Config.from_env()
    who = author or getpass.getuser()
    exclusion = take_back(id, because, who, connect(config), ExclusionStore.of(config))
    click.echo(f"included again: {exclusion.source}, {id}")


@main.command()
@json_option
@explained
def exclusions(as_json: bool) -> None:
    """List all that was ever taken out of answers, by whom and why."""
    from ..core.exclusions import read_all
    from ..storage.connect import connect_reader

    listed = read_all(connect_reader(Config.from_env()).exclusions())
    if as_json:
        click.echo(json.dumps({"exclusions": [msgspec.to_builtins(each) for each in listed]}))
        return
    for line in table_lines([_HEADINGS, *map(_cells, listed)], "<" * len(_HEADINGS)):
        click.echo(line)


def _effect_lines(effects: list[Effect]) -> Iterator[str]:
    for metric, stretch, gone, total, already, unknown, others in effects:
        of_when = stretch and f" of {stretch}"
        if others:
            rule = "stay: they are of keys that are not kept apart, perhaps of this one"
            yield f"{metric.address}: {counted(others, 'report')}{of_when} {rule} (--key other)"
        if not gone.reports:
            if unknown:
                rule = "stay: they came before keys were kept apart"
                yield f"{metric.address}: {counted(unknown, 'report')}{of_when} {rule}"
            continue
        along = f", {gone.merged:,} of them of other keys" if gone.merged else ""
        before = f", {already:,} of them by earlier exclusions already" if already else ""
        of = f"{gone.reports:,} of {counted(total, 'report')}{of_when}"
        yield f"{metric.address}: {of} are left out{along}{before}"


def _cells(exclusion: Exclusion) -> tuple[Any, ...]:
    back = exclusion.included
    said = "" if back is None else f"{_day(back.at)} by {back.author}: {back.because}"
    metrics = " ".join(exclusion.metrics) or "all"
    days = exclusion.first, exclusion.last
    who = exclusion.author, _day(exclusion.at), exclusion.because
    return exclusion.id, exclusion.source, metrics, *days, *who, said


def _day(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()
