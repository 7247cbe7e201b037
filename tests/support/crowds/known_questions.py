"""What is asked of known crowds: each verb with what it needs, of each subject, in each setting.

A verb joins by existing, and is asked without options unless ``ASKS`` says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from collector.analytics.rows import TIME
from collector.analytics.verb import load, names
from collector.query import Answer, plan, read, run
from collector.query.plan import Plan
from tests.support.crowds.known_crowds import REDRAWN, SUBJECTS, Subject
from tests.support.crowds.known_sites import NOW, RUNNING, SETTLED, Site

PLATFORM, ARM, DAY, WEEK = "platform", "arm", "time:day", "time:week"
GROUPS: Final = ((), (PLATFORM,), (PLATFORM, ARM), (DAY,), (WEEK,))
Options = Mapping[str, Any]


@dataclass(frozen=True)
class Ask:
    """What a verb is asked with: its *options*, and of *two* metrics or one.

    ``of`` says of which subjects it makes sense; a verb refuses others by itself.
    """

    options: Callable[[Subject, str], Options] = lambda _subject, _by: {}
    two: bool = False
    of: Callable[[Subject], bool] = lambda _: True


def _item(subject: Subject, _: str) -> Options:
    return {"item": subject.items[1]} if subject.items else {}


def _spread(subject: Subject, by: str) -> Options:
    return {"dimension": by} if by else {}


def _spread_of_item(subject: Subject, by: str) -> Options:
    return {**_spread(subject, by), "item": subject.items[1] if subject.items else "mean"}


def _compare(_: Subject, by: str) -> Options:
    return {"by": by} if by else {}


def _lift(_: Subject, by: str) -> Options:
    return {"dimension": by or ARM, "control": "mac" if by == PLATFORM else "control"}


def _range(subject: Subject, _: str) -> Options:
    low, high = subject.items or (3, 5)
    return {"low": low, "high": high}


def _ratio(of: str) -> Callable[[Subject, str], Options]:
    def options(subject: Subject, _: str) -> Options:
        over = {"numerator": subject.items[1]} if subject.items else {}
        under = {"denominator": SUBJECTS["category"].items[0]} if _second(subject) else {}
        return {"of": of, **over, **under}

    return options


def _second(subject: Subject) -> bool:
    """Return whether the metric beside it is the category."""
    return subject is SUBJECTS["boolean"]


def _joins(subject: Subject) -> bool:
    return bool(subject.answers(subject.values[0]))


ASKS: Final[Mapping[str, tuple[Ask, ...]]] = {
    "adoption": (Ask(_spread), Ask(_spread_of_item)),
    "compare": (Ask(_compare),),
    "crosstab": (
        Ask(),
        Ask(lambda subject, _: {"of": list(subject.answers(subject.values[0]))[-1]}, of=_joins),
        Ask(two=True),
    ),
    "heavy_hitters": (Ask(), Ask(lambda _subject, _by: {"candidates": ["oh", "no", "xy"]})),
    "lift": (Ask(_lift),),
    "range": (Ask(_range),),
    "ratio": (Ask(_ratio("means"), two=True), Ask(_ratio("totals"), two=True)),
    "segments": (Ask(_item),),
    "trend": (
        Ask(),
        Ask(lambda _subject, _by: {"levels": [0.5]}, of=lambda subject: subject.number is not None),
    ),
}


REDRAWN_GROUPS: Final = (GROUPS[0], GROUPS[1], GROUPS[4])  # that are asked under two draws


class Cell(NamedTuple):
    """One question in one setting."""

    name: str  # of the subject
    verb: str
    place: int  # of its ask
    dimensions: tuple[str, ...]
    definitions: str
    panel: bool
    every: str
    is_settled: bool

    @property
    def subject(self) -> Subject:
        """What the first metric is of."""
        return SUBJECTS[self.name]

    @property
    def ask(self) -> Ask:
        """What the verb is asked with."""
        return ASKS.get(self.verb, (Ask(),))[self.place]

    @property
    def segments(self) -> tuple[str, ...]:
        """The dimensions but time."""
        return tuple(name for name in self.dimensions if not name.startswith(TIME))

    @property
    def granularity(self) -> str | None:
        """How time is told apart, if it is."""
        asked = [name for name in self.dimensions if name.startswith(TIME)]
        return (*asked, TIME)[0] if asked or load(self.verb).needs_time else None

    @property
    def options(self) -> Options:
        """The options."""
        return self.ask.options(self.subject, (*self.segments, "")[0])

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics: of two, the second is an item's share."""
        if not self.ask.two:
            return (self.name,)
        return self.name, "category" if _second(self.subject) else "boolean"


def cells(name: str) -> Iterator[Cell]:
    """Yield the cells of a subject: all of verb, group, definitions and panel, each at one length
    of epochs, settled or running, so that any two values of any two of these meet.
    """
    subject = SUBJECTS[name]
    turn = list(SUBJECTS).index(name)
    for verb in names():
        for place, ask in enumerate(ASKS.get(verb, (Ask(),))):
            turn += 1
            if not ask.of(subject):
                continue
            for at, dimensions in enumerate(GROUPS):
                for version, definitions in enumerate(subject.definitions):
                    every = subject.every[(turn + at + version) % len(subject.every)]
                    is_settled = (turn // 5 + at + version) % 2 == 0
                    panels = [False, True]
                    if definitions == REDRAWN:
                        panels = [True] if dimensions in REDRAWN_GROUPS else []
                    for panel in panels:
                        yield Cell(
                            name, verb, place, dimensions, definitions, panel, every, is_settled
                        )


@dataclass
class Sites:
    """The collectors that cells are asked at, each set up once."""

    folder: Path
    sites: dict[tuple[str, bool, str], Site] = field(default_factory=dict)

    def of(self, cell: Cell) -> Site:
        """Return the collector of a cell."""
        place = cell.every, cell.panel, cell.definitions
        if place not in self.sites:
            folder = self.folder / "-".join(map(str, place))
            folder.mkdir()
            self.sites[place] = Site(
                folder, cell.every, panel=cell.panel, definitions=cell.definitions
            )
        return self.sites[place]

    def plan(self, cell: Cell) -> Plan:
        """Return the plan of a question as a request brings it.  Raises QueryError."""
        site = self.of(cell)
        body = {
            "metrics": cell.metrics,
            "verb": cell.verb,
            "dimensions": cell.dimensions,
            "options": cell.options,
            "date_range": (SETTLED if cell.is_settled else RUNNING)[cell.every],
            "pagination": {"limit": 10_000},
        }
        return plan(read(json.dumps(body).encode()), site.catalog, NOW)

    def answer(self, cell: Cell, planned: Plan) -> Answer:
        """Return the answer to a question.  Raises QueryError."""
        site = self.of(cell)
        for name in cell.metrics:
            site.fill(name)
        return run(planned, site.storage)
