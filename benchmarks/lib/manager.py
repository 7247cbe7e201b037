"""What a product manager asks of the shop: the words, the page, the question of the API, the truth.

The numbers of questions are those of the walk that began the list.  A page's address is what its
links and lists make: every parameter is a choice from a list, but for dates, numbers and words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from math import exp, sqrt
from typing import Any, Final, TypeAlias

from benchmarks.lib.shop import EVERYBODY, Shop

Row: TypeAlias = Mapping[str, Any]
Truth: TypeAlias = Callable[[Row], float | None]  # of a row of an answer; None where nobody asked
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
    window: tuple[date, date] = (date.min, date.max)  # of the board
    part: Callable[[Mapping[str, Any]], Sequence[Row]] = lambda answer: answer["rows"]


def share(
    shop: Shop,
    metric: str,
    holds: Callable[[Any], bool],
    segment: Mapping[str, str] = EVERYBODY,
    first: date | None = None,
    last: date | None = None,
) -> float | None:
    """Return the true share of the devices in a segment whose value *holds*; None without any."""
    values = [device.values[metric] for device in shop.of(metric, segment, first, last)]
    return sum(map(holds, values)) / len(values) if values else None


def mean(shop: Shop, metric: str, segment: Mapping[str, str] = EVERYBODY) -> float:
    """Return the true mean of the devices in a segment."""
    values: list[float] = [device.values[metric] for device in shop.of(metric, segment)]
    return sum(values) / len(values)


def quantile(
    shop: Shop,
    level: float,
    segment: Mapping[str, str] = EVERYBODY,
    first: date | None = None,
    last: date | None = None,
) -> float | None:
    """Return the true quantile of the start-up times of a segment; None without any."""
    values = sorted(
        device.values["startup_ms"] for device in shop.of("startup_ms", segment, first, last)
    )
    return float(values[min(int(level * len(values)), len(values) - 1)]) if values else None


def _day(row: Row) -> date:
    return date.fromisoformat(row["dimensions"]["time"])


def _segment(row: Row, *names: str) -> dict[str, str]:
    return {name: row["dimensions"][name] for name in names}


def _equals(item: Any) -> Callable[[Any], bool]:
    return lambda value: bool(value == item)


def _spread(shop: Shop, row: Row) -> float:
    """Return the true part of a day's devices that had a version."""
    day, version = _day(row), row["dimensions"]["version"]
    of_day = shop.of(shop.daily, {}, day, day)
    return len([d for d in of_day if d.segment["version"] == version]) / len(of_day)


def _between_arms(shop: Shop, metric: str, holds: Callable[[Row], Callable[[Any], bool]]) -> Truth:
    """Return the true difference that the treatment makes, and the relative one."""

    def truth(row: Row) -> float | None:
        treated, control = (
            share(shop, metric, holds(row), {"arm": arm}) for arm in ("treated", "control")
        )
        return None if treated is None or control is None else _lift(row, treated, control)

    return truth


def _spent_between_arms(shop: Shop, row: Row) -> float:
    return _lift(row, *(mean(shop, "spent", {"arm": arm}) for arm in ("treated", "control")))


def _lift(row: Row, treated: float, control: float) -> float:
    if row["dimensions"]["measure"] == "lift":
        return treated / control - 1
    return treated - control


_STEPS: Final = ("visit", "product", "cart", "order")


def _reaches(step: str) -> Callable[[Any], bool]:
    return lambda value: value is not None and _STEPS.index(value) >= _STEPS.index(step)


def _funnel(shop: Shop, row: Row, segment: Mapping[str, str] = EVERYBODY) -> float | None:
    step = row["dimensions"]["item"]
    reached = share(shop, "checkout", _reaches(step), segment)
    if reached is None or row["dimensions"]["measure"] == "reached":
        return reached
    before = share(shop, "checkout", _reaches(_STEPS[_STEPS.index(step) - 1]), segment)
    return reached / before if before else None


def _retention(shop: Shop, row: Row) -> float | None:
    week = row["dimensions"]["item"]
    visits = [device.values["weeks"] for device in shop.of("weeks")]
    if row["dimensions"]["measure"] != "active":
        visits = [weeks for weeks in visits if "week 0" in weeks]
    return len([weeks for weeks in visits if week in weeks]) / len(visits)


def _level(row: Row) -> float:
    return int(row["dimensions"]["item"].removeprefix("p")) / 100


def _revenue(shop: Shop, row: Row) -> float:
    platform = row["dimensions"]["platform"]
    seven = shop.of("spent", {"platform": platform}, shop.today - timedelta(days=6))
    return float(sum(device.values["spent"] for device in seven))


