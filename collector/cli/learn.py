"""Commands that learn: ``hearsay learn KIND METRIC`` writes a model file from reports alone."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..estimation.precision import ALPHA
from .root import Deployment, Window, main, output_option, say, window_options

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
@click.option("--rank", type=int, help="Factors, at most; all above the noise by default.")
@output_option
def factors(metric: str, rank: int | None, output: str | None) -> None:
    """Write the factors of METRIC, a taste, by which devices recommend items to themselves."""
    from ..learning.factors import learn, summary

    crowd = read(metric, Window())
    model = crowd.noted_in(learn(crowd.part, rank))
    write(model, output, summary(model))


@learn.command("naive-bayes")
@click.argument("metric")
@click.option("--label", help="Label to predict; the last label of METRIC by default.")
@window_options
@click.option("--alpha", type=click.FloatRange(1e-9, 0.5), default=ALPHA, show_default=True,
              help="1 - level at which all intervals hold at once.")  # fmt: skip
@output_option
def naive_bayes(
    metric: str, label: str | None, window: Window, alpha: float, output: str | None
) -> None:
    """Learn how likely a label of METRIC is from the attributes of a device, one report each.

    METRIC is of the type record.  The model holds log-odds with intervals, and is refused where
    there are too few reports.
    """
    from ..learning.naive_bayes import learn as learned
    from ..learning.naive_bayes import summary
    from ..query.reading import naming

    crowd = read(metric, window)
    with naming(crowd.part.metric):
        model = crowd.noted_in(learned(crowd.part, label, alpha))
    write(model, output, summary(model))


def read(name: str, window: Window) -> Crowd:
    """Return the reports of the metric called *name*, from the store of the settings.

    Standard error says what was left out of them.
    """
    from ..learning.reading import reports_of

    site = Deployment()
    crowd = reports_of(name, window.parameters, site.catalog, site.reader, time.time())
    for note in crowd.left_out.notes:
        click.echo(note, err=True)
    return crowd


def write(model: Model, path: str | None, summary: Iterable[str]) -> None:
    """Write *model* to *path* and print its *summary*, or print the model.  Raises ConfigError."""
    from ..core.files import put_text

    if path is None:
        click.echo(model.text(), nl=False)
    else:
        put_text(Path(path), model.text(), "output")
        say(summary)
