"""A self-hosted wiki: each installation reports about itself, however many processes serve it.

    export WIKI_COLLECTOR=http://127.0.0.1:8000 WIKI_WRITE_KEY=KEY WIKI_TELEMETRY=granted
    flask --app examples/web_app.py run
    flask --app examples/web_app.py send-telemetry     # now, rather than within some hours

The person measured is the operator of the installation, who says in its settings whether it may
report.  All processes share one folder, hence one ledger: together they report once a week.
"""

from __future__ import annotations

import os
from pathlib import Path

import click
from flask import Flask, abort
from wiki_metrics import Metrics

from client_sdk import Client

REGISTRY = Path(__file__).with_name("web_metrics.toml")
PAGES = {"home": "Welcome.", "help": "Ask somebody."}


def create_app() -> Flask:
    """Return the wiki."""
    app = Flask(__name__)
    client = Client(
        os.environ["WIKI_COLLECTOR"],
        os.environ["WIKI_WRITE_KEY"],
        REGISTRY,
        consent=os.environ.get("WIKI_TELEMETRY", "unknown"),
        data_dir=os.environ.get("WIKI_DATA", "wiki-data"),
        segment={"edition": "community"},
    )
    metrics = Metrics(client)

    @app.before_request
    def report() -> None:
        """Say what this installation is like.  All but the first time of a week is refused."""
        metrics.uses_search.record("SEARCH_INDEX" in app.config)
        metrics.storage.engine.record("sqlite")
        metrics.storage.pages.record(len(PAGES))

    @app.get("/<name>")
    def page(name: str) -> str:
        """Show a page."""
        return PAGES.get(name) or abort(404)

    @app.cli.command("send-telemetry")
    def send_telemetry() -> None:
        """Send what waits, now."""
        client.flush()
        click.echo({reason: count for reason, count in client.stats().items() if count})

    return app
