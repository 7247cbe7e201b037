"""``hearsay registry retire``: a signed list that stops metrics on devices that still ask them.

The secret key stays where this command runs; a collector only serves the list.
"""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from client_sdk.core.base64url import is_hex
from client_sdk.core.errors import InvalidParameterError
from client_sdk.core.limits import KEY_SIZE
from client_sdk.privacy.retirement import MAX_LIST, MAX_RETIRED, Retirement, read
from client_sdk.registry.contract import Registry

from .registry import registry as group
from .root import registry_file, sign_option

_SECRET_MODE: Final = 0o600  # no other user of this machine may sign


@group.command("retire")
@registry_file
@click.argument("names", nargs=-1)
@sign_option
@click.option(
    "--new-key", "makes_key", is_flag=True, help="Make a secret key, and print its public key."
)
@click.option(
    "-o", "--output", default="retired.json", show_default=True,
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="File of the list; an older list in it is extended.",
)  # fmt: skip
def retire_metrics(
    path: str, names: tuple[str, ...], key: Path, makes_key: bool, output: Path
) -> None:
    """Stop the metrics called NAMES on devices that still ask them, by a signed list.

    See docs/ask/registry.md#retiring-a-metric.
    """
    if makes_key:
        click.echo(f'[app]: retire_key = "{new_key(key)}"')
        return
    if not names:
        raise click.UsageError("name the metrics to retire")
    now = int(datetime.now(UTC).timestamp())
    text, whole = retire(Registry.from_file(path), names, key, output, now)
    part = output.with_name(f"{output.name}.new")
    part.write_bytes(text)
    part.replace(output)
    click.echo(f"{output}: {len(whole.digests)} retired in all; serve it as HEARSAY_RETIRED")


def new_key(path: Path) -> str:
    """Write a new secret key to *path* and return its public key.

    Raises: InvalidParameterError: there is a file already, or none can be written.
    """
    from client_sdk.wire.ed25519 import public_of  # it works out a point, and few commands need it

    seed = secrets.token_bytes(KEY_SIZE)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _SECRET_MODE)
    except FileExistsError:
        rule = "is there and stays as it is: devices heed what this key signs; name another file"
        raise InvalidParameterError("key", path, rule) from None
    except OSError as error:
        raise InvalidParameterError("key", path, f"cannot be written: {error.strerror}") from None
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(f"{seed.hex()}\n")
    return public_of(seed).hex()


def retire(
    registry: Registry, names: tuple[str, ...], key: Path, known: Path, now: int
) -> tuple[bytes, Retirement]:
    """Return the list that retires the metrics called *names*, beside those *known*, and its text.

    Args:   key: the file of the secret key.  known: the file of the list so far, if it is there.
            now: Unix seconds.
    Raises: InvalidParameterError: the file has no key, or not the registry's; *known* is not
            signed by it; there are too many.  UnknownMetricError.
    """
    from client_sdk.wire.ed25519 import public_of

    seed = seed_of(key)
    public = public_of(seed)
    if registry.retire_key != public.hex():
        rule = f"must be {public.hex()}, the public key of {key}: devices heed no other"
        raise InvalidParameterError("app.retire_key", registry.retire_key, rule)
    digests = frozenset(registry.metric(name).digest for name in names)
    if known.exists():
        before = read(known.read_bytes(), public)
        if before is None:
            raise InvalidParameterError("output", known, "must be a list that this key has signed")
        # a device takes no older list, and two of one second would look the same
        digests, now = digests | before.digests, max(now, before.issued + 1)
    retirement = Retirement(now, digests)
    text = retirement.text(seed)
    if len(digests) > MAX_RETIRED or len(text) > MAX_LIST:
        raise InvalidParameterError("names", len(digests), f"must be at most {MAX_RETIRED}")
    return text, retirement


def seed_of(path: Path) -> bytes:
    """Return the secret key in the file *path*.  Raises InvalidParameterError: it holds none."""
    try:
        text = path.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise InvalidParameterError("key", path, f"cannot be read: {error.strerror}") from None
    if not is_hex(text, KEY_SIZE):
        raise InvalidParameterError("key", path, "must hold 64 hexadecimal digits, and no more")
    return bytes.fromhex(text)
