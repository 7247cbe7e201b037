"""``hearsay issuer``, which gives one-time tokens, and ``hearsay issuer-keys``."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from client_sdk.core.epoch import day_of, epoch_label
from client_sdk.wire.private_token import EVERY, MAX_TOKENS, MAX_WEEKS, Plan, week_of

from ..core.errors import MissingPackageError
from .root import listen_options, main

_PATH = click.Path(dir_okay=False, path_type=Path)


@contextmanager
def _packages() -> Iterator[None]:
    """Raise MissingPackageError without the packages of an issuer, which collectors do not need."""
    try:
        yield
    except ImportError as error:
        rule = "is not installed: pip install 'hearsay-collector[issuer]'"
        raise MissingPackageError(f"{error.name}: {rule}") from None


@main.group("issuer-keys")
def group() -> None:
    """Make the keys of an issuer, and print what applications and devices need of it."""


@group.command("new")
@click.argument("secret", type=_PATH)
@click.option("--name", required=True, help="Host of the issuer, perhaps with a port.")
@click.option(
    "--weeks",
    type=click.IntRange(2, MAX_WEEKS),
    default=53,
    show_default=True,
    help="Keys to make, one a week from this one on.",
)
@click.option(
    "--tokens",
    type=click.IntRange(1, MAX_TOKENS),
    default=16,
    show_default=True,
    help="Tokens that each identity gets a week.",
)
@click.option("--public", type=_PATH, help="File for collectors; SECRET.public by default.")
def new(secret: Path, name: str, weeks: int, tokens: int, public: Path | None) -> None:
    """Make the keys of an issuer: the file SECRET, and one for collectors.

    Prints the digest that applications are built with.  Keys are never replaced: before the last
    week, make others in another file, and build applications with both digests.
    """
    with _packages():
        from ..issuer.keys import make_keys, write_keys
    public = public or secret.with_name(f"{secret.name}.public")
    keys = make_keys(name, week_of(day_of(time.time())), weeks, tokens)
    write_keys(keys, secret, public)
    click.echo(f"{secret}: for hearsay issuer; no other user may read it")
    click.echo(f"{public}: for collectors, as HEARSAY_ISSUER_KEYS")
    _show(keys.plan)


@group.command("show")
@click.argument("secret", type=_PATH)
def show(secret: Path) -> None:
    """Print what applications are built with, of the keys in the file SECRET."""
    with _packages():
        from ..issuer.keys import read_keys
    _show(read_keys(secret).plan)


@group.command("attestation")
@click.argument("secret", type=_PATH)
@click.argument("names", nargs=-1, required=True)
def attestation(secret: Path, names: tuple[str, ...]) -> None:
    """Print the attestation of each machine of NAMES, for an issuer with the shared SECRET."""
    from ..issuer.attestation import SharedSecret

    shared = SharedSecret.of_file(secret)
    for name in names:
        click.echo(shared.attestation_of(name))


def _show(plan: Plan) -> None:
    last = epoch_label(EVERY, plan.first + len(plan.key_ids) - 1)
    click.echo(f"plan {plan.digest}: {plan.tokens} tokens a week, until the week of {last}")


@main.command()
@click.argument("secret", type=_PATH)
@click.option(
    "--attest",
    required=True,
    help="What attests an identity: secret=FILE, callback=URL or python=MODULE:NAME.",
)
@click.option(
    "--state",
    type=_PATH,
    default=Path("issuer.sqlite3"),
    show_default=True,
    help="File with the number of tokens that each identity has had this week.",
)
@listen_options(8200)
def issuer(secret: Path, attest: str, state: Path, host: str, port: int) -> None:
    """Give one-time tokens to attested identities, by the keys in SECRET, until stopped.

    A token shows that the issuer vouched for somebody.  It is worth as much as the attestation:
    without accounts, licences or managed machines behind it, it is a limit of rate.  See
    docs/guide/tokens.md.
    """
    with _packages():
        from ..issuer.keys import read_keys
    from ..core.logs import configure
    from ..issuer.allowance import Allowance
    from ..issuer.attestation import attestation_of
    from ..issuer.server import ROLE, IssuerApp, serve

    configure(ROLE)
    keys, way = read_keys(secret), attestation_of(attest)
    allowance = Allowance(state, keys.plan.tokens)
    try:
        asyncio.run(serve(IssuerApp(keys, way, allowance, time.time), host, port))
    finally:
        allowance.close()
    logging.shutdown()
    os._exit(0)  # threads of the server that call into an interpreter which ends would abort it
