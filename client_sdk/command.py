"""Telemetry for programs that end at once, such as command-line tools.

    from client_sdk import command

    command.configure(
        "https://telemetry.example.org", "write-key", "metrics.json",
        data_dir="~/.local/state/mytool/telemetry", consent="granted",
    )
    command.record("subcommand", "build")

``record`` takes microseconds.  When the process ends, values pass through a pipe to a child that
nobody waits for: it checks, charges, perturbs and queues them, and sends if that is due.  This
module loads neither the registry nor a database nor anything else, so a program that lives for a
moment stays as fast as it was.

A program that is killed, or leaves by ``os._exit``, hands nothing over.
"""

from __future__ import annotations

import atexit
import os
import time

from .privacy.automation import may_be_told_apart, sign_of_automation
from .privacy.opt_outs import policy_path, who_says_no
from .recording.handover import Handover
from .recording.handover_protocol import erased_state, to_plain, values_of, withdraw_permit

TYPE_CHECKING = False  # type checkers take it for true; loading typing costs more than all else

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from .core.paths import PathOrStr
    from .privacy.consent import ConsentLike
    from .upload.tokens import Issuer

_GRANTED: Final = "granted"
_ANSWERS: Final = (_GRANTED, "denied", "unknown")
_PATIENCE: Final = 1.0  # seconds for the disk where no child can be started


class _Program:
    """What this process was told, what it recorded, and what became of that."""

    def __init__(self) -> None:
        self.handover: Handover | None = None
        self.counts: dict[str, int] = {}

    def count(self, reason: str, count: int = 1) -> None:
        if count:
            self.counts[reason] = self.counts.get(reason, 0) + count


_program: Final = _Program()


def configure(
    endpoint: str,
    write_key: str,
    registry: PathOrStr,
    *,
    data_dir: PathOrStr,
    consent: ConsentLike,
    segment: Mapping[str, str] | None = None,
    caps: Mapping[str, str] | None = None,
    relay: str | None = None,
    relay_key: str | None = None,
    tokens: Issuer | None = None,
) -> None:
    """Say where values go; they are handed over when this process ends.

    Args:   endpoint, write_key: the collector.
            registry: the path of the registry's file; compiled, it is read sooner.
            data_dir: a folder of this application and user.
            consent: what the user has said; denied erases what an earlier run left.
            segment: dimension to value, as declared in the registry.
            caps: decimals by the names of ``Caps``; None: its defaults.
            relay, relay_key, tokens: as of ``Client``; an attestation must be a text.
    Raises: InvalidParameterError: consent is none of the three, a path is none, or another
            argument is no text.  The child finds out what else is wrong; the next run logs that.
    """
    if consent not in _ANSWERS:
        from .privacy.consent import Consent

        Consent.of(consent)
    way = {"endpoint": endpoint, "write_key": write_key}
    if relay is not None or relay_key is not None:
        way |= {"relay": relay or "", "relay_key": relay_key or ""}
    for name, text in way.items():
        if not isinstance(text, str):
            from .core.errors import InvalidParameterError

            raise InvalidParameterError(name, type(text).__name__, "must be a text")
    atexit.unregister(_end)  # a second call replaces the first
    atexit.register(_end)
    _program.handover = Handover(
        {
            **{name: str.__str__(text) for name, text in way.items()},
            "registry": absolute_path(registry),
            "data_dir": absolute_path(data_dir),
            "consent": str.__str__(consent),
            "segment": to_plain(segment),
            "caps": to_plain(caps or {}),
            **({} if tokens is None else {"tokens": tokens.as_settings()}),
        },
        _end,
    )


def record(name: str, value: object) -> None:
    """Keep *value* of the metric called *name* for the child.  Never raises; ``counts`` tells."""
    handover = _program.handover
    if handover is None:
        _program.count("closed")
        return
    try:
        reason = handover.put(str(name), value, time.time())
    except Exception:  # noqa: BLE001 - an app must not fail because its telemetry does
        reason = "invalid_value"
    if reason is not None:
        _program.count(reason)


def flush() -> Mapping[str, int]:
    """Do here and now what the child would do, and send all that waits; return counts by reason.

    For development and tests, since its moment shows when the program was used.
    Raises: InvalidParameterError, RegistryError: what ``configure`` was given is wrong.
    """
    handover = _program.handover
    if handover is None:
        return counts()
    from .recording.child import serve

    return serve(values_of(handover.take()), handover.settings, sends=True, at_once=True)


def counts() -> Mapping[str, int]:
    """Return what became of this process's values before they were handed over, by reason."""
    return dict(_program.counts)


def begin_bundle() -> None:
    """Say, as the first thing that a bundled program does, that it can be the child of itself.

    PyInstaller needs no such call.  Programs of other bundlers that do not make it have no child.
    """
    from .recording.detached import begin_bundle

    begin_bundle()


def _end() -> None:
    """Hand over what was recorded.  Raises nothing and waits for nothing."""
    handover, _program.handover = _program.handover, None
    if handover is None:
        return
    try:
        _hand_over(handover)
    except BaseException:  # noqa: BLE001 - as above; Ctrl-C cannot end what has ended
        _program.count("internal")


def _hand_over(handover: Handover) -> None:
    values, now = handover.take(), time.time()
    settings = handover.settings
    consent, folder = settings["consent"], settings["data_dir"]
    opted_out = who_says_no(folder, os.environ, policy_path(os.environ)) is not None
    if opted_out or consent != _GRANTED:
        _program.count("opted_out" if opted_out else "consent", len(values))
        if (opted_out or consent == "denied") and os.path.exists(folder):
            erased = handover.notes(now).erased
            # at once: a machine that is busy may not let this process erase before it ends
            withdrawn = withdraw_permit(folder)
            if withdrawn or not erased or erased_state(folder) != erased:
                _here(settings, [], permit=None)  # it erases what waits
        return
    if sign_of_automation(folder, os.environ) and not may_be_told_apart(settings["registry"]):
        _program.count("automated", len(values))
        return
    count = handover.start(values, now)
    if count < 0:
        _program.count("no_child")
        _here(settings, values, permit=handover.permit())
    else:
        _program.count("handed_over", count)
        _program.count("queue_full", len(values) - count)


def _here(settings: Mapping[str, Any], values: list[bytes], *, permit: bytes | None) -> None:
    """Do what a child would, but send nothing, for as long as an end may last."""
    from .recording.background import run_within
    from .recording.child import serve_noting

    def write() -> None:
        serve_noting(values_of(values), settings, permit=permit, sends=False)

    run_within(_PATIENCE, write)


def absolute_path(path: PathOrStr) -> str:
    """Return *path* from the root on, as ``core.paths`` does.  Raises InvalidParameterError."""
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""
    if isinstance(text, str) and text and "\0" not in text:
        expanded = os.path.expanduser(text)
        if not expanded.startswith("~"):
            return os.path.abspath(expanded)
    from .core.paths import absolute as checked  # it says what is wrong

    return str(checked(path or ""))
