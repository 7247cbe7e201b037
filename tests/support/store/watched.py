"""A store with days of reports, and the watches over it, without a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from client_sdk.core.epoch import DAY, epoch_of
from client_sdk.registry.contract import Registry
from collector.core.catalog import Catalog
from collector.core.cells import Cell
from collector.storage.records import WatchMessage
from collector.workspace.watch.delivery import DeliveryError
from collector.workspace.watch.rounds import Rounds
from collector.workspace.watch.rules import Channel, Watches, parse
from tests.support.device.registries import BOOLEAN, CATEGORY, NUMBER, file_with
from tests.support.store.memory_storage import MemoryStorage, MemoryWatches
from tests.support.store.stored import queue_one

TODAY: Final = 20_516  # 2026-03-04
NOON: Final = TODAY * DAY + DAY // 2
NEWEST: Final = TODAY - 2  # the last day of which version 0 is published at noon
CHANNEL: Final = """
[[channel]]
name = "team"
webhook = "https://hooks.example.org/x"
"""


def catalog_of(every: str = "1d", form: dict[str, str] = BOOLEAN) -> Catalog:
    """Return a catalog with the metric m."""
    text = file_with({**form, "every": f'"{every}"', "min_reports": "100"})
    return Catalog([Registry.from_text(text)])


FORMS: Final = {"boolean": BOOLEAN, "category": CATEGORY, "number": NUMBER}


def fold(storage: Any, catalog: Catalog, day: int, n: int, share: float, lateness: int = 0) -> None:
    """Store *n* reports of a boolean on a day, of which about *share* stand for true."""
    metric = catalog.metric("m")
    draw = np.random.default_rng(day)
    channel: Any = metric.mechanism
    p, q = float(channel.channel.p), float(channel.channel.q)
    held = round(share * n)
    true = int(draw.binomial(held, p) + draw.binomial(n - held, q))
    tally = [n - true, true]
    cell = Cell(metric.digest, epoch_of(metric.every, day * DAY), "", lateness)
    shard, entry = queue_one(storage)
    storage.fold(shard, [entry], {cell: list(enumerate((n, *tally)))})


class Desk:
    """One deployment: a catalog, tallies, the store of watches, and a receiver that can be down."""

    def __init__(self, text: str, catalog: Catalog | None = None, now: int = NOON) -> None:
        self.catalog = catalog or catalog_of()
        self.tallies, self.store = MemoryStorage(), MemoryWatches(now)
        self.watches: Watches = parse(text)
        self.is_down = False
        self.tries = 0
        self.received: list[WatchMessage] = []

    def fold(self, day: int, n: int, share: float) -> None:
        fold(self.tallies, self.catalog, day, n, share)

    def deliver(self, channel: Channel, message: WatchMessage, now: int) -> None:
        self.tries += 1
        if self.is_down:
            raise DeliveryError(f"channel={channel.name}: answered 503")
        self.received.append(message)

    def rounds(self, holder: str = "", deliver: Callable[..., None] | None = None) -> Rounds:
        return Rounds(
            self.watches, self.catalog, self.tallies, self.store, deliver or self.deliver, holder
        )
