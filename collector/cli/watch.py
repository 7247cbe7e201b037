"""``hearsay watch`` and ``hearsay report``: what people hear without a question."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from client_sdk.core.epoch import ONCE
from client_sdk.privacy.wording import counted

from ..core.errors import ConfigError
from ..core.logs import configure
from .root import Deployment, main

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
    "--once",
    is_flag=True,
    help="One round, for cron; exit status 2 if a watch fires, 3 if one cannot be computed.",
)
@click.option(
    "--check", is_flag=True, help="Only read the file, and show how often each watch may err."
)
def watch(file: str | None, once: bool, check: bool) -> None:
    """Evaluate the watches of FILE, or of HEARSAY_WATCHES, and send their messages.

    They are evaluated whenever numbers are published.  See docs/operate/watch.md.
    """
    from ..storage.records import WatchStore
    from ..workspace.watch.delivery import deliver
    from ..workspace.watch.rounds import Rounds
    from ..workspace.watch.rules import read

    site = Deployment()
    if not (file or site.config.watches):
        raise ConfigError("HEARSAY_WATCHES", "", "must name a file of watches, or give one")
    watches = read(file or site.config.watches)
    if check:
        _check(watches, site.catalog)
        return
    state = WatchStore.of(site.config)
    rounds = Rounds(watches, site.catalog, site.reader, state, deliver)
    (_once if once else _run)(rounds)


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
            "another process evaluates the watches and sends their messages, so nothing was asked"
            " here. Stop it, or look at the page Watches"
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
@click.option("--mail", help="Send it to this channel of the file of watches.")
@click.option(
    "--watches",
    "file",
    type=click.Path(exists=True, dir_okay=False),
    help="File of watches that has the channel; HEARSAY_WATCHES by default.",
)
@click.option(
    "--weeks-ago", "back", type=click.IntRange(1, 520), default=1, show_default=True,
    help="Which week: 1 is the one that ended last.",
)  # fmt: skip
def report(out: Path | None, mail: str | None, file: str | None, back: int) -> None:
    """Write or send the report of a week: one file of HTML with every metric and what changed.

    See docs/operate/watch.md#the-report-of-a-week.
    """
    from ..storage.connection import allowed
    from ..storage.records import WatchState, WatchStore
    from ..workspace.watch.report import RECENT_DAYS, has_reports
    from ..workspace.watch.report import report as write

    if out is None and mail is None:
        raise ConfigError("--output", "", "must name a file, or --mail a channel")
    site, now = Deployment(), time.time()
    channel = _channel(mail, file or site.config.watches) if mail else None
    if not has_reports(site.catalog, site.reader, now, back):
        rule = (
            f"has no report of these metrics, of that week or of the last {RECENT_DAYS} days; set"
            " REDIS_URL, HEARSAY_PREFIX and HEARSAY_REGISTRY as the collector has them"
        )
        raise ConfigError("HEARSAY_PREFIX", site.config.prefix, rule)
    state = allowed(WatchStore.of(site.config).state, WatchState())
    week = write(site.catalog, site.reader, state, now, back)
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
