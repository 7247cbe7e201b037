"""Commands of operators: ``hearsay doctor``, ``check-config``, ``fsck`` and ``quarantine``.

They find what is wrong before a user does, check the store, and decide what is set aside.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import click

from client_sdk.core.epoch import ONCE
from client_sdk.privacy.wording import counted

from ..core.catalog import Catalog
from ..core.config import Config
from .root import Deployment, json_option, main, say, strict_option

if TYPE_CHECKING:
    from client_sdk.registry.metric import Metric

    from ..operations.doctor.findings import Finding
    from ..storage.protocols import Inspection


@main.command()
@strict_option
@json_option
def doctor(strict: bool, as_json: bool) -> None:
    """Ask the store how the deployment does: what, why, next step; exit status 1 on a fault.

    See docs/operate/operate.md#hearsay-doctor.
    """
    from ..operations.doctor.checkup import check_deployment

    _report(check_deployment(Deployment().config), strict, as_json)


@main.command("check-config")
@strict_option
@json_option
def check_config(strict: bool, as_json: bool) -> None:
    """Check settings and registries, and show them without secrets; exit status 1 if wrong.

    Where the store answers, its reports are compared with the registries: see
    docs/operate/upgrade.md#what-auto-chooses-anew.
    """
    from ..operations.doctor.checkup import check_settings, shown
    from ..operations.doctor.definitions import look

    site = Deployment()
    of_files = *_boards(site.config, site.catalog), *_watches(site.config, site.catalog)
    findings = [*check_settings(site.config), *of_files, *look(site.config, site.catalog)]
    say(() if as_json else shown(site.config))
    _report(findings, strict, as_json)


def _boards(config: Config, catalog: Catalog) -> Iterator[Finding]:
    """Yield the findings of the file of boards.  Raises ConfigError: it is wrong."""
    from ..operations.doctor.findings import GOOD, WARNING, Finding
    from ..workspace.documents import read_file
    from ..workspace.shelf import knows

    if not config.boards:
        return
    file = read_file(config.boards)
    counts = len(file.boards), len(file.questions), len(file.notes)
    words = map(counted, counts, ("board", "saved question", "note"))
    yield Finding(GOOD, "boards", ", ".join(words))
    names = dict.fromkeys(
        name
        for kind in (file.boards.values(), file.questions.values(), file.notes)
        for content in kind
        for name in content.metrics
    )
    if unknown := [name for name in names if not knows(catalog, name)]:
        yield Finding(
            WARNING,
            "boards",
            f"{config.boards} names metrics that no registry has: {', '.join(unknown)}",
            why="their panels have no answer",
            next="correct the names, or remove the panels",
        )


def _watches(config: Config, catalog: Catalog) -> Iterator[Finding]:
    """Yield the findings of the file of watches.  Raises ConfigError: it is wrong."""
    from ..operations.doctor.findings import GOOD, WARNING, Finding
    from ..workspace.watch.evaluation import metric_of
    from ..workspace.watch.rules import read as read_watches

    if not config.watches:
        return
    file = read_watches(config.watches)
    number = len(file.watch)
    yield Finding(GOOD, "watches", f"{number} watch{'es' * (number != 1)}")
    metrics = {watch.name: metric_of(watch, catalog) for watch in file.watch}
    never = [name for name, of in metrics.items() if of is None or of.every == ONCE]
    if never:
        yield Finding(
            WARNING,
            "watches",
            f"{config.watches} has watches that can never be computed: {', '.join(never)}",
            why="no registry has their metric, or it is reported once",
            next="run hearsay watch --check, and correct them",
        )


@main.command()
@click.option(
    "--accept-missing",
    is_flag=True,
    help="First count the reports of tallies that a person deleted as lost. Stop the workers.",
)
@json_option
def fsck(accept_missing: bool, as_json: bool) -> None:
    """Compare what the store holds with what it has counted; exit status 1 if they differ.

    Every entry and tally is checked.
    """
    from ..worker.fsck import accept_missing as accept

    site = Deployment()
    metrics = site.catalog.by_digest
    if accept_missing:
        lost = counted(sum(accept(site.inspection)), "report")
        click.echo(f"{lost} counted as lost", err=as_json)
    _report(_of_store(site.inspection, metrics), False, as_json)


def _of_store(inspection: Inspection, metrics: Mapping[bytes, Metric]) -> Iterator[Finding]:
    """Yield the faults of a store, then the counts of each shard."""
    from ..operations.doctor.findings import FAULT, GOOD, Finding
    from ..worker.fsck import fsck

    for each in fsck(inspection, metrics):
        yield Finding(FAULT, each.place, each.fault)
    for shard, counters in enumerate(inspection.counters()):
        states = ("accepted", "folded", "pending", "quarantined", "dropped")
        counts = ((state, getattr(counters, state)) for state in states)
        text = ", ".join(f"{count.reports} {state}" for state, count in counts)
        gone = f"{counters.pruned_reports} pruned, {counters.lost_reports} lost"
        yield Finding(
            GOOD, f"shard={shard}", f"reports {text}; {counters.late_reports} folded late; {gone}"
        )


def _report(findings: Iterable[Finding], strict: bool, as_json: bool) -> None:
    """Print *findings*, each as it comes, and end with the status that they deserve."""
    from ..operations.doctor.findings import FAULT, WARNING, worst

    shown = []
    for finding in findings:
        shown.append(finding)
        say(() if as_json else finding.lines())
    level = worst(shown)
    if as_json:
        click.echo(json.dumps({"worst": level, "findings": [each.row() for each in shown]}))
    raise SystemExit(level == FAULT or (strict and level == WARNING))


@main.group()
def quarantine() -> None:
    """List, retry or drop the uploads that were set aside."""


@quarantine.command("list")
def list_entries() -> None:
    """List what is set aside: name, reports, bytes, reason."""
    from ..worker.quarantine import listed, name_of

    for entry in listed(Deployment().inspection):
        click.echo(f"{name_of(entry)}  {entry.reports}  {len(entry.entry)}  {entry.reason}")


@quarantine.command()
@click.argument("entries", nargs=-1, required=True)
def retry(entries: tuple[str, ...]) -> None:
    """Queue ENTRIES again, or "all", for instance after a fix of what refused them."""
    from ..worker.quarantine import retry as run

    click.echo(f"{run(Deployment().inspection, entries)} queued again")


@quarantine.command()
@click.argument("entries", nargs=-1, required=True)
@click.confirmation_option(prompt="Their reports will never be counted. Go on?")
def drop(entries: tuple[str, ...]) -> None:
    """Delete ENTRIES, or "all"; their number stays in the counts."""
    from ..worker.quarantine import drop as run

    click.echo(f"{run(Deployment().inspection, entries)} dropped")
