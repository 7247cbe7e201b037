"""Commands that learn: ``hearsay learn KIND METRIC`` writes a model file from reports alone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..estimation.precision import ALPHA
from .root import explained, main, window_options

if TYPE_CHECKING:
    from client_sdk.learning.model import Model

    from ..learning.reading import Crowd


@main.group()
def learn() -> None:
    """Learn small public models from reports.

    What is written is computed from randomized reports alone: learning costs no more privacy, and
    the file may be published.
    """


@learn.command()
@click.argument("metric")
@click.option("--rank", type=int, help="Factors, at most; all above the noise if left out.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, writable=True),
    help="File to write; standard output by default.",
)  # fmt: skip
@explained
def factors(metric: str, rank: int | None, output: str | None) -> None:
    """Write the factors of METRIC, a taste, by which devices recommend items to themselves."""
    from ..learning.factors import learn, summary

    crowd = read(metric, {})
    model = crowd.noted_in(learn(crowd.part, rank))
    write(model, output)
    if output is not None:
        for line in summary(model):
            click.echo(line)


@learn.command("naive-bayes")
@click.argument("metric")
@click.option("--label", help="Whose chance the model tells; the last label of METRIC if left out.")
@window_options
@click.option("--alpha", type=click.FloatRange(1e-9, 0.5), default=ALPHA, show_default=True,
              help="1 - level at which all intervals hold at once.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(dir_okay=False, writable=True),
              help="File to write; standard output by default.")  # fmt: skip
@explained
def naive_bayes(metric: str, label: str | None, words: str | None, first: str | None,
                last: str | None, alpha: float, output: str | None) -> None:  # fmt: skip
    """Learn how likely a label of METRIC is from the attributes of a device, one report each.

    METRIC is of the type record.  The model holds log-odds with intervals, and is refused where
    there are too few reports.
    """
    from ..learning.naive_bayes import learn as learned
    from ..learning.naive_bayes import summary
    from ..query.reading import naming

    crowd = read(metric, {"range": words, "from": first, "to": last})
    with naming(crowd.part.metric):
        model = crowd.noted_in(learned(crowd.part, label, alpha))
    write(model, output)
    if output is not None:
        for line in summary(model):
            click.echo(line)


def read(name: str, window: Mapping[str, str | None]) -> Crowd:
    """Return the reports of the metric called *name*, from the store of the settings.

    What was left out of them is said on standard error.
    """
    from ..core.catalog import Catalog
    from ..core.config import Config
    from ..learning.reading import reports_of
    from ..storage.connect import connect_reader

    config = Config.from_env()
    catalog = Catalog.from_files(config.registry_paths)
    days = {key: day for key, day in window.items() if day is not None}
    crowd = reports_of(name, days, catalog, connect_reader(config), time.time())
    for note in crowd.left_out.notes:
        click.echo(note, err=True)
    return crowd


def write(model: Model, path: str | None) -> None:
    """Write the file of *model* to *path*, or to standard output.  Raises ConfigError."""
    from ..core.files import put_text

    if path is None:
        click.echo(model.text(), nl=False)
    else:
        put_text(Path(path), model.text(), "output")
