"""Refold on Dask: one task a file, and a tree of sums.

The cluster is a local one in this process by default: it opens no port, so nobody else on the
machine can send it work.  A scheduler elsewhere needs this package and the folder at the same path.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from distributed import Client, LocalCluster

from ...core.errors import ConfigError
from ...estimation.tally import Mechanisms
from .refold import Vectors, add, tally_file

_FAN_IN: Final = 8  # sums that one task adds up


def refold(
    files: Sequence[Path], mechanisms: Mechanisms, scheduler: str | None, threads: int
) -> Vectors:
    """Return the tallies that *files* give.

    Args:   scheduler: address of a Dask scheduler; a local cluster of *threads* if None.
    Raises: ArchiveError: a file is not what was written.
            ConfigError: the scheduler does not answer.
    """
    if scheduler is not None:
        try:
            remote = Client(scheduler, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ConfigError(
                "--scheduler", scheduler, "must be a Dask scheduler that answers, tcp://host:8786"
            ) from error
        with remote as client:
            return _refold_on(client, files, mechanisms)
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=threads,
            processes=False,
            protocol="inproc://",
            dashboard_address=None,
            worker_dashboard_address=None,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        return _refold_on(client, files, mechanisms)


def _refold_on(client: Any, files: Sequence[Path], mechanisms: Mechanisms) -> Vectors:
    if not files:
        return {}
    held = dict(mechanisms)
    # Not pure: a file of the same name may have changed since a long-lived scheduler saw it.
    sums = client.map(tally_file, files, mechanisms=held, pure=False)
    while len(sums) > 1:
        groups = [sums[first : first + _FAN_IN] for first in range(0, len(sums), _FAN_IN)]
        sums = [client.submit(add, group, held, pure=False) for group in groups]
    total: Vectors = sums[0].result()
    return total
