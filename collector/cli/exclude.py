"""``hearsay exclude``, ``include``, ``exclusions``: take a source out of answers, and back.

Nothing is deleted, so whatever is taken out can be put back.  Nothing else takes anything out.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import click
import msgspec

from client_sdk.privacy.wording import counted

from ..core.text_tables import table_lines
from .root import Deployment, json_option, main, metrics_option, say, show

if TYPE_CHECKING:
    from ..core.exclusions import Exclusion
    from ..query.repair import Effect

_because = click.option(
    "--because", required=True, help="The reason, in words for everybody who reads the answers."
)
_author = click.option(
    "--author", default="", help="Name of the person; the user of this machine by default."
)
_HEADINGS = ("id", "source", "metrics", "from", "to", "by", "on", "because", "taken back")


@main.command()
@click.option("--key", help="Id of a write or gateway key, as hearsay keys list shows it.")
@click.option("--version", help="A version that devices declare (dimension version).")
@metrics_option
@click.option("--from", "first", default="", help="First day, such as 2026-01-31, in UTC.")
@click.option(
    "--to", "last", default="", help="Last day. Epochs that have a day in common go whole."
)
@_because
@_author
@click.option("--dry-run", is_flag=True, help="Show what would be left out, and change nothing.")
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
    """Take reports of a key or version out of all answers; `hearsay include` puts them back.

    See docs/operate/repair.md.
    """
    from ..core.credentials import REPORT, id_of, readable
    from ..query.repair import ExclusionRequest, kept_once_only, proposed
    from ..query.repair import exclude as write

    if (key is None) == (version is None):
        raise click.UsageError("give --key or --version")
    by: Literal["key", "version"] = "key" if version is None else "version"
    site = Deployment()
    known = {**readable(site.credentials.records()), **site.config.credentials}
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
    exclusion, effects = proposed(wish, site.catalog, site.store, keys)
    say(_effect_lines(effects))
    for metric in kept_once_only(wish, exclusion, site.catalog, site.store):
        rule = "is asked once, so it has no days and stays; the same without --from and --to"
        click.echo(f"{metric.address}: {rule} takes out its reports, too")
    if dry_run:
        click.echo("nothing was changed")
        return
    write(exclusion, site.store, site.exclusions)
    undoing = f"hearsay include {exclusion.id} --because WHY"
    click.echo(f"excluded: {exclusion.source}, {exclusion.id}; {undoing} puts it back")


@main.command()
@click.argument("id")
@_because
@_author
def include(id: str, because: str, author: str) -> None:
    """Put back into answers what the exclusion ID took out."""
    from ..query.repair import include as take_back

    site = Deployment()
    author = author or getpass.getuser()
    exclusion = take_back(id, because, author, site.store, site.exclusions)
    click.echo(f"included again: {exclusion.source}, {id}")


@main.command()
@json_option
def exclusions(as_json: bool) -> None:
    """List all that was ever taken out of answers, with author and reason."""
    from ..core.exclusions import read_all

    listed = read_all(Deployment().reader.exclusions())
    document = {"exclusions": [msgspec.to_builtins(each) for each in listed]}
    rows = [_HEADINGS, *map(_cells, listed)]
    show(document if as_json else None, table_lines(rows, "<" * len(_HEADINGS)))


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


def _cells(exclusion: Exclusion) -> tuple[str, ...]:
    back = exclusion.included
    undone = "" if back is None else f"{_day(back.at)} by {back.author}: {back.because}"
    metrics = " ".join(exclusion.metrics) or "all"
    days = exclusion.first, exclusion.last
    done = exclusion.author, _day(exclusion.at), exclusion.because
    return exclusion.id, exclusion.source, metrics, *days, *done, undone


def _day(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()
