"""What watches said, in every state, with a text that a test may choose."""

from __future__ import annotations

from typing import Final

from collector.storage.records import (
    FIRING,
    QUIET,
    UNABLE,
    UNKNOWN,
    Verdict,
    WatchCursor,
    WatchLedger,
    WatchMessage,
    WatchSeries,
    WatchState,
)

STATES: Final = {"hot": FIRING, "gone": UNABLE, "few": UNKNOWN, "calm": QUIET}


def watch_state(metric: str, text: str = "Front page: 6 %", looked: int = 1) -> WatchState:
    """Return four watches, all but "gone" over *metric*, that said *text* twice."""
    cursors, series = {}, {}
    for name, state in STATES.items():
        verdicts = tuple(
            Verdict(f"2026-03-0{day}", f"2026-03-0{day}", state, text, looked) for day in (2, 1)
        )
        of = "nobody" if name == "gone" else metric
        series[name] = WatchSeries(name, of, f"{of} above 5 % {text}", "d", 1e-6, verdicts)
        cursors[name] = WatchCursor("d", "2026-03-02", state, "2026-03-01")
    waiting = WatchMessage(
        "a", "hot", metric, looked, text, series["hot"].verdicts[0], {"t": (1, 2)}
    )
    ledger = WatchLedger(
        holder="a", looked=looked, false_alarms=0.05, cursors=cursors, outbox=(waiting,), given_up=1
    )
    return WatchState(ledger, series)
