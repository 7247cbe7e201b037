"""One device before any data exist: which share of its reports a ledger lets out.  Pure.

It records every metric at every chance, in the order of the file.  Its machine may be off at night
and at weekends: then its ledger counts fewer days than have passed, and a registry that spends most
of a week's cap gets only a part of what is planned.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from client_sdk.core.dataclass import replace
from client_sdk.core.epoch import DAY, HOUR, day_of, epoch_of, epoch_start
from client_sdk.core.errors import InvalidParameterError
from client_sdk.privacy.caps import WEEK, Caps, dearest_week
from client_sdk.privacy.panel import panel_of
from client_sdk.privacy.time_off import MS, time_passed
from client_sdk.privacy.wording import counted
from client_sdk.registry.contract import Registry
from client_sdk.registry.metric import Metric

_BEGIN: Final = (2_900 * WEEK - 3) * DAY  # Unix time of a Monday, on which four weeks begin too
_WEEKS: Final = 12  # of which the last eight are counted, when the ledger has seen a month
_SEEN: Final = 4
_DRAWS: Final = 16  # devices, each with a panel of its own in every week
_MORNING: Final = 8  # hour of the day at which a machine is switched on, if it runs no longer
_HIGHEST: Final = "999999"  # ε, of a cap
_LEAST: Final = 0.001  # share of the devices; of none there would be nothing to plan
SHORT: Final = 0.995  # share of its epochs from which on a metric does not starve


@dataclass(frozen=True)
class Hours:
    """When a machine runs: so many hours a day, on so many days of a week, from Monday on."""

    a_day: int = 24
    days: int = WEEK

    def __post_init__(self) -> None:
        """Raise InvalidParameterError if there are no such hours."""
        for name, value, most in (("hours_on", self.a_day, 24), ("days_on", self.days, WEEK)):
            if not 1 <= value <= most:
                raise InvalidParameterError(name, value, f"must be from 1 to {most}")

    def __str__(self) -> str:
        """Return them in words."""
        return f"{counted(self.a_day, 'hour')} a day on {counted(self.days, 'day')} a week"

    def sessions(self, monday: int, weeks: int) -> Iterator[tuple[int, int]]:
        """Yield the begin and the end of each time that it runs, in Unix seconds as *monday*."""
        morning = min(_MORNING, 24 - self.a_day)
        for day in range(weeks * WEEK):
            if day % WEEK < self.days:
                begin = monday + day * DAY + morning * HOUR
                yield begin, begin + self.a_day * HOUR

    @property
    def moments(self) -> Iterator[tuple[int, int, bool]]:
        """Each full hour that it runs, the trusted day of its ledger, and whether it just booted.

        The hour is in Unix seconds.
        """
        last = trusted = credit = today = 0
        for begin, end in self.sessions(_BEGIN, _WEEKS):
            for now in range(begin, end + 1, HOUR):
                wall = now * MS
                if not last:
                    last = trusted = wall
                ran = 0 if now == begin else HOUR * MS
                passed, credit = time_passed(wall - last, ran, credit, rebooted=now == begin)
                last, trusted = wall, trusted + passed
                today = max(today, (wall // MS) // DAY + (trusted - wall) // (DAY * MS))
                if now < end:  # then it closes, and records nothing more
                    yield now, today, now == begin

    @property
    def is_whole(self) -> bool:
        """Whether all days count that pass, once credit was earned."""
        days = [(day_of(now), today) for now, today, booted in self.moments if booted]
        (first, counted), (last, all_counted) = days[_SEEN * self.days], days[-1]
        return all_counted - counted == last - first


ALWAYS: Final = Hours()


@dataclass
class _Device:
    """A ledger within *caps*."""

    caps: Caps
    spent: int = 0
    costs: dict[tuple[bytes, int, int], int] = field(default_factory=dict)  # as in the ledger
    reported: set[tuple[bytes, int]] = field(default_factory=set)

    def record(self, metric: Metric, epoch: int, days: tuple[int, int], today: int) -> None:
        """Charge a report of the *days* that it is about, if the caps allow it, as ledgers do."""
        if (metric.digest, epoch) in self.reported:
            return
        count = sum(digest == metric.digest for digest, _ in self.reported)
        nano = metric.most_nano if metric.policy is None else metric.policy.nano_after(count)
        near = [(*row, cost) for row, cost in self.costs.items() if row[2] > days[0] - WEEK]
        own = [row for row in near if row[0] == metric.digest]
        most, caps = metric.most_nano, self.caps
        if (
            most <= caps.report
            and dearest_week(own, days, today) + most <= caps.metric_week
            and dearest_week(near, days, today) + most <= caps.week
            and self.spent + most <= caps.lifetime
        ):
            self.reported.add((metric.digest, epoch))
            self.spent += nano
            key = metric.digest, *days
            self.costs[key] = self.costs.get(key, 0) + nano


class _Shares:
    """How many of its chances, from the fifth week on, each metric has reported."""

    def __init__(self) -> None:
        self.chances: dict[str, int] = defaultdict(int)
        self.reports: dict[str, int] = defaultdict(int)

    def follow(self, registry: Registry, caps: Caps, hours: Hours, secret: bytes) -> None:
        """Add what one device reports, whose panel is drawn by *secret*."""
        device, week = _Device(caps), registry.panel_week
        panel = None if week is None else panel_of(registry, week)
        offered: dict[str, set[tuple[bytes, int]]] = defaultdict(set)
        windows: dict[str, tuple[int, int, int]] = {}  # epoch, trusted days
        hourly = any(metric.every == "1h" for metric in registry)

        def offer(metric: Metric, epoch: int, days: tuple[int, int]) -> None:
            if panel is None or panel.includes(metric, epoch, secret):
                device.record(metric, epoch, days, today)
                if now >= _BEGIN + _SEEN * WEEK * DAY:
                    offered[metric.name].add((metric.digest, epoch))

        for now, today, booted in hours.moments:
            if not booted and not hourly:
                continue
            for metric in registry.aggregated:  # what is over is reported before what is new
                epoch = epoch_of(metric.every, now)
                over, first, last = windows.get(metric.name, (epoch, 0, 0))
                if over < epoch:
                    offer(metric, over, (min(first, today), min(last, today)))
                if over < epoch or metric.name not in windows:
                    end = day_of(epoch_start(metric.every, epoch + 1) - 1)
                    windows[metric.name] = epoch, today, today + end - day_of(now)
            for metric in registry:
                if metric.aggregate is None:
                    offer(metric, epoch_of(metric.every, now), (today, today))
        for name, chances in offered.items():
            self.chances[name] += len(chances)
            self.reports[name] += len(chances & device.reported)


def shares_of(registry: Registry, caps: Caps, hours: Hours = ALWAYS) -> dict[str, float]:
    """Return which share of its chances each metric reports under *caps*, by name.

    A chance is an epoch in which the machine runs and, of a panel, that it draws.
    """
    shares = _Shares()
    for number in range(1 if registry.panel_week is None else _DRAWS):
        shares.follow(registry, caps, hours, number.to_bytes(2, "big"))
    return {name: shares.reports[name] / chances for name, chances in shares.chances.items()}


def arrival(registry: Registry, hours: Hours) -> dict[str, float]:
    """Return which share of what is planned arrives from machines that run such *hours*, by name.

    Only of metrics of which not all of it does, under the panel or else the default caps.
    """
    if hours.is_whole:
        return {}
    caps = _enforced(registry)
    planned, left = shares_of(registry, caps), shares_of(registry, caps, hours)
    shares = {name: left.get(name, 0.0) / share for name, share in planned.items() if share}
    return {name: share for name, share in shares.items() if share < SHORT}


def with_hours(registry: Registry, hours: Hours | None) -> Registry:
    """Return *registry* with metrics of which as many devices report as such *hours* allow."""
    if hours is None:
        return registry
    metrics = dict(registry.metrics)
    for name, share in arrival(registry, hours).items():
        sample = metrics[name].sample
        sample = sample._replace(share=max(share, _LEAST) * sample.share)
        metrics[name] = replace(metrics[name], sample=sample)
    return replace(registry, metrics=metrics)


def hours_lines(registry: Registry, hours: Hours | None) -> Iterator[str]:
    """Yield which metrics machines that run such *hours* report less often than is planned."""
    if hours is None:
        return
    starving = arrival(registry, hours)
    if starving:
        seldom = ", ".join(f"{name} {100 * share:.0f} %" for name, share in starving.items())
        yield (
            f"  warning: machines that run {hours} do not have their budget back in a week."
            f" Of what is planned they report: {seldom}"
        )


def _enforced(registry: Registry) -> Caps:
    """Return the default caps, or what holds a panel to its week however much that is."""
    if registry.panel_week is None:
        return Caps()
    return Caps(metric_week=_HIGHEST, week=_HIGHEST).within(registry.panel_week)