def _place(shop: Shop, row: Row) -> float | None:
    down, right = map(int, row["dimensions"]["item"].split(","))
    south, west = 48 + down, 6 + right

    def lies(point: tuple[float, float]) -> bool:
        east, north = min(max(point[0], 6), 13.999), min(max(point[1], 48), 53.999)
        return int(east) == west and int(north) == south

    return share(shop, "place", lies)


def _of_members(shop: Shop, row: Row) -> float | None:
    """Return the true part of members, or of the others, that buy."""
    cell = row["dimensions"]
    if "(all)" in cell.values() or cell.get("measure") not in (None, "of each member"):
        return None
    pairs = [device.values["member"] for device in shop.of("member")]
    both = [pair for pair in pairs if all(pair[name] == cell[name] for name in pair)]
    if cell.get("measure") is not None:
        pairs = [pair for pair in pairs if pair["member"] == cell["member"]]
    return len(both) / len(pairs)


def _minutes(shop: Shop, row: Row) -> float | None:
    name = row["dimensions"]["item"]
    section = name.removeprefix("mean of ")
    if section == name:
        return share(shop, "minutes", lambda held: section in held)
    all_held = [device.values["minutes"] for device in shop.of("minutes")]
    held: list[float] = [minutes[section] for minutes in all_held if section in minutes]
    return sum(held) / len(held)


def _yes_no_half_width(shop: Shop, epsilon: float, devices: int) -> float:
    """Return the 95 % half-width, in points, of a yes by randomized response: textbook.

    That of a rare yes, as far as devices lie; that of one in two, as far as a panel draws them.
    """
    drawn = float(shop.registry.metrics["crashed"].sample.share)
    lie = 1 / (1 + exp(epsilon))
    variance = lie * (1 - lie) / (1 - 2 * lie) ** 2 + (1 - drawn) / 4
    return 100 * _Z * sqrt(variance / (devices * drawn))


def _at(shop: Shop, row: Row, metric: str, item: Any) -> float | None:
    """Return the true share of an item in the period of a row over time."""
    return share(shop, metric, _equals(item), {}, _day(row), _day(row))


def _change(shop: Shop, row: Row) -> float | None:
    """Return the true change of *home* between the two ranges that a row names."""
    now, then = (_home_in(shop, row["dimensions"][name]) for name in ("time", "against"))
    return None if now is None or then is None else now - then


def _home_in(shop: Shop, window: str) -> float | None:
    """Return the true share of *home* in a window: a period, or the first and last of several."""
    first, _, last = window.partition("/")
    dates = (date.fromisoformat(text) for text in (first, last or first))
    return share(shop, "screen", _equals("home"), EVERYBODY, *dates)


_LIFT: Final = {"dimension": "arm", "control": "control"}
_ARMS: Final = {"verb": "lift", "dimensions": ["arm"], "options": _LIFT}


