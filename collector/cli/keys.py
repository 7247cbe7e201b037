"""``hearsay keys``: credentials of devices, people and programs; and ``hearsay audit-log``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from client_sdk.core.epoch import day_of

from ..core.credentials import KINDS, MAX_READ_DAYS, MAX_SERVICE_DAYS, ROLES, VIEWER
from ..core.text_tables import table_lines
from .root import Deployment, json_option, main, metrics_option, show

_HEADINGS = ("id", "kind", "role", "app", "metrics", "expires", "reports a day", "state", "label")


@main.group()
def keys() -> None:
    """Make, list, renew and revoke keys and tokens, as a user of the store who may."""


@keys.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.option("--app", help="App of a registry; needed if there are several.")
@metrics_option
@click.option(
    "--role", "roles", multiple=True,
    help=f"What a read token opens, of {', '.join(ROLES)}; {VIEWER} by default. APP=ROLE for"
    " one app of several, which may be repeated.",
)  # fmt: skip
@click.option(
    "--service", is_flag=True,
    help="Of a read or admin token: for a program, such as Grafana or Prometheus. It opens the API"
    " and /metrics, and no page.",
)  # fmt: skip
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    help="Days it is good for. Of a write or gateway key up to 3650, for ever by default; of a"
    f" read or admin token up to {MAX_READ_DAYS}, with --service up to {MAX_SERVICE_DAYS}: the"
    " defaults.",
)
@click.option("--quota", type=click.IntRange(1), help="Reports a UTC day, of a write key.")
@click.option("--label", default="", help="A person or purpose, to be shown in the list.")
def create(roles: tuple[str, ...], **fields: Any) -> None:
    """Make a key or token and print it, this once: only its digest is kept.

    See docs/operate/security.md#keys-and-tokens.
    """
    from ..operations.issuing import CredentialRequest, issue

    site, by_app = Deployment(), _roles_by_app(roles)
    role = roles[0] if roles and not by_app else None
    request = CredentialRequest(role=role, roles=by_app or None, **fields)
    secret, name = issue(request, site.credentials, site.catalog, _today())
    click.echo(secret)
    click.echo(f"id {name}; it works within 5 s, and is not shown again", err=True)


def _roles_by_app(roles: Sequence[str]) -> dict[str, str]:
    """Return the roles that are given as APP=ROLE.  Raises click.UsageError."""
    by_app = dict[str, str]()
    for app, _, role in (text.rpartition("=") for text in roles):
        if role not in ROLES or (len(roles) > 1 and not app) or app in by_app:
            rule = f"one of {', '.join(ROLES)}, or APP=ROLE, one an app"
            raise click.UsageError(f"--role must be {rule}")
        if app:
            by_app[app] = role
    return by_app


@keys.command("list")
@json_option
def list_credentials(as_json: bool) -> None:
    """List all keys and tokens, also revoked ones and keys of the environment; no secret."""
    from ..core.credentials import REPORT, id_of
    from ..operations.issuing import day_text, listed

    site, rows = Deployment(), []
    own = [
        (id_of(digest), "environment", credential)
        for digest, credential in site.config.credentials.items()
        if REPORT in credential.scopes  # what they send is kept apart by these ids, too
    ]
    for name, state, credential in (*listed(site.credentials, _today()), *own):
        chosen = None if credential.metrics is None else sorted(credential.metrics)
        rows.append({**asdict(credential), "id": name, "state": state, "metrics": chosen})
        rows[-1]["expires"] = day_text(credential.expires)
    lines = table_lines([_HEADINGS, *map(_cells, rows)], "<" * len(_HEADINGS))
    show({"credentials": rows} if as_json else None, lines)


@keys.command()
@click.argument("id")
def revoke(id: str) -> None:
    """Revoke the key or token ID of the list: within 5 s nothing accepts it."""
    from ..operations.issuing import revoke as end

    credential = end(id, Deployment().credentials)
    click.echo(f"revoked: {credential.kind} {id}")


@keys.command()
@click.argument("id")
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    help=f"Days from today for which it is good; {MAX_READ_DAYS} by default, or"
    f" {MAX_SERVICE_DAYS} of a program's.",
)
def renew(id: str, days: int | None) -> None:
    """Let the key or token ID of the list be good for longer; its secret stays as it is."""
    from ..operations.issuing import day_text
    from ..operations.issuing import renew as prolong

    credential = prolong(id, days, Deployment().credentials, _today())
    click.echo(f"renewed: {credential.kind} {id}, good until {day_text(credential.expires)}")


@keys.command("quota")
@click.argument("id")
@click.argument("reports", type=click.IntRange(1), required=False)
def set_quota(id: str, reports: int | None) -> None:
    """Let the write key ID send so many REPORTS a UTC day; without REPORTS it has no quota."""
    from ..operations.issuing import set_quota as limit

    limit(id, reports, Deployment().credentials, _today())
    click.echo(f"quota: {'none' if reports is None else f'{reports:,} a day'}, key {id}")


@main.command("audit-log")
@click.option(
    "--days", type=click.IntRange(1, 90), default=7, show_default=True, help="Days up to today."
)
@json_option
def show_questions(days: int, as_json: bool) -> None:
    """Show queries by person, as counts of a day; the collector needs HEARSAY_AUDIT=1.

    See docs/operate/security.md#who-asked-for-what.
    """
    from ..operations.issuing import day_text
    from ..operations.questions import QuestionRow, question_rows

    today = _today()
    rows = list(question_rows(Deployment().credentials, range(today - days + 1, today + 1)))
    records = [{**row._asdict(), "day": day_text(row.day)} for row in rows]
    cells = [(day_text(row.day), row.who, row.verb, row.metric, f"{row.times:,}") for row in rows]
    lines = table_lines([QuestionRow._fields, *cells], "<<<<>")
    show({"queries": records} if as_json else None, lines)


def _cells(row: dict[str, object]) -> tuple[str, ...]:
    metrics = row["metrics"]
    listed_metrics = ",".join(metrics) if isinstance(metrics, list) else "all"
    app, role, quota = row["app"] or "all", row["role"] or "-", row["quota"] or "-"
    if isinstance(by_app := row["roles"], dict):
        app, role = ",".join(by_app), ",".join(by_app.values())
    kind = f"{row['kind']} (program)" if row["service"] else row["kind"]
    parts = (row["id"], kind, role, app, listed_metrics, row["expires"], quota)
    return tuple(map(str, (*parts, row["state"], row["label"])))


def _today() -> int:
    return day_of(time.time())
