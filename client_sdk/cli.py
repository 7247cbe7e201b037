"""For authors of command-line tools: ask for consent once, and a command for what people may do.

    import argparse
    from client_sdk import cli, command

    DATA = "~/.local/state/mytool/telemetry"

    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    cli.add_telemetry_command(commands, DATA, "metrics.toml")
    ...
    options = parser.parse_args()
    consent = cli.ask(DATA, "metrics.toml", command="mytool telemetry")
    command.configure(ENDPOINT, WRITE_KEY, "metrics.toml", data_dir=DATA, consent=consent)
    raise SystemExit(options.func(options))

``ask`` reads a file of a few bytes once there is an answer, and loads nothing for it.  The command
``mytool telemetry on|off|status|show|purge`` is made of the functions of ``client_sdk.inspection``,
so a bundled program has it too; ``click_group`` and ``typer_app`` make it for click and typer.
"""

from __future__ import annotations

import os
import sys

from .command import absolute_path
from .privacy.automation import sign_of_automation
from .privacy.opt_outs import (
    ANSWER_FILE as ANSWER_FILE,
)
from .privacy.opt_outs import (
    HEARSAY_TELEMETRY,
    answer_in,
    policy_path,
    who_says_no,
)
from .recording.handover_protocol import withdraw_permit

TYPE_CHECKING = False  # type checkers take it for true; loading typing costs more than all else

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping
    from typing import Any, Final, TypeAlias

    from .core.paths import PathOrStr, RegistryFile
    from .privacy.caps import Caps
    from .privacy.opt_outs import Answer
    from .registry.contract import Registry

    Source: TypeAlias = Registry | RegistryFile

_ACTIONS: Final = {
    "status": "who says no, what was spent of the privacy budget, and what waits",
    "show": "every report that waits or was sent lately, in words, and why it can be denied",
    "on": "take back your own no, and agree where the application asks on the terminal",
    "off": "say no from now on, and delete what waits, what was sent and the device's secret",
    "purge": "delete what waits, what was sent and the device's secret, and say nothing else",
}
PURPOSE: Final = "what a user can see, and switch off, of an application's telemetry"
_NO_QUESTIONS: Final = "do not ask"
_AS_JSON: Final = "print one JSON object"

_TYPED: Final[dict[str, Answer]] = {"y": "granted", "yes": "granted", "n": "denied", "no": "denied"}
_QUESTION: Final = "Send such reports? [yes/no, Enter to decide nothing: then nothing is sent] "
_THANKS: Final = {
    "granted": "telemetry: on",
    "denied": "telemetry: off",
    "unknown": "telemetry: off, and you are not asked again",
}


def ask(
    data_dir: PathOrStr,
    registry: Source | None = None,
    *,
    notice: str | None = None,
    caps: Caps | Mapping[str, str] | None = None,
    relay: str | None = None,
    command: str | None = None,
) -> Answer:
    """Return the user's consent; ask for it on the terminal, once in the life of *data_dir*.

    Nobody is asked without a terminal on standard input and standard error, in the background,
    under automation, with ``--help`` among the arguments, where somebody has opted out, or where
    the answer could not be kept.  Whoever
    presses Enter, or leaves, has decided nothing: that is "unknown", and the question does not come
    again.  The question is written to standard error, so that output can be piped.

    Args:   data_dir: the folder that the client is given, too.
            registry: what is asked is told by its notice, with what an answer gives away.
            notice: the text to ask with, in place of the registry's; one of them must be there.
            caps: of the application, as the client takes them; None: its defaults.
            relay: that of the client, so that the notice says who sees the user's address.
            command: how people change their mind, such as "mytool telemetry"; they are told.
    Raises: InvalidParameterError: no such folder, or neither *registry* nor *notice*.
            RegistryError: the question is due, and the registry cannot be read.
    """
    folder = absolute_path(data_dir)
    if registry is None and notice is None:
        from .core.errors import InvalidParameterError

        raise InvalidParameterError("notice", None, "must be a text where there is no registry")
    answer = remembered(folder)
    if answer is not None:
        return answer
    if _wants_help() or not _is_person():
        return "unknown"
    if who_says_no(folder, os.environ, policy_path(os.environ)) is not None:
        return "unknown"
    text = notice if registry is None or notice is not None else _notice(registry, caps, relay)
    try:
        remember(folder, "unknown")  # asked once, even if this process is killed at the question
        answer = _typed(str(text))
        remember(folder, answer)
    except OSError as error:
        _tell(f"telemetry: off, as no answer can be kept: {error}\n")
        return "unknown"
    change = f"; {command} {'off' if answer == 'granted' else 'on'} changes it" if command else ""
    _tell(f"{_THANKS[answer]}{change}\n")
    return answer


