"""What watches say of numbers, changes and silence, and of what cannot be computed."""

from __future__ import annotations

from typing import Final

import pytest

from client_sdk.core.epoch import DAY
from collector.core.cells import Cell, key_source, segment_text
from collector.core.exclusions import Exclusion, to_json
from collector.storage.records import FIRING, QUIET, UNABLE, UNKNOWN, Verdict
from collector.workspace.watch.evaluation import MOST_LATE, due, evaluate, newest
from tests.support.device.registries import BOOLEAN, FUNNEL, NUMBER, PAIR, RETENTION
from tests.support.store.stored import queue_one
from tests.support.store.watched import NEWEST, NOON, TODAY, Desk, catalog_of


def verdict(desk: Desk, period: int = NEWEST, now: int = NOON) -> Verdict:
    (watch, *_) = desk.watches.watch
    return evaluate(desk.watches, watch, desk.catalog, desk.tallies, period, now)


def watching(rule: str, **more: str) -> Desk:
    return Desk(text_of(rule, **more))


def text_of(rule: str, **more: str) -> str:
    lines = "\n".join(f"{name} = {value}" for name, value in more.items())
    return f'[[watch]]\nname = "w"\nmetric = "m"\n{rule}\n{lines}\n'


ITS_DAY: Final = [(NEWEST, 20_000, 0.5)]
TWO_DAYS: Final = [(NEWEST - 1, 20_000, 0.5), (NEWEST, 20_000, 0.5)]
CHANGED: Final = [(NEWEST - 1, 20_000, 0.2), (NEWEST, 20_000, 0.5)]


@pytest.mark.parametrize(
    ("rule", "more", "folds", "state", "text"),
    [
        # A threshold fires only if the number is surely beyond it.
        *(
            (rule, {}, [(NEWEST, 20_000, share)], state, "Dark mode: ")
            for rule, share, state in (
                ("above = 0.5", 0.6, FIRING),
                ("above = 0.5", 0.5, QUIET),
                ("above = 0.5", 0.4, QUIET),
                ("below = 0.5", 0.4, FIRING),
                ("below = 0.5", 0.5, QUIET),
            )
        ),
        # A change is told only beyond what matters, and needs a time before.
        ("changed = 0", {}, CHANGED, FIRING, "points"),
        ("changed = 0.4", {}, CHANGED, QUIET, ""),
        ("changed = 0", {}, ITS_DAY, UNKNOWN, ""),
        # Few reports are no alarm and no number.
        ("below = 0.5", {}, [(NEWEST, 50, 0.0)], UNKNOWN, "not enough reports"),
        # What cannot be computed says why.
        *(
            (rule, more, TWO_DAYS, UNABLE, what)
            for rule, more, what in (
                ("above = 1", {"item": '"gone"'}, "item: the answer has no such item"),
                ("above = 1", {"verb": '"nothing"'}, "verb: must be one of"),
                ("above = 1", {"options": "{nothing = 1}"}, "options"),
                ("above = 1", {"filters": '[["is", "gone", ["a"]]]'}, "dimensions"),
                ("above = 1", {"filters": '[["is", "platform", ["gone"]]]'}, "has the values"),
                ("changed = 1", {"verb": '"actives"'}, "changed: takes shares of all devices"),
            )
        ),
    ],
)
def test_a_watch_says_what_its_rule_finds(
    rule: str, more: dict[str, str], folds: list[tuple[int, int, float]], state: str, text: str
) -> None:
    """A number lies within its interval, and there is none of too few reports."""
    desk = watching(rule, **more)
    for fold in folds:
        desk.fold(*fold)

    said = verdict(desk)

    assert said.state == state
    assert text in said.text
    if said.value is not None and said.low is not None and said.high is not None:
        assert said.low <= said.value <= said.high
    assert (said.value is None) <= (state in (UNKNOWN, UNABLE))


def test_a_window_joins_periods() -> None:
    desk = watching("above = 0.5", window="7")
    for day in range(NEWEST - 6, NEWEST + 1):
        desk.fold(day, 5_000, 0.55)

    said = verdict(desk)

    assert (said.first, said.last, said.n) == ("2026-02-24", "2026-03-02", 35_000)


@pytest.mark.parametrize("window", ["1", "3"])
def test_a_count_of_devices_is_watched_as_the_average_of_its_window(window: str) -> None:
    """Law: exact, so beyond the limit or not; it has no noise to tell a change from."""
    counted = catalog_of(form={**BOOLEAN, "show": '"count"'})
    fires, quiet, changes = (
        Desk(text_of(rule, window=window), counted)
        for rule in ("below = 4_900", "above = 5_100", "changed = 0")
    )
    for desk in (fires, quiet, changes):
        for place, n in enumerate((4_700, 4_800, 4_800, 4_700, 4_800)):
            desk.fold(NEWEST - place, n, 1.0)

    assert verdict(fires).state == FIRING
    mean = {"1": "4,700", "3": "4,767"}[window]
    assert f"{mean} devices: below 4,900 devices" in verdict(fires).text
    assert verdict(quiet).state == QUIET
    assert (verdict(changes).state, "ask above or below" in verdict(changes).text) == (UNABLE, True)


