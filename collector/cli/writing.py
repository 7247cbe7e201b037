"""Commands that write files of a registry: one to begin with, its compiled form, its handles."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Final

import click

from client_sdk.core.dataclass import replace
from client_sdk.privacy.wording import counted
from client_sdk.registry.contract import Registry, is_compiled, lock_of, read_text

from .registry import load_registry, readable, write_lock
from .registry import registry as group
from .root import output_option, registry_file

_LIFE: Final = 730  # days after which a new registry expires


@group.command()
@click.option(
    "--template", type=click.Choice(("product",)), default="product", show_default=True,
    help="Questions to begin with: a product's actives by day, week and month, and more.",
)  # fmt: skip
@click.option("--app", required=True, help="Name of the application.")
@click.option("--owner", required=True, help="The team or person responsible for the metrics.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, writable=True),
    help="File to write, which must not be there yet; standard output by default.",
)  # fmt: skip
def init(template: str, app: str, owner: str, output: str | None) -> None:
    """Write a registry to begin with, within the default caps.

    See docs/ask/actives.md#daily-weekly-and-monthly-actives.
    """
    today = datetime.now(UTC).date()
    values = {
        "app": json.dumps(app),
        "owner": json.dumps(owner, ensure_ascii=False),
        "expires": today + timedelta(days=_LIFE),
    }
    text = (files("collector.planning") / "templates" / f"{template}.toml").read_text("utf-8")
    text = Template(text).substitute(values)
    registry = readable(lambda: Registry.from_text(text))
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        with Path(output).open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise click.BadParameter("is there already", param_hint="--output") from None
    write_lock(output, registry)


@group.command("lock")
@registry_file
def lock_registry(path: str) -> None:
    """Write the lock of a registry, by which no other release chooses another mechanism.

    Lines that fit are kept.  Remove the line of a metric to let this release choose anew.
    See docs/ask/registry.md#the-lock.
    """
    from ..planning.registry_report import pinned

    text = read_text(path)
    if is_compiled(text):
        raise click.BadParameter("is compiled, and so it has no choices to lock")
    old = lock_of(path)
    registry = readable(lambda: Registry.resolved(text, old and replace(old, renews=True)))
    entries = {} if old is None else old.entries
    changed = [metric for metric in registry if old is None or not old.fits(metric)]
    for metric in changed:
        before = f" in place of {entries[metric.name]['digest']}" if metric.name in entries else ""
        click.echo(f"{metric.name}: {pinned(metric)}; digest {metric.digest.hex()}{before}")
    for name in sorted(entries.keys() - registry.metrics.keys()):
        click.echo(f"{name}: removed")
    locked = write_lock(path, registry)
    click.echo(f"{locked}: {counted(len(registry.metrics), 'metric')}, {len(changed)} chosen anew")


@group.command("compile")
@registry_file
@output_option
@click.option("--check", "only_check", is_flag=True, help="Write nothing; fail if it would change.")
def compile_registry(path: str, output: str | None, only_check: bool) -> None:
    """Write the compiled registry: one JSON document that devices in any language read fast.

    See docs/design/compiled-registry.md.
    """
    from ..planning.compilation import compiled

    text = compiled(load_registry(path))
    if output is None:
        if only_check:
            raise click.BadParameter("needs the file to compare with", param_hint="--output")
        click.echo(text, nl=False)
    elif not only_check:
        Path(output).write_text(text, encoding="ascii")
    elif not Path(output).exists() or Path(output).read_text(encoding="utf-8") != text:
        click.echo(f"{output}: is not what {path} compiles to: compile it again", err=True)
        raise SystemExit(1)


@group.command()
@registry_file
@output_option
@click.option(
    "--language", type=click.Choice(("python", "typescript")), default="python", show_default=True,
    help="Language of the application.",
)  # fmt: skip
def codegen(path: str, output: str | None, language: str) -> None:
    """Write the module by which an application records, with the types of its metrics' values.

    Names and mechanisms that the language does not have are refused.  See
    docs/guide/embed.md#typed-handles and docs/guide/typescript.md#typed-metrics.
    """
    from ..planning.codegen import module_of
    from ..planning.typescript import typescript_module

    text = (module_of if language == "python" else typescript_module)(load_registry(path))
    with click.open_file(output or "-", "w", encoding="utf-8") as file:
        file.write(text)
