"""Commands of what is old: archive folded reports in files, fold them again, delete tallies."""

from __future__ import annotations

import getpass
import json
import os
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from client_sdk.core.epoch import day_of, day_of_date
from client_sdk.privacy.wording import counted

from ..core.config import HA, STANDARD, Config
from ..core.errors import ConfigError
from .root import (
    Deployment,
    every_option,
    main,
    metrics_option,
    repeat,
    require_archive,
    say,
    yes_option,
)

if TYPE_CHECKING:
    from ..worker.archive.files import Folder
    from ..worker.archive.refold import Engine
    from ..worker.pruning import Share


def _folder(path: str) -> Folder:
    from ..worker.archive.files import Folder

    if not path:
        rule = "must be set: nothing is archived by default"
        raise ConfigError("HEARSAY_ARCHIVE", "", rule)
    return Folder(Path(path))


_DAY: Final = click.DateTime(["%Y-%m-%d"])


@main.group(invoke_without_command=True)
@every_option(1, 86_400)
@click.pass_context
def archive(context: click.Context, every: int | None) -> None:
    """Write folded reports to HEARSAY_ARCHIVE, and delete those older than its limit.

    See docs/operate/archive.md.
    """
    if not context.invoked_subcommand:
        require_archive("pyarrow")
        repeat(partial(_archive, Deployment()), every)


def _archive(site: Deployment) -> None:
    from ..storage.connect import archive_queue
    from ..worker.archive.drain import SETTLE, drain

    config = site.config
    folder = _folder(config.archive)
    mechanisms = {digest: metric.mechanism for digest, metric in site.catalog.by_digest.items()}
    rest = SETTLE if config.profile in (STANDARD, HA) else 0.0
    written = drain(archive_queue(config), folder, mechanisms, lambda: time.sleep(rest))
    click.echo(f"{counted(written, 'file')} written, {_prune(folder, config.archive_days)} deleted")


@archive.command()
@click.option(
    "--days",
    type=click.IntRange(0, 3_650),
    help="Days after the fold that are kept; HEARSAY_ARCHIVE_DAYS by default.",
)
def prune(days: int | None) -> None:
    """Delete reports that were folded longer ago than the limit, and write nothing."""
    config = Deployment().config
    deleted = _prune(_folder(config.archive), config.archive_days if days is None else days)
    click.echo(f"{counted(deleted, 'file')} deleted")


def _prune(folder: Folder, days: int) -> int:
    with folder.locked():
        return folder.prune(day_of(time.time()) - days)


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@every_option(60, 604_800)
@click.option(
    "--keep", "most", type=click.IntRange(1, 10_000), metavar="COPIES",
    help="Delete all copies but the newest ones.",
)  # fmt: skip
def backup(folder: Path, every: int | None, most: int | None) -> None:
    """Copy the whole store into FOLDER, as files from which a server starts.

    See docs/operate/operate.md#backup-and-restore.
    """
    repeat(partial(_back_up, Deployment().config, folder, most), every)


def _back_up(config: Config, folder: Path, most: int | None) -> None:
    from ..operations.backup import back_up, keep

    path, size = back_up(config.redis_url, folder, time.time())
    click.echo(f"{path}: {counted(size, 'byte')}")
    if most is not None:
        click.echo(f"older copies deleted: {keep(folder, most):,}")


@main.command()
@click.option(
    "--archive", "path", default="", help="Folder of the archive; HEARSAY_ARCHIVE by default."
)
@click.option(
    "--scheduler", help="Address of a Dask scheduler; threads of this process by default."
)
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    default=os.cpu_count() or 1,
    help="Threads of this process; as many as there are processors by default.",
)
@click.option(
    "--since",
    type=_DAY,
    help="First day whose folds are all archived, if the archive began later than the store.",
)
@click.option("--print", "as_rows", is_flag=True, help="Print the tallies, and read no store.")
@click.option(
    "--restore", is_flag=True, help="Add the tallies to a store that replaces a lost one."
)
def refold(
    path: str,
    scheduler: str | None,
    threads: int,
    since: datetime | None,
    as_rows: bool,
    restore: bool,
) -> None:
    """Recompute the tallies from the archive; exit status 1 if the store holds others.

    A line a cell shows each difference.  See docs/operate/archive.md.
    """
    require_archive("pyarrow", "distributed")
    from ..worker.archive.dask import refold as run

    site = Deployment()
    folder = _folder(path or site.config.archive)
    engine = partial(run, scheduler=scheduler, threads=threads)
    if as_rows:
        _print(site, folder, engine)
    elif restore:
        _restore(site, folder, engine)
    else:
        _compare(site, folder, engine, since)


def _print(site: Deployment, folder: Folder, engine: Engine) -> None:
    """Print one JSON object a cell and shard."""
    from ..estimation.tally import merge
    from ..worker.archive.refold import tallies_of

    metrics = site.catalog.by_digest
    for (shard, cell), vector in sorted(tallies_of(folder, metrics, engine).items()):
        metric = metrics[cell.metric]
        n, tally = merge([vector], metric.mechanism.tally_size)
        row = {
            "metric": metric.name,
            "digest": cell.metric.hex(),
            "epoch": cell.epoch,
            "segment": cell.segment,
            "lateness": cell.lateness,
            "shard": shard,
            "n": n,
            "tally": tally.tolist(),
        }
        click.echo(json.dumps(row))


