"""Refold on Dask: one task a file, and a tree of sums.

By default these run on threads of this process, which opens no port, so no other user of the
machine can send it work or look at it.  A scheduler elsewhere needs this package and the folder at
the same path.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from dask import delayed

from ...core.errors import ConfigError
from ...estimation.tally import Mechanisms
from .refold import Vectors, add, tally_file

_FAN_IN: Final = 8  # sums that one task adds up


def refold(
    files: Sequence[Path], mechanisms: Mechanisms, scheduler: str | None, threads: int
) -> Vectors:
    """Return the tallies that *files* give.

    Args:   scheduler: address of a Dask scheduler; *threads* of this process if None.
    Raises: ArchiveError: a file is not what was written.
            ConfigError: the scheduler does not answer.
    """
    if not files:
        return {}
    total = _sum_of(files, mechanisms)
    if scheduler is None:
        tallies: Vectors = total.compute(scheduler="threads", num_workers=threads)
        return tallies
    from distributed import Client  # it loads a server

    try:
        remote = Client(scheduler, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConfigError(
            "--scheduler", scheduler, "must be a Dask scheduler that answers, tcp://host:8786"
        ) from error
    with remote as client:
        tallies = client.compute(total).result()
    return tallies


def _sum_of(files: Sequence[Path], mechanisms: Mechanisms) -> Any:
    """Return the tasks that give the tallies of *files*."""
    held = delayed(dict(mechanisms), traverse=False)
    # Not pure: a file of the same name may have changed since a long-lived scheduler saw it.
    tally, combine = delayed(tally_file, pure=False), delayed(add, pure=False)
    sums = [tally(path, held) for path in files]
    while len(sums) > 1:
        groups = [sums[first : first + _FAN_IN] for first in range(0, len(sums), _FAN_IN)]
        sums = [combine(group, held) for group in groups]
    return sums[0]