def remembered(data_dir: PathOrStr) -> Answer | None:
    """Return what was answered before; None if nobody was asked, or the file is damaged."""
    return answer_in(absolute_path(data_dir))


def remember(data_dir: PathOrStr, answer: Answer) -> None:
    """Keep *answer* for ``ask``, as if it had been typed.

    Raises: InvalidParameterError: none of the three answers.  OSError: it cannot be written.
    """
    from .core.paths import create_or_open, make_folder
    from .privacy.consent import Consent

    folder = absolute_path(data_dir)
    text = f"{Consent.of(answer)}\n"
    make_folder(folder)
    path = os.path.join(folder, ANSWER_FILE)
    with open(create_or_open(f"{path}.new"), "w", encoding="ascii") as file:
        file.truncate()
        file.write(text)
    os.replace(f"{path}.new", path)
    if answer == "denied":  # what was handed to a child until now stays unreported
        withdraw_permit(folder)


def perform(
    action: str,
    data_dir: PathOrStr,
    registry: Source | None = None,
    *,
    yes: bool = False,
    as_json: bool = False,
) -> int:
    """Do one of ``_ACTIONS``, print what it says, and return the exit status: 0, or 1 if it failed.

    ``on`` also answers yes in place of ``ask``.  For frameworks that have no function here.

    Args: registry: gives metrics their names and words; None: they are shown by digest.
          yes: ``purge`` does not ask.  as_json: ``status`` prints one JSON object.
    """
    return _print(action, data_dir, registry, yes=yes, as_json=as_json, answers=True)


def add_telemetry_command(
    subparsers: Any,
    data_dir: PathOrStr,
    registry: Source | None = None,
    *,
    name: str = "telemetry",
    dest: str = "func",
) -> argparse.ArgumentParser:
    """Add the command *name* to what ``ArgumentParser.add_subparsers`` returned; return its parser.

    Its options have an attribute *dest*: a function that takes them and returns the exit status, to
    be called as ``raise SystemExit(options.func(options))``.
    """
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name, help=PURPOSE, description=f"{PURPOSE.capitalize()}."
    )

    def run(options: argparse.Namespace) -> int:
        yes, as_json = getattr(options, "yes", False), getattr(options, "json", False)
        return perform(options.action, data_dir, registry, yes=yes, as_json=as_json)

    _add_actions(parser)
    parser.set_defaults(**{dest: run})
    return parser


def _add_actions(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Add a command for each action to *parser*; the options have it as ``action``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="COMMAND")
    parsers = []
    for name, text in _ACTIONS.items():
        action = actions.add_parser(name, help=text, description=f"{text.capitalize()}.")
        if name == "purge":
            action.add_argument("--yes", action="store_true", help=_NO_QUESTIONS)
        if name == "status":
            action.add_argument("--json", action="store_true", help=_AS_JSON)
        parsers.append(action)
    return parsers


def click_group(
    data_dir: PathOrStr, registry: Source | None = None, *, name: str = "telemetry"
) -> Any:
    """Return a ``click.Group``, for ``main.add_command(cli.click_group(...))``."""
    import click

    def command_of(action: str) -> click.Command:
        def run(yes: bool = False, as_json: bool = False) -> None:
            status = perform(action, data_dir, registry, yes=yes, as_json=as_json)
            click.get_current_context().exit(status)

        options: dict[str, list[click.Parameter]] = {
            "purge": [click.Option(["--yes"], is_flag=True, help=_NO_QUESTIONS)],
            "status": [click.Option(["--json", "as_json"], is_flag=True, help=_AS_JSON)],
        }
        help = f"{_ACTIONS[action].capitalize()}."
        return click.Command(action, callback=run, params=options.get(action), help=help)

    return click.Group(name, {a: command_of(a) for a in _ACTIONS}, help=f"{PURPOSE.capitalize()}.")


def typer_app(data_dir: PathOrStr, registry: Source | None = None) -> Any:
    """Return a ``typer.Typer``, for ``app.add_typer(cli.typer_app(...), name="telemetry")``.

    It uses only what typer itself has, whether that stands on click or brings its own.
    """
    import typer

    app = typer.Typer(help=f"{PURPOSE.capitalize()}.", no_args_is_help=True)

    def add(action: str) -> None:
        def run() -> None:
            raise typer.Exit(perform(action, data_dir, registry))

        def status(as_json: bool = typer.Option(False, "--json", help=_AS_JSON)) -> None:
            raise typer.Exit(perform(action, data_dir, registry, as_json=as_json))

        def purge(yes: bool = typer.Option(False, "--yes", help=_NO_QUESTIONS)) -> None:
            raise typer.Exit(perform(action, data_dir, registry, yes=yes))

        function = {"status": status, "purge": purge}.get(action, run)
        app.command(action, help=f"{_ACTIONS[action].capitalize()}.")(function)

    for action in _ACTIONS:
        add(action)
    return app


