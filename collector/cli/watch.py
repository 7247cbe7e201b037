"""``hearsay watch`` and ``hearsay report``: what is told to people who do not ask."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from client_sdk.core.epoch import ONCE
from client_sdk.privacy.wording import counted

from ..core.config import Config
from ..core.errors import ConfigError
from ..core.logs import configure
from .root import explained, main

if TYPE_CHECKING:
    from ..core.catalog import Catalog
    from ..workspace.watch.report import Report
    from ..workspace.watch.rounds import Outcome, Rounds
    from ..workspace.watch.rules import Channel, Watches

ROLE = "watch"
_FIRED, _UNABLE = 2, 3  # exit statuses of --once


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False), required=False)
@click.option(
    "--once", is_flag=True, help="One round; exit status 2 if a watch fires, 3 if one cannot say."
)
@click.option(
    "--check", is_flag=True, help="Only read the file, and say how often each watch may err."
)
@explained
def watch(file: str | None, once: bool, check: bool) -> None:
    """Evaluate the watches of FILE, or of HEARSAY_WATCHES, and send what they say."""
    from ..core.catalog import Catalog
    from ..workspace.watch.rules import read

    config = Config.from_env()
    if not (file or config.watches):
        raise ConfigError("HEARSAY_WATCHES", "", "must name a file of watches, or give one")
    watches = read(file or config.watches)
    catalog = Catalog.from_files(config.registry_paths)
    if check:
        _check(watches, catalog)
    elif once:
        _once(_rounds(config, watches, catalog))
    else:
        _run(_rounds(config, watches, catalog))


def _rounds(config: Config, watches: Watches, catalog: Catalog) -> Rounds:
    from ..storage.connect import connect_reader
    from ..storage.records import WatchStore
    from ..workspace.watch.delivery import deliver
    from ..workspace.watch.rounds import Rounds

    return Rounds(watches, catalog, connect_reader(config), WatchStore.of(config), deliver)


def _check(watches: Watches, catalog: Catalog) -> None:
    """Print a line a watch; exit status 1 if one can never be computed."""
    from ..workspace.watch.evaluation import metric_of
    from ..workspace.watch.rounds import title_of

    faults = 0
    for each in watches.watch:
        metric = metric_of(each, catalog)
        if metric is None or metric.every == ONCE:
            known = "is no metric of the registries" if metric is None else "is reported once"
            click.echo(f"{each.name}: {each.metric} {known}")
            faults += 1
            continue
        rate = watches.rate(metric.every)
        title = title_of(each, metric)
        click.echo(f"{each.name}: {title}; errs in at most {rate:.2g} of its evaluations")
    share = f"{watches.false_alarms:.3g}"
    click.echo(f"all together: a false alarm in any 365 days with a chance of at most {share}")
    if faults:
        raise click.ClickException(counted(faults, "fault"))


def _once(rounds: Rounds) -> None:
    outcome = rounds.round()
    rounds.release()
    if outcome is None:
        raise click.ClickException(
            "another process evaluates the watches, so nothing was asked here; it sends what they"
            " say. Stop it, or look at the page Watches"
        )
    from ..storage.records import FIRING, UNABLE

    for state, count in sorted(outcome.states.items()):
        click.echo(f"{state}: {count}")
    for name, state, reason in outcome.unanswered:
        click.echo(f"{name}: {state}: {reason}")
    click.echo(f"messages that wait: {outcome.waiting}")
    raise SystemExit(_status(outcome, FIRING, UNABLE))


def _status(outcome: Outcome, firing: str, unable: str) -> int:
    if outcome.states.get(firing):
        return _FIRED
    return _UNABLE if outcome.states.get(unable) else 0


def _run(rounds: Rounds) -> None:
    from ..serving.stopping import on_stop

    configure(ROLE)
    stop = threading.Event()
    on_stop(stop.set, lambda: os._exit(0))
    rounds.run(stop)


@main.command()
@click.option(
    "-o", "--output", "out", type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="File to write.",
)  # fmt: skip
@click.option("--mail", help="Channel of the file of watches to send it to.")
@click.option(
    "--watches",
    "file",
    type=click.Path(exists=True, dir_okay=False),
    help="File of watches that has the channel; HEARSAY_WATCHES.",
)
@click.option(
    "--weeks-ago", "back", type=click.IntRange(1, 520), default=1, show_default=True,
    help="Which week: 1 is the one that ended last.",
)  # fmt: skip
@explained
def report(out: Path | None, mail: str | None, file: str | None, back: int) -> None:
    """Write or send the report of a week: one file of HTML with every metric and what changed."""
    from ..core.catalog import Catalog
    from ..storage.connect import connect_reader
    from ..storage.connection import allowed
    from ..storage.records import WatchState, WatchStore
    from ..workspace.watch.report import RECENT_DAYS, has_reports
    from ..workspace.watch.report import report as write

    if out is None and mail is None:
        raise ConfigError("--output", "", "must name a file, or --mail a channel")
    config = Config.from_env()
    channel = _channel(mail, file or config.watches) if mail else None
    catalog, storage, now = (
        Catalog.from_files(config.registry_paths),
        connect_reader(config),
        time.time(),
    )
    if not has_reports(catalog, storage, now, back):
        rule = (
            f"has no report of these metrics, of that week or of the last {RECENT_DAYS} days; set"
            " REDIS_URL, HEARSAY_PREFIX and HEARSAY_REGISTRY as the collector has them"
        )
        raise ConfigError("HEARSAY_PREFIX", config.prefix, rule)
    state = allowed(WatchStore.of(config).state, WatchState())
    week = write(catalog, storage, state, now, back)
    if out is not None:
        out.write_text(week.html, encoding="utf-8")
        click.echo(out)
    if channel is not None:
        _send(channel, week)


def _channel(name: str, file: str) -> Channel:
    from ..workspace.watch.rules import read

    if not file:
        raise ConfigError("HEARSAY_WATCHES", "", "must name the file that has the channel")
    channels = {channel.name: channel for channel in read(file).channel if channel.mail}
    if name not in channels:
        rule = f"must be a channel with mail; these are: {', '.join(channels) or 'none'}"
        raise ConfigError("--mail", name, rule)
    return channels[name]


def _send(channel: Channel, week: Report) -> None:
    from ..workspace.watch.delivery import mail_of, post

    subject = f"Hearsay: week of {week.first} to {week.last}"
    id = f"week-{week.first}-{channel.name}"
    try:
        post(channel, mail_of(channel, subject, week.text, id, week.html))
    except OSError as error:  # of a mail server, too
        raise ConfigError(f"channel.{channel.name}", channel.server, str(error)) from None
    click.echo(f"sent: {channel.name}")
