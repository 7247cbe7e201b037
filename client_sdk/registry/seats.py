"""Seats of a panel, and the most that any seven dates of it cost.  Whole numbers only.

Metrics of one kind lie end to end on a line, in units such that two points are WHOLE apart; a
metric is in if one of the points u, u + WHOLE, … lies in its seat.  As u runs, what is in changes
only where a point meets an end of a seat, so only the ends have to be checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from ..core.dataclass import dataclass
from ..core.epoch import DAY, LENGTHS, ONCE, epochs_in
from ..core.typing import Final, NamedTuple
from .keys import LONGITUDINAL, Entry

WHOLE: Final = 1 << 64  # units of a line's length: the distance of two points
LIFE, MONTH, WEEK = "life", "28d", "7d"  # how long a panel lasts
DATES: Final = 7  # of a week


class Seat(NamedTuple):
    """Where a metric lies on its line, in units: it is in if a point is in [low, high)."""

    low: int
    high: int
    period: str  # LIFE, WEEK or MONTH

    @property
    def inclusion(self) -> float:
        """The probability to be in."""
        return (self.high - self.low) / WHOLE

    def holds(self, point: int) -> bool:
        """Whether one of the points *point*, *point* + WHOLE, … lies in the interval."""
        return -(-(self.low - point) // WHOLE) * WHOLE + point < self.high


@dataclass(frozen=True)
class Price:
    """What a metric costs, in nano-epsilon, if it is in."""

    every: str  # its epochs
    first: int  # of a report; of a repeated metric the first one of a value
    second: int | None = None  # the second report of a value, which is its last charge
    values: int = 0  # of a repeated metric

    def of_dates(self, dates: int) -> int:
        """Return the most that *dates* dates in a row cost, wherever they lie."""
        return self.of_reports(epochs_in(self.every, dates))

    def of_reports(self, count: int) -> int:
        """Return the most that *count* reports cost: of a repeated metric, two of each value."""
        if self.second is None:
            return count * self.first
        dearest, other = max(self.first, self.second), min(self.first, self.second)
        rest = min(max(count - self.values, 0), self.values)
        return min(count, self.values) * dearest + rest * other

    def by_dates(self, period: str) -> list[int]:
        """Return what 1 to 7 dates cost that are the first, or last, of a *period*.

        A period for life has one number: what any seven dates cost.  In a period longer than a
        week the dates may lie anywhere.
        """
        week = self.of_dates(DATES)
        if period == LIFE:
            return [week]
        days = [
            self.first * -(-dates * DAY // LENGTHS[self.every]) for dates in range(1, DATES + 1)
        ]
        return days if period == WEEK else [*days[:-1], week]


def dearest_week(seats: Sequence[Seat], prices: Sequence[Sequence[int]]) -> int:
    """Return the most that any seven dates cost of metrics on one line, whatever is drawn.

    They lie in one period, or in two: then two samples add up, each over its own dates.
    Args: prices: of each metric, as ``Price.by_dates`` gives them.
    """
    events, begins = _events(seats)
    dearest: list[int] = []
    for costs in zip(*prices, strict=True):
        deltas = (costs[place] if comes else -costs[place] for _, comes, place in events)
        whole = sum(costs[place] for place in begins)
        dearest.append(max(accumulate(deltas, initial=whole)))
    *parts, week = dearest
    return max([week, *(first + last for first, last in zip(parts, parts[::-1], strict=True))])


def _events(seats: Sequence[Seat]) -> tuple[list[tuple[int, bool, int]], list[int]]:
    """Return which seats open and close as a point runs from 0 to WHOLE, and which are open at 0.

    At one point, seats close before others open: so no sum on the way is above the final one.
    """
    events: list[tuple[int, bool, int]] = []
    begins = []
    for place, seat in enumerate(seats):
        low, high = seat.low % WHOLE, seat.high % WHOLE
        if seat.high - seat.low >= WHOLE:
            begins.append(place)
        elif seat.high > seat.low:
            events.append((low, True, place))
            if high:
                events.append((high, False, place))
            if 0 < high < low:
                begins.append(place)
    events.sort()
    return events, begins


def dearest_week_of_lines(seats: Iterable[tuple[Seat, Price]]) -> int:
    """Return the most that any seven dates cost of all lines together."""
    lines: dict[str, list[tuple[Seat, Price]]] = {}
    for seat, price in seats:
        lines.setdefault(seat.period, []).append((seat, price))
    return sum(
        dearest_week([seat for seat, _ in line], [price.by_dates(period) for _, price in line])
        for period, line in lines.items()
    )


def problems_of(document: Entry) -> Iterator[str]:
    """Yield mistakes in the seats of a compiled registry.

    Each metric of the panel must have one, and together they must fit the week.
    """
    week, seats = document["panel_week"], document["seats"]
    inside = {entry["digest"]: entry for entry in document["metrics"] if entry["panel"]}
    if (seats is None) != (week is None) or (seats is not None and seats.keys() != inside.keys()):
        yield "seats: must be of the metrics of the panel, and of no others"
    elif seats is not None and week is not None:
        drawn = [(Seat(*seats[digest]), entry) for digest, entry in inside.items()]
        if any((seat.period == LIFE) is not _is_kept(entry) for seat, entry in drawn):
            yield "seats: must be for life if a metric keeps its responses, and only then"
            return
        outside = (entry for entry in document["metrics"] if not entry["panel"])
        cost = sum(_price(entry).of_dates(DATES) for entry in outside)
        cost += dearest_week_of_lines((seat, _price(entry)) for seat, entry in drawn)
        if cost > week:
            yield f"seats: must cost at most panel_week={week} in any seven days, not {cost}"


def _is_kept(entry: Entry) -> bool:
    return bool(entry["every"] == ONCE or entry["longitudinal"] != LONGITUDINAL[0])


def _price(entry: Entry) -> Price:
    report, value = entry["spent"]["report"], entry["spent"]["value"]
    if value is None:
        return Price(entry["every"], report)
    return Price(entry["every"], report, value - report, entry["domain_size"])
