"""The application of ``examples/metrics.toml`` after four weeks with a fleet: what docs ask it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from flask import Flask

from client_sdk.core.epoch import DAY, epochs_between
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.core.cells import Cell, segment_text
from collector.core.config import Config
from collector.web import create_app
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

ROOT: Final = Path(__file__).parents[3]
REGISTRY: Final = ROOT / "examples" / "metrics.toml"
TOKEN: Final = "a-read-token-of-your-own"
TODAY: Final = date(2026, 11, 16)  # a Monday
FIRST: Final = TODAY - timedelta(days=28)
PLATFORMS: Final = ("linux", "macos", "windows")
DEVICES: Final = {"theme": 2_500, "startup_ms": 2_500, "uses_plugins": 4_000, "saves": 1_500}
_DARK: Final = {"linux": 55, "macos": 45, "windows": 30}  # percent; light is a third of the rest
_START: Final = {"linux": 400, "macos": 500, "windows": 900}  # ms; the last week is slower
Filling = list[tuple[Cell, list[tuple[int, int]]]]


def editor_app() -> Flask:
    """Return a collector at noon of TODAY, to be asked with TOKEN."""
    storage = MemoryStorage()
    for cell, pairs in _filling():
        storage.put({cell: pairs})
    config = Config.from_env({"HEARSAY_REGISTRY": str(REGISTRY), "HEARSAY_READ_TOKEN": TOKEN})
    noon = (TODAY - date(1970, 1, 1)).days * DAY + DAY / 2
    return create_app(config, storage, lambda: noon, MemoryCredentials())


@lru_cache(maxsize=1)
def _filling() -> Filling:
    return [
        _tallied(metric, epoch, platform)
        for metric in Registry.from_file(REGISTRY)
        for epoch in epochs_between(metric.every, FIRST, TODAY - timedelta(days=1))
        for platform in (PLATFORMS if metric.segments else ("",))
    ]


def _tallied(metric: Metric, epoch: int, platform: str) -> tuple[Cell, list[tuple[int, int]]]:
    """Return what a fold of the reports of one epoch and platform adds."""
    randomness = SeededRandomness(f"{metric.name} {epoch} {platform}".encode())
    mechanism, n = metric.mechanism, DEVICES[metric.name]
    reports = b"".join(
        mechanism.randomize(metric.encode(value), randomness)
        for value in _held(metric, epoch, platform, n)
    )
    tally = mechanism.tally(reports, np).tolist()
    segment = segment_text(metric, {"platform": platform} if platform else {})
    pairs = [(0, n), *((place + 1, count) for place, count in enumerate(tally) if count)]
    return Cell(metric.digest, epoch, segment), pairs


def _held(metric: Metric, epoch: int, platform: str, n: int) -> Sequence[Any]:
    if metric.name == "theme":
        dark = n * _DARK[platform] // 100
        light = (n - dark) // 3
        return ["dark"] * dark + ["light"] * light + ["system"] * (n - dark - light)
    if metric.name == "startup_ms":
        slower = 200 if epoch == epochs_between("7d", FIRST, TODAY - timedelta(days=1))[-1] else 0
        return [_START[platform] + slower + 10 * (i % 20) for i in range(n)]
    if metric.name == "uses_plugins":
        return [i % 4 == 0 for i in range(n)]
    return [i % 20 for i in range(n)]
