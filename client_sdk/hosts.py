"""Servers that decide what a process may do: where no thread may run, and whose children end how.

None of them is imported here: what is not loaded is not the host.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

_OFF: Final = ("", "0", "false", "off", "no")
_THREADS: Final = ("enable-threads", "threads")  # each lets threads run


THREADS_STAND_STILL: Final = (
    "uwsgi: enable-threads is off, so each value is written by the request that records it and"
    " sent when its worker ends; start uWSGI with --enable-threads"
)
_FORKS_IN_C: Final = "uwsgi: a thread of the master would be copied into its workers"


def why_no_thread() -> str | None:
    """Return why this process must have no thread of ours; None if it may have one.

    uWSGI forks its workers in C, without a word to Python: a thread of the master that runs at that
    moment holds, in the child, locks of the interpreter that nobody ever releases.  And without
    its option for threads they stand still while no request is served.
    """
    uwsgi: Any = sys.modules.get("uwsgi")
    if uwsgi is None:
        return None
    try:
        if uwsgi.worker_id() == 0:
            return _FORKS_IN_C
        return None if _threads_run(uwsgi) else THREADS_STAND_STILL
    except Exception:  # noqa: BLE001 - something else of that name
        return None


def at_end_of_child(action: Callable[[], None]) -> None:
    """Have *action* run when this process ends, if it is one that runs no function of ``atexit``.

    Those are the children of multiprocessing, and of billiard, by which Celery forks; the workers
    of Celery's pool do not even run the finalizers of billiard, but send a signal of their own.
    """
    for package in ("multiprocessing", "billiard"):
        process: Any = sys.modules.get(f"{package}.process")
        util: Any = sys.modules.get(f"{package}.util")
        if process is not None and util is not None and _is_child(process):
            util.Finalize(None, action, exitpriority=0)
            signals: Any = sys.modules.get("celery.signals")
            if package == "billiard" and signals is not None:
                signals.worker_process_shutdown.connect(lambda **_: action(), weak=False)


def _is_child(process: Any) -> bool:
    if hasattr(process, "parent_process"):
        return process.parent_process() is not None
    return getattr(process.current_process(), "_parent_pid", None) is not None


def _threads_run(uwsgi: Any) -> bool:
    """Whether threads run in this worker.  Later versions say so; the option is of earlier ones."""
    if getattr(uwsgi, "has_threads", 0):
        return True
    for key, value in uwsgi.opt.items():
        name = key.decode() if isinstance(key, bytes) else key
        if name in _THREADS and _text(value) not in _OFF:
            return True
    return False


def _text(value: Any) -> str:
    """Return the value of an option; a flag is True, and an option given twice is a list."""
    last = value[-1] if isinstance(value, list) and value else value
    return last.decode().lower() if isinstance(last, bytes) else str(last).lower()
