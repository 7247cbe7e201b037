"""An uploader with fakes on all sides."""

from __future__ import annotations

from client_sdk.core.epoch import day_of
from client_sdk.core.randomness import Randomness
from client_sdk.core.stats import Stats
from client_sdk.privacy.consent import Consent, ConsentSwitch
from client_sdk.storage import outbox
from client_sdk.storage.outbox import Outbox
from client_sdk.storage.store import Store
from client_sdk.upload.transport import Transport
from client_sdk.upload.uploader import Uploader
from client_sdk.wire.reports import DEVICE, Bounds, Report
from tests.support.device.clock import FakeClock
from tests.support.enumeration.seeded import SeededRandomness


class Desk:
    """An uploader with its fakes at hand."""

    def __init__(
        self,
        transport: Transport,
        randomness: Randomness | None = None,
        store: Store | None = None,
        clock: FakeClock | None = None,
        bounds: Bounds = DEVICE,
    ) -> None:
        self.store, self.clock, self.stats = store or Store(None), clock or FakeClock(), Stats()
        self.switch = ConsentSwitch(Consent.GRANTED)
        self.uploader = Uploader(
            self.store,
            transport,
            self.switch,
            self.stats,
            self.clock,
            randomness or SeededRandomness(b"desk"),
            bounds,
        )

    def put(self, count: int, platform: str = "mac") -> None:
        day = day_of(self.clock())
        with self.store.transaction() as tx:
            for epoch in range(count):
                report = Report(b"digest", epoch, b"\x01")
                Outbox({"platform": platform}).put(tx, report, day, ["platform"])

    def flush(self, timeout: float = 60.0) -> None:
        self.uploader.flush(timeout)

    def waiting(self) -> int:
        with self.store.transaction() as tx:
            return outbox.waiting(tx)

    def counts(self) -> dict[str, int]:
        return {reason: count for reason, count in self.stats.counts().items() if count}
