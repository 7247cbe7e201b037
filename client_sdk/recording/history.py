"""What this process has reported, with what was true: in memory only, and only if asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import get_ident

from ..core.dataclass import dataclass
from ..core.locks import PerProcess
from ..core.typing import Final
from .inbox import OnReport, Pending, ReportView

MAX_HISTORY: Final = 100  # reports; a page of a privacy screen


@dataclass(frozen=True, repr=False)
class ReportedValue:
    """One report: what was true on the device, and what was sent instead.

    Its repr says nothing, so that no log and no traceback can.
    """

    metric: str
    epoch: int
    truth: str  # the value, in words
    payload: bytes


class History:
    """The last reports of this process.  A forked child begins with none."""

    def __init__(self, on_report: OnReport | None) -> None:
        """Begin empty; *on_report* is the application's, and has the first word."""
        self._on_report = on_report
        self._mine = PerProcess(lambda: deque[ReportedValue](maxlen=MAX_HISTORY))
        self._seen: dict[int, list[ReportView]] = {}  # by thread: reports of an open transaction

    def observe(self, report: ReportView) -> bool:
        """Look at a report that is not yet certain; return whether it may leave."""
        if self._on_report is not None and self._on_report(report) is False:
            return False
        self._seen.setdefault(get_ident(), []).append(report)
        return True

    @contextmanager
    def transaction(self, pendings: Sequence[Pending]) -> Iterator[None]:
        """Keep what this thread observes of *pendings* in the block, unless that raises."""
        try:
            yield
        except BaseException:
            self._seen.pop(get_ident(), None)
            raise
        values = {(pending.metric.name, pending.epoch): pending for pending in reversed(pendings)}
        self._mine().extend(
            ReportedValue(
                metric=view.metric,
                epoch=view.epoch,
                truth=pending.metric.domain.in_words(pending.encoded),
                payload=view.payload,
            )
            for view in self._seen.pop(get_ident(), [])
            if (pending := values.get((view.metric, view.epoch))) is not None
        )

    def clear(self) -> None:
        """Forget everything."""
        self._mine().clear()

    def reports(self) -> list[ReportedValue]:
        """Return the reports, oldest first."""
        return list(self._mine())
