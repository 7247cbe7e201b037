"""``python -m client_sdk``: what a user can see, and switch off, of an application's telemetry."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from . import inspection
from .core.errors import HearsayError
from .privacy.wording import printable
from .registry.registry import Registry
from .storage.schema import FILE_NAME

_COMMANDS: Final = {
    "status": "who says no, what was spent of the privacy budget, and what waits",
    "show": "every report that waits or was sent lately, in words, and why it can be denied",
    "on": "take back your own no",
    "off": "say no from now on, and delete what waits, what was sent and the device's secret",
    "purge": "delete what waits, what was sent and the device's secret, and say nothing else",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        for line in _run(options):
            print(printable(line, sys.stdout.encoding))
    except (HearsayError, OSError) as error:
        print(printable(str(error), sys.stderr.encoding), file=sys.stderr)
        return 1
    except Exception as error:  # noqa: BLE001 - a traceback could show what a damaged file holds
        print(f"{FILE_NAME}: cannot be understood: {type(error).__name__}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m client_sdk", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=f"{text.capitalize()}.")
        command.add_argument(
            "--data-dir", required=True, help="the folder that the application gave the SDK"
        )
        if name in ("status", "show"):
            command.add_argument("--registry", help="its metrics.toml, which gives names and words")
        if name == "purge":
            command.add_argument("--yes", action="store_true", help="do not ask")
    return parser


def _run(options: argparse.Namespace) -> Iterator[str]:
    folder, command = options.data_dir, options.command
    if command in ("status", "show"):
        registry = None if options.registry is None else Registry.from_file(options.registry)
        look = inspection.status if command == "status" else inspection.show
        yield from look(folder, registry)
    elif command == "purge":
        agreed = options.yes or _agreed(folder)
        yield from inspection.purge(folder) if agreed else ["nothing was deleted"]
    else:
        yield from inspection.opt_in(folder) if command == "on" else inspection.opt_out(folder)


def _agreed(folder: str) -> bool:
    question = f"Delete what telemetry keeps in {os.path.abspath(folder)}? [y/N] "
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False


if __name__ == "__main__":
    sys.exit(main())
