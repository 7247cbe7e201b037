"""What a product manager asks of the shop: the words, the page, the question of the API, the truth.

The numbers of questions are those of the walk that began the list.  A page's address is what its
links and lists make: every parameter is a choice from a list, but for dates, numbers and words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cache
from math import exp, sqrt
from typing import Any, Final, TypeAlias

from benchmarks.lib.shop import (
    A_WEEK,
    DAYS,
    FIRST,
    RELEASED,
    TODAY,
    YEAR,
    Device,
    devices,
)

Row: TypeAlias = Mapping[str, Any]
Truth: TypeAlias = Callable[[Row], float | None]  # of a row of an answer; None where nobody asked
EVERYBODY: Final[Mapping[str, str]] = {}
SECOND_WEEK: Final = FIRST + timedelta(days=7)
RELEASE: Final = "hearsay release"
FORMATS: Final = "CSV, records and Arrow"
BOARD: Final = "examples/grafana/answers.json"
_Z: Final = 1.959964  # of 95 %


@dataclass(frozen=True)
class Question:
    """One question: its page, and how its answer is judged.

    Either ``truth`` gives the true value of each row, at least ``rows`` of them; or ``refusal`` is
    what the reason must say; or ``says`` is what the page must.
    """

    number: int
    words: str
    page: str
    request: Mapping[str, Any] = field(default_factory=dict)
    truth: Truth | None = None
    rows: int = 1
    refusal: str = ""
    says: tuple[str, ...] = ()
    shown: float = 0.5  # the part of the rows that the page must show
    way: str = ""  # RELEASE, FORMATS or BOARD: how else the same numbers must come out
    part: Callable[[Mapping[str, Any]], Sequence[Row]] = lambda answer: answer["rows"]


@cache
def asked(metric: str) -> tuple[Device, ...]:
    """Return the devices of the fourteen days that report *metric*."""
    return tuple(device for device in devices() if device.day >= FIRST and metric in device.values)


def share(
    metric: str,
    holds: Callable[[Any], bool],
    segment: Mapping[str, str] = EVERYBODY,
    first: date = FIRST,
    last: date = TODAY,
) -> float:
    """Return the true share of the devices in a segment whose value *holds*."""
    values = [device.values[metric] for device in _of(metric, first, last, segment)]
    return sum(map(holds, values)) / len(values)


def mean(metric: str, segment: Mapping[str, str] = EVERYBODY) -> float:
    """Return the true mean of the devices in a segment."""
    values: list[float] = [device.values[metric] for device in _of(metric, FIRST, TODAY, segment)]
    return sum(values) / len(values)


def quantile(
    level: float,
    segment: Mapping[str, str] = EVERYBODY,
    first: date = FIRST,
    last: date = TODAY,
) -> float:
    """Return the true quantile of the start-up times of a segment."""
    values = sorted(d.values["startup_ms"] for d in _of("startup_ms", first, last, segment))
    return float(values[min(int(level * len(values)), len(values) - 1)])


def _of(metric: str, first: date, last: date, segment: Mapping[str, str]) -> list[Device]:
    return [
        device
        for device in asked(metric)
        if first <= device.day <= last and segment.items() <= device.segment.items()
    ]


def _day(row: Row) -> date:
    return date.fromisoformat(row["dimensions"]["time"])


def _segment(row: Row, *names: str) -> dict[str, str]:
    return {name: row["dimensions"][name] for name in names}


def _equals(item: Any) -> Callable[[Any], bool]:
    return lambda value: bool(value == item)


def _spread(row: Row) -> float:
    """Return the true part of a day's devices that had a version."""
    day, version = _day(row), row["dimensions"]["version"]
    of_day = _of("screen", day, day, {})
    return len([d for d in of_day if d.segment["version"] == version]) / len(of_day)


def _between_arms(metric: str, holds: Callable[[Row], Callable[[Any], bool]]) -> Truth:
    """Return the true difference that the treatment makes, and the relative one."""

    def truth(row: Row) -> float:
        treated, control = (
            share(metric, holds(row), {"arm": arm}) for arm in ("treated", "control")
        )
        if row["dimensions"]["measure"] == "lift":
            return treated / control - 1
        return treated - control

    return truth


def _spent_between_arms(row: Row) -> float:
    treated, control = (mean("spent", {"arm": arm}) for arm in ("treated", "control"))
    if row["dimensions"]["measure"] == "lift":
        return treated / control - 1
    return treated - control


_STEPS: Final = ("visit", "product", "cart", "order")


def _reaches(step: str) -> Callable[[Any], bool]:
    return lambda value: value is not None and _STEPS.index(value) >= _STEPS.index(step)


