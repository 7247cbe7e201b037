"""The child of a program that ends at once: it records what it was handed, and sends if it may.

Everything happens as in any other process of the application: the same database, ledger, schedule
and locks.  What differs is that nobody waits for it, so it has a limit of its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any, Final

from ..core.errors import HearsayError
from ..core.paths import create_or_open
from ..core.randomness import Randomness
from ..core.stats import Reason
from ..privacy.caps import Caps
from ..privacy.consent import Consent, OptOuts
from ..storage.trusted_clock import Uptimes
from ..upload.transport import RequestsTransport, Transport
from .engine import Engine
from .handover import NOTES, RATIO, Notes, erased_state
from .inbox import Inbox, Settled

SENDING: Final = 25.0  # seconds for a pass, of the 30 that the child has


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
    at_once: bool = False,
    recorded: Callable[[], None] = lambda: None,
) -> dict[str, int]:
    """Charge, perturb and queue *values*, and send one upload if *sends* and one is due.

    Args:   values: of (name, value, Unix time) each, as ``handover.plain`` makes them.
            seconds: for the sending.  at_once: send all that waits, due or not.
            recorded: is called when all is written down.  The others are those of ``Client``.
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
    settled = _record(engine, values)
    recorded()
    if engine.switch.granted:
        if at_once:
            engine.flush(seconds)
        elif sends:
            with suppress(HearsayError):  # it is counted by the next child that can
                engine.uploader.run(seconds, last=True)
        if engine.store.exists:
            with suppress(HearsayError, OSError):
                _note(engine, registry, data_dir, settled)
    engine.leave()
    if (
        engine.switch.in_force is Consent.DENIED
        and engine.erasure.done
        and (state := erased_state(data_dir))
    ):
        with suppress(OSError):
            _write(data_dir, Notes(erased=state).text(registry, clock()))
    return engine.counts()


def _record(engine: Engine, values: Iterable[tuple[str, object, float]]) -> list[Settled]:
    """Write down *values*; return those whose metric and epoch have their report, or get none."""
    inbox = Inbox(engine.recorder.slot, engine.switch, engine.stats)
    for name, value, moment in values:
        try:
            inbox.put(name, unpacked(value), moment)
        except Exception as error:  # noqa: BLE001 - one value must not cost the others
            engine.stats.fail(error)
    settled: list[Settled] = []
    while group := inbox.take(100):
        engine.commit(group, settled)
    return settled


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


def _note(engine: Engine, registry: str, folder: str, pendings: list[Settled]) -> None:
    """Tell later parents what they need not hand over.  Costs no more than a child if it fails."""
    now, due = engine.clock(), engine.uploader.due()
    with engine.store.transaction():  # one child at a time
        settled = Notes.read(folder, registry, now).settled
        for pending, reason in pendings:
            slot = engine.recorder.slot(pending.metric.name, pending.now)
            sign = -1 if reason is Reason.NOT_IN_PANEL else 1
            settled[pending.metric.name] = sign * slot.end
        kept = {name: until for name, until in settled.items() if abs(until) > now}
        _write(folder, Notes(due, kept).text(registry, now))


def _write(folder: str, text: str) -> None:
    """Replace the notes in *folder*.  Raises OSError."""
    path = os.path.join(folder, NOTES)
    descriptor = create_or_open(f"{path}.new")
    with open(descriptor, "w", encoding="ascii", newline="\n") as file:
        file.truncate()
        file.write(text)
    os.replace(f"{path}.new", path)
