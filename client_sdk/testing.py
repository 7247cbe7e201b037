"""For tests of applications: a client that keeps everything in memory and tells what it was given.

No test needs a collector, a folder or a wait.  Reports are perturbed as in production, by entropy
of the operating system: a test looks at what was recorded, never at what a report says.  For
pytest there is a fixture in ``pytest_fixture``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from threading import RLock

from .client import Client
from .core.base64url import from_base64url
from .core.epoch import DAY
from .core.paths import RegistryFile
from .core.stats import MISTAKES, Reason, caller, rule_of
from .core.typing import Final
from .privacy.caps import DEFAULT_CAPS, Caps
from .privacy.consent import Consent, ConsentLike, NoOptOuts
from .recording.background import Mode
from .registry.contract import Registry
from .storage.trusted_clock import Uptime
from .upload.transport import ACCEPTED, PROBLEM, PROBLEM_TYPE, Answer, Transport
from .wire.reports import Report

NOON: Final = 20_000 * DAY + DAY // 2  # Unix time; a day in 2024, far from its edges


def answer_of(status: int) -> Answer:
    """Return what a collector answers with *status*: an acknowledgement, or a problem document."""
    if status == ACCEPTED:
        return Answer(status, None, b'{"accepted": 1, "duplicate": false, "rejected": []}')
    if status < 400:
        return Answer(status)
    document = {"type": f"{PROBLEM_TYPE}test", "status": status}
    return Answer(status, None, json.dumps(document).encode(), PROBLEM)


class FrozenClock:
    """Unix time in seconds that stands still until it is moved, of a machine that runs."""

    def __init__(self, now: float = NOON) -> None:
        """Begin at *now*."""
        self.now = float(now)
        self._boots = 1
        self._ran = 0.0  # seconds since the boot

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def uptime(self) -> Uptime:
        """Return how long the machine has run: as long as the clock went forward."""
        return Uptime(f"boot {self._boots}", self._ran)

    def advance(self, *, seconds: float = 0, days: float = 0) -> None:
        """Move forward as time passes; backward, if negative, as a clock is set."""
        step = seconds + days * DAY
        self.now += step
        self._ran += max(0.0, step)

    def turn_off(self, *, seconds: float = 0, days: float = 0) -> None:
        """Move forward as time passes for a machine that is off, and boot it."""
        self.now += seconds + days * DAY
        self._boots, self._ran = self._boots + 1, 0.0


class MemoryTransport:
    """Keeps uploads instead of sending them."""

    def __init__(self, *statuses: int) -> None:
        """Answer with each of *statuses* once, in order, and accept everything after them."""
        self._statuses = list(statuses)
        self.uploads: list[bytes] = []  # every body that was to be sent, also if it was refused

    def send(self, body: bytes, timeout: float) -> Answer:
        """Keep *body* and answer."""
        self.uploads.append(body)
        return answer_of(self._statuses.pop(0) if self._statuses else ACCEPTED)

    def reports(self) -> list[Report]:
        """Return the report of every column that was to be sent, retries included."""
        columns = [column for body in self.uploads for column in json.loads(body)["columns"]]
        return [
            Report(
                from_base64url(column["metric"]),
                column["epoch"],
                from_base64url(column["payloads"]),
            )
            for column in columns
        ]


class MemoryClient(Client):
    """A client without thread, disk and network, which nobody's environment can switch off."""

    def __init__(
        self,
        registry: Registry | RegistryFile,
        *,
        consent: ConsentLike = Consent.GRANTED,
        segment: Mapping[str, str] | None = None,
        caps: Caps = DEFAULT_CAPS,
        transport: Transport | None = None,
        clock: FrozenClock | None = None,
    ) -> None:
        """Prepare to record metrics of *registry*; see ``Client`` for what may be given.

        Raises: InvalidParameterError, RegistryError.
        """
        self.clock = FrozenClock() if clock is None else clock
        self.transport = MemoryTransport() if transport is None else transport
        self.recorded: list[tuple[str, object]] = []  # names and values that were taken
        self.refused: list[str] = []  # what was recorded by mistake, why, and from which line
        self._turn = RLock()
        super().__init__(
            "https://collector.invalid",
            "unused",
            registry,
            consent=consent,
            data_dir=None,
            segment=segment,
            caps=caps,
            mode=Mode.MANUAL,
            strict=True,
            remember=True,
            transport=self.transport,
            opt_outs=NoOptOuts(),
            clock=self.clock,
            uptime=self.clock.uptime,
        )

    def record(self, name: str, value: object) -> None:
        """Record as any client does; if *value* was taken, keep it in ``recorded``.

        It was if it became a report, or was added to those of its epoch.  What was recorded by
        mistake is told in ``refused``.
        """
        with self._turn:
            self._engine.tick()  # its reports are of values that were taken before
            before = self._taken()
            try:
                super().record(name, value)
            except Exception as error:  # noqa: BLE001 - a client never raises it in production
                self.refused.append(f"{name}={value!r}: {rule_of(error)}; recorded at {caller()}")
            if self._taken() > before:
                self.recorded.append((name, value))

    def _taken(self) -> int:
        counts = self.stats()
        return counts[Reason.RECORDED] + counts[Reason.AGGREGATED]

    @property
    def mistakes(self) -> dict[str, int]:
        """What the application did wrong, by reason: counted, in production, and never seen."""
        counts = self.stats()
        return {reason.value: counts[reason] for reason in MISTAKES if counts[reason]}
