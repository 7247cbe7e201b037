"""The demo's collector without its processes: a few days of its people, in memory."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from flask import Flask

from client_sdk.core.epoch import DAY, epoch_of
from client_sdk.core.randomness import system_randomness
from client_sdk.registry import Registry
from collector.core.cells import Cell, segment_text
from collector.core.config import Config
from collector.demo.fleet import DEMO_REGISTRY, population
from collector.web import create_app
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

TOKEN: Final = "read-token-of-the-demo-0123456789"
A_DAY: Final = 1_100  # people; enough for a number of every day


def demo_app(days: Iterable[int] = range(3)) -> Flask:
    """Return a collector that has counted the demo's people of these *days* ago."""
    storage, now, randomness = MemoryStorage(), time.time(), system_randomness()
    for days_ago in days:
        people = population(A_DAY, random.Random(days_ago), days_ago)
        for metric in Registry.from_file(str(DEMO_REGISTRY)):
            reports: dict[Cell, list[bytes]] = defaultdict(list)
            epoch = epoch_of(metric.every, now - days_ago * DAY)
            for person in people:
                cell = Cell(metric.digest, epoch, segment_text(metric, person.segment))
                value: Any = metric.encode(person.values[metric.name])
                reports[cell].append(metric.mechanism.randomize(value, randomness))
            for cell, payloads in reports.items():
                tally = metric.mechanism.tally(b"".join(payloads), np).tolist()
                storage.put({cell: [(0, len(payloads)), *enumerate(tally, 1)]})
    settings = {"HEARSAY_REGISTRY": str(DEMO_REGISTRY), "HEARSAY_READ_TOKEN": TOKEN}
    return create_app(Config.from_env(settings), storage, lambda: now, MemoryCredentials())
