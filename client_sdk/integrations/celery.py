"""For Celery: ``install(client)`` has every worker report from its start to its end.

Without it a worker begins at its first value, and still writes down what waits when it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..client import Client


def install(client: Client) -> None:
    """Let *client* be at work in each worker process, and close it when that process ends.

    So metrics with ``otherwise`` report of workers that had nothing to do.  Call it where the
    Celery application is made, before the workers are forked; Celery's signals are of no
    application, so none is passed.
    """
    from celery import signals

    def begin(**_: Any) -> None:
        client.watch()

    def end(**_: Any) -> None:
        client.close()

    signals.worker_process_init.connect(begin, weak=False)  # each child of the pool
    signals.worker_process_shutdown.connect(end, weak=False)
    signals.worker_shutdown.connect(end, weak=False)  # the parent; of threads, the only process
