"""The child of a program that ends at once: it records what it was handed, and sends if it may.

Everything happens as in any other process of the application: the same database, ledger, schedule
and locks.  What differs is that nobody waits for it, so it has a limit of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any, Final

from ..core.errors import HearsayError
from ..core.paths import create_or_open
from ..core.randomness import Randomness
from ..privacy.caps import Caps
from ..privacy.consent import OptOuts
from ..storage.trusted_clock import Uptimes
from ..upload.transport import RequestsTransport, Transport
from .engine import Engine
from .handover import NOTES, RATIO, Notes
from .inbox import Inbox, Pending

LIFE: Final = 30  # seconds; after them the child ends, whatever it waits for
SENDING: Final = 25.0  # seconds of them for a pass


def main(document: Mapping[str, Any]) -> None:
    """Be the child: do what *document* says, and end within LIFE seconds."""
    threading.Timer(LIFE, os._exit, (1,)).start()
    if hasattr(signal, "alarm"):  # a thread ends nothing that holds the interpreter's lock
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIFE + 1)
    with suppress(OSError, AttributeError):  # the session is there already where spawning makes it
        os.setsid()
    with suppress(OSError):
        os.closerange(3, os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else 256)
    with suppress(OSError):
        os.chdir(os.path.abspath(os.sep))  # no folder of its parent's is held
    try:
        serve(document["values"], sends=document["sends"], **document["settings"])
    finally:
        os._exit(0)  # the timer is no daemon, and nobody is there to be told


def serve(
    values: Iterable[tuple[str, object, float]],
    *,
    sends: bool,
    endpoint: str,
    write_key: str,
    registry: str,
    data_dir: str,
    consent: Any,
    segment: Mapping[str, str] | None,
    caps: Mapping[str, str],
    transport: Transport | None = None,
    opt_outs: OptOuts | None = None,
    clock: Callable[[], float] = time.time,
    uptime: Uptimes | None = None,
    randomness: Randomness | None = None,
    seconds: float = SENDING,
) -> dict[str, int]:
    """Charge, perturb and queue *values*, and send one upload if *sends* and one is due.

    Args:   values: of (name, value, Unix time) each, as ``handover.plain`` makes them.
            seconds: for the sending.  The others are those of ``Client``.
    Returns: the counts by reason.
    Raises: InvalidParameterError, RegistryError: what the application gave is wrong.
    """
    engine = Engine(
        registry,
        transport or RequestsTransport(endpoint, write_key),
        consent=consent,
        opt_outs=opt_outs or OptOuts(data_dir),
        folder=data_dir,
        segment=segment,
        caps=Caps(**caps),
        clock=clock,
        uptime=uptime,
        randomness=randomness,
    )
    reported = _record(engine, values)
    if engine.switch.granted:
        if sends:
            with suppress(HearsayError):  # it is counted by the next child that can
                engine.uploader.run(seconds, last=True)
        with suppress(HearsayError, OSError):
            _note(engine, registry, data_dir, reported)
    engine.leave()
    return engine.counts()


def _record(engine: Engine, values: Iterable[tuple[str, object, float]]) -> list[Pending]:
    """Write down *values*; return those whose metric and epoch have their report."""
    inbox = Inbox(engine.recorder.slot, engine.switch, engine.stats)
    for name, value, moment in values:
        try:
            inbox.put(name, unpacked(value), moment)
        except Exception as error:  # noqa: BLE001 - one value must not cost the others
            engine.stats.fail(error)
    reported: list[Pending] = []
    while group := inbox.take(100):
        engine.commit(group, reported)
    return reported


def unpacked(value: object) -> object:
    """Return what ``handover.plain`` was given, or what is equal to it."""
    if isinstance(value, tuple):
        if value[:1] == (RATIO,):
            return Fraction(value[1], value[2])
        return tuple(map(unpacked, value))
    if isinstance(value, frozenset):
        return frozenset(map(unpacked, value))
    if isinstance(value, dict):
        return {unpacked(key): unpacked(entry) for key, entry in value.items()}
    return value


def _note(engine: Engine, registry: str, folder: str, reported: list[Pending]) -> None:
    """Tell later parents what they need not hand over.  Costs no more than a child if it fails."""
    now = engine.clock()
    notes = Notes.read(folder, registry)
    settled = {name: until for name, until in notes.settled.items() if until > now}
    for pending in reported:
        settled[pending.metric.name] = engine.recorder.slot(pending.metric.name, pending.now).end
    text = Notes(engine.uploader.due(), settled).text(registry)
    path = os.path.join(folder, NOTES)
    descriptor = create_or_open(f"{path}.new")
    with open(descriptor, "w", encoding="ascii") as file:
        file.truncate()
        file.write(text)
    os.replace(f"{path}.new", path)


def of_bundle() -> None:
    """In a bundled program that was started as the child: be it, and never return."""
    import marshal

    main(marshal.loads(sys.stdin.buffer.read()))  # noqa: S302 - from our own parent, by a pipe