def _restore(site: Deployment, folder: Folder, engine: Engine) -> None:
    from ..storage.connect import archive_queue
    from ..worker.archive.refold import restore

    queue = archive_queue(site.config)
    done = restore(queue, site.exclusions, folder, site.catalog.by_digest, engine)
    cells = f"{counted(done.added, 'cell')} added, {done.before:,} added before"
    click.echo(
        f"{cells}, {done.pruned:,} pruned; {counted(done.exclusions, 'exclusion')} taken over"
    )


def _compare(site: Deployment, folder: Folder, engine: Engine, since: datetime | None) -> None:
    from ..storage.connect import archive_queue
    from ..worker.archive.refold import compare

    report = compare(
        archive_queue(site.config),
        site.inspection,
        folder,
        site.catalog.by_digest,
        engine,
        today=day_of(time.time()),
        since=None if since is None else day_of_date(since.replace(tzinfo=UTC).date()),
    )
    say(report.differences)
    click.echo(
        f"{counted(report.compared, 'cell')} compared, {report.left_out:,} left out;"
        f" {counted(report.unarchived, 'report')} folded without an archive"
    )
    if report.differences:
        raise click.ClickException(f"differences: {len(report.differences)}")


def _days(text: str) -> int:
    """Return the number of days that *text* is, such as ``400d``."""
    match = re.fullmatch(r"([0-9]{1,5})d", text)
    if not match:
        raise click.BadParameter("must be a number of days and a d, such as 400d")
    return int(match[1])


@main.command("prune")
@click.option("--older-than", type=_days, help="Days, such as 400d; HEARSAY_KEEP_DAYS.")
@click.option("--before", type=_DAY, help="Only epochs that ended before this day.")
@metrics_option
@click.option("--app", "apps", multiple=True, help="Only this app's metrics; may be repeated.")
@click.option("--key", help="Instead: all tallies of a revoked key, as after an attack.")
@yes_option
@every_option(1, 604_800)
def prune_tallies(
    older_than: int | None,
    before: datetime | None,
    metrics: tuple[str, ...],
    apps: tuple[str, ...],
    key: str | None,
    yes: bool,
    every: int | None,
) -> None:
    """Delete the tallies of whole epochs, or of one key, for good; they stay in the counts.

    A metric that no registry file has is named by its digest.  See docs/operate/operate.md#old-data
    and docs/operate/operate.md#what-a-key-filled.
    """
    site = Deployment()
    if key is not None:
        if older_than is not None or before or metrics or apps or every:
            raise click.UsageError("--key goes with --yes only")
        _prune_key(site, key, yes)
        return
    if older_than is not None and before is not None:
        raise ConfigError("--older-than", f"{older_than}d", "and --before must not both be given")
    if older_than is None and before is None and not metrics and not apps:
        older_than = site.config.keep_days or None
        if older_than is None:
            rule = "keeps all tallies; name --older-than, --before, --metric or --app, or set it"
            raise ConfigError("HEARSAY_KEEP_DAYS", 0, rule)
    if every is not None and not yes:
        raise ConfigError("--every", every, "needs --yes when it runs unattended")

    def run() -> None:
        from ..worker import pruning

        now = time.time()
        day = day_of_date(before.replace(tzinfo=UTC).date()) if before else None
        day = day if older_than is None else day_of(now) - older_than
        selection = pruning.Selection(metrics, apps, day)
        shares = pruning.survey(site.inspection, site.catalog, selection, now)
        if any(share.is_open(now) for share in shares):
            click.echo("reports may still come for some of these epochs; they will count as pruned")
        _say_pruned(
            site.config, list(pruning.prune(site.inspection, shares)) if yes else shares, yes
        )

    repeat(run, every)


def _prune_key(site: Deployment, key: str, yes: bool) -> None:
    """Delete the tallies of *key*; it is recorded first, so that answers show it."""
    from ..core.credentials import id_of, readable
    from ..query.repair import record_deleted
    from ..worker import pruning

    known = {**readable(site.credentials.records()), **site.config.credentials}
    good = (id_of(digest) for digest, each in known.items() if each.is_good(day_of(time.time())))
    if key in good:
        rule = "still works, and would begin them again: run hearsay keys revoke first"
        raise ConfigError("--key", key, rule)
    every = pruning.survey_key(site.inspection, site.catalog, key)
    shares = [share for share in every if share.metric]
    if many := len(every) - len(shares):
        has = "no registry file has; they stay, as no answer could show that they are gone"
        click.echo(f"{counted(many, 'definition')} of key {key} {has}", err=True)
    if not shares:
        rule = (
            "has no tallies of metrics in the registry files;"
            " hearsay keys list shows the id of each key, also of revoked ones"
        )
        raise ConfigError("--key", key, rule)
    if yes:
        epochs = [
            (share.metric, epoch) for share in shares if share.metric for epoch in share.epochs
        ]
        record_deleted(key, epochs, getpass.getuser(), site.store, site.exclusions)
        site.inspection.change_contents()
        pruning.prune_key(site.inspection, shares, key)
        site.inspection.change_contents()
    _say_pruned(site.config, shares, yes)


def _say_pruned(config: Config, pruned: Sequence[Share], yes: bool) -> None:
    say(pruned)
    sums = {
        "epoch": sum(len(share.epochs) for share in pruned),
        "report": sum(share.reports for share in pruned),
        "byte": sum(share.size for share in pruned),
    }
    total = ", ".join(counted(number, noun) for noun, number in sums.items())
    click.echo(f"deleted: {total}" if yes else f"would be deleted: {total}; --yes deletes them")
    if config.archive and pruned:
        click.echo("their reports stay in the archive until hearsay archive prune deletes them")
