"""The panel: of more metrics than a week's budget pays for, a device draws which ones may report.

The draw looks at no value: it is made from the device's secret and the period, so that all its
processes agree.  Metric i is in with probability π_i = min(1, c w_i), w_i its weight, in a
systematic sample: the π_i lie end to end on a line, and a metric is in if its interval holds one of
the points u, u + 1, u + 2, …, for one u drawn evenly from [0, 1).  Whoever reports is therefore a
random sample of the devices, and estimates stay what they are.

A panel lasts a week, or four if one of its metrics has epochs of four: each epoch lies in one
panel.  Metrics that keep what they told (``once``, permanent and two-layer ones) are drawn for
life, on a line of their own; those with ``panel = false`` always report.

c is as large as the budget of any seven dates allows.  What a line costs is known exactly: as u
runs, the sample changes only where a point meets an end of an interval.  The dearest seven dates
lie in one period, or in two: then two samples add up, each over its own dates.  A secret that is
erased and drawn anew, a clock that is set and an updated registry draw again: so the ledger holds
the same budget as a cap.

Source: Madow, *On the Theory of Systematic Sampling, II*, Annals of Mathematical Statistics 1949
(sampling with given π_i); the bound of the cost is derived here.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from ..core.dataclass import dataclass, replace
from ..core.epoch import ONCE, epoch_of, epoch_start
from ..core.errors import InvalidParameterError
from ..core.typing import Final
from ..registry.contract import Registry
from ..registry.metric import Metric, Sample
from ..registry.seats import LIFE, MONTH, dearest_week
from ..registry.seats import WEEK as ONE_WEEK
from ..registry.seats import WHOLE as WHOLE
from ..registry.seats import Seat as Seat
from .budget import WEEK, cost_of_dates, price_of
from .caps import epsilon_text

_DRAWN: Final = 8  # bytes of the even draw
_STEP: Final = 1 << 32  # units; a finer one would change no share that anybody could see
_PURPOSE: Final = b"hearsay panel"


@dataclass(frozen=True)
class Panel:
    """Which metrics a device may report of, by the digest of each that is in a panel."""

    seats: Mapping[bytes, Seat]

    def includes(self, metric: Metric, epoch: int, secret: bytes, device: bytes = b"") -> bool:
        """Whether *metric* may report of *epoch*.

        Args: secret: of the device, or of its gateway.  device: the gateway's key of it.
        """
        seat = self.seats.get(metric.digest)
        if seat is None:
            return True
        number = 0
        if seat.period != LIFE:
            number = epoch_of(seat.period, epoch_start(metric.every, epoch))
        return seat.holds(_point_of(secret, device, seat.period, number))

    def inclusion(self, metric: Metric) -> float:
        """Return the probability that a device may report of *metric*: 1 outside of the panel."""
        return self.sample(metric).share

    def sample(self, metric: Metric) -> Sample:
        """Return which devices may report of *metric*."""
        seat = self.seats.get(metric.digest)
        return Sample() if seat is None else Sample(seat.inclusion, seat.period)


def _point_of(secret: bytes, device: bytes, period: str, number: int) -> int:
    """Return the even draw of a *device* for the *number*-th panel: 0 … WHOLE - 1.

    HMAC-SHA-256 under the device's secret, so that it tells nothing of what else is drawn from it.
    """
    message = b"\0".join((_PURPOSE, period.encode(), str(number).encode(), device))
    return int.from_bytes(hmac.digest(secret, message, "sha256")[:_DRAWN], "big")


def with_samples(registry: Registry) -> Registry:
    """Return *registry* with metrics that say which devices report of them.

    Raises: InvalidParameterError: its panel is too small.
    """
    if registry.panel_week is None:
        return registry
    panel = panel_of(registry, registry.panel_week)
    metrics = {m.name: replace(m, sample=panel.sample(m)) for m in registry}
    return replace(registry, metrics=metrics)


def panel_within(registry: Registry, week: int) -> Panel:
    """Return the panel of *registry*: as it was compiled, or as ``panel_of`` draws it."""
    if registry.seats is None:
        return panel_of(registry, week)
    return Panel({digest: Seat(*seat) for digest, seat in registry.seats.items()})


def panel_of(metrics: Iterable[Metric], week: int) -> Panel:
    """Return the panel of *metrics* within *week* nano-epsilon of any seven dates.

    Raises: InvalidParameterError: not even one metric at a time fits beside those outside.
    """
    metrics = list(metrics)
    outside = [metric for metric in metrics if not metric.panel]
    fixed = sum(cost_of_dates(metric, WEEK) for metric in outside)
    lines = _lines([metric for metric in metrics if metric.panel])
    if fixed > week:
        rule = f"must be at least the {epsilon_text(fixed)} of metrics with panel = false"
        raise InvalidParameterError("panel.week", epsilon_text(week), rule)
    least, most = 0, WHOLE // _STEP
    while least < most:  # the largest unit at which the dearest seven dates are within the budget
        middle = (least + most + 1) // 2
        if fixed + sum(line.at(middle * _STEP).dearest for line in lines) <= week:
            least = middle
        else:
            most = middle - 1
    if lines and not least:
        fewest = fixed + sum(line.at(_STEP).dearest for line in lines)
        rule = f"must be at least {epsilon_text(fewest)}, which one metric at a time can cost"
        raise InvalidParameterError("panel.week", epsilon_text(week), rule)
    return Panel({d: seat for line in lines for d, seat in line.at(least * _STEP).seats.items()})


@dataclass(frozen=True)
class Line:
    """Metrics of one kind of panel, in the order in which they lie, and the *unit* of weight."""

    metrics: Sequence[Metric]
    period: str
    prices: Sequence[Sequence[int]]
    unit: int = 0

    def at(self, unit: int) -> Line:
        """Return the line with *unit* for each weight of 1."""
        return Line(self.metrics, self.period, self.prices, unit)

    @cached_property
    def seats(self) -> dict[bytes, Seat]:
        """The interval of each metric, by its digest."""
        seats, end = {}, 0
        for metric in self.metrics:
            start, end = end, end + min(WHOLE, self.unit * metric.weight)
            seats[metric.digest] = Seat(start, end, self.period)
        return seats

    @property
    def dearest(self) -> int:
        """The most nano-epsilon of any seven dates, whatever is drawn."""
        return dearest_week(list(self.seats.values()), self.prices)


def _lines(metrics: Sequence[Metric]) -> list[Line]:
    """Return the lines that *metrics* lie on, the dearest first, which wastes least."""
    ordered = sorted(metrics, key=lambda m: (-cost_of_dates(m, WEEK), m.name))
    stays = [m for m in ordered if m.every == ONCE or m.policy is not None]
    moves = [m for m in ordered if not (m.every == ONCE or m.policy is not None)]
    period = MONTH if any(metric.every == MONTH for metric in moves) else ONE_WEEK
    lines = {LIFE: stays, period: moves}
    return [
        Line(line, name, [price_of(metric).by_dates(name) for metric in line])
        for name, line in lines.items()
        if line
    ]