def silent(counts: list[int]) -> Verdict:
    """Return what is said of the last of *counts*, which are a week apart."""
    desk = watching("silent = 0.5")
    for place, n in enumerate(reversed(counts)):
        if n:
            desk.fold(NEWEST - 7 * place, n, 0.5)
    return verdict(desk)


def test_devices_whose_reports_an_operator_takes_out_have_not_fallen_silent() -> None:
    desk = watching("silent = 0.5")
    metric = desk.catalog.metric("m")
    text = segment_text(metric, {}, key_source("badbadbadbad"))
    for day in (NEWEST - 28, NEWEST - 21, NEWEST - 14, NEWEST - 7, NEWEST):
        shard, entry = queue_one(desk.tallies)
        cell = Cell(metric.digest, day, text)
        desk.tallies.fold(shard, [entry], {cell: [(0, 1_000), (1, 400), (2, 600)]})
    before = verdict(desk)
    desk.tallies.excluded = {"x": to_json(Exclusion(
        id="x", by="key", name="badbadbadbad", first="2026-03-02", last="2026-03-02",
        author="ada", because="leaked", at=NOON,
    ))}  # fmt: skip

    assert before.state == QUIET
    assert verdict(desk) == before


@pytest.mark.parametrize(
    ("counts", "state"),
    [
        ([1_000, 1_000, 1_000, 1_000, 0], FIRING),
        ([1_000, 1_000, 1_000, 1_000, 300], FIRING),
        ([1_000, 1_000, 1_000, 1_000, 600], QUIET),
        ([1_000, 0, 0, 0, 100], FIRING),
        ([10, 10, 10, 10, 4], QUIET),  # below half, which chance may do
        ([0, 0, 0, 0, 1_000], UNKNOWN),
        ([0, 0, 0, 0, 0], UNKNOWN),
    ],
)
def test_devices_fell_silent_if_far_fewer_report_than_on_that_weekday(
    counts: list[int], state: str
) -> None:
    assert silent(counts).state == state


def alike(form: dict[str, str], **more: str) -> Verdict:
    """Return what a watch of any change says of two days with the same reports, item by item."""
    desk = watching("changed = 0", **more)
    desk.catalog = catalog_of(form={**form, "epsilon": '"4.0"'})
    metric = desk.catalog.metric("m")
    tally = [1_000 * (place + 1) for place in range(len(metric.domain.labels))]
    for day in (NEWEST - 1, NEWEST):
        shard, entry = queue_one(desk.tallies)
        cell = Cell(metric.digest, day, "")
        desk.tallies.fold(shard, [entry], {cell: list(enumerate((sum(tally), *tally)))})
    return verdict(desk)


def test_each_number_of_an_answer_is_held_against_its_own() -> None:
    table = alike(PAIR, verb='"crosstab"')
    step = alike(FUNNEL, verb='"funnel"', item='"visit"')

    assert (table.state, table.value) == (QUIET, 0.0)
    assert (step.state, step.value) == (QUIET, 0.0)
    assert "visit reached" in step.text


@pytest.mark.parametrize(("form", "verb"), [(FUNNEL, '"funnel"'), (RETENTION, '"retention"')])
def test_parts_of_a_group_take_no_change_as_their_devices_are_not_counted(
    form: dict[str, str], verb: str
) -> None:
    said = alike(form, verb=verb)

    assert said.state == UNABLE
    assert "shares of all devices" in said.text


@pytest.mark.parametrize("every", ["once"])
def test_what_is_never_published_cannot_be_watched(every: str) -> None:
    desk = watching("above = 0.5")
    desk.catalog = catalog_of(every)

    assert "nothing of it is ever published" in verdict(desk).text


@pytest.mark.parametrize("every", ["1h", "1d", "7d", "28d"])
def test_the_newest_period_is_the_last_that_is_published(every: str) -> None:
    desk = watching("above = 0.5")
    desk.catalog = catalog_of(every)

    period = newest(desk.watches.watch[0], desk.catalog.metric("m"), NOON)

    assert "not enough reports" in verdict(desk, period).text
    assert "is not published" in verdict(desk, period + 1).text


def test_a_mean_is_watched_in_its_unit() -> None:
    desk = watching("above = 3")
    desk.catalog = catalog_of("1d", NUMBER)
    metric = desk.catalog.metric("m")

    assert metric.domain.unit == "minutes"
    assert verdict(desk).state == UNKNOWN
    assert "not enough reports" in verdict(desk).text


def test_a_long_pause_is_not_made_up_for_in_full() -> None:
    assert list(due(None, 100)) == [100]
    assert list(due(98, 100)) == [99, 100]
    assert list(due(100, 100)) == []
    assert len(list(due(1, 100))) == MOST_LATE


def test_days_are_those_of_utc() -> None:
    desk = watching("above = 0.5")

    assert newest(desk.watches.watch[0], desk.catalog.metric("m"), TODAY * DAY + 3_599) == TODAY - 3
    assert newest(desk.watches.watch[0], desk.catalog.metric("m"), TODAY * DAY + 3_600) == TODAY - 2