def _funnel(row: Row, segment: Mapping[str, str] = EVERYBODY) -> float:
    step = row["dimensions"]["item"]
    reached = share("checkout", _reaches(step), segment)
    if row["dimensions"]["measure"] == "reached":
        return reached
    return reached / share("checkout", _reaches(_STEPS[_STEPS.index(step) - 1]), segment)


def _retention(row: Row) -> float:
    week = row["dimensions"]["item"]
    if row["dimensions"]["measure"] == "active":
        return share("weeks", lambda weeks: week in weeks)
    both = share("weeks", lambda weeks: week in weeks and "week 0" in weeks)
    return both / share("weeks", lambda weeks: "week 0" in weeks)


def _level(row: Row) -> float:
    return int(row["dimensions"]["item"].removeprefix("p")) / 100


def _revenue(row: Row) -> float:
    platform = row["dimensions"]["platform"]
    seven = _of("spent", SECOND_WEEK, TODAY, {"platform": platform})
    return float(sum(device.values["spent"] for device in seven))


def _place(row: Row) -> float:
    down, right = map(int, row["dimensions"]["item"].split(","))
    south, west = 48 + down, 6 + right

    def lies(point: tuple[float, float]) -> bool:
        east, north = min(max(point[0], 6), 13.999), min(max(point[1], 48), 53.999)
        return int(east) == west and int(north) == south

    return share("place", lies)


def _of_members(row: Row) -> float | None:
    """Return the true part of members, or of the others, that buy."""
    cell = row["dimensions"]
    if "(all)" in cell.values() or cell.get("measure") not in (None, "of each member"):
        return None
    both = share("member", lambda pair: all(pair[name] == cell[name] for name in pair))
    if cell.get("measure") is None:
        return both
    return both / share("member", lambda pair: pair["member"] == cell["member"])


def _minutes(row: Row) -> float:
    name = row["dimensions"]["item"]
    section = name.removeprefix("mean of ")
    if section == name:
        return share("minutes", lambda held: section in held)
    held: list[float] = [
        d.values["minutes"][section] for d in asked("minutes") if section in d.values["minutes"]
    ]
    return sum(held) / len(held)


def _home_a_year_ago() -> float:
    then = [d for d in devices() if d.day <= TODAY - YEAR]
    return len([d for d in then if d.values["screen"] == "home"]) / len(then)


def _yes_no_half_width(epsilon: float, devices_: int) -> float:
    """Return the 95 % half-width, in points, of a rare yes by randomized response: textbook."""
    lie = 1 / (1 + exp(epsilon))
    return 100 * _Z * sqrt(lie * (1 - lie) / devices_) / (1 - 2 * lie)


def _home(first: date, last: date) -> float:
    return share("screen", _equals("home"), {}, first, last)


_LIFT: Final = {"dimension": "arm", "control": "control"}
_ARMS: Final = {"verb": "lift", "dimensions": ["arm"], "options": _LIFT}

