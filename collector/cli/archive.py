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
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from client_sdk.core.epoch import day_of, day_of_date
from client_sdk.privacy.wording import counted

from ..core.config import HA, STANDARD, Config
from ..core.errors import ConfigError
from .root import explained, main, repeat

if TYPE_CHECKING:
    from ..core.catalog import Catalog
    from ..worker.archive.files import Folder
    from ..worker.archive.refold import Engine
    from ..worker.pruning import Share


def _catalog(config: Config) -> Catalog:
    from ..core.catalog import Catalog

    return Catalog.from_files(config.registry_paths)


def _folder(path: str) -> Folder:
    from ..worker.archive.files import Folder

    if not path:
        rule = "must be set: nothing is archived by default"
        raise ConfigError("HEARSAY_ARCHIVE", "", rule)
    return Folder(Path(path))


def _require(*modules: str) -> None:
    """Raise ConfigError if a module is missing that only archives need."""
    for name in modules:
        try:
            import_module(name)
        except ImportError:
            raise ConfigError(
                name, "missing", "needs pip install 'hearsay-collector[archive]'"
            ) from None


@main.group(invoke_without_command=True)
@click.option(
    "--every", type=click.IntRange(1, 86_400), help="Go on, with so many seconds between two runs."
)
@click.pass_context
@explained
def archive(context: click.Context, every: int | None) -> None:
    """Write what was folded to HEARSAY_ARCHIVE, and delete what is older than its limit."""
    if context.invoked_subcommand:
        return
    _require("pyarrow")
    config = Config.from_env()
    if every is None:
        _archive(config)
    else:
        repeat(partial(_archive, config), every)


def _archive(config: Config) -> None:
    from ..storage.connect import archive_queue
    from ..worker.archive.drain import SETTLE, drain

    folder = _folder(config.archive)
    metrics = _catalog(config).by_digest
    mechanisms = {digest: metric.mechanism for digest, metric in metrics.items()}
    rest = SETTLE if config.profile in (STANDARD, HA) else 0.0
    written = drain(archive_queue(config), folder, mechanisms, lambda: time.sleep(rest))
    click.echo(f"{counted(written, 'file')} written, {_prune(folder, config.archive_days)} deleted")


@archive.command()
@click.option(
    "--days",
    type=click.IntRange(0, 3_650),
    help="Days after the fold that are kept; HEARSAY_ARCHIVE_DAYS.",
)
@explained
def prune(days: int | None) -> None:
    """Delete what was folded longer ago than the limit, and write nothing."""
    config = Config.from_env()
    deleted = _prune(_folder(config.archive), config.archive_days if days is None else days)
    click.echo(f"{counted(deleted, 'file')} deleted")


def _prune(folder: Folder, days: int) -> int:
    with folder.locked():
        return folder.prune(day_of(time.time()) - days)


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--every",
    type=click.IntRange(60, 604_800),
    help="Go on, with so many seconds between two runs.",
)
@click.option(
    "--keep", "most", type=click.IntRange(1, 10_000), help="Delete all copies but the newest ones."
)
@explained
def backup(folder: Path, every: int | None, most: int | None) -> None:
    """Copy the whole store into FOLDER, as files from which a server starts."""
    config = Config.from_env()
    run = partial(_back_up, config, folder, most)
    if every is None:
        run()
    else:
        repeat(run, every)


def _back_up(config: Config, folder: Path, most: int | None) -> None:
    from ..operations.backup import back_up, keep

    path, size = back_up(config.redis_url, folder, time.time())
    deleted = 0 if most is None else keep(folder, most)
    click.echo(f"{path}: {counted(size, 'byte')}; older copies deleted: {deleted:,}")


@main.command()
@click.option("--archive", "path", default="", help="Folder of the archive; HEARSAY_ARCHIVE.")
@click.option(
    "--scheduler", help="Address of a Dask scheduler; threads of this process if left out."
)
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    default=os.cpu_count() or 1,
    help="Of this process; as many as there are processors.",
)
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d"]),
    help="First day of which all folds are archived, where it began later than the store.",
)
@click.option("--print", "as_rows", is_flag=True, help="Print the tallies, and ask no store.")
@click.option(
    "--restore", is_flag=True, help="Add the tallies to a store that took the place of a lost one."
)
@explained
def refold(
    path: str,
    scheduler: str | None,
    threads: int,
    since: datetime | None,
    as_rows: bool,
    restore: bool,
) -> None:
    """Recompute the tallies from the archive; exit status 1 if the store holds others."""
    _require("pyarrow", "distributed")
    from ..worker.archive.dask import refold as run

    config = Config.from_env()
    folder = _folder(path or config.archive)
    engine = partial(run, scheduler=scheduler, threads=threads)
    if as_rows:
        _print(config, folder, engine)
    elif restore:
        _restore(config, folder, engine)
    else:
        _compare(config, folder, engine, since)


def _print(config: Config, folder: Folder, engine: Engine) -> None:
    """Print one JSON object a cell and shard."""
    from ..estimation.tally import merge
    from ..worker.archive.refold import tallies_of

    metrics = _catalog(config).by_digest
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


