"""The engine of a program that ends at once: it checks values, and a child does the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.stats import MISTAKES, Reason, reason_of
from ..core.typing import Any
from ..upload.uploader import Delivery
from .background import run_within, seconds_of
from .engine import Engine
from .handover import Handover
from .handover_protocol import values_of
from .inbox import Pending


class CommandEngine(Engine):
    """Hands values to a child when the process ends; ``flush`` alone does the work here."""

    def __init__(self, *arguments: Any, handed: Mapping[str, Any], **settings: Any) -> None:
        """Take what ``Engine`` takes, and what the child is to be told.

        Raises: InvalidParameterError, RegistryError.
        """
        self._handover = Handover(handed, self.exit)
        super().__init__(*arguments, **settings)

    def record(self, name: object, value: object) -> None:
        """Check *value* and keep it for the child."""
        try:
            if self._closed:
                self.stats.add(Reason.CLOSED)
                return
            now = self.clock()
            self.recorder.prepare(name, value, now)
            reason = self._handover.put(str(name), value, now)
            if reason is not None:
                self.stats.add(Reason(reason))
        except Exception as error:
            self.stats.fail(error)
            if self._strict and reason_of(error) in MISTAKES:
                raise

    def tick(self, *, rests: bool = False) -> None:
        """Leave the windows to the child: this process opens no database."""

    def flush(self, timeout: float) -> Delivery:
        """Do here, and now, what the child would have done, and send what waits."""
        self._write_here(self._handover.take())
        super().tick()
        return super().flush(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Hand over what was recorded, and wait for nothing.

        Args: timeout: seconds for the disk where no child can be started; None: ``patience``.
        """
        with self._counting():
            self.patience = self.patience if timeout is None else seconds_of(timeout)
        self.exit()
        with self._counting():
            self._handover.reap()
        self.leave()

    def exit(self) -> None:
        """Hand over what was recorded, unless that was done."""
        if self._closed:
            return
        self._closed = True
        with self._counting():
            self.erasure.refresh()
            values = self._handover.take()
            if not self.switch.may_send:
                self.stats.add(self.switch.refusal, len(values))
                return
            count = self._handover.start(values, self.clock())
            if count < 0:
                self.stats.add(Reason.NO_CHILD)
                run_within(self.patience, lambda: self._write_here(values))
                return
            self.stats.add(Reason.HANDED_OVER, count)
            self.stats.add(Reason.QUEUE_FULL, len(values) - count)

    def _forget(self, reason: Reason) -> None:
        self.stats.add(reason, self._handover.forget())
        super()._forget(reason)

    def _write_here(self, values: Sequence[bytes]) -> None:
        """Charge, perturb and queue *values* in this process."""
        from .child import unpacked

        group: list[Pending] = []
        for name, value, moment in values_of(values):
            try:
                group.append(self.recorder.prepare(name, unpacked(value), moment))
            except Exception as error:  # noqa: BLE001 - one value must not cost the others
                self.stats.fail(error)
        if group:
            self.commit(group)
