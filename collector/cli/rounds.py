"""``hearsay learn rounds``: public models, one after the other, each a step by devices' reports."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from client_sdk.privacy.wording import counted

from .learn import learn
from .root import Deployment, say, sign_option

if TYPE_CHECKING:
    from client_sdk.registry.metric import Metric

    from ..learning.publishing import Folder
    from ..learning.reading import LeftOut
    from ..learning.rounds import Pass, Reports

_FOLDER = click.argument("folder", type=click.Path(file_okay=False, path_type=Path))


@learn.group("rounds")
def rounds() -> None:
    """Learn a logistic or linear model in rounds, one report a device."""


@rounds.command("key")
@click.argument("path", type=click.Path(path_type=Path))
def make_key(path: Path) -> None:
    """Make a secret key in the file PATH, a new one, and print its public key, which devices heed.

    The line that is printed belongs in the table learning of the metric.
    """
    from .retirement import new_key

    click.echo(f'key = "{new_key(path)}"')


@rounds.command()
@click.argument("name", metavar="METRIC")
@_FOLDER
def status(name: str, folder: Path) -> None:
    """Print how far the pass of METRIC in FOLDER is, and which reports are in no step."""
    state = _folder(folder, Deployment().catalog.metric(name)).begun()
    _, reports, left_out = _read(name)
    afresh = state.restarted(reports, left_out)
    _say(afresh, reports, left_out, afresh=afresh is not state)


@rounds.command()
@click.argument("name", metavar="METRIC")
@_FOLDER
@sign_option
def step(name: str, folder: Path, key: Path) -> None:
    """Take the next step of METRIC and publish its model in FOLDER, or begin with the first."""
    from ..learning.publishing import STATE
    from .retirement import seed_of

    seed = seed_of(key)
    metric, reports, left_out = _read(name)
    begins, place = not (folder / STATE).exists(), _folder(folder, metric)
    before = place.state().number
    state = place.step(reports, seed, left_out)
    if begins:
        click.echo(f"a new pass begins in {folder}")
    _say(state, reports, left_out, afresh=not begins and state.number == before)


@rounds.command()
@click.argument("name", metavar="METRIC")
@_FOLDER
@click.argument("path", metavar="CSV", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--label", required=True, help="Column of what is to be predicted.")
def evaluate(name: str, folder: Path, path: Path, label: str) -> None:
    """Print how well the model of METRIC in FOLDER predicts the rows of a test set, CSV."""
    from ..learning.evaluation import evaluate, left_out_of, lines_of
    from ..learning.publishing import CURRENT

    figures = evaluate(Deployment().catalog.metric(name), folder / CURRENT, path, label)
    say([*lines_of(figures), *left_out_of(folder / CURRENT)])


def _folder(path: Path, metric: Metric) -> Folder:
    from ..learning.publishing import Folder

    return Folder(path, metric)


def _read(name: str) -> tuple[Metric, dict[int, Reports], LeftOut]:
    """Return the metric called *name*, and its reports by round, from the store of the settings."""
    from ..learning.publishing import reports_by_round

    site = Deployment()
    reports, left_out = reports_by_round(name, site.catalog, site.reader, time.time())
    return site.catalog.metric(name), reports, left_out


def _say(state: Pass, reports: dict[int, Reports], left_out: LeftOut, *, afresh: bool) -> None:
    """Print where a pass is; every report of the store is in a step, waits, or is left out."""
    from ..learning.rounds import interval_lines, needed, steps_otherwise, unused, waiting

    least, ready = needed(state.metric), waiting(state, reports)
    click.echo(f"{state.metric.name}: {counted(len(state.steps), 'step')} of {state.used} reports")
    if state.is_over:
        rule = "current.json is the model, with 95 % intervals, each for itself:"
        click.echo(f"every round had its step; {rule}")
        say(interval_lines(state))
    else:
        click.echo(f"round {state.number}: {ready} of at least {least} reports")
    if afresh:
        click.echo(f"round {state.number} counts afresh, as exclusions changed while reports came")
    if left := unused(state, reports):
        rule = "that came for a step that was taken, or before the model that they name"
        click.echo(f"in no step: {counted(left, 'report')} {rule}")
    say(left_out.notes)
    if otherwise := steps_otherwise(state, left_out):
        rule = "taken while other exclusions were in force, and stay as they are"
        click.echo(f"{counted(otherwise, 'step')} of {len(state.steps)} {rule}")