def questions(shop: Shop) -> tuple[Question, ...]:
    """Return what is asked of *shop*, and the true answers."""
    return (
        Question(
            1, "How many use it a day?", f"/metric/{shop.daily}",
            {"metrics": [shop.daily], "verb": "actives", "dimensions": ["time:day"]},
            lambda row: len(shop.of(shop.daily, {}, _day(row), _day(row))), rows=shop.days,
        ),
        Question(
            2, "How many use it in a week, in a month?", "/metric/weekly",
            {"metrics": ["weekly"], "verb": "actives", "dimensions": ["time"]},
            lambda row: len(shop.of("weekly", {}, _day(row), _day(row))), rows=shop.days // 7,
        ),
        Question(
            3, "How sticky is it: on how many days of a month is it used?", "/metric/active_days",
            {"metrics": ["active_days"], "verb": "mean"},
            lambda row: _active_days(shop),
        ),
        Question(
            4, "Which screen is opened first?", "/",
            {"metrics": ["screen"]},
            lambda row: share(shop, "screen", _equals(row["dimensions"]["item"])),
            rows=6, shown=0.1,
        ),
        Question(
            5, "Is *home* down against last week?",
            "/ask?metric=screen&verb=compare&range=7d&against=previous",
            {"metrics": ["screen"], "verb": "compare", "date_range": "7d", "against": "previous",
             "options": {"item": "home"}},
            lambda row: _change(shop, row),
        ),
        Question(
            6, "Is 1.3 stable?", "/metric/crashed",
            {"metrics": ["crashed"], "dimensions": ["version"]},
            lambda row: share(shop, "crashed", bool, _segment(row, "version")), rows=4,
        ),
        Question(
            7, "Is 1.3 stable on Android only?", "/metric/crashed?segment.platform=android",
            {"metrics": ["crashed"], "dimensions": ["version"],
             "filters": [["is", "platform", ["android"]]]},
            lambda row: share(
                shop, "crashed", bool, {"platform": "android", **_segment(row, "version")}
            ),
            rows=3,
        ),
        Question(
            8, "When did it change?", "/ask?metric=crashed&verb=trend",
            {"metrics": ["crashed"], "verb": "trend"},
            lambda row: _at(shop, row, "crashed", True), rows=shop.periods,
            says=("changed on 2026-11-1",),
        ),
        Question(
            9, "Which day was 1.3 shipped?",
            f"/ask?metric={shop.daily}&verb=adoption&by=version&by=time:day",
            {"metrics": [shop.daily], "verb": "adoption", "dimensions": ["time:day", "version"]},
            lambda row: _spread(shop, row), rows=3 * shop.days,
            part=lambda answer: _around_release(shop, answer),
        ),
        Question(
            10, "How far has 1.3 spread?", f"/metric/{shop.daily}",
            {"metrics": [shop.daily], "verb": "adoption", "dimensions": ["time:day", "version"]},
            lambda row: _spread(shop, row),
            part=lambda answer: _newest(answer, shop.today, shop.today),
        ),
        Question(
            11, "How many had it on the first three days?",
            f"/ask?metric={shop.daily}&verb=adoption&by=version&by=time:day",
            {"metrics": [shop.daily], "verb": "adoption", "dimensions": ["time:day", "version"]},
            lambda row: _spread(shop, row), rows=3,
            part=lambda answer: _newest(answer, shop.released, shop.released + timedelta(days=2)),
        ),
        Question(
            12, "Does the treatment lift *deals*?", "/metric/deals",
            {"metrics": ["deals"], **_ARMS},
            _between_arms(shop, "deals", lambda row: bool), rows=2,
        ),
        Question(
            13, "Does it lift what is spent?", "/metric/spent", {"metrics": ["spent"], **_ARMS},
            lambda row: _spent_between_arms(shop, row), rows=2,
        ),
        Question(
            14, "How long must the test run to show 3 points?",
            "/ask?metric=crashed&verb=lift&option.effect=0.03",
            {"metrics": ["crashed"], **_ARMS, "options": {**_LIFT, "effect": 0.03}},
            _between_arms(shop, "crashed", lambda row: bool), rows=2,
            says=("To settle 3 points 8 times in 10 takes",),
        ),
        Question(
            15, "Does it bring people back in the next week?", "/ask?metric=weeks&verb=lift",
            {"metrics": ["weeks"], **_ARMS, "options": {**_LIFT, "item": "week 1"}},
            _between_arms(
                shop, "weeks", lambda row: lambda weeks: row["dimensions"]["item"] in weeks
            ),
            rows=2,
        ),
        Question(
            16, "Do more reach the cart?", "/ask?metric=checkout&verb=lift",
            {"metrics": ["checkout"], **_ARMS, "options": {**_LIFT, "item": "cart"}},
            _between_arms(shop, "checkout", lambda row: _reaches(row["dimensions"]["item"])),
            rows=2,
        ),
        Question(
            17, "Where do people leave?", "/metric/checkout",
            {"metrics": ["checkout"], "verb": "funnel"}, lambda row: _funnel(shop, row), rows=7,
        ),
        Question(
            18, "Where do they leave, by version?", "/ask?metric=checkout&verb=funnel&by=version",
            {"metrics": ["checkout"], "verb": "funnel", "dimensions": ["version"]},
            lambda row: _funnel(shop, row, _segment(row, "version")), rows=28,
        ),
        Question(
            19, "Do people come back?", "/metric/weeks",
            {"metrics": ["weeks"], "verb": "retention"}, lambda row: _retention(shop, row), rows=7,
        ),
        Question(
            20, "What is the median of start-up, and p95?", "/ask?metric=startup_ms&verb=quantile",
            {"metrics": ["startup_ms"], "verb": "quantile"},
            lambda row: quantile(shop, _level(row)), rows=3,
        ),
        Question(
            21, "What is p95 by version?",
            "/ask?metric=startup_ms&verb=quantile&by=version&option.levels=0.95",
            {"metrics": ["startup_ms"], "verb": "quantile", "dimensions": ["version"],
             "options": {"levels": [0.95]}},
            lambda row: quantile(shop, 0.95, _segment(row, "version")), rows=3,
        ),
        Question(
            22, "What was p95 over time?", "/ask?metric=startup_ms&verb=trend&option.levels=0.95",
            {"metrics": ["startup_ms"], "verb": "trend", "options": {"levels": [0.95]}},
            lambda row: quantile(shop, 0.95, {}, _day(row), _day(row)), rows=shop.periods,
        ),
        Question(
            23, "How many start in more than two seconds?",
            "/ask?metric=startup_ms&verb=range&option.low=2000&option.high=5000",
            {"metrics": ["startup_ms"], "verb": "range", "options": {"low": 2000, "high": 5000}},
            lambda row: share(shop, "startup_ms", lambda ms: ms >= 2_000),
        ),
        Question(
            24, "What is the revenue of the week, by platform?",
            "/ask?metric=spent&verb=sum&by=platform&range=7d",
            {"metrics": ["spent"], "verb": "sum", "dimensions": ["platform"], "date_range": "7d"},
            lambda row: _revenue(shop, row), rows=3,
        ),
        Question(
            25, "What is the revenue per buyer?", "/ask?metric=spent&metric=bought&verb=ratio",
            {"metrics": ["spent", "bought"], "verb": "ratio"},
            lambda row: _per_buyer(shop),
        ),
        Question(
            26, "What is p95 of what is spent?", "/ask?metric=spent&verb=quantile",
            {"metrics": ["spent"], "verb": "quantile"}, refusal="mean",
        ),
        Question(
            27, "What do people search for?", "/metric/search",
            {"metrics": ["search"], "verb": "heavy_hitters"},
            lambda row: share(shop, "search", _equals(row["dimensions"]["item"])), rows=7,
        ),
        Question(
            28, "How many search for *unicorn*?",
            "/ask?metric=search&verb=heavy_hitters&option.candidates=unicorn",
            {"metrics": ["search"], "verb": "heavy_hitters",
             "options": {"candidates": ["unicorn"]}},
            lambda row: share(shop, "search", _equals("unicorn")),
        ),
        Question(
            29, "Where do orders come from?", "/metric/place",
            {"metrics": ["place"], "verb": "map"}, lambda row: _place(shop, row), rows=48,
        ),
        Question(
            30, "Which features are used, by platform?",
            "/ask?metric=features&verb=frequency&by=platform",
            {"metrics": ["features"], "verb": "frequency", "dimensions": ["platform"]},
            lambda row: share(
                shop, "features", lambda used: row["dimensions"]["item"] in used,
                _segment(row, "platform"),
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
            lambda row: _of_members(shop, row), rows=4,
        ),
        Question(
            33, "How many minutes in which section?", "/metric/minutes",
            {"metrics": ["minutes"], "verb": "key_values"}, lambda row: _minutes(shop, row), rows=6,
        ),
        Question(
            34, "What can everybody have?", "/metric/screen",
            {"metrics": ["screen"]},
            lambda row: share(shop, "screen", _equals(row["dimensions"]["item"])),
            rows=6, way=RELEASE,
        ),
        Question(
            35, "What would ε 2 give?", "/plan?metric=crashed&epsilon=2&devices=4",
            says=(f"±{_yes_no_half_width(shop, 2, 10**4):.2g} points",),
        ),
        Question(
            36, "And against the same days a year ago?",
            "/ask?metric=screen&verb=compare&range=14d&against=year",
            {"metrics": ["screen"], "verb": "compare", "date_range": "14d", "against": "year",
             "options": {"item": "home"}},
            lambda row: _change(shop, row),
        ),
        Question(
            37, "In Python, as CSV and Arrow?", "/metric/screen",
            {"metrics": ["screen"]},
            lambda row: share(shop, "screen", _equals(row["dimensions"]["item"])),
            rows=6, way=FORMATS,
        ),
        Question(
            38, "In Grafana?", "/metric/crashed",
            {"metrics": ["crashed"], "dimensions": ["time"]},
            lambda row: _at(shop, row, "crashed", True), rows=shop.periods, way=BOARD,
            window=(shop.first, shop.today),
        ),
    )  # fmt: skip


def _newest(answer: Mapping[str, Any], first: date, last: date) -> list[Row]:
    return [
        row
        for row in answer["rows"]
        if row["dimensions"]["version"] == "1.3" and first <= _day(row) <= last
    ]


def _around_release(shop: Shop, answer: Mapping[str, Any]) -> Sequence[Row]:
    """Return all rows, after the first day with the new version was held against its release."""
    days = [_day(row) for row in _newest(answer, shop.first, shop.today) if row["value"]]
    return answer["rows"] if min(days) == shop.released else []


def _per_buyer(shop: Shop) -> float:
    buyers = [device for device in shop.of("bought") if device.values["bought"]]
    each = len(buyers) / len(shop.of("bought"))
    return mean(shop, "spent") / each


def _active_days(shop: Shop) -> float:
    days: list[float] = [
        device.values["active_days"] for device in shop.devices if "active_days" in device.values
    ]
    return sum(days) / len(days)