def _restore(config: Config, folder: Folder, engine: Engine) -> None:
    from ..storage.connect import archive_queue
    from ..storage.documents import ExclusionStore
    from ..worker.archive.refold import restore

    queue, records = archive_queue(config), ExclusionStore.of(config)
    done = restore(queue, records, folder, _catalog(config).by_digest, engine)
    cells = f"{counted(done.added, 'cell')} added, {done.before:,} added before"
    click.echo(
        f"{cells}, {done.pruned:,} pruned; {counted(done.exclusions, 'exclusion')} taken over"
    )


def _compare(config: Config, folder: Folder, engine: Engine, since: datetime | None) -> None:
    from ..storage.connect import archive_queue, inspect
    from ..worker.archive.refold import compare

    report = compare(
        archive_queue(config),
        inspect(config),
        folder,
        _catalog(config).by_digest,
        engine,
        today=day_of(time.time()),
        since=None if since is None else day_of_date(since.replace(tzinfo=UTC).date()),
    )
    for difference in report.differences:
        click.echo(difference)
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
@click.option("--before", type=click.DateTime(["%Y-%m-%d"]), help="Epochs that ended before a day.")
@click.option("--metric", "metrics", multiple=True, help="Only this metric, or digest; repeatable.")
@click.option("--app", "apps", multiple=True, help="Only the metrics of this app; repeatable.")
@click.option("--key", help="Instead: all tallies of a key that is revoked, as after an attack.")
@click.option("--yes", is_flag=True, help="Delete; without it only say what would be deleted.")
@click.option(
    "--every", type=click.IntRange(1, 604_800), help="Go on, with so many seconds between two runs."
)
@explained
def prune_tallies(
    older_than: int | None,
    before: datetime | None,
    metrics: tuple[str, ...],
    apps: tuple[str, ...],
    key: str | None,
    yes: bool,
    every: int | None,
) -> None:
    """Delete the tallies of whole epochs, or of one key, for good; they stay in the counts."""
    config = Config.from_env()
    if key is not None:
        if older_than is not None or before or metrics or apps or every:
            raise click.UsageError("--key goes with --yes only")
        _prune_key(config, key, yes)
        return
    if older_than is not None and before is not None:
        raise ConfigError("--older-than", f"{older_than}d", "and --before must not both be given")
    if older_than is None and before is None and not metrics and not apps:
        older_than = config.keep_days or None
        if older_than is None:
            rule = "nothing is to go; name --older-than, --before, --metric or --app, or set it"
            raise ConfigError("HEARSAY_KEEP_DAYS", 0, rule)
    run = partial(
        _prune_tallies,
        config,
        older_than=older_than,
        before=before,
        metrics=metrics,
        apps=apps,
        yes=yes,
    )
    if every is None:
        run()
    elif not yes:
        raise ConfigError("--every", every, "needs --yes: nobody is there to be asked")
    else:
        repeat(run, every)


def _prune_tallies(
    config: Config,
    *,
    older_than: int | None,
    before: datetime | None,
    metrics: tuple[str, ...],
    apps: tuple[str, ...],
    yes: bool,
) -> None:
    from ..storage.connect import inspect
    from ..worker import pruning

    now = time.time()
    day = day_of_date(before.replace(tzinfo=UTC).date()) if before else None
    day = day if older_than is None else day_of(now) - older_than
    catalog = _catalog(config)
    selection = pruning.Selection(metrics, apps, day)
    inspection = inspect(config)
    shares = pruning.survey(inspection, catalog, selection, now)
    if any(share.is_open(now) for share in shares):
        click.echo("reports may still come for some of these epochs; they will count as pruned")
    _say_pruned(config, list(pruning.prune(inspection, shares)) if yes else shares, yes)


def _prune_key(config: Config, key: str, yes: bool) -> None:
    """Delete what came under *key*; first it is recorded, so that answers say it."""
    from ..core.credentials import id_of, readable
    from ..query.repair import record_deleted
    from ..storage.connect import connect, inspect
    from ..storage.documents import ExclusionStore
    from ..storage.records import CredentialStore
    from ..worker import pruning

    known = {**readable(CredentialStore.of(config).records()), **config.credentials}
    good = (id_of(digest) for digest, each in known.items() if each.is_good(day_of(time.time())))
    if key in good:
        rule = "still works, and would begin them again: run hearsay keys revoke first"
        raise ConfigError("--key", key, rule)
    inspection = inspect(config)
    every = pruning.survey_key(inspection, _catalog(config), key)
    shares = [share for share in every if share.metric]
    if many := len(every) - len(shares):
        has = "no registry file has; they stay, as no answer could say that they are gone"
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
        store = connect(config)
        record_deleted(key, epochs, getpass.getuser(), store, ExclusionStore.of(config))
        inspection.change_contents()
        pruning.prune_key(inspection, shares, key)
        inspection.change_contents()
    _say_pruned(config, shares, yes)


def _say_pruned(config: Config, pruned: Sequence[Share], yes: bool) -> None:
    for share in pruned:
        click.echo(share)
    sums = {
        "epoch": sum(len(share.epochs) for share in pruned),
        "report": sum(share.reports for share in pruned),
        "byte": sum(share.size for share in pruned),
    }
    total = ", ".join(counted(number, noun) for noun, number in sums.items())
    click.echo(f"deleted: {total}" if yes else f"would be deleted: {total}; --yes deletes them")
    if config.archive and pruned:
        click.echo("their reports stay in the archive until hearsay archive prune deletes them")
