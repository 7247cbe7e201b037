"""Common strings without a list: which are shown, what is said of them, and when none is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pytest
from msgspec import convert

from benchmarks.accuracy.heavy_hitters import tally_of
from client_sdk.core.dataclass import replace
from client_sdk.mechanisms.composite.pem import PEM
from client_sdk.registry.metric import Metric
from collector.analytics.rows import Findings
from collector.analytics.verb import Slice, VerbQuery, load, merged
from collector.core.errors import QueryError
from tests.support.crowds.asking import ask, holds
from tests.support.crowds.scenarios import Part, Scenario, check
from tests.support.device.registries import STRING
from tests.support.enumeration.populations import metric_of
from tests.support.known import known

METRIC: Final = metric_of(STRING, epsilon='"4"')
HELD: Final = {"crash": 60_000, "hang": 30_000, "overheat": 20_000, "": 15_000, "zzz": 100}
ALPHA: Final = 0.05
LETTERS: Final = {"alphabet": "abcdefghijklmnopqrstuvwxyz"}


def crowd(
    held: Mapping[str, int] = HELD,
    dimensions: Mapping[str, str] | None = None,
    metric: Metric = METRIC,
    seed: int = 1,
) -> Slice:
    """Return the slice of devices that hold these strings."""
    assert isinstance(metric.mechanism, PEM)
    texts = [text.encode() for text in held]
    tally = tally_of(metric.mechanism, texts, list(held.values()), seed)
    return Slice(metric, dimensions or {}, sum(held.values()), tally, (0,))


CROWD: Final = crowd()


def test_common_strings_are_found_the_most_common_first_with_their_shares() -> None:
    """Nobody named them; a string that few hold is not among them."""
    one = CROWD

    rows = ask("heavy_hitters", [one], options=LETTERS).rows

    assert [row.item for row in rows] == ["crash", "hang", "overheat", ""]
    assert all(holds(row, HELD[row.item] / one.n) and not holds(row, 0) for row in rows)
    assert all(row.simultaneous and row.unit == "share" for row in rows)


RARER: Final = {text: 880 for text in ("tortoise", "elephant", "squirrel", "antelope", "reindeer")}
BOTH: Final = crowd(HELD | RARER)


def test_strings_that_are_likely_stand_beside_those_that_are_sure_and_say_so() -> None:
    """A mark, a note, and an interval that reaches 0; the facts count both."""
    found = ask("heavy_hitters", [BOTH], options=LETTERS)

    marks = {row.item: row.certainty for row in found.rows}
    assert {marks[text] for text in ("crash", "hang", "overheat", "")} == {"sure"}
    rows = [row for row in found.rows if row.certainty == "likely"]
    assert rows
    assert {row.item for row in rows} <= set(RARER)
    assert all("likely, not sure: 10 %" in (row.note or "") for row in rows)
    assert all((row.ci_low or 0) <= 0 and holds(row, 880 / BOTH.n) for row in rows)
    (fact,) = found.facts["slices"]
    assert fact["likely"] == len(rows)
    assert fact["sure"] == len(found.rows) - len(rows)
    assert fact["false_among_likely"] == 0.1


def test_likely_strings_can_be_left_out_and_never_displace_sure_ones() -> None:
    """As many as k are shown, those that are sure first."""
    every = ask("heavy_hitters", [BOTH], options=LETTERS).rows
    sure = [row.item for row in every if row.certainty == "sure"]

    without = ask("heavy_hitters", [BOTH], options={**LETTERS, "likely": False}).rows
    few = ask("heavy_hitters", [BOTH], options={**LETTERS, "k": len(sure)}).rows

    assert [row.item for row in without] == [row.item for row in few] == sure


FEW: Final = crowd({"crash": 500, "hang": 100}, metric=metric_of(STRING, epsilon='"1"'))
SCENARIOS: Final = {
    "named candidates bear no mark": Scenario(
        "heavy_hitters",
        [CROWD],
        {"candidates": ["crash", "nobody"]},
        {"item": ["crash", "nobody"], "certainty": None},
    ),
    # Without a search: of any bytes, in order of their shares, and cut as the device cuts.
    "named candidates are estimated whether common or not": Scenario(
        "heavy_hitters",
        [CROWD],
        {"candidates": ["hang", "überhit", "crash", "overheating"]},
        {
            "item": ["crash", "hang", "overheat", "überhit"],
            "value": [0.48, 0.24, 0.16, 0],
            "note": [..., None, ..., Part("not distinguishable from zero")],
        },
        within=0.03,
    ),
    "the first k": Scenario(
        "heavy_hitters", [CROWD], {**LETTERS, "k": 2}, {"item": ["crash", "hang"]}
    ),
    "those of at least a share": Scenario(
        "heavy_hitters", [CROWD], {**LETTERS, "threshold": 0.2}, {"item": ["crash", "hang"]}
    ),
    # "overheating" would be told as the same.
    "a string as long as the cut says that longer ones are counted too": Scenario(
        "heavy_hitters",
        [CROWD],
        LETTERS,
        {"note": [..., None, Part("cut to 8 bytes"), None], "simultaneous": True},
        {"slices": [{"levels": 4, "longest": 8, "detectable_share": 0.03, "reports_needed": ...}]},
        within=0.02,
    ),
    # Where not even what half of the devices hold would be found, nothing is told.
    "very few reports are refused without a threshold too": Scenario(
        "heavy_hitters", [FEW], LETTERS, {"value": [None], "reason": [Part("for a share of 50 %")]}
    ),
    "a slice below the least reports says why": Scenario(
        "heavy_hitters",
        [crowd({"crash": 90})],
        LETTERS,
        {"value": [None], "reason": [Part("not enough reports")]},
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_search_is_answered_as_its_scenario_says(name: str) -> None:
    check(SCENARIOS[name])


def test_too_few_reports_for_the_threshold_give_a_reason_and_the_reports_needed() -> None:
    """No row is better than a search that finds nothing and seems to say there is nothing."""
    found = ask("heavy_hitters", [CROWD], options={**LETTERS, "threshold": 0.001})

    (row,), (fact,) = found.rows, found.facts["slices"]
    assert row.value is None
    assert f"{fact['reports_needed']:,} are needed for a share of 0.1 %" in known(row.reason)
    assert fact["reports_needed"] > 100 * sum(HELD.values()) / 10
    assert fact["detectable_share"] > 0.001


def test_ten_thousand_candidates_that_nobody_holds_give_no_false_alarm() -> None:
    """Their intervals hold at once, so none lies above 0."""
    options = {"candidates": [f"x{i}" for i in range(10_000)], "k": 10_000}

    rows = ask("heavy_hitters", [CROWD], options=options).rows

    assert len(rows) == 10_000
    assert all(row.ci_low is not None and row.ci_low <= 0 for row in rows)


def test_slices_share_the_level() -> None:
    """All intervals of the answer hold at once, so those of two slices are wider than of one."""
    first, second = crowd(dimensions={"os": "a"}), crowd(dimensions={"os": "b"})

    rows = ask("heavy_hitters", [first, second], options=LETTERS).rows
    alone = ask("heavy_hitters", [first], options=LETTERS).rows

    assert [row.dimensions["os"] for row in rows] == ["a"] * 4 + ["b"] * 4
    assert (rows[0].ci_high or 0) > (alone[0].ci_high or 1)


DAYS: Final = 14
ANY_DAY: Final = {"crash": 6_000, "hang": 3_000, "elephant": 500}
ONE_DAY: Final = {"tortoise": 1_500}  # of the fourth day alone: 1 in 187 of all reports


def held_on(day: int) -> dict[str, int]:
    """Return the strings of the 20,000 devices of a *day*."""
    held = ANY_DAY | (ONE_DAY if day == 3 else {})
    return held | {"": 20_000 - sum(held.values())}


def days(metric: Metric = METRIC) -> list[Slice]:
    """Return a slice a day."""
    return [crowd(held_on(day), {"time": str(day)}, metric, seed=100 + day) for day in range(DAYS)]


def test_a_string_of_one_group_alone_is_found_though_it_is_rare_in_all_together() -> None:
    """The search of all groups does not come to it, that of its own group does."""
    every, whole = days(), merged(days(), {})

    of_all = {row.item for row in ask("heavy_hitters", [whole], options=LETTERS).rows}
    rows = ask("heavy_hitters", every, options=LETTERS).rows

    assert "tortoise" not in of_all
    (found,) = (row for row in rows if row.item == "tortoise")
    assert (found.dimensions["time"], found.certainty) == ("3", "sure")


def test_a_string_that_groups_share_is_found_in_more_of_them_than_by_their_own_searches() -> None:
    """All together show it best; and what any group finds for sure holds at once."""
    every = days()

    rows = ask("heavy_hitters", every, options=LETTERS).rows
    alone = [ask("heavy_hitters", [one], ALPHA / DAYS, options=LETTERS).rows for one in every]

    together = [row for row in rows if row.item == "elephant"]
    assert len(together) > sum(row.item == "elephant" for own in alone for row in own)
    sure = [row for row in rows if row.certainty == "sure"]
    truths = [held_on(int(row.dimensions["time"])).get(row.item, 0) / 20_000 for row in sure]
    assert all(holds(row, truth) for row, truth in zip(sure, truths, strict=True))
    assert len(sure) > 3 * DAYS


TRIED: Final = Counter[int]()  # cells that were looked at, by level


class Counting(PEM):
    """Counts the cells that a search looks at."""

    def columns_at(self, level: int, row: int, fingerprints: Any) -> Any:
        TRIED[level] += np.size(fingerprints)
        return super().columns_at(level, row, fingerprints)


def cells_tried(slices: list[Slice]) -> int:
    """Return how many cells an answer about *slices* looks at."""
    TRIED.clear()
    ask("heavy_hitters", slices, options=LETTERS)
    return TRIED.total()


def test_a_search_of_fourteen_groups_looks_at_less_than_five_searches_do() -> None:
    """What noise keeps costs most, and it is shared out among the groups."""
    every = days(replace(METRIC, mechanism=Counting("4", 8)))

    one, all_ = cells_tried(every[:1]), cells_tried(every)

    assert all_ < 5 * one


def test_a_search_stops_between_levels_once_its_time_is_up() -> None:
    """As any long step of an answer does."""
    steps = iter([None] * 3)

    def pause() -> None:
        if next(steps, "no more") == "no more":
            raise QueryError("dimensions", "takes too long")

    verb = load("heavy_hitters")
    query = VerbQuery(ALPHA, options=convert(LETTERS, verb.options), pause=pause)

    with pytest.raises(QueryError, match="takes too long"):
        verb.answer(days(), query)


def pauses_of(parts: int, **options: Any) -> tuple[Findings, int]:
    """Return what is answered about so many groups, and how often time was looked at."""
    verb, pauses = load("heavy_hitters"), list[None]()
    slices = [crowd(dimensions={"platform": str(part)}) for part in range(parts)]
    given = convert(options, verb.options)
    query = VerbQuery(ALPHA, options=given, pause=lambda: pauses.append(None))
    return verb.answer(slices, query), len(pauses)


def test_time_is_looked_at_before_each_part_of_a_level_and_never_after_the_last_group() -> None:
    """What is answered is never thrown away for want of time."""
    answered, named = pauses_of(2, candidates=["crash", "hang"])
    one, searched = pauses_of(1, **LETTERS)

    assert named == 2
    assert isinstance(METRIC.mechanism, PEM)
    assert searched > 4 * METRIC.mechanism.levels
    assert {row.item for row in answered.rows} == {"crash", "hang"}
    assert [row.item for row in one.rows] == ["crash", "hang", "overheat", ""]


def test_the_price_of_a_search_counts_what_its_alphabet_lets_it_try() -> None:
    verb = load("heavy_hitters")
    alphabets = "ab", "abcdefghij", "".join(map(chr, range(32, 127)))

    prices = [verb.cost(METRIC, convert({"alphabet": each}, verb.options)) for each in alphabets]

    assert 0 < 10 * prices[0] < prices[1]
    assert 5 * prices[1] < prices[2]
