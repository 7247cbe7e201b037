"""Simulated devices: people drawn from published counts, each reporting through the real SDK.

Some have a client of their own; crowds are behind gateways, where each has a ledger all the same.
"""

from __future__ import annotations

import csv
import random
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate, chain, repeat
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from client_sdk.client import Client
from client_sdk.core.epoch import day_of
from client_sdk.gateway import Gateway
from client_sdk.mechanisms import DistributionMechanism
from client_sdk.privacy.consent import Consent, NoOptOuts
from client_sdk.registry.contract import Registry
from client_sdk.registry.metric import Metric
from client_sdk.upload.transport import Transport

from ..analytics.answer import MEAN, QUANTILES

Truth: TypeAlias = Mapping[str, Mapping[str, float]]  # metric name to row to true answer

DATA: Final = Path(str(files("collector.demo"))) / "data"
DEMO_REGISTRY: Final = DATA / "metrics.toml"
_PROGRESS_EVERY: Final = 200  # devices between two reports of progress
PER_SECOND: Final = 0.5  # devices while pages are watched: the usual number after some 15 minutes
_AT_ONCE: Final = 500  # people drawn together


@dataclass(frozen=True)
class Traffic:
    """What a fleet did: devices driven, reports recorded, of these acknowledged, left to others."""

    devices: int
    reports: int
    uploaded: int
    left_out: int  # reports of metrics that are not in the panel of their device

    def __add__(self, other: Traffic) -> Traffic:
        """Return what both did."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Traffic(*(mine + theirs for mine, theirs in pairs))

    def lost(self, registry: Registry) -> int:
        """Return how many reports of these devices were neither acknowledged nor left out."""
        return self.devices * len(registry.metrics) - self.uploaded - self.left_out


@dataclass(frozen=True)
class Crowd:
    """How many devices report on a day as a rule, and how many have on the first one."""

    usual: int
    day: int
    reported: int


def drive(
    people: Sequence[Person],
    registry: Registry,
    transport: Transport,
    progress: Callable[[int], None] = lambda done: None,
    clock: Callable[[], float] = time.time,
) -> Traffic:
    """Let each person's device record and upload once, one device after another.

    Every device has a ledger, an outbox and noise of its own; only the connection is shared.
    Args: clock: of the devices, in Unix seconds.
    """
    traffic = Traffic(0, 0, 0, 0)
    for done, visit in enumerate(visits(people, registry, transport, clock), 1):
        traffic += visit
        if done % _PROGRESS_EVERY == 0 or done == len(people):
            progress(done)
    return traffic


def visits(
    people: Iterable[Person],
    registry: Registry,
    transport: Transport,
    clock: Callable[[], float] = time.time,
) -> Iterator[Traffic]:
    """Let one device after another report, and yield what it did."""
    for person in people:
        client = Client(
            "http://127.0.0.1", "", registry, consent=Consent.GRANTED, data_dir=None,
            segment=person.segment, transport=transport, mode="manual", opt_outs=NoOptOuts(),
            clock=clock,
        )  # fmt: skip
        with client:
            for name, value in person.values.items():
                client.record(name, value)
            client.flush()
            stats = client.stats()
        yield _traffic(1, stats)


def drive_gateways(
    people: Iterable[Person],
    registry: Registry,
    transport: Transport,
    clock: Callable[[], float] = time.time,
) -> Traffic:
    """Let each person's device record at a gateway of its segment, and upload once.

    Args: transport: with a gateway key.  clock: of the gateways, in Unix seconds.
    """
    groups: dict[tuple[tuple[str, str], ...], list[Person]] = {}
    for person in people:
        groups.setdefault(tuple(sorted(person.segment.items())), []).append(person)
    traffic = Traffic(0, 0, 0, 0)
    for segment, group in groups.items():
        gateway = Gateway(
            "http://127.0.0.1", "", registry, consent=Consent.GRANTED, data_dir=None,
            segment=dict(segment), transport=transport, opt_outs=NoOptOuts(), clock=clock,
        )  # fmt: skip
        with gateway:
            gateway.record_many(
                (f"{number}", name, value)
                for number, person in enumerate(group)
                for name, value in person.values.items()
            )
            gateway.flush()
            stats = gateway.stats()
        traffic += _traffic(len(group), stats)
    return traffic


def _traffic(devices: int, stats: Mapping[str, int]) -> Traffic:
    left_out = stats.get("not_in_panel", 0)
    return Traffic(devices, stats["recorded"], stats["uploaded"], left_out)


def run_forever(
    registry: Registry,
    transport: Transport,
    chance: random.Random,
    alive: Callable[[], None],
    crowd: Crowd,
    pause: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.time,
) -> None:
    """Let one more device after another report, PER_SECOND on average, until *alive* raises.

    As many report on a day as usual, so that none is suspected for its number.
    """
    more = visits(_passers_by(chance), registry, transport, clock)
    day, reported = crowd.day, crowd.reported
    while True:
        if (today := day_of(clock())) != day:
            day, reported = today, 0
        if reported < crowd.usual:
            next(more)
            reported += 1
        pause(chance.expovariate(PER_SECOND))
        alive()


def _passers_by(chance: random.Random) -> Iterator[Person]:
    while True:
        yield from population(_AT_ONCE, chance)


T = TypeVar("T")

_HOUSEHOLDS: Final[Mapping[str, str]] = {  # by the marital status of the census
    "Married-civ-spouse": "married",
    "Married-AF-spouse": "married",
    "Married-spouse-absent": "married",
    "Never-married": "never married",
    "Divorced": "no longer married",
    "Separated": "no longer married",
    "Widowed": "no longer married",
}
MOST_VIEWS: Final = 21  # pages; it stands for as many and more, as in the registry
INCOMES: Final = ("up to 50K", "over 50K")
PLATFORMS: Final = ("desktop", "phone", "tablet")
VERSIONS: Final = ("4.8", "4.9")
ARMS: Final = ("control", "short form")  # of the experiment, into which a lot puts devices
STEPS: Final = ("none", "read an article", "saw the offer", "began the form", "subscribed")
WEEKS: Final = ("week 0", "week 1", "week 2", "week 3")
# Invented, like all that is said of platforms and versions, since the surveys knew neither: who
# leaves after one page is on a phone more often, so that a comparison finds a difference.
_LEAVING: Final = (0.35, 0.55, 0.10)  # of the platforms, for who leaves after one page
_STAYING: Final = (0.60, 0.28, 0.12)
_NEWEST: Final = 0.92  # of today's visitors that have the new version
_A_DAY: Final = 0.1  # by how much that was less on each day before
RELEASED: Final = 9  # days ago: the first with the new version
# Invented too: since a new front page, some of those who would have left read on.
# Invented as well: of those who see the form, the short one keeps more; and some come back.
_FURTHEST: Final[Mapping[str, Sequence[int]]] = {  # percent that get to each of STEPS
    "control": (30, 32, 18, 13, 7),
    "short form": (30, 32, 18, 4, 16),
}
_BACK: Final = (1.0, 0.45, 0.3, 0.2)  # share with a visit in each of WEEKS
_WEST, _SOUTH, _EAST, _NORTH = -8.0, 49.5, 2.0, 61.0  # ends of the published grid, in degrees
_SQUARES: Final = 32  # of the grid, each way
REDESIGNED: Final = 5  # days ago: the first with the new front page
_READING_ON: Final = 0.5


@dataclass(frozen=True)
class Person:
    """Somebody with a device: the true value of each metric, and what is public of the device."""

    values: Mapping[str, object]
    segment: Mapping[str, str]


def population(devices: int, chance: random.Random, days_ago: int = 0) -> list[Person]:
    """Draw *devices* people without replacement from the shipped counts, as far as these reach.

    The first page, the number of pages, and age and income come from different surveys, and so do
    places: they are paired at random, and each keeps its own distribution.  The household is drawn
    from the people of the same income.

    Args: days_ago: of the visit; it decides how many have the new version, and read on.
    """
    newest = max(0.0, _NEWEST - _A_DAY * days_ago)
    pages = _draw(_counts("first_page.csv"), devices, chance)
    views = _draw(_counts("page_views.csv"), devices, chance)
    if days_ago <= REDESIGNED:
        views = _reading_on(views, chance)
    persons = _draw(_counts("age_income.csv"), devices, chance)
    squares = _draw(_counts("accidents_grid.csv"), devices, chance)
    drawn = zip(pages, views, persons, squares, strict=True)
    return [
        _person(
            {"first_page": page, "one_page": seen == "1", "page_views": min(int(seen), MOST_VIEWS),
             "age": int(age), "region": _place(int(row), int(column))},
            rich=rich == "true", newest=newest, chance=chance,
        )
        for (page,), (seen,), (age, rich), (row, column) in drawn
    ]  # fmt: skip


def _reading_on(views: Sequence[tuple[str, ...]], chance: random.Random) -> list[tuple[str, ...]]:
    """Return *views*, where some of one page are now those of somebody who stayed."""
    longer = [seen for seen in views if seen != ("1",)]
    return [
        chance.choice(longer) if seen == ("1",) and chance.random() < _READING_ON else seen
        for seen in views
    ]


def _person(
    values: Mapping[str, object], *, rich: bool, newest: float, chance: random.Random
) -> Person:
    """Return one with these *values*, a household, a way to a subscription and a device."""
    statuses, weights = _households(rich)
    (marital,) = chance.choices(statuses, weights)
    (platform,) = chance.choices(PLATFORMS, _LEAVING if values["one_page"] else _STAYING)
    arm = chance.choice(ARMS)
    (furthest,) = chance.choices(STEPS, _FURTHEST[arm])
    weeks = zip(WEEKS, _BACK, strict=True)
    return Person(
        {
            **values,
            "household": {"marital": _HOUSEHOLDS[marital], "income": INCOMES[rich]},
            "sign_up": furthest,
            "came_back": tuple(week for week, share in weeks if chance.random() < share),
        },
        {
            "platform": platform,
            "version": VERSIONS[chance.random() < newest],
            "experiment": arm,
        },
    )


def _place(row: int, column: int) -> tuple[float, float]:
    """Return longitude and latitude of the middle of a square of the published grid."""
    longitude = _WEST + (column + 0.5) * (_EAST - _WEST) / _SQUARES
    return longitude, _SOUTH + (row + 0.5) * (_NORTH - _SOUTH) / _SQUARES


def _draw(counts: Mapping[T, int], k: int, chance: random.Random) -> list[T]:
    """Draw *k* holders without replacement; beyond the whole population it is used again."""
    values, weights = list(counts), list(counts.values())
    total = sum(weights)
    whole, rest = divmod(k, total)
    drawn = chance.sample(values, rest, counts=weights)
    everybody: Iterator[T] = chain.from_iterable(map(repeat, values, weights))
    drawn += list(everybody) * whole
    chance.shuffle(drawn)
    return drawn


@cache
def _households(rich: bool) -> tuple[list[str], list[int]]:
    """Return the marital statuses of an income, and how many people have each."""
    income = ">50K" if rich else "<=50K"
    counts = {
        names[0]: n for names, n in _counts("marital_income.csv").items() if names[1] == income
    }
    return list(counts), list(counts.values())


@cache
def _counts(name: str) -> dict[tuple[str, ...], int]:
    """Return how many people have each combination: the last column of a file counts them."""
    text = (DATA / name).read_text(encoding="utf-8")
    lines = csv.reader(text.splitlines()[1:])
    return {tuple(values): int(count) for *values, count in lines}


_ROUNDING: Final = 1e-12  # of a share


def truth_of(people: Sequence[Person], registry: Registry) -> Truth:
    """Return the exact answer of every metric for *people*: what a query should cover."""
    return {
        metric.name: label_truth(metric, Counter(_counted(person, metric) for person in people))
        for metric in registry
    }


def _counted(person: Person, metric: Metric) -> object:
    """Return the value of *person* in a form that can be counted."""
    value = person.values[metric.name]
    if metric.domain.parts and isinstance(value, Mapping):
        return tuple(value[name] for name in metric.domain.parts)
    return value


def label_truth(metric: Metric, values: Mapping[object, int]) -> dict[str, float]:
    """Return the true answer per row from how many devices hold each value.

    A pair is given as the tuple of its answers, since a mapping cannot be counted.
    """
    total, domain = sum(values.values()), metric.domain
    if domain.grid:
        exact = sum(float(str(value)) * n for value, n in values.items()) / total
        return {**_quantile_truth(metric, values), MEAN: exact}
    held = Counter[str]()
    for value, n in values.items():
        if domain.parts and isinstance(value, tuple):
            value = dict(zip(domain.parts, value, strict=True))
        answer = domain.as_given(domain.encode(value, metric.name))
        held.update(dict.fromkeys(answer if isinstance(answer, list) else [str(answer)], n))
    return {item: held[item] / total for item in domain.answer_items() or held}


def _quantile_truth(metric: Metric, values: Mapping[object, int]) -> dict[str, float]:
    """Return the least numbers up to which as many of the devices are as each quantile says."""
    domain = metric.domain
    if not domain.grid or not isinstance(metric.mechanism, DistributionMechanism):
        return {}
    places = Counter[float]()
    for value, devices in values.items():
        places[float(domain.grid.encode(value, metric.name))] += devices
    order = sorted(places)
    up_to = [part / places.total() for part in accumulate(map(places.__getitem__, order))]
    steps = (order[bisect_left(up_to, level - _ROUNDING)] for level in QUANTILES.values())
    low, step = float(domain.grid.minimum), float(domain.grid.step)
    return dict(zip(QUANTILES, (low + step * place for place in steps), strict=True))
