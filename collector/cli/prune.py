"""The command ``hearsay prune``: delete old tallies, and count what went."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from functools import partial

import click

from client_sdk.core.epoch import day_of, day_of_date
from client_sdk.privacy.wording import counted

from ..core.config import Config
from ..core.errors import ConfigError
from .root import explained, main, repeat


def _days(text: str) -> int:
    """Return the number of days that *text* is, such as ``400d``."""
    match = re.fullmatch(r"([0-9]{1,5})d", text)
    if not match:
        raise click.BadParameter("must be a number of days and a d, such as 400d")
    return int(match[1])


@main.command()
@click.option("--older-than", type=_days, help="Days, such as 400d; HEARSAY_KEEP_DAYS.")
@click.option("--before", type=click.DateTime(["%Y-%m-%d"]), help="Epochs that ended before a day.")
@click.option("--metric", "metrics", multiple=True, help="Only this metric, or digest; repeatable.")
@click.option("--app", "apps", multiple=True, help="Only the metrics of this app; repeatable.")
@click.option("--yes", is_flag=True, help="Delete; without it only say what would be deleted.")
@click.option(
    "--every", type=click.IntRange(1, 604_800), help="Go on, with so many seconds between two runs."
)
@explained
def prune(
    older_than: int | None,
    before: datetime | None,
    metrics: tuple[str, ...],
    apps: tuple[str, ...],
    yes: bool,
    every: int | None,
) -> None:
    """Delete the tallies of whole epochs for good; their number stays in the counts."""
    config = Config.from_env()
    if older_than is not None and before is not None:
        raise ConfigError("--older-than", f"{older_than}d", "and --before must not both be given")
    if older_than is None and before is None and not metrics and not apps:
        older_than = config.keep_days or None
        if older_than is None:
            rule = "nothing is to go; name --older-than, --before, --metric or --app, or set it"
            raise ConfigError("HEARSAY_KEEP_DAYS", 0, rule)
    run = partial(
        _prune,
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


def _prune(
    config: Config,
    *,
    older_than: int | None,
    before: datetime | None,
    metrics: tuple[str, ...],
    apps: tuple[str, ...],
    yes: bool,
) -> None:
    from ..core.catalog import Catalog
    from ..storage.connect import inspect
    from ..worker import pruning

    now = time.time()
    day = day_of_date(before.replace(tzinfo=UTC).date()) if before else None
    day = day if older_than is None else day_of(now) - older_than
    catalog = Catalog.from_files(config.registry_paths)
    selection = pruning.Selection(metrics, apps, day)
    inspection = inspect(config)
    shares = pruning.survey(inspection, catalog, selection, now)
    if any(share.is_open(now) for share in shares):
        click.echo("reports may still come for some of these epochs; they will count as pruned")
    pruned = list(pruning.prune(inspection, shares)) if yes else shares
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
