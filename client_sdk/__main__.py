"""``python -m client_sdk``: what a user can see, and switch off, of an application's telemetry."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final

from .errors import HearsayError
from .looking import looking
from .opt_out import OptOuts, set_user_opt_out
from .registry import Registry
from .schema import FILE_NAME
from .secret import Secret
from .show import report_lines
from .status import consent_line, ledger_lines
from .store import Store
from .wiping import wipe

_NOTHING: Final = "nothing was recorded here"
_COMMANDS: Final = {
    "status": "who says no, what was spent of the privacy budget, and what waits",
    "show": "every report that waits or was sent lately, in words, and why it can be denied",
    "on": "take back your own no",
    "off": "say no from now on, and delete what waits, what was sent and the device's secret",
    "purge": "delete what waits, what was sent and the device's secret, and say nothing else",
}
_KEPT: Final = "The ledger of what was spent stays: without it the same could be spent again."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        for line in _run(options):
            print(line)
    except (HearsayError, OSError) as error:
        print(error, file=sys.stderr)
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
        yield from _look(folder, options)
    elif command == "purge":
        if options.yes or _agreed(folder):
            yield from _wiped(folder)
        else:
            yield "nothing was deleted"
    else:
        set_user_opt_out(folder, off=command == "off")
        yield consent_line(OptOuts(folder))
        if command == "off":
            yield from _wiped(folder)


def _look(folder: str, options: argparse.Namespace) -> Iterator[str]:
    registry = None if options.registry is None else Registry.from_file(options.registry)
    if options.command == "status":
        yield consent_line(OptOuts(folder))
    if not Store(folder).exists:
        yield _NOTHING
        return
    with looking(folder) as (tx, said):
        yield from said
        if options.command == "status":
            yield from ledger_lines(tx, registry, time.time())
        else:
            yield from report_lines(tx, registry, Secret(folder))


def _wiped(folder: str) -> Iterator[str]:
    store = Store(folder)
    if not store.has_traces:
        yield _NOTHING
        return
    try:
        with store.transaction() as tx:
            wiped = wipe(tx, store)
        store.scrub()
    finally:
        store.close()
    yield f"deleted: {wiped} reports that waited, what was sent, and the device's secret"
    yield _KEPT


def _agreed(folder: str) -> bool:
    question = f"Delete what telemetry keeps in {os.path.abspath(folder)}? [y/N] "
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False


if __name__ == "__main__":
    sys.exit(main())