def main(arguments: list[str] | None = None) -> int:
    """Run one command of ``python -m client_sdk`` and return its exit status."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m client_sdk", description=f"{PURPOSE.capitalize()}."
    )
    folder = "the folder that the application gave the SDK"
    for action in _add_actions(parser):
        action.add_argument("--data-dir", required=True, help=folder)
        if action.prog.endswith(("status", "show")):
            action.add_argument("--registry", help="its metrics.toml, which gives names and words")
    options = parser.parse_args(arguments)
    settings = vars(options)
    action, data_dir = options.action, options.data_dir
    yes, as_json = settings.get("yes", False), settings.get("json", False)
    registry = settings.get("registry")
    return _print(action, data_dir, registry, yes=yes, as_json=as_json, answers=False)


def _print(
    action: str,
    data_dir: PathOrStr,
    source: Source | None,
    *,
    yes: bool,
    as_json: bool,
    answers: bool,
) -> int:
    """Print what *action* says; *answers*: whether ``on`` is a yes in any application."""
    from .core.errors import HearsayError
    from .privacy.wording import printable

    try:
        if action == "on" and (answers or remembered(data_dir) is not None):
            remember(data_dir, "granted")  # else the application asks, and its answer stands
        for line in _lines(action, data_dir, source, yes=yes, as_json=as_json):
            print(printable(line, sys.stdout.encoding))
    except (HearsayError, OSError) as error:
        return _failed(str(error))
    except Exception as error:  # noqa: BLE001 - a traceback could show what a damaged file holds
        from .storage.schema import FILE_NAME

        return _failed(f"{FILE_NAME}: cannot be understood: {type(error).__name__}")
    return 0


def _failed(why: str) -> int:
    from .privacy.wording import printable

    print(printable(why, sys.stderr.encoding), file=sys.stderr)
    return 1


def _lines(
    action: str, data_dir: PathOrStr, source: Source | None, *, yes: bool, as_json: bool
) -> Iterator[str]:
    from . import inspection

    if action in ("status", "show"):
        if as_json:
            import json

            yield json.dumps(inspection.figures(data_dir, source))
            return
        look = inspection.status if action == "status" else inspection.show
        yield from look(data_dir, source)
    elif action == "purge":
        agreed = yes or _agreed(absolute_path(data_dir))
        yield from inspection.purge(data_dir) if agreed else ["nothing was deleted"]
    elif action in ("on", "off"):
        change = inspection.opt_in if action == "on" else inspection.opt_out
        yield from change(data_dir)
    else:
        from .core.errors import InvalidParameterError

        raise InvalidParameterError("action", action, f"must be one of {', '.join(_ACTIONS)}")


def _agreed(folder: str) -> bool:
    question = f"Delete what telemetry keeps in {folder}? [y/N] "
    from .privacy.wording import printable

    try:
        return input(printable(question, sys.stdout.encoding)).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _notice(source: Source, caps: Caps | Mapping[str, str] | None, relay: str | None) -> str:
    from .privacy.caps import Caps
    from .privacy.wording import notice, with_address
    from .registry.contract import Registry

    caps = caps if isinstance(caps, Caps) else Caps(**(caps or {}))
    return with_address(notice(Registry.of(source), caps), relay)


def _wants_help() -> bool:
    """Whether this run only prints help: a group of click begins it as any other."""
    arguments = getattr(sys, "argv", [])[1:]
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--help" in own


def _is_person() -> bool:
    """Whether somebody sits at a terminal and can be asked: not a script, a job or a service."""
    # a written yes lets a build record, and still nobody sits there
    if sign_of_automation(None, {**os.environ, HEARSAY_TELEMETRY: ""}) is not None:
        return False
    try:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        if hasattr(os, "tcgetpgrp"):  # to read in the background would stop the program
            return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (AttributeError, OSError, ValueError):  # no stream, a closed one, or somebody's terminal
        return False
    return True


def _typed(notice: str) -> Answer:
    """Ask with *notice* and return what is typed."""
    _tell(f"{notice.rstrip()}\n\n{_QUESTION}")
    try:
        line = sys.stdin.readline()
    except (OSError, ValueError):
        line = ""
    if not line.endswith("\n"):
        _tell("\n")  # the terminal was closed, or the end of the input was typed
    return _TYPED.get(line.strip().lower(), "unknown")


def _tell(text: str) -> None:
    from .privacy.wording import printable

    sys.stderr.write(printable(text, sys.stderr.encoding))
    sys.stderr.flush()
