"""A fleet of real clients over simulated weeks, and the real collector that answers about them.

Everything but time, the network and the store is what ships: each device is a client with a ledger,
caps, a panel and an outbox of its own; uploads go through the intake, the fold and the query API.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from client_sdk.client import Client
from client_sdk.core.dataclass import replace
from client_sdk.core.epoch import DAY, HOUR, day_of_date
from client_sdk.core.errors import InvalidParameterError
from client_sdk.privacy.caps import DEFAULT_CAPS, WEEK, Caps
from client_sdk.privacy.consent import Consent, NoOptOuts
from client_sdk.privacy.panel import panel_of
from client_sdk.testing import FrozenClock
from client_sdk.upload.transport import ACCEPTED, Answer

from ..client import PAGE, Result, question_of
from ..core.config import Config
from ..core.errors import AnswerError, CollectorError
from ..intake.wire import JSON
from ..planning.machines import Hours
from ..storage.hashes import MemoryHashes
from ..storage.records import CredentialStore
from ..web.app import create_app
from ..web.ingest.route import accept
from ..web.ingest.upload import PATH, Head
from ..web.services import services_of
from ..worker.worker import Worker
from .memory_storage import MemoryStorage

WRITE_KEY: Final = "a-write-key-of-this-process-alone"
READ_TOKEN: Final = "a-read-token-of-this-process-alone"  # noqa: S105 - no other process has its store
_log = logging.getLogger("hearsay")  # of the device
_FLUSH: Final = 60.0  # seconds that a flush may take, on a machine that is busy with others


@dataclass
class FleetDevice:
    """One device: its real client, and the clock of its machine, which can be set."""

    number: int  # from 0 on
    client: Client
    clock: FrozenClock
    chance: random.Random  # for what its person does; no noise comes from it

    def record(self, name: str, value: object) -> None:
        """Record, as the application would."""
        self.client.record(name, value)


Behaviour = Callable[[FleetDevice], None]


class Fleet:
    """Devices that run at the same hours, and their collector, in this process and in memory.

    Its clock stands still but while it runs: a day of the fleet takes as long as its work.
    """

    def __init__(
        self,
        registry: str | Path,
        *,
        devices: int,
        hours_on: int = 24,
        days_on: int = 7,
        begin: date | None = None,
        caps: Caps = DEFAULT_CAPS,
        segment: Callable[[int], Mapping[str, str]] = lambda number: {},
        seed: int = 0,
    ) -> None:
        """Prepare a fleet for the registry file at the path *registry*.

        Args:   hours_on: a day.  days_on: of a week, from Monday on.  begin: a Monday, by default
                this week's.
                segment: of a device, by its number.  seed: of what people do; noise has none.
        Raises: InvalidParameterError, RegistryError, ConfigError.
        """
        if devices < 1:
            raise InvalidParameterError("devices", devices, "must be at least 1")
        today = date.today()  # noqa: DTZ011 - of the developer
        begin = today - timedelta(today.weekday()) if begin is None else begin
        if begin.weekday():
            raise InvalidParameterError("begin", begin, "must be a Monday")
        self._hours = Hours(hours_on, days_on)
        self._begin = self._last = day_of_date(begin) * DAY  # Unix seconds: weeks; what has run
        self._storage = MemoryStorage()
        self._storage.clock = self._begin
        settings = {"REGISTRY": str(registry), "WRITE_KEY": WRITE_KEY, "READ_TOKEN": READ_TOKEN}
        most = {"KEY_RATE": "1000000", "NEW_TALLIES_MB": "0"}  # all have one key, and one moment
        config = Config.from_env({f"HEARSAY_{k}": v for k, v in (settings | most).items()})
        now = self._now
        credentials = CredentialStore(MemoryHashes())
        self.app = create_app(config, self._storage, now, credentials, monotonic=now)
        self.read_token = READ_TOKEN
        self._shared = services_of(self.app)
        (known,) = self._shared.catalog.registries
        self._worker = Worker(
            self._storage,
            {metric.digest: metric.mechanism for metric in known},
            {metric.digest: metric.every for metric in known},
        )
        if known.panel_week is not None:  # found once for all
            known = replace(known, seats=panel_of(known, known.panel_week).seats)
        self._http, self._once = self.app.test_client(), _Once()
        _log.addFilter(self._once)
        self.devices = []
        for number in range(devices):
            clock = FrozenClock(self._begin)
            client = Client(
                "http://127.0.0.1", "", known, consent=Consent.GRANTED, data_dir=None,
                segment=segment(number), caps=caps, transport=self, mode="manual",
                opt_outs=NoOptOuts(), clock=clock, uptime=clock.uptime,
            )  # fmt: skip
            chance = random.Random(f"{seed} {number}")  # noqa: S311 - people, not noise
            self.devices.append(FleetDevice(number, client, clock, chance))

    def __enter__(self) -> Fleet:
        """Close all clients at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close all clients."""
        _log.removeFilter(self._once)
        for device in self.devices:
            device.client.close()

    def run(self, behave: Behaviour, *, weeks: int = 1, hourly: bool = False) -> Counter[str]:
        """Let *weeks* pass, and return what all clients have counted so far, by reason.

        Args: behave: what a device does when its machine is switched on; with *hourly*, at the
              begin of each hour that it runs.  A machine that is always on begins at 0:00 UTC.
        """
        for begin, end in self._hours.sessions(self._begin, weeks):
            if off := begin - self._last:
                for device in self.devices:
                    device.clock.turn_off(seconds=off)
            step = HOUR if hourly else end - begin
            for _ in range(begin, end, step):
                for device in self.devices:
                    behave(device)
                    device.clock.advance(seconds=step)
            self._last = self._storage.clock = end
            for device in self.devices:
                device.client.flush(_FLUSH)
            while self._worker.step():
                pass
        self._begin += weeks * WEEK * DAY
        return self.counts()

    def counts(self) -> Counter[str]:
        """Return what all clients have counted, by reason: recorded, budget, not_in_panel, …"""
        counts: Counter[str] = Counter()
        for device in self.devices:
            counts.update(device.client.stats())
        return +counts

    def query(self, metrics: str | Sequence[str], verb: str = "estimate", **fields: Any) -> Result:
        """Ask the collector one question; see ``collector.client.Client.query``.

        Raises: AnswerError.
        """
        question = {"pagination": {"limit": PAGE}} | question_of(metrics, verb, fields)
        headers = {"Authorization": f"Bearer {READ_TOKEN}"}
        response = self._http.post("/v1/query", json=question, headers=headers)
        answer = response.get_json()
        if response.status_code != HTTPStatus.OK:
            raise AnswerError(response.status_code, answer)
        return Result(tuple(answer["rows"]), answer["meta"])

    def send(self, body: bytes, timeout: float) -> Answer:
        """Take an upload of a device to the collector: the transport of all clients."""
        bearer = f"Bearer {WRITE_KEY}"
        try:  # what nearly every upload does, without a request made for it
            return Answer(
                ACCEPTED,
                None,
                accept(self._shared, Head(bearer, JSON, "", len(body)), BytesIO(body)),
            )
        except CollectorError:  # once more, for the problem document
            headers = {"Authorization": bearer}
            response = self._http.post(PATH, data=body, content_type=JSON, headers=headers)
            return Answer(response.status_code, None, response.data, response.content_type or "")

    def _now(self) -> float:
        return self._storage.clock


class _Once(logging.Filter):
    """Lets each message through once: all devices hear of the same mistakes."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        message, before = record.getMessage(), len(self._seen)
        self._seen.add(message)
        return len(self._seen) > before
