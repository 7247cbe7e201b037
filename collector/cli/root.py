"""The command itself, and what its groups share: options, the deployment, how answers are shown."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable
from functools import cached_property, wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, TypeVar

import click

# Before numpy is loaded: our matrices are small, and threads for them cost more than they save.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from client_sdk import __version__
from client_sdk.core.errors import HearsayError

from ..core.catalog import Catalog
from ..core.config import Config
from ..core.errors import CollectorError, ConfigError, StorageFullError, StorageUnavailableError
from ..core.text_tables import plain, plain_text

if TYPE_CHECKING:
    from ..client import Client
    from ..storage.documents import ExclusionStore
    from ..storage.inspection import RedisInspection
    from ..storage.records import CredentialStore
    from ..storage.redis import RedisStorage

P = ParamSpec("P")
T = TypeVar("T")


class _Explained(click.Group):
    """A group whose commands end with one line and exit status 1 on our errors, not a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command of *ctx*.  Raises click.ClickException."""
        try:
            return super().invoke(ctx)
        except (HearsayError, CollectorError) as error:
            raise click.ClickException(plain(str(error))) from error


@click.group("hearsay", cls=_Explained)
@click.version_option(__version__, prog_name="hearsay")
def main() -> None:
    """Telemetry that its users can deny."""


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
)
strict_option = click.option("--strict", is_flag=True, help="Exit with status 1 on a warning, too.")
yes_option = click.option(
    "--yes", is_flag=True, help="Delete; without it only show what would be deleted."
)
metrics_option = click.option(
    "--metric", "metrics", multiple=True, help="Only this metric; may be repeated."
)
output_option = click.option(
    "-o", "--output", type=click.Path(dir_okay=False, writable=True),
    help="File to write; standard output by default.",
)  # fmt: skip
sign_option = click.option(
    "--sign", "key", required=True, type=click.Path(dir_okay=False, path_type=Path),
    help="File of the secret key.",
)  # fmt: skip
registry_file = click.argument("path", type=click.Path(exists=True, dir_okay=False))
PORT: Final = click.IntRange(1, 65_535)


def setting_option(field: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return the option that wins over a setting, also in the processes that inherit it."""
    row = Config.rows()[field]

    def override(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is not None:
            row.parse(f"--{field}", value)
            os.environ[row.name] = value

    return click.option(
        f"--{field}", expose_value=False, callback=override,
        help=f"{plain_text(row.help).capitalize()}; {row.name}, or {row.default}.",
    )  # fmt: skip


def every_option(least: int, most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return the option ``every`` of a command that goes on, of *least* to *most* seconds."""
    return click.option(
        "--every", type=click.IntRange(least, most), metavar="SECONDS",
        help="Run again and again, with this pause between two runs.",
    )  # fmt: skip


def listen_options(port: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return the options ``host`` and ``port`` of a server that listens on *port* by default."""

    def add(command: Callable[P, T]) -> Callable[P, T]:
        command = click.option(
            "--port", type=PORT, default=port, show_default=True, help="Port to listen on."
        )(command)
        return click.option(
            "--host", default="127.0.0.1", show_default=True, help="Address to listen on."
        )(command)

    return add


class Window(NamedTuple):
    """The days that a question is about: a range in words, or two days, or neither."""

    words: str | None = None
    first: str | None = None
    last: str | None = None

    @property
    def date_range(self) -> str | list[str] | None:
        """The window as a question holds it."""
        return self.words if self.first is None else [self.first, self.last or ""]

    @property
    def parameters(self) -> dict[str, str]:
        """The window as parameters of an address."""
        named = zip(("range", "from", "to"), self, strict=True)
        return {name: text for name, text in named if text is not None}


def window_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options of a window; *command* takes it as ``window``."""

    @wraps(command)
    def run(
        *args: object, words: str | None, first: str | None, last: str | None, **options: object
    ) -> T:
        if (first is None) != (last is None):
            raise click.UsageError("--from and --to go together; or take --range")
        if first is not None and words is not None:
            raise click.UsageError("take --range, or --from and --to")
        return command(*args, window=Window(words, first, last), **options)

    run = click.option("--to", "last", help="Last day.")(run)
    run = click.option("--from", "first", help="First day, such as 2026-01-01, with --to.")(run)
    return click.option("--range", "words", help="Window in words, such as 28d or 12mo.")(run)


def collector_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options of a running collector; *command* takes it as ``collector``."""

    @wraps(command)
    def run(*args: object, url: str | None, token_file: str | None, **options: object) -> T:
        return command(*args, collector=Collector(url, token_file), **options)

    run = click.option(
        "--token-file", type=click.Path(exists=True, dir_okay=False),
        help="File with a read token, of an analyst where one writes; HEARSAY_READ_TOKEN by"
        " default.",
    )(run)  # fmt: skip
    default = Config.rows()["url"].default
    return click.option("--url", help=f"The collector; HEARSAY_URL, or {default}.")(run)


class Collector:
    """A running collector, as the options of a command or the environment name it."""

    def __init__(self, url: str | None, token_file: str | None) -> None:
        """Take the options as they were given; None: the environment has it."""
        self.address = url or setting_text("url")
        self._token_file = token_file

    def client(self) -> Client:
        """Return a client with the read token.  Raises ConfigError: there is none."""
        from ..client import Client

        if self._token_file is not None:
            token = Path(self._token_file).read_text(encoding="utf-8").strip()
        else:
            token = setting_text("read_token")
        if not token:
            rule = "must be a read token; or name --token-file"
            raise ConfigError("HEARSAY_READ_TOKEN", "missing", rule)
        return Client(self.address, token)


class Deployment:
    """What the settings name: registries and store, each opened when it is first asked for."""

    def __init__(self) -> None:
        """Read the settings.  Raises ConfigError."""
        self.config = Config.from_env()

    @cached_property
    def catalog(self) -> Catalog:
        """The metrics of the registry files."""
        return Catalog.from_files(self.config.registry_paths)

    @cached_property
    def store(self) -> RedisStorage:
        """The store, for the user who may write."""
        from ..storage.connect import connect

        return connect(self.config)

    @cached_property
    def reader(self) -> RedisStorage:
        """The store, for the user who reads tallies."""
        from ..storage.connect import connect_reader

        return connect_reader(self.config)

    @cached_property
    def inspection(self) -> RedisInspection:
        """What an operator sees and moves in the store."""
        from ..storage.connect import inspect

        return inspect(self.config)

    @cached_property
    def credentials(self) -> CredentialStore:
        """The keys and tokens of the store."""
        from ..storage.records import CredentialStore

        return CredentialStore.of(self.config)

    @cached_property
    def exclusions(self) -> ExclusionStore:
        """The exclusions of the store."""
        from ..storage.documents import ExclusionStore

        return ExclusionStore.of(self.config)


def require_archive(*modules: str) -> None:
    """Raise ConfigError if a module is missing that only archives and their files need."""
    for name in modules:
        try:
            import_module(name)
        except ImportError:
            rule = "needs pip install 'hearsay-collector[archive]'"
            raise ConfigError(name, "missing", rule) from None


def say(lines: Iterable[object]) -> None:
    """Print each of *lines*."""
    for line in lines:
        click.echo(line)


def show(document: object | None, lines: Iterable[object]) -> None:
    """Print *document* as JSON, or *lines* if it is None."""
    say(lines if document is None else [json.dumps(document, ensure_ascii=False, indent=1)])


def setting_text(field: str) -> str:
    """Return what the environment says of one setting of ``Config``, where no other is needed."""
    return Config.rows()[field].text()


def repeat(run: Callable[[], object], every: int | None) -> None:
    """Call *run*, again after *every* seconds until stopped; a store that is away is tried again.

    None: call it once.
    """
    from ..serving.stopping import on_stop

    if every is None:
        run()
        return
    stop = threading.Event()
    on_stop(stop.set, lambda: os._exit(0))
    while not stop.is_set():
        try:
            run()
        except (StorageUnavailableError, StorageFullError) as error:
            click.echo(f"{error}; trying again in {every} s", err=True)
        stop.wait(every)