QUESTIONS: Final = (
    Question(
        1, "How many use it a day?", "/metric/screen",
        {"metrics": ["screen"], "verb": "actives", "dimensions": ["time:day"]},
        lambda row: len(_of("screen", _day(row), _day(row), {})), rows=DAYS,
    ),
    Question(
        2, "How many use it in a week, in a month?", "/metric/weekly",
        {"metrics": ["weekly"], "verb": "actives", "dimensions": ["time"]},
        lambda row: A_WEEK[0 if _day(row) == FIRST else 1], rows=2,
    ),
    Question(
        3, "How sticky is it: on how many days of a month is it used?", "/metric/active_days",
        {"metrics": ["active_days"], "verb": "mean"},
        lambda row: _active_days(),
    ),
    Question(
        4, "Which screen is opened first?", "/",
        {"metrics": ["screen"]},
        lambda row: share("screen", _equals(row["dimensions"]["item"])), rows=6, shown=0.1,
    ),
    Question(
        5, "Is *home* down against last week?",
        "/ask?metric=screen&verb=compare&range=7d&against=previous",
        {"metrics": ["screen"], "verb": "compare", "date_range": "7d", "against": "previous",
         "options": {"item": "home"}},
        lambda row: _home(SECOND_WEEK, TODAY) - _home(FIRST, SECOND_WEEK - timedelta(days=1)),
    ),
    Question(
        6, "Is 1.3 stable?", "/metric/crashed",
        {"metrics": ["crashed"], "dimensions": ["version"]},
        lambda row: share("crashed", bool, _segment(row, "version")), rows=4,
    ),
    Question(
        7, "Is 1.3 stable on Android only?", "/metric/crashed?segment.platform=android",
        {"metrics": ["crashed"], "dimensions": ["version"],
         "filters": [["is", "platform", ["android"]]]},
        lambda row: share("crashed", bool, {"platform": "android", **_segment(row, "version")}),
        rows=3,
    ),
    Question(
        8, "When did it change?", "/ask?metric=crashed&verb=trend",
        {"metrics": ["crashed"], "verb": "trend"},
        lambda row: share("crashed", bool, {}, _day(row), _day(row)), rows=DAYS,
        says=("changed at 2026-11-1",),
    ),
    Question(
        9, "Which day was 1.3 shipped?", "/ask?metric=screen&verb=adoption&by=version&by=time:day",
        {"metrics": ["screen"], "verb": "adoption", "dimensions": ["time:day", "version"]},
        _spread, rows=3 * DAYS, part=lambda answer: _around_release(answer),
    ),
    Question(
        10, "How far has 1.3 spread?", "/metric/screen",
        {"metrics": ["screen"], "verb": "adoption", "dimensions": ["time:day", "version"]},
        _spread, part=lambda answer: _newest(answer, TODAY, TODAY),
    ),
    Question(
        11, "How many had it on the first three days?",
        "/ask?metric=screen&verb=adoption&by=version&by=time:day",
        {"metrics": ["screen"], "verb": "adoption", "dimensions": ["time:day", "version"]},
        _spread, rows=3,
        part=lambda answer: _newest(answer, RELEASED, RELEASED + timedelta(days=2)),
    ),
    Question(
        12, "Does the treatment lift *deals*?", "/metric/deals",
        {"metrics": ["deals"], **_ARMS},
        _between_arms("deals", lambda row: bool), rows=2,
    ),
    Question(
        13, "Does it lift what is spent?", "/metric/spent", {"metrics": ["spent"], **_ARMS},
        _spent_between_arms, rows=2,
    ),
    Question(
        14, "How long must the test run to show 3 points?",
        "/ask?metric=crashed&verb=lift&option.effect=0.03",
        {"metrics": ["crashed"], **_ARMS, "options": {**_LIFT, "effect": 0.03}},
        _between_arms("crashed", lambda row: bool), rows=2, says=("days in all at this rate",),
    ),
    Question(
        15, "Does it bring people back in the next week?", "/ask?metric=weeks&verb=lift",
        {"metrics": ["weeks"], **_ARMS, "options": {**_LIFT, "item": "week 1"}},
        _between_arms("weeks", lambda row: lambda weeks: row["dimensions"]["item"] in weeks),
        rows=2,
    ),
    Question(
        16, "Do more reach the cart?", "/ask?metric=checkout&verb=lift",
        {"metrics": ["checkout"], **_ARMS, "options": {**_LIFT, "item": "cart"}},
        _between_arms("checkout", lambda row: _reaches(row["dimensions"]["item"])), rows=2,
    ),
    Question(
        17, "Where do people leave?", "/metric/checkout",
        {"metrics": ["checkout"], "verb": "funnel"}, _funnel, rows=7,
    ),
    Question(
        18, "Where do they leave, by version?", "/ask?metric=checkout&verb=funnel&by=version",
        {"metrics": ["checkout"], "verb": "funnel", "dimensions": ["version"]},
        lambda row: _funnel(row, _segment(row, "version")), rows=28,
    ),
    Question(
        19, "Do people come back?", "/metric/weeks",
        {"metrics": ["weeks"], "verb": "retention"}, _retention, rows=7,
    ),
    Question(
        20, "What is the median of start-up, and p95?", "/ask?metric=startup_ms&verb=quantile",
        {"metrics": ["startup_ms"], "verb": "quantile"},
        lambda row: quantile(_level(row)), rows=3,
    ),
    Question(
        21, "What is p95 by version?",
        "/ask?metric=startup_ms&verb=quantile&by=version&option.levels=0.95",
        {"metrics": ["startup_ms"], "verb": "quantile", "dimensions": ["version"],
         "options": {"levels": [0.95]}},
        lambda row: quantile(0.95, _segment(row, "version")), rows=3,
    ),
    Question(
        22, "What was p95 over time?", "/ask?metric=startup_ms&verb=trend&option.levels=0.95",
        {"metrics": ["startup_ms"], "verb": "trend", "options": {"levels": [0.95]}},
        lambda row: quantile(0.95, {}, _day(row), _day(row)), rows=DAYS,
    ),
    Question(
        23, "How many start in more than two seconds?",
        "/ask?metric=startup_ms&verb=range&option.low=2000&option.high=5000",
        {"metrics": ["startup_ms"], "verb": "range", "options": {"low": 2000, "high": 5000}},
        lambda row: share("startup_ms", lambda ms: ms >= 2_000),
    ),
    Question(
        24, "What is the revenue of the week, by platform?",
        "/ask?metric=spent&verb=sum&by=platform&range=7d",
        {"metrics": ["spent"], "verb": "sum", "dimensions": ["platform"], "date_range": "7d"},
        _revenue, rows=3,
    ),
    Question(
        25, "What is the revenue per buyer?", "/ask?metric=spent&metric=bought&verb=ratio",
        {"metrics": ["spent", "bought"], "verb": "ratio"},
        lambda row: mean("spent") / share("bought", bool),
    ),
    Question(
        26, "What is p95 of what is spent?", "/ask?metric=spent&verb=quantile",
        {"metrics": ["spent"], "verb": "quantile"}, refusal="mean",
    ),
    Question(
        27, "What do people search for?", "/metric/search",
        {"metrics": ["search"], "verb": "heavy_hitters"},
        lambda row: share("search", _equals(row["dimensions"]["item"])), rows=7,
    ),
    Question(
        28, "How many search for *unicorn*?",
        "/ask?metric=search&verb=heavy_hitters&option.candidates=unicorn",
        {"metrics": ["search"], "verb": "heavy_hitters", "options": {"candidates": ["unicorn"]}},
        lambda row: share("search", _equals("unicorn")),
    ),
    Question(
        29, "Where do orders come from?", "/metric/place",
        {"metrics": ["place"], "verb": "map"}, _place, rows=48,
    ),
    Question(
        30, "Which features are used, by platform?",
        "/ask?metric=features&verb=frequency&by=platform",
        {"metrics": ["features"], "verb": "frequency", "dimensions": ["platform"]},
        lambda row: share(
            "features", lambda used: row["dimensions"]["item"] in used, _segment(row, "platform")
        ),
        rows=9,
    ),
    Question(
        31, "Who uses chat *and* scanner?", "/ask?metric=features&verb=crosstab",
        {"metrics": ["features"], "verb": "crosstab"}, refusal="pair",
    ),
    Question(
        32, "Do members buy more?", "/ask?metric=member&verb=crosstab&option.of=member",
        {"metrics": ["member"], "verb": "crosstab", "options": {"of": "member"}},
        _of_members, rows=4,
    ),
    Question(
        33, "How many minutes in which section?", "/metric/minutes",
        {"metrics": ["minutes"], "verb": "key_values"}, _minutes, rows=6,
    ),
    Question(
        34, "What can everybody have?", "/metric/screen",
        {"metrics": ["screen"]},
        lambda row: share("screen", _equals(row["dimensions"]["item"])), rows=6, way=RELEASE,
    ),
    Question(
        35, "What would ε 2 give?", "/plan?metric=crashed&epsilon=2&devices=4",
        says=(f"±{_yes_no_half_width(2, 10**4):.2g} points",),
    ),
    Question(
        36, "And against the same days a year ago?",
        "/ask?metric=screen&verb=compare&range=14d&against=year",
        {"metrics": ["screen"], "verb": "compare", "date_range": "14d", "against": "year",
         "options": {"item": "home"}},
        lambda row: _home(FIRST, TODAY) - _home_a_year_ago(),
    ),
    Question(
        37, "In Python, as CSV and Arrow?", "/metric/screen",
        {"metrics": ["screen"]},
        lambda row: share("screen", _equals(row["dimensions"]["item"])), rows=6, way=FORMATS,
    ),
    Question(
        38, "In Grafana?", "/metric/crashed",
        {"metrics": ["crashed"], "dimensions": ["time:day"]},
        lambda row: share("crashed", bool, {}, _day(row), _day(row)), rows=DAYS, way=BOARD,
    ),
)  # fmt: skip


def _newest(answer: Mapping[str, Any], first: date, last: date) -> list[Row]:
    return [
        row
        for row in answer["rows"]
        if row["dimensions"]["version"] == "1.3" and first <= _day(row) <= last
    ]


def _around_release(answer: Mapping[str, Any]) -> Sequence[Row]:
    """Return all rows, after the first day with the new version was held against its release."""
    days = [_day(row) for row in _newest(answer, FIRST, TODAY) if row["value"]]
    return answer["rows"] if min(days) == RELEASED else []


def _active_days() -> float:
    days: list[float] = [
        device.values["active_days"] for device in devices() if "active_days" in device.values
    ]
    return sum(days) / len(days)
