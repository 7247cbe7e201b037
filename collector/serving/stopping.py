"""The stop of a process: asked for by a signal, in good order, and within a time.

Asked to stop, a process finishes what is begun, but not for longer than a supervisor waits.  The
first process of a container gets no default action for signals: without these handlers it would
ignore SIGTERM until it is killed.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

GRACE_S: Final = 8.0  # seconds; supervisors kill after 10 or more
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_log = logging.getLogger("hearsay.stopping")


def on_stop(
    ask: Callable[[], None], give_up: Callable[[], None], grace: float = GRACE_S
) -> Callable[[], None]:
    """Call *ask* at the first SIGTERM or SIGINT, and *give_up* if we still run *grace* s later.

    Giving up loses nothing that was acknowledged: what a worker holds is claimed again by another,
    and what a web process had not answered is sent again.

    *ask* is called in a thread of its own: in a handler it could wait for ever for a lock that the
    interrupted code holds, such as the lock of an event that the main thread waits for.

    Returns: a function that asks, as a signal would.
    """
    bell, rope = os.pipe()

    def stop() -> None:
        os.write(rope, b".")  # all that a signal handler may safely do

    def handle(number: int, frame: FrameType | None) -> None:
        stop()

    threading.Thread(target=_attend, args=(bell, ask, give_up, grace), daemon=True).start()
    for number in SIGNALS:
        signal.signal(number, handle)
    return stop


def _attend(bell: int, ask: Callable[[], None], give_up: Callable[[], None], grace: float) -> None:
    """Wait for the first signal, ask, and give up if the process still runs *grace* s later."""
    os.read(bell, 1)

    def end() -> None:
        _log.warning("something does not end, perhaps waiting for the store: ending it now")
        give_up()

    timer = threading.Timer(grace, end)
    timer.daemon = True
    timer.start()
    ask()
