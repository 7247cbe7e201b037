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
from functools import partial

from ..core.epoch import DAY, day_of
from ..core.errors import HearsayError, InvalidParameterError, RegistryError
from ..core.limits import NOTES_FILE
from ..core.paths import create_or_open
from ..core.stats import Reason
from ..core.typing import TYPE_CHECKING, Any, Final
from ..privacy.caps import Caps
from ..privacy.consent import Consent
from ..privacy.opt_outs import answer_in
from ..storage import trusted_clock
from ..storage.ledger import Charge
from .engine import Engine
from .handover_protocol import (
    RATIO,
    Notes,
    collector_checksum,
    erased_state,
    permit_in,
    portable,
    settings_checksum,
)
from .inbox import Inbox, Pending, Settled
from .options import Options

if TYPE_CHECKING:
    from ..storage.schema import Transaction
    from .handover_protocol import HandedValue
    from .recorder import Recorder

_CAPS: Final = tuple(Caps().decimals())
_MOST_REFUSAL: Final = 500  # characters that are kept of an error
SENDING: Final = 25.0  # seconds for a pass, of the 30 that the child has


def serve(
    values: Iterable[HandedValue],
    settings: Mapping[str, Any],
    *,
    sends: bool,
    at_once: bool = False,
    permit: bytes | None = None,
    recorded: Callable[[], None] = lambda: None,
    **fakes: Any,
) -> dict[str, int]:
    """Charge, perturb and queue *values*, and send one upload if *sends* and one is due.

    Args:   values: of (name, value, Unix time) each, as ``handover_protocol.to_plain`` makes them.
            settings: as ``Handover`` has them.
            at_once: send all that waits, due or not.
            permit: under which they were handed over: nothing happens without it.  None: the
            user has agreed to this process.
            recorded: is called when all is written down.
            fakes: further ``Options``, in tests.
    Returns: the counts by reason.
    Raises: InvalidParameterError, RegistryError: what the application gave is wrong.
    """
    folder = settings["data_dir"]
    if permit is not None:
        fakes["withdrawn"] = partial(_is_withdrawn, folder, permit)
    engine = Engine(options_of(settings, **fakes))
    settled = _record(engine, values)
    recorded()
    if engine.switch.granted:
        if at_once:
            engine.flush(SENDING)
        elif sends:
            with suppress(HearsayError):  # it is counted by the next child that can
                engine.uploader.run(SENDING, last=True)
        if engine.store.exists:
            with suppress(HearsayError, OSError):
                _note(engine, settings, settled)
    engine.erasure.refresh()
    engine.close_store()
    if (
        engine.switch.in_force is Consent.DENIED
        and engine.erasure.done
        and (state := erased_state(folder))
    ):
        with suppress(OSError):
            _write(settings, Notes(erased=state), engine.clock())
    return engine.counts()


def options_of(settings: Mapping[str, Any], **fakes: Any) -> Options:
    """Return *settings* of plain types as options.  Raises InvalidParameterError."""
    caps, tokens = settings["caps"], settings.get("tokens")
    if unknown := caps.keys() - _CAPS:
        rule = f"must be of {', '.join(_CAPS)}"
        raise InvalidParameterError("caps", ", ".join(sorted(map(str, unknown))), rule)
    if tokens is not None:
        from ..upload.tokens import Issuer  # few applications need it

        tokens = Issuer(**tokens)
    return Options(**{**settings, "caps": Caps(**caps), "tokens": tokens, **fakes})


def _record(engine: Engine, values: Iterable[HandedValue]) -> list[Settled]:
    """Write down *values*; return those whose metric and epoch have their report, or get none."""
    inbox = Inbox(engine.recorder.slot, engine.switch, engine.stats)
    for name, value, moment in values:
        try:
            inbox.put(name, from_plain(value), moment)
        except Exception as error:  # noqa: BLE001 - one value must not cost the others
            engine.stats.fail(error)
    settled: list[Settled] = []
    while group := inbox.take(100):
        engine.commit(group, settled)
    return settled


def from_plain(value: object) -> object:
    """Return what ``handover_protocol.to_plain`` was given, or what is equal to it."""
    if isinstance(value, tuple):
        if value[:1] == (RATIO,):
            return Fraction(value[1], value[2])
        return tuple(map(from_plain, value))
    if isinstance(value, frozenset):
        return frozenset(map(from_plain, value))
    if isinstance(value, dict):
        return {from_plain(key): from_plain(entry) for key, entry in value.items()}
    return value


def _is_withdrawn(folder: str, permit: bytes) -> bool:
    """Whether the user has said no since *permit* was issued: on a terminal, or to a program."""
    return not permit or permit_in(folder) != permit or answer_in(folder) == "denied"


def _note(engine: Engine, settings: Mapping[str, Any], pendings: list[Settled]) -> None:
    """Tell later parents what they need not hand over.  Costs no more than a child if it fails."""
    now, due, place = engine.clock(), engine.uploader.due(), collector_checksum(settings)
    with engine.store.transaction() as tx:  # one child at a time
        engine.switch.refresh()
        if not engine.switch.granted:
            return
        notes = Notes.read(settings["data_dir"], settings["registry"], now)
        settled = notes.settled if notes.place == place else {}
        for pending, reason in pendings:
            until = _settled_until(engine.recorder, tx, pending, reason)
            settled[pending.metric.name] = until, str(reason)
        kept = {name: row for name, row in settled.items() if row[0] > now}
        _write(settings, Notes(due, kept, place=place), now)


def _settled_until(recorder: Recorder, tx: Transaction, pending: Pending, reason: Reason) -> float:
    """Return until which Unix time nothing more is reported of the slot of *pending*.

    Of a spent budget that is the moment at which the ledger, as it is now, has room again.
    """
    end = recorder.slot(pending.metric.name, pending.now).end
    if reason is not Reason.BUDGET:
        return end
    metric, today = pending.metric, trusted_clock.day(tx, pending.now, recorder.uptime())
    delta = 0 if metric.policy is not None else metric.whole_delta
    charge = Charge(metric.digest, pending.epoch, metric.most_nano, delta, pending.device)
    day = recorder.ledger.day_with_room(tx, charge, today)
    # trusted days begin with those of the wall clock
    return end if day is None else min(end, (day_of(pending.now) + day - today) * DAY)


def serve_noting(
    values: Iterable[HandedValue], settings: Mapping[str, Any], *, permit: bytes | None, **more: Any
) -> None:
    """Do what ``serve`` does; where *settings* are wrong, note that for the next parent.

    A developer is to hear of it.  Nothing of a value is noted, not even of a setting.
    """
    try:
        serve(values, settings, permit=permit, **more)
    except (InvalidParameterError, RegistryError) as error:
        if permit is None or _is_withdrawn(settings["data_dir"], permit):
            return
        if isinstance(error, InvalidParameterError):
            why = f"{error.name}: {error.rule}"
        else:
            why = error.problems[0]
        notes = Notes(refused=(settings_checksum(portable(settings)), why[:_MOST_REFUSAL]))
        with suppress(OSError):
            _write(settings, notes, time.time())


def _write(settings: Mapping[str, Any], notes: Notes, now: float) -> None:
    """Replace the notes of *settings*.  Raises OSError."""
    path = os.path.join(settings["data_dir"], NOTES_FILE)
    descriptor = create_or_open(f"{path}.new")
    with open(descriptor, "w", encoding="ascii", newline="\n") as file:
        file.truncate()
        file.write(notes.text(settings["registry"], now))
    os.replace(f"{path}.new", path)
