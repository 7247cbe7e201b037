"""``hearsay release``: publish a histogram, or synthetic records, with a data sheet."""

from __future__ import annotations

import secrets
import time
from importlib import import_module
from pathlib import Path
from typing import Literal

import click

from ..core.config import Config
from ..core.errors import ConfigError
from ..estimation.precision import ALPHA
from .root import explained, main

_FORMATS = ("csv", "parquet")
_MOST_SEED = (1 << 53) - 1  # every reader of JSON keeps so large an integer exactly


@main.command()
@click.argument("metric")
@click.option("--from", "first", help="First day, such as 2026-01-01; thirty days up to --to.")
@click.option("--to", "last", help="Last day; today by default.")
@click.option(
    "--by",
    multiple=True,
    help="Dimension that becomes a column, such as platform or time:week; may be repeated.",
)
@click.option(
    "--small-cells", type=click.Choice(("other", "withhold")), default="other", show_default=True,
    help="Groups with too few reports become one, or are left out and counted in the sheet.",
)  # fmt: skip
@click.option("--synthetic", type=click.IntRange(1), help="Also write so many synthetic records.")
@click.option(
    "--seed",
    type=click.IntRange(0, _MOST_SEED),
    help="Seed of the records, to make the same ones again; drawn, and told, if left out.",
)
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="csv", show_default=True, help="Files."
)
@click.option("--alpha", help=f"1 - level of the intervals; {ALPHA} by default.")
@click.option("--version", help="Published version of the window; the latest by default.")
@click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False),
    required=True,
    help="Folder to write to; made if missing.",
)
@explained
def release(
    metric: str,
    first: str | None,
    last: str | None,
    by: tuple[str, ...],
    small_cells: Literal["other", "withhold"],
    synthetic: int | None,
    seed: int | None,
    form: str,
    alpha: str | None,
    version: str | None,
    folder: str,
) -> None:
    """Write a consistent histogram of METRIC, and a data sheet, for anybody to analyse.

    What is written was computed from randomized reports alone: publishing it costs no privacy.
    """
    from ..core.catalog import Catalog
    from ..query.release.publish import Wanted
    from ..query.release.publish import release as write
    from ..storage.connect import connect_reader

    if form == "parquet":
        _require_pyarrow()
    config = Config.from_env()
    catalog = Catalog.from_files(config.registry_paths)
    given = {"from": first, "to": last, "alpha": alpha, "version": version}
    wanted = Wanted(
        metric=metric,
        parameters={name: text for name, text in given.items() if text is not None},
        by=by,
        size=synthetic,
        seed=secrets.randbelow(_MOST_SEED + 1) if seed is None else seed,
        form=form,
        small_cells=small_cells,
    )
    for path in write(wanted, catalog, connect_reader(config), time.time(), Path(folder)):
        click.echo(path)


def _require_pyarrow() -> None:
    """Raise ConfigError if the files cannot be written."""
    try:
        import_module("pyarrow.parquet")
    except ImportError:
        raise ConfigError("pyarrow", "missing", "needs pip install 'hearsay[archive]'") from None
