"""A shop whose every device is known: what it holds is drawn once, and perturbed as on devices.

``crowd``: fourteen days of thirteen metrics in three dimensions, three metrics of weeks and of four
weeks, and one metric a year before.  Each period has devices of its own.  Tallies of items and
numbers are drawn from the exact law of one report; those of sets, keys, strings and places come
from the mechanism's own code.  Everything has a fixed seed.  ``benchmarks.lib.fleet_shop`` is the
other one.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, cached_property
from math import exp
from pathlib import Path
from typing import Any, Final

import numpy as np
from flask import Flask
from flask.testing import FlaskClient

from benchmarks.lib.tallies import Law, law_of
from client_sdk.core.epoch import DAY, epoch_of
from client_sdk.core.randomness import ByteRandomness
from client_sdk.privacy.panel import with_samples
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.core.cells import Cell, segment_text
from collector.core.config import Config
from collector.web import create_app
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

REGISTRY: Final = Path(__file__).parents[1] / "shop.toml"
TOKEN: Final = "a-read-token-of-the-shop"  # noqa: S105  # opens nothing but this
A_DAY: Final = 6_000  # devices
A_WEEK: Final = (18_000, 19_500)  # devices of both weeks
A_MONTH: Final = 40_000  # of the four weeks that hold MONTH
MONTH: Final = date(2026, 11, 1)
DAYS: Final = 14
TODAY: Final = date(2026, 11, 22)  # a Sunday: two whole weeks end
FIRST: Final = TODAY - timedelta(days=DAYS - 1)
RELEASED: Final = date(2026, 11, 13)  # of version 1.3
YEAR: Final = timedelta(days=365)
WORDS: Final = ("shoes", "coat", "lamp", "desk", "gift", "tea", "bike")
SECTIONS: Final = {"news": 15.0, "video": 35.0, "games": 25.0}  # minutes, of those that use it
_SEED: Final = 20_261_122
_UNENUMERATED: Final = frozenset({"set", "string", "key_value", "location"})
_EPOCH: Final = date(1970, 1, 1)
EVERYBODY: Final[Mapping[str, str]] = {}


@dataclass(frozen=True)
class Device:
    """One device on its day: its public segment, and the true value of each metric."""

    day: date
    segment: Mapping[str, str]
    values: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Shop:
    """What is known of a shop, and how often it asks."""

    file: Path  # of the registry
    devices: tuple[Device, ...]  # a device once in each period of which it reports
    first: date  # of what is asked about
    today: date
    released: date  # when version 1.3 came out
    daily: str  # the metric that counts the devices of a day
    periods: int  # of most metrics, from first to today

    @cached_property
    def registry(self) -> Registry:
        """The registry, whose metrics know which part of the devices reports of them."""
        return with_samples(Registry.from_file(str(self.file)))

    @property
    def days(self) -> int:
        """How many days are asked about."""
        return (self.today - self.first).days + 1

    def of(
        self,
        metric: str,
        segment: Mapping[str, str] = EVERYBODY,
        first: date | None = None,
        last: date | None = None,
    ) -> list[Device]:
        """Return the devices in a segment that report *metric* of the days *first* to *last*."""
        first, last = first or self.first, last or self.today
        return [
            device
            for device in _asked(self, metric)
            if first <= device.day <= last and segment.items() <= device.segment.items()
        ]


@cache
def _asked(shop: Shop, metric: str) -> tuple[Device, ...]:
    return tuple(device for device in shop.devices if metric in device.values)


@cache
def crowd() -> Shop:
    """Return the shop that has new devices in each period."""
    return Shop(REGISTRY, devices(), FIRST, TODAY, RELEASED, "screen", DAYS)


@cache
def devices() -> tuple[Device, ...]:
    """Return every device of the fourteen days, and of the same days a year before."""
    chance = random.Random(_SEED)  # people, not noise
    days = [FIRST + timedelta(days=number) for number in range(DAYS)]
    now = [_device(day, chance) for day in days for _ in range(A_DAY)]
    weeks = [
        Device(FIRST + timedelta(days=7 * number), {}, {"weekly": True})
        for number, devices in enumerate(A_WEEK)
        for _ in range(devices)
    ]
    month = [
        Device(
            MONTH, {}, {"monthly": True, "active_days": min(28, int(chance.expovariate(0.2)) + 1)}
        )
        for _ in range(A_MONTH)
    ]
    year = [_earlier(day - YEAR, chance) for day in days for _ in range(A_DAY)]
    return (*year, *now, *weeks, *month)


def _device(day: date, chance: random.Random) -> Device:
    """Return a device with what holds of it, all drawn from shares that are written here."""
    platform = any_platform(chance)
    newest = max(0.0, min(0.8, 0.1 + 0.09 * (day - RELEASED).days)) if day >= RELEASED else 0.0
    version = "1.3" if chance.random() < newest else earlier_version(chance)
    segment = {"platform": platform, "version": version, "arm": any_arm(chance)}
    return Device(day, segment, values_of(segment, chance))


def any_platform(chance: random.Random) -> str:
    """Return the platform of a device."""
    return chance.choices(("ios", "android", "web"), (35, 45, 20))[0]


def earlier_version(chance: random.Random) -> str:
    """Return the version of a device before 1.3."""
    return chance.choices(("1.0", "1.1", "1.2"), (5, 25, 70))[0]


def any_arm(chance: random.Random) -> str:
    """Return the arm of the experiment that a device is in."""
    return chance.choices(("control", "treated"))[0]


def values_of(segment: Mapping[str, str], chance: random.Random) -> dict[str, Any]:
    """Return the values of a device in a period, by metric."""
    pick, platform = chance.choices, segment["platform"]
    treated, new = segment["arm"] == "treated", segment["version"] == "1.3"
    screens = (46, 12, 20, 8, 6, 8) if not new else (40, 18, 20, 8, 6, 8)
    member = chance.random() < 0.3
    buys = chance.random() < (0.5 if member else 0.19)
    spent = min(200, round(chance.gauss(66 if treated else 52, 20))) if buys else 0
    start = 750 * exp(chance.gauss(0.12 if new else 0.0, 0.5))
    furthest = pick(
        ("none", "visit", "product", "cart", "order"),
        (10, 40, 20, 6, 24) if treated else (10, 50, 20, 6, 14),
    )[0]
    chat, home = 0.35 if platform == "ios" else 0.25, chance.gauss(0, 1)
    return {
        "screen": pick(("home", "deals", "search", "cart", "account", "other"), screens)[0],
        "crashed": chance.random() < (0.16 if new else 0.064) + 0.01 * (platform == "android"),
        "deals": chance.random() < (0.28 if treated else 0.2),
        "bought": buys,
        "spent": max(0, spent),
        "startup_ms": min(5_000, 50 * round(start / 50)),
        "checkout": None if furthest == "none" else furthest,
        "weeks": weeks_of(0.45 if treated else 0.35, chance),
        "search": pick((*WORDS, "unicorn"), (30, 20, 15, 14, 10, 6, 4.9, 0.1))[0],
        "place": (10.0 + 0.9 * home, 51.0 + 0.7 * chance.gauss(0, 1)),
        "features": _some({"chat": chat, "scanner": 0.2, "wishlist": 0.5}, chance),
        "member": {"member": _yes(member), "buys": _yes(buys)},
        "minutes": {
            name: min(60, max(0, round(chance.gauss(mean, 6))))
            for name, mean in SECTIONS.items()
            if chance.random() < 0.4
        },
    }


def _earlier(day: date, chance: random.Random) -> Device:
    """Return a device of a year ago, when *home* was less common, and nothing else was asked."""
    screens = ("home", "deals", "search", "cart", "account", "other")
    return Device(
        day,
        {"platform": "web", "version": "1.0", "arm": "control"},
        {"screen": chance.choices(screens, (36, 20, 22, 8, 6, 8))[0]},
    )


def weeks_of(back: float, chance: random.Random) -> tuple[str, ...]:
    """Return the weeks of a visit, of a device that comes back with the chance *back*."""
    shares = {"week 0": 1.0, "week 1": back, "week 2": 0.8 * back, "week 3": 0.65 * back}
    return _some(shares, chance)


def _some(shares: Mapping[str, float], chance: random.Random) -> tuple[str, ...]:
    return tuple(name for name, share in shares.items() if chance.random() < share)


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def shop_app() -> Flask:
    """Return a collector on the evening of TODAY, to be asked with TOKEN."""
    storage = MemoryStorage()
    for increments in _increments():
        storage.put(increments)
    config = Config.from_env({"HEARSAY_REGISTRY": str(REGISTRY), "HEARSAY_READ_TOKEN": TOKEN})
    evening = (TODAY - _EPOCH).days * DAY + 0.9 * DAY
    return create_app(config, storage, lambda: evening, MemoryCredentials())


def _increments() -> Iterator[dict[Cell, list[tuple[int, int]]]]:
    """Yield what folds of each metric leave, in a cell for each day and segment."""
    generator = np.random.default_rng(_SEED)
    for metric in Registry.from_file(str(REGISTRY)):
        held: dict[Cell, Counter[Any]] = defaultdict(Counter)
        encoded: dict[Any, Any] = {}
        for device in devices():
            if metric.name in device.values:
                value = device.values[metric.name]
                key = repr(value)
                if key not in encoded:
                    encoded[key] = metric.encode(value)
                seconds = (device.day - _EPOCH).days * DAY
                text = segment_text(metric, device.segment)
                held[Cell(metric.digest, epoch_of(metric.every, seconds), text)][key] += 1
        law = None if metric.type in _UNENUMERATED else law_of(metric.mechanism)
        for cell, values in held.items():
            counts = [(encoded[key], number) for key, number in values.items()]
            yield {cell: _pairs(_tally(metric, counts, law, generator), values.total())}


def _tally(
    metric: Metric, counts: list[tuple[Any, int]], law: Any, generator: np.random.Generator
) -> Any:
    mechanism = metric.mechanism
    if law is None:
        randomness = ByteRandomness(generator.bytes)
        reports = (mechanism.randomize(value, randomness) for value, n in counts for _ in range(n))
        return mechanism.tally(b"".join(reports), np)
    by_item = np.zeros(len(law.chances) if isinstance(law, Law) else mechanism.domain_size, int)
    for value, number in counts:
        by_item[int(value)] += number
    return law.drawn(by_item, 1, generator)[0]


def _pairs(tally: Any, n: int) -> list[tuple[int, int]]:
    counts = enumerate(np.asarray(tally).tolist(), 1)
    return [(0, n), *((place, count) for place, count in counts if count)]


def asker(app: Flask, token: str) -> FlaskClient:
    """Return a browser, and a program, that has the token of *app*."""
    client = app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {token}"
    return client
