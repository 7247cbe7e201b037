"""What the user of an application may ask of its telemetry: look, switch off, delete.

Public, for the settings and commands of an application: ``mytool telemetry status``.  A bundled
program has them where ``python -m client_sdk`` is not to be had.  Each function takes the
*data_dir* that the application gave its client, and returns lines of text for people.

They raise HearsayError or OSError where a file cannot be read or written.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from .core.errors import InvalidParameterError
from .core.paths import PathOrStr, absolute
from .privacy.consent import OptOuts, set_user_opt_out
from .privacy.wording import counted
from .registry.registry import Registry
from .show import report_lines
from .status import consent_line, ledger_lines
from .storage.readonly import open_readonly
from .storage.secret import Secret
from .storage.store import Store
from .wiping import erase

_NOTHING: Final = "nothing was recorded here"
_KEPT: Final = "The ledger of what was spent stays: without it the same could be spent again."


def status(data_dir: PathOrStr, registry: Registry | None = None) -> list[str]:
    """Say who says no, what was spent of the privacy budget, and what waits.

    Args: registry: gives metrics their names; None: they are shown by digest.
    """
    folder = _folder(data_dir)
    lines = [consent_line(OptOuts(folder))]
    if not Store(folder).exists:
        return [*lines, _NOTHING]
    with open_readonly(folder) as (tx, said):
        return [*lines, *said, *ledger_lines(tx, registry, time.time())]


def show(data_dir: PathOrStr, registry: Registry | None = None) -> list[str]:
    """Say every report that waits or was sent lately, in words, and why it can be denied.

    Args: registry: gives metrics their names and words; None: reports are shown as bytes.
    """
    folder = _folder(data_dir)
    if not Store(folder).exists:
        return [_NOTHING]
    with open_readonly(folder) as (tx, said):
        return [*said, *report_lines(tx, registry, Secret(folder))]


def opt_in(data_dir: PathOrStr) -> list[str]:
    """Take back the user's own no.  Others who say no are still obeyed."""
    folder = _folder(data_dir)
    set_user_opt_out(folder, off=False)
    return [consent_line(OptOuts(folder))]


def opt_out(data_dir: PathOrStr) -> list[str]:
    """Say no from now on, and delete what waits, what was sent and the device's secret."""
    folder = _folder(data_dir)
    set_user_opt_out(folder, off=True)
    return [consent_line(OptOuts(folder)), *_erase(folder)]


def purge(data_dir: PathOrStr) -> list[str]:
    """Delete what waits, what was sent and the device's secret, and say nothing else."""
    return list(_erase(_folder(data_dir)))


def _erase(folder: str) -> Iterator[str]:
    store = Store(folder)
    if not store.has_traces:
        yield _NOTHING
        return
    try:
        with store.transaction() as tx:
            reports = erase(tx, store)
        store.scrub()
    finally:
        store.close()
    waiting = counted(reports, "report")
    yield f"deleted: {waiting} that waited, what was sent, and the device's secret"
    yield _KEPT


def _folder(data_dir: PathOrStr) -> str:
    folder = absolute(data_dir)
    if folder is None:
        raise InvalidParameterError("data_dir", None, "must be the folder of the client")
    return str(folder)
