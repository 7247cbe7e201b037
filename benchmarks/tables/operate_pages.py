"""The lists in pages for operators: commands, settings, and metrics for Prometheus.

Run: ``python -m benchmarks operate_pages --write``, which puts them into docs/operate; a test
compares them, so a new option, setting or metric needs no line written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Final

import click

from benchmarks.lib import page
from collector.cli import main as hearsay
from collector.core.config import Config
from collector.operations.telemetry.exposition import FAMILIES

COMMANDS: Final = page.PAGES / "operate" / "commands.md"
METRICS: Final = page.PAGES / "operate" / "operate.md"
_PLACE: Final = re.compile(r"docs/([a-z/_-]+\.md(?:#[a-z-]+)?)")


def settings_list(config: type[Config] = Config) -> str:
    """Return a line of Markdown for each setting of *config*: variable, default, meaning."""
    lines = []
    for row in config.rows().values():
        default = f"`{row.default}`" if row.default else row.unset
        lines.append(f"- `{row.name}`{f' ({default})' * (default != 'none')}: {row.help}")
    return "\n".join(lines)


def commands_text(command: click.Command = hearsay) -> str:
    """Return a line of Markdown for each command below *command*; --help has the options."""
    return "\n".join(_lines(click.Context(command, info_name="hearsay")))


def _lines(context: click.Context) -> Iterator[str]:
    command = context.command
    if not isinstance(command, click.Group) or command.invoke_without_command:
        arguments = [
            p.make_metavar(context) for p in command.params if isinstance(p, click.Argument)
        ]
        first, _, more = cleandoc(command.help or "").partition("\n\n")
        pages = dict.fromkeys(match[0] for match in _PLACE.finditer(more))
        texts = [" ".join(first.split()), *[f"See {page}." for page in pages]]
        usage = " ".join([context.command_path, *arguments])
        yield _linked(f"- `{usage}`: {' '.join(texts)}")
    if isinstance(command, click.Group):
        for name, child in sorted(command.commands.items()):
            yield from _lines(click.Context(child, context, name))


def _linked(text: str) -> str:
    """Return *text* with links to the pages that it names."""
    return _PLACE.sub(r"[\g<0>](../\1)", text)


def metrics_list() -> str:
    """Return a line of Markdown for each metric of /metrics."""
    labels = [f"{{{row.label}}}" * bool(row.label) for row in FAMILIES]
    return "\n".join(
        f"- `{row.name}{label}`: {row.help}" for row, label in zip(FAMILIES, labels, strict=True)
    )


def parts() -> tuple[tuple[Path, dict[str, str]], ...]:
    """Return the parts of each page, by name."""
    return (
        (COMMANDS, {"commands": commands_text(), "settings": settings_list()}),
        (METRICS, {"metrics": metrics_list()}),
    )


def main() -> None:
    """Print the lists, or write them."""
    page.publish(*parts())
