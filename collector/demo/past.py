"""Past days of the demo: their devices report now, by clocks set back, and are counted as then.

Helpers, one a processor, play the devices and gateways of a day each.  Their reports go over HTTP
like all others.  Only the fold is the demo's own: a worker would rightly call them late, while this
one, which runs where no other does, puts them where a worker of that day would have.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Final

from client_sdk.core.epoch import DAY, ONCE
from client_sdk.core.limits import MAX_REPORT_AGE
from client_sdk.registry.contract import Registry
from client_sdk.upload.transport import MESSAGEPACK, RequestsTransport

from ..core.errors import ChildError
from ..operations.parent_death import die_with_parent
from ..storage.redis import RedisStorage
from ..worker.worker import Worker
from .fleet import DATA, REDESIGNED, RELEASED, drive_gateways, population

PAST_DAYS: Final = MAX_REPORT_AGE - 1  # a report is taken for so long, even around midnight
_MOST_HELPERS: Final = 4
_MORE: Final = (0.12, 0.18)  # by how much a past day has more visitors than today, so far
_POLL: Final = 0.02  # seconds between two looks at the helpers


@dataclass(frozen=True)
class Past:
    """What helpers have to know to play the past days of a collector."""

    url: str
    gateway_key: str
    registry: str  # path
    devices: int  # of today, and about as many a day
    seed: int
    now: float  # Unix seconds

    def visitors(self, days_ago: int) -> int:
        """Return how many devices report on a past day: hardly ever as many as on another."""
        chance = random.Random(f"{self.seed} {days_ago}")  # noqa: S311  # people, not noise
        return round(self.devices * (1 + chance.uniform(*_MORE)))

    @property
    def usual(self) -> int:
        """How many devices report on a day: the mean of the past ones."""
        return round(sum(map(self.visitors, range(1, PAST_DAYS + 1))) / PAST_DAYS)


def boards_of(now: float) -> str:
    """Return the file of the demo's board and notes; these are on the days of what they tell."""
    days = {"{released}": RELEASED, "{redesigned}": REDESIGNED}
    text = (DATA / "boards.toml").read_text(encoding="utf-8")
    for word, days_ago in days.items():
        text = text.replace(
            word, datetime.fromtimestamp(now - days_ago * DAY, UTC).date().isoformat()
        )
    return text


def backfill(
    past: Past,
    storage: RedisStorage,
    alive: Callable[[], None] = lambda: None,
    progress: Callable[[int], None] = lambda done: None,
    days: Sequence[int] = tuple(range(PAST_DAYS, 0, -1)),
) -> None:
    """Let the past *days* report, and fold them here; no other worker may run meanwhile.

    Args:   alive: called between folds, to raise if the demo is to end.
            progress: is told how many days are done.
    Raises: ChildError: a helper failed; what it wrote is on standard error.
    """
    registry = Registry.from_file(past.registry)
    mechanisms = {metric.digest: metric.mechanism for metric in registry}
    # Nothing is late for a metric that is asked once: so every report is counted as in time.
    worker = Worker(storage, mechanisms, dict.fromkeys(mechanisms, ONCE))
    with ExitStack() as stack:
        reader, writer = os.pipe()
        stack.callback(os.close, reader)
        helpers = [
            stack.enter_context(_helper(past, days[first :: _helpers()], writer))
            for first in range(min(_helpers(), len(days)))
        ]
        os.close(writer)  # so that the reader sees the end with that of the last helper
        for helper in helpers:
            stack.callback(helper.kill)
        for done in _days_done(reader):
            alive()
            progress(done)
            while worker.step():
                pass
            time.sleep(_POLL)
        if any(helper.wait() for helper in helpers):
            raise ChildError("a past day of the demo could not be reported")
    while worker.step():
        pass


def _helpers() -> int:
    return min(os.cpu_count() or 1, _MOST_HELPERS)


def _helper(past: Past, days: Sequence[int], output: int) -> subprocess.Popen[bytes]:
    """Start a process that plays *days* of *past*, and writes a dot to *output* after each."""
    with tempfile.TemporaryFile() as settings:
        settings.write(json.dumps({**asdict(past), "days": days}).encode())
        settings.seek(0)
        return subprocess.Popen(
            die_with_parent([sys.executable, "-m", "collector.demo.past"]),
            stdin=settings,
            stdout=output,
            start_new_session=True,
        )


def _days_done(reader: int) -> Iterator[int]:
    """Yield again and again how many dots came by *reader*, until its other ends are closed."""
    os.set_blocking(reader, False)
    done, is_open = 0, True
    while is_open:
        with suppress(BlockingIOError):
            dots = os.read(reader, PAST_DAYS)
            done, is_open = done + len(dots), bool(dots)
        yield done


def play(past: Past, days: Sequence[int], done: Callable[[], None]) -> None:
    """Let the devices of *days* report to their gateways, and these to the collector.

    Raises: ChildError: a report was not acknowledged.
    """
    registry = Registry.from_file(past.registry)
    transport = RequestsTransport(past.url, past.gateway_key, content_type=MESSAGEPACK)
    for days_ago in days:
        chance = random.Random(f"{days_ago} {past.seed}")  # noqa: S311  # people, not noise
        people = population(past.visitors(days_ago), chance, days_ago)
        traffic = drive_gateways(
            people, registry, transport, _stopped_at(past.now - days_ago * DAY)
        )
        if traffic.lost(registry):
            raise ChildError(f"reports of {days_ago} days ago were not acknowledged")
        done()


def _stopped_at(seconds: float) -> Callable[[], float]:
    """Return a clock that shows the Unix time *seconds*."""
    return lambda: seconds


def main() -> None:
    """Play what standard input says, and write a dot for each day that is done."""
    settings = json.load(sys.stdin)
    days = settings.pop("days")
    play(Past(**settings), days, lambda: print(end=".", flush=True))


if __name__ == "__main__":
    main()
