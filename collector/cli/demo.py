"""``hearsay demo``: the whole of it, here."""

from __future__ import annotations

import signal

import click

from .root import explained, main


@main.command()
@click.option("--once", is_flag=True, help="Print the result and exit instead of serving it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.option(
    "--devices",
    type=click.IntRange(1_000),
    default=5_000,
    show_default=True,
    help="People to simulate.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65_535),
    default=8000,
    show_default=True,
    help="Port of the result page.",
)
@click.option("--open", "show", is_flag=True, help="Open the result page in a browser.")
@explained
def demo(once: bool, as_json: bool, devices: int, port: int, show: bool) -> None:
    """Run the whole of Hearsay here, on real data, with simulated devices."""
    from ..demo.demo import run

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # tidies up as Ctrl-C does
    raise SystemExit(run(devices=devices, port=port, once=once, as_json=as_json, show=show))
