"""For uWSGI: ``after_fork(client)`` has every worker report from its start.

Without it a worker begins at its first value.  Where no thread may run, in the master and in
workers without ``enable-threads``, none is started; see ``recording.background``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..client import Client


def after_fork(client: Client) -> bool:
    """Let *client* be at work in each worker as soon as it is forked, whatever it records later.

    Call it where the application is made, and after ``uwsgidecorators`` is imported, which would
    put its own hook in the place of ours.  Hooks that are there already are kept.

    Returns: False outside of uWSGI, where there is nothing to do.
    """
    uwsgi: Any = sys.modules.get("uwsgi")
    if uwsgi is None:
        return False
    decorators: Any = sys.modules.get("uwsgidecorators")
    if decorators is not None:
        decorators.postfork_chain.append(client.watch)
    else:
        _chain(uwsgi, client.watch)
    if uwsgi.worker_id() > 0:  # each worker loads the application for itself, after its fork
        client.watch()
    return True


def _chain(uwsgi: Any, action: Callable[[], None]) -> None:
    """Have *action* run after each fork, behind what runs there already."""
    earlier = getattr(uwsgi, "post_fork_hook", None)

    def both() -> None:
        if earlier is not None:
            earlier()
        action()

    uwsgi.post_fork_hook = both
