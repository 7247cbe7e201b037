"""Commands of operators: ``hearsay doctor``, ``check-config``, ``fsck``, ``quarantine``, ``keys``.

They say what is wrong before a user does, check the store, decide what is set aside, and issue keys
and tokens.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from client_sdk.core.epoch import ONCE
from client_sdk.privacy.wording import counted

from ..core.config import Config
from ..core.credentials import KINDS, MAX_READ_DAYS, MAX_SERVICE_DAYS, ROLES, VIEWER
from ..core.text_tables import table_lines
from .root import explained, json_option, main

if TYPE_CHECKING:
    from ..operations.doctor.findings import Finding
    from ..operations.issuing import CredentialRequest
    from ..storage.records import CredentialStore

_strict = click.option("--strict", is_flag=True, help="Exit with status 1 on a warning, too.")


@main.command()
@_strict
@json_option
@explained
def doctor(strict: bool, as_json: bool) -> None:
    """Ask the store how the deployment does; exit status 1 if something is at fault."""
    from ..operations.doctor.checkup import check_deployment

    _tell(check_deployment(Config.from_env()), strict, as_json)


@main.command("check-config")
@_strict
@json_option
@explained
def check_config(strict: bool, as_json: bool) -> None:
    """Check settings and registries; exit status 1 if it would not start.

    Where the store answers, its reports are compared with the registries.
    """
    from ..core.catalog import Catalog
    from ..operations.doctor.checkup import check_settings, shown
    from ..operations.doctor.definitions import look

    config = Config.from_env()
    findings = [*check_settings(config), *_of_boards(config), *_of_watches(config)]
    findings += look(config, Catalog.from_files(config.registry_paths))
    if not as_json:
        for line in shown(config):
            click.echo(line)
    _tell(findings, strict, as_json)


def _of_boards(config: Config) -> Iterator[Finding]:
    """Yield what is found of the file of boards: one that is wrong is raised, as at the start."""
    from ..core.catalog import Catalog
    from ..operations.doctor.findings import GOOD, WARNING, Finding
    from ..workspace.documents import read_file
    from ..workspace.shelf import knows

    if not config.boards:
        return
    file, catalog = read_file(config.boards), Catalog.from_files(config.registry_paths)
    counts = len(file.boards), len(file.questions), len(file.notes)
    words = map(counted, counts, ("board", "saved question", "note"))
    yield Finding(GOOD, "boards", ", ".join(words))
    names = dict.fromkeys(
        name
        for kind in (file.boards.values(), file.questions.values(), file.notes)
        for content in kind
        for name in content.metrics
    )
    if unknown := [name for name in names if not knows(catalog, name)]:
        what = f"{config.boards} names metrics that no registry has: {', '.join(unknown)}"
        why = "their panels have no answer"
        yield Finding(WARNING, "boards", what, why, "correct the names, or remove the panels")


def _of_watches(config: Config) -> Iterator[Finding]:
    """Yield what is found of the file of watches: one that is wrong is raised, as at the start."""
    from ..core.catalog import Catalog
    from ..operations.doctor.findings import GOOD, WARNING, Finding
    from ..workspace.watch.evaluation import metric_of
    from ..workspace.watch.rules import read as read_watches

    if not config.watches:
        return
    file, catalog = read_watches(config.watches), Catalog.from_files(config.registry_paths)
    number = len(file.watch)
    yield Finding(GOOD, "watches", f"{number} watch{'' if number == 1 else 'es'}")
    metrics = {watch.name: metric_of(watch, catalog) for watch in file.watch}
    never = [name for name, of in metrics.items() if of is None or of.every == ONCE]
    if never:
        what = f"{config.watches} has watches that can never be computed: {', '.join(never)}"
        why = "no registry has their metric, or it is reported once"
        yield Finding(WARNING, "watches", what, why, "run hearsay watch --check, and correct them")


def _tell(findings: Sequence[Finding], strict: bool, as_json: bool) -> None:
    """Print *findings* and end with the status that it deserves."""
    from ..operations.doctor.findings import FAULT, WARNING, worst

    level = worst(findings)
    if as_json:
        click.echo(
            json.dumps({"worst": level, "findings": [finding.row() for finding in findings]})
        )
    else:
        for finding in findings:
            click.echo("\n".join(finding.lines()))
    raise SystemExit(level == FAULT or (strict and level == WARNING))


@main.command()
@click.option(
    "--accept-missing",
    is_flag=True,
    help="First count the reports of tallies that somebody deleted as lost. Stop the workers.",
)
@explained
def fsck(accept_missing: bool) -> None:
    """Compare what the store holds with what it has counted; exit status 1 if they differ."""
    from ..core.catalog import Catalog
    from ..storage.connect import inspect
    from ..worker.fsck import accept_missing as accept
    from ..worker.fsck import fsck as findings

    config = Config.from_env()
    catalog = Catalog.from_files(config.registry_paths)
    inspection = inspect(config)
    if accept_missing:
        click.echo(f"{counted(sum(accept(inspection)), 'report')} counted as lost")
    faults = 0
    for finding in findings(inspection, catalog.by_digest):
        faults += 1
        click.echo(finding)
    for shard, counters in enumerate(inspection.counters()):
        states = ("accepted", "folded", "pending", "quarantined", "dropped")
        counts = ((state, getattr(counters, state)) for state in states)
        text = ", ".join(f"{count.reports} {state}" for state, count in counts)
        gone = f"{counters.pruned_reports} pruned, {counters.lost_reports} lost"
        click.echo(f"shard={shard}: reports {text}; {counters.late_reports} folded late; {gone}")
    if faults:
        raise click.ClickException(counted(faults, "fault"))


@main.group()
def quarantine() -> None:
    """Work with the uploads that were set aside."""


@quarantine.command("list")
@explained
def list_entries() -> None:
    """List what is set aside: name, reports, bytes, reason."""
    from ..storage.connect import inspect
    from ..worker.quarantine import listed, name_of

    for entry in listed(inspect(Config.from_env())):
        click.echo(f"{name_of(entry)}  {entry.reports}  {len(entry.entry)}  {entry.reason}")


@quarantine.command()
@click.argument("entries", nargs=-1, required=True)
@explained
def retry(entries: tuple[str, ...]) -> None:
    """Queue ENTRIES again, or "all", for instance after mending what refused them."""
    from ..storage.connect import inspect
    from ..worker.quarantine import retry as run

    click.echo(f"{run(inspect(Config.from_env()), entries)} queued again")


@quarantine.command()
@click.argument("entries", nargs=-1, required=True)
@click.confirmation_option(prompt="Their reports will never be counted. Go on?")
@explained
def drop(entries: tuple[str, ...]) -> None:
    """Delete ENTRIES, or "all"; their number stays in the counts."""
    from ..storage.connect import inspect
    from ..worker.quarantine import drop as run

    click.echo(f"{run(inspect(Config.from_env()), entries)} dropped")


_HEADINGS = ("id", "kind", "role", "app", "metrics", "expires", "reports a day", "state", "label")


@main.group()
def keys() -> None:
    """Make, list, renew and revoke keys and tokens; REDIS_URL must name a user who may."""


@keys.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.option("--app", help="App of a registry; needed if there are several.")
@click.option("--metric", "metrics", multiple=True, help="Only this one; may be repeated.")
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
@click.option("--label", default="", help="For whom or what, to be shown in the list.")
@explained
def create(
    kind: str,
    app: str | None,
    metrics: tuple[str, ...],
    roles: tuple[str, ...],
    service: bool,
    days: int | None,
    quota: int | None,
    label: str,
) -> None:
    """Make a key or token and print it, this once: only its digest is kept."""
    from ..operations.issuing import CredentialRequest

    by_app = _roles_by_app(roles)
    secret, name = _issue(
        CredentialRequest(
            kind=kind,
            app=app,
            metrics=metrics,
            role=roles[0] if roles and not by_app else None,
            days=days,
            quota=quota,
            label=label,
            roles=by_app or None,
            service=service,
        )
    )
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
@explained
def show(as_json: bool) -> None:
    """List all keys and tokens, revoked ones too; none of their secrets."""
    from ..core.credentials import REPORT, id_of
    from ..operations.issuing import day_text, listed

    config, rows = Config.from_env(), []
    own = [
        (id_of(digest), "environment", credential)
        for digest, credential in config.credentials.items()
        if REPORT in credential.scopes  # what they send is kept apart by these ids, too
    ]
    for name, state, credential in (*listed(_store(config), _today()), *own):
        chosen = None if credential.metrics is None else sorted(credential.metrics)
        rows.append({**asdict(credential), "id": name, "state": state, "metrics": chosen})
        rows[-1]["expires"] = day_text(credential.expires)
    if as_json:
        click.echo(json.dumps({"credentials": rows}))
        return
    for line in table_lines([_HEADINGS, *map(_cells, rows)], "<" * len(_HEADINGS)):
        click.echo(line)


@keys.command()
@click.argument("id")
@explained
def revoke(id: str) -> None:
    """Revoke the key or token ID of the list: within 5 s nothing accepts it."""
    from ..operations.issuing import revoke as end

    credential = end(id, _store(Config.from_env()))
    click.echo(f"revoked: {credential.kind} {id}")


@keys.command()
@click.argument("id")
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    help=f"Days from today for which it is good; {MAX_READ_DAYS} by default, or"
    f" {MAX_SERVICE_DAYS} of a program's.",
)
@explained
def renew(id: str, days: int | None) -> None:
    """Let the key or token ID of the list be good for longer; its secret stays as it is."""
    from ..operations.issuing import day_text
    from ..operations.issuing import renew as prolong

    credential = prolong(id, days, _store(Config.from_env()), _today())
    click.echo(f"renewed: {credential.kind} {id}, good until {day_text(credential.expires)}")


@keys.command("quota")
@click.argument("id")
@click.argument("reports", type=click.IntRange(1), required=False)
@explained
def set_quota(id: str, reports: int | None) -> None:
    """Let the write key ID send so many REPORTS a UTC day; any number if left out."""
    from ..operations.issuing import set_quota as limit

    limit(id, reports, _store(Config.from_env()), _today())
    click.echo(f"quota: {'none' if reports is None else f'{reports:,} a day'}, key {id}")


@main.command("asked")
@click.option(
    "--days", type=click.IntRange(1, 90), default=7, show_default=True, help="Days up to today."
)
@json_option
@explained
def show_questions(days: int, as_json: bool) -> None:
    """Show who asked for what, as counts of a day; only with HEARSAY_AUDIT=1 on the collector."""
    from ..operations.issuing import day_text
    from ..operations.questions import QuestionRow, question_rows

    today = _today()
    rows = list(question_rows(_store(Config.from_env()), range(today - days + 1, today + 1)))
    if as_json:
        records = [{**row._asdict(), "day": day_text(row.day)} for row in rows]
        click.echo(json.dumps({"asked": records}))
        return
    cells = [(day_text(row.day), row.who, row.verb, row.metric, f"{row.times:,}") for row in rows]
    for line in table_lines([QuestionRow._fields, *cells], "<<<<>"):
        click.echo(line)


def _cells(row: dict[str, object]) -> tuple[str, ...]:
    metrics = row["metrics"]
    listed_metrics = ",".join(metrics) if isinstance(metrics, list) else "all"
    app, role, quota = row["app"] or "all", row["role"] or "-", row["quota"] or "-"
    if isinstance(by_app := row["roles"], dict):
        app, role = ",".join(by_app), ",".join(by_app.values())
    kind = f"{row['kind']} (program)" if row["service"] else row["kind"]
    parts = (row["id"], kind, role, app, listed_metrics, row["expires"], quota)
    return tuple(map(str, (*parts, row["state"], row["label"])))


def _issue(request: CredentialRequest) -> tuple[str, str]:
    from ..core.catalog import Catalog
    from ..operations.issuing import issue

    config = Config.from_env()
    catalog = Catalog.from_files(config.registry_paths)
    return issue(request, _store(config), catalog, _today())


def _store(config: Config) -> CredentialStore:
    from ..storage.records import CredentialStore

    return CredentialStore.of(config)


def _today() -> int:
    from client_sdk.core.epoch import day_of

    return day_of(time.time())
