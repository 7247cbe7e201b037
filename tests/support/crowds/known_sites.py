"""Collectors that hold the reports of known crowds, on a Tuesday, with and without a panel.

Devices are of a platform and an arm, or do not say; those of two platforms are few.  They report in
a few epochs of each length, of which the last is still running: a third of its devices have so far,
but of what is summed up none.  One epoch lies before every range that is asked for by dates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from client_sdk.core.epoch import ONCE, epoch_of
from client_sdk.privacy.panel import with_samples
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.core.catalog import Catalog
from collector.core.cells import Cell, segment_text
from tests.support.crowds.known_crowds import REDRAWN, SUBJECTS, TWO, Law, Subject, law_of
from tests.support.store.memory_storage import MemoryStorage

NOW: Final = datetime(2026, 3, 3, 10, 30, tzinfo=UTC).timestamp()
# when epochs begin that devices report of: the first before all ranges, the last still running
_BEGINS: Final[Mapping[str, tuple[str, ...]]] = {
    "1h": ("02-24T09", "02-28T23", "03-01T00", "03-01T23", "03-02T00", "03-03T10"),
    "1d": ("02-24T00", "02-28T00", "03-01T00", "03-02T00", "03-03T00"),
    "7d": ("02-09T00", "02-16T00", "02-23T00", "03-02T00"),
    "28d": ("2025-11-17T00", "2025-12-15T00", "2026-01-12T00", "2026-02-09T00"),
    ONCE: ("01-01T00",),
}
SETTLED: Final[Mapping[str, tuple[str, str]]] = {
    "1h": ("2026-02-28", "2026-03-02"),
    "1d": ("2026-02-28", "2026-03-02"),
    "7d": ("2026-02-16", "2026-03-01"),
    "28d": ("2025-12-15", "2026-02-08"),
    ONCE: ("2026-02-28", "2026-03-02"),
}
RUNNING: Final = {"1h": "7d", "1d": "7d", "7d": "14d", "28d": "91d", ONCE: "30d"}
_DAYS: Final = {"7d": 7, "14d": 14, "30d": 30, "91d": 91}
# of any 7 dates, of all metrics together: so that the current ones draw about a third of devices
_WEEK: Final = {"1h": "8000", "1d": "440", "7d": "100", "28d": "100", ONCE: "60"}
PLATFORMS: Final = ("linux", "mac", "haiku", "plan9")
ARMS: Final = ("control", "new")
SEGMENTS: Final[Sequence[Mapping[str, str]]] = (
    {"platform": "linux", "arm": "control"},
    {"platform": "linux", "arm": "new"},
    {"platform": "mac", "arm": "control"},
    {"platform": "mac", "arm": "new"},
    {"platform": "haiku", "arm": "control"},
    {"platform": "plan9", "arm": "new"},
    {},
)
FEW: Final = ("haiku", "plan9")
DEVICES: Final = 250_000  # of a segment and an epoch, times one of the weights for each value
WEIGHTS: Final = (5, 7, 11, 13)  # no quantile lies between two values
PART_OF_FEW: Final = 20
MORE_OF_MAC: Final = 6  # under an earlier definition
MIN_REPORTS: Final = 410_000
SO_FAR: Final = 3  # one in so many devices of a running epoch has reported
_MONDAY: Final = date(1970, 1, 5)


def begins(every: str) -> list[datetime]:
    """Return when the epochs begin that there are reports of."""
    texts = (text if text.startswith("2") else f"2026-{text}" for text in _BEGINS[every])
    return [datetime.strptime(text, "%Y-%m-%dT%H").replace(tzinfo=UTC) for text in texts]


class Reports(NamedTuple):
    """The *devices* of a segment and an epoch, shape (values,), whatever a panel draws of them."""

    segment: Mapping[str, str]
    begin: datetime
    is_running: bool
    is_current: bool  # under the current definition
    devices: Any
    share: float  # that the panel draws
    period: str  # for which it does
    sent: float  # reports, to the rounding of the tally

    @property
    def draw(self) -> int:
        """Which of all draws decides about these devices; periods begin on Mondays."""
        days = {"7d": 7, "28d": 28}.get(self.period)
        return (self.begin.date() - _MONDAY).days // days if days else 0


class Site:
    """A collector of metrics of all subjects that are reported *every* so often."""

    def __init__(self, folder: Path, every: str, *, panel: bool, definitions: str) -> None:
        """Write the registries into *folder*."""
        self.every, self.panel, self.definitions = every, panel, definitions
        self.names = [name for name, subject in SUBJECTS.items() if every in subject.every]
        self._laws: dict[bytes, Law] = {}
        self._reports: dict[str, list[Reports]] = {}
        self.storage, self._filled = MemoryStorage(), set[str]()
        texts = [self._text("8", Fraction(1))]
        if definitions == TWO:
            texts.append(self._text("4", Fraction(1), earlier=True))
        if definitions == REDRAWN:
            texts.append(self._text("8", Fraction(7, 4)))
        paths = [folder / f"{place}.toml" for place in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        self.catalog = Catalog.from_files(map(str, paths))
        drawn = self.catalog.registries
        if definitions == REDRAWN:  # the catalog knows no more than the least of both shares
            drawn = tuple(with_samples(Registry.from_text(text)) for text in texts)
        self._drawn = [registry.metrics for registry in drawn]

    def _text(self, epsilon: str, more: Fraction, *, earlier: bool = False) -> str:
        panel = f'[panel]\nweek = "{float(Fraction(_WEEK[self.every]) * more):g}"\n'
        head = f'schema = 1\napp = "known"\n{panel if self.panel else ""}[segments]\n'
        head += f"platform = {list(PLATFORMS)}\narm = {list(ARMS)}\n"
        return head + "".join(
            self._metric(name, SUBJECTS[name], epsilon, earlier=earlier) for name in self.names
        )

    def _metric(self, name: str, subject: Subject, epsilon: str, *, earlier: bool) -> str:
        form = subject.earlier if earlier and subject.earlier else subject.form
        fresh = "" if "longitudinal" in form else 'longitudinal = "fresh"\n'
        # of two metrics a panel draws other parts
        weight = "weight = 2\n" if self.panel and name == "boolean" else ""
        return (
            f'[metrics.{name}]\ntitle = "What {name} is"\nquestion = "Do we change {name}?"\n'
            f'{form}\nepsilon = "{epsilon}"\nevery = "{self.every}"\n{weight}{fresh}'
            'segments = ["platform", "arm"]\nowner = "tests"\nexpected_devices = 50000000\n'
            f"min_reports = {MIN_REPORTS}\nexpires = 2099-12-31\n"
        )

    def metrics(self, name: str) -> list[Metric]:
        """Return the definitions of a metric, each as its own registry draws devices for it."""
        return [metrics[name] for metrics in self._drawn]

    def reports(self, name: str) -> list[Reports]:
        """Return the devices of every segment, epoch and definition of the metric *name*."""
        if name not in self._reports:
            self._reports[name] = list(self._crowd(name))
        return self._reports[name]

    def _crowd(self, name: str) -> Iterator[Reports]:
        subject, epochs = SUBJECTS[name], begins(self.every)
        for version, metric in enumerate(self.metrics(name)):
            for at, begin in enumerate(epochs):
                is_running = self.every != ONCE and begin == epochs[-1]
                if is_running and subject.is_summed:
                    continue
                for place, segment in enumerate(SEGMENTS):
                    turn = place + at * version + at
                    weights = [WEIGHTS[(i + turn) % 4] for i in range(len(subject.values))]
                    devices = DEVICES * np.array(weights, dtype=float)
                    if version:  # other people: more of one platform, and further apart
                        devices **= 2
                        devices *= MORE_OF_MAC if segment.get("platform") == "mac" else 1
                        devices /= DEVICES * WEIGHTS[-1]
                    devices /= PART_OF_FEW if segment.get("platform") in FEW else 1
                    devices /= SO_FAR if is_running else 1
                    share, period, _ = metric.sample
                    sent = float(devices.sum()) * share
                    yield Reports(
                        segment, begin, is_running, not version, devices, share, period, sent
                    )

    def fill(self, name: str) -> None:
        """Store the tallies that the devices of a metric give on average, once."""
        if name in self._filled:
            return
        self._filled.add(name)
        metrics = self.metrics(name)
        for each in self.reports(name):
            metric = metrics[0 if each.is_current else 1]
            if metric.digest not in self._laws:
                self._laws[metric.digest] = law_of(SUBJECTS[name], metric)
            tally, n = self._laws[metric.digest].reports(each.devices * each.share)
            epoch = epoch_of(self.every, each.begin.timestamp())
            cell = Cell(metric.digest, epoch, segment_text(metric, each.segment))
            self.storage.put({cell: list(enumerate([n, *map(int, tally)]))})

    def window(self, names: Sequence[str], *, is_settled: bool) -> tuple[date, date]:
        """Return the first and the last day on which epochs begin that a question is about."""
        if is_settled:
            first, last = map(date.fromisoformat, SETTLED[self.every])
            return first, last
        today = datetime.fromtimestamp(NOW, UTC).date()
        if any(SUBJECTS[name].is_summed for name in names) and self.every != "1h":
            today = begins(self.every)[-1].date() - timedelta(days=1)
        return today - timedelta(days=_DAYS[RUNNING[self.every]] - 1), today

    def stretches(self, *, is_settled: bool) -> tuple[tuple[date, date], tuple[date, date]]:
        """Return the days of equal stretches of whole epochs: those asked for and those before."""
        length = {"7d": 7, "28d": 28}.get(self.every, 1)
        end = begins(self.every)[-1].date()
        days = _DAYS[RUNNING[self.every]]
        if is_settled:
            first, last = map(date.fromisoformat, SETTLED[self.every])
            end, days = last + timedelta(days=1), (last - first).days + 1
        whole = timedelta(days=days // length * length)
        day = timedelta(days=1)
        return (end - whole, end - day), (end - 2 * whole, end - whole - day)
