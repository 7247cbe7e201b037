"""``hearsay fsck`` and ``hearsay quarantine``: check the store, and decide what is set aside."""

from __future__ import annotations

import click

from client_sdk.privacy.wording import counted

from ..core.config import Config
from .root import explained, main


@main.command()
@click.option(
    "--accept-missing",
    is_flag=True,
    help="First count the reports of tallies that somebody deleted as lost. Stop the workers.",
)
@explained
def fsck(accept_missing: bool) -> None:
    """Compare what the store holds with what it has counted; exit status 1 if they differ."""
    from ..core.catalog import Catalog
    from ..storage.connect import inspect
    from ..worker.fsck import accept_missing as accept
    from ..worker.fsck import fsck as findings

    config = Config.from_env()
    catalog = Catalog.from_files(config.registry_paths)
    inspection = inspect(config)
    if accept_missing:
        click.echo(f"{counted(sum(accept(inspection)), 'report')} counted as lost")
    faults = 0
    for finding in findings(inspection, catalog.by_digest):
        faults += 1
        click.echo(finding)
    for shard, one in enumerate(inspection.counters()):
        states = ("accepted", "folded", "pending", "quarantined", "dropped")
        counts = ((state, getattr(one, state)) for state in states)
        text = ", ".join(f"{count.reports} {state}" for state, count in counts)
        gone = f"{one.pruned_reports} pruned, {one.lost_reports} lost"
        click.echo(f"shard={shard}: reports {text}; {one.late_reports} folded late; {gone}")
    if faults:
        raise click.ClickException(counted(faults, "fault"))


@main.group()
def quarantine() -> None:
    """Work with the uploads that were set aside."""


@quarantine.command("list")
@explained
def list_entries() -> None:
    """List what is set aside: name, reports, bytes, reason."""
    from ..storage.connect import inspect
    from ..worker.quarantine import listed, name_of

    for one in listed(inspect(Config.from_env())):
        click.echo(f"{name_of(one)}  {one.reports}  {len(one.entry)}  {one.reason}")


@quarantine.command()
@click.argument("entries", nargs=-1, required=True)
@explained
def retry(entries: tuple[str, ...]) -> None:
    """Queue ENTRIES again, or "all", for instance after mending what refused them."""
    from ..storage.connect import inspect
    from ..worker.quarantine import retry as run

    click.echo(f"{run(inspect(Config.from_env()), entries)} queued again")


@quarantine.command()
@click.argument("entries", nargs=-1, required=True)
@click.confirmation_option(prompt="Their reports will never be counted. Go on?")
@explained
def drop(entries: tuple[str, ...]) -> None:
    """Delete ENTRIES, or "all"; their number stays in the counts."""
    from ..storage.connect import inspect
    from ..worker.quarantine import drop as run

    click.echo(f"{run(inspect(Config.from_env()), entries)} dropped")
