"""``hearsay audit``: attack the mechanisms as installed."""

from __future__ import annotations

import click

from .root import explained, main


@main.command()
@click.option("--mechanism", "wanted", multiple=True, help="Only this one; may be repeated.")
@click.option("--epsilon", default="1", show_default=True, help="Epsilon to claim, per report.")
@click.option(
    "--domain-size", default=16, show_default=True, help="Items, or grid points of a number."
)
@click.option("--draws", default=200_000, show_default=True, help="Reports for either side.")
@click.option("--pairs", default=4, show_default=True, help="Pairs of values that share them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@explained
def audit(
    wanted: tuple[str, ...],
    epsilon: str,
    domain_size: int,
    draws: int,
    pairs: int,
    as_json: bool,
) -> None:
    """Attack the mechanisms as installed here; exit status 1 if one tells more than it claims."""
    from ..audit.audit import mechanisms_of, run

    mechanisms = mechanisms_of(wanted, epsilon, domain_size)
    raise SystemExit(run(mechanisms, draws, as_json, click.echo, pairs))
