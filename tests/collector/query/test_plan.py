"""A question is read strictly from its parameters, and answered from the right tallies only."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from client_sdk.core.epoch import DAY, epoch_of
from client_sdk.registry.metric import Metric
from collector.core.catalog import Catalog
from collector.core.cells import Cell, class_of, segment_text
from collector.core.errors import DamagedTallyError, QueryError
from collector.query import Answer, Plan, plan, question, run
from collector.query.plan import Reading
from tests.support.crowds.uploads import NOON, TODAY, registry
from tests.support.store.memory_storage import MemoryStorage

REGISTRY = registry(min_reports=100)
PAGE, OPTED_IN, CRASHED, THEME = (
    REGISTRY.metric(name) for name in ("page", "opted_in", "crashed", "theme")
)
FIRST, LAST = TODAY - 5, TODAY - 1  # epoch days


def day(number: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=number)).isoformat()


def ask(metric: Metric, parameters: dict[str, str], now: float) -> Plan:
    return plan(question(metric, parameters, now), Catalog([REGISTRY]), now)


def reading(metric: Metric, parameters: dict[str, str], now: float) -> Reading:
    (only,) = ask(metric, parameters, now).readings
    return only


def reports(found: Answer) -> int:
    n: int = found.meta.metrics[0].n
    return n


def late_of(found: Answer) -> int:
    late_share: float = found.meta.metrics[0].late_share
    return round(late_share * reports(found))


def stored(counts: dict[tuple[int, str], list[int]]) -> MemoryStorage:
    """Return a store with tallies of PAGE by (epoch, segment)."""
    storage = MemoryStorage()
    for (epoch, segment), tally in counts.items():
        cell = Cell(PAGE.digest, epoch, segment)
        storage.put({cell: list(enumerate([sum(tally), *tally]))})
    return storage


MONDAY = TODAY - 2


@pytest.mark.parametrize(
    ("metric", "parameters", "first", "last"),
    [
        (PAGE, {}, TODAY - 29, TODAY),
        (PAGE, {"from": day(FIRST), "to": day(LAST)}, FIRST, LAST),
        (PAGE, {"to": "1970-01-02"}, 0, 1),
        (CRASHED, {"from": day(FIRST), "to": day(FIRST)}, 24 * FIRST, 24 * FIRST + 23),
        (OPTED_IN, {"from": day(FIRST), "to": day(LAST)}, 0, 0),
    ],
    ids=["thirty days", "both ends", "the first days of all", "hours", "once"],
)
def test_a_window_holds_all_epochs_of_both_of_its_days(
    metric: Metric, parameters: dict[str, str], first: int, last: int
) -> None:
    assert list(reading(metric, parameters, NOON).epochs) == list(range(first, last + 1))


def test_a_window_of_weeks_leaves_out_a_week_that_began_before() -> None:
    asked = reading(THEME, {"from": day(MONDAY - 13), "to": day(TODAY)}, NOON)

    assert asked.window == (day(MONDAY - 7), day(MONDAY))


@pytest.mark.parametrize(
    ("parameters", "named", "metric"),
    [
        ({"from": day(TODAY - 420)}, ".*at most 10000 epochs", CRASHED),
        ({"from": day(TODAY - 1), "to": day(TODAY)}, ".*no whole epoch of 7d", THEME),
        *(
            (*case, PAGE)
            for case in (
                ({"from": "yesterday"}, "from"),
                ({"to": "2026-13-01"}, "to"),
                ({"to": "2026-W05-1"}, "to"),
                ({"to": "20260101"}, "to"),
                ({"to": ""}, "to"),
                ({"to": "2026-01-01T00:00"}, "to"),
                ({"to": "0001-01-01"}, "to"),
                ({"to": "9999-12-31"}, "to"),
                ({"from": "1969-12-31"}, "from"),
                ({"from": "2026-02-02", "to": "2026-02-01"}, "from"),
                ({"from": "1970-01-01"}, "from"),
                ({"alpha": "0"}, "alpha"),
                ({"alpha": "1"}, "alpha"),
                ({"alpha": "nan"}, "alpha"),
                ({"alpha": "inf"}, "alpha"),
                ({"alpha": "-0.05"}, "alpha"),
                ({"alpha": "5%"}, "alpha"),
                ({"segment.platform": "amiga"}, "segment.platform"),
                ({"segment.channel": "beta"}, "segment"),
                ({"segment.": "mac"}, "segment"),
            )
        ),
    ],
)
def test_a_bad_parameter_is_named(parameters: dict[str, str], named: str, metric: Metric) -> None:
    with pytest.raises(QueryError, match=rf"^{named}\b"):
        ask(metric, parameters, NOON)


HOUR = {"from": day(TODAY), "to": day(TODAY)}


@pytest.mark.parametrize(
    ("metric", "parameters", "now", "is_open", "is_unfinished"),
    [
        (PAGE, {"to": day(TODAY - 1)}, NOON, False, False),
        (PAGE, {"to": day(TODAY)}, NOON, True, True),
        (PAGE, {"to": day(TODAY + 1)}, NOON, True, True),
        # More devices may still answer; but no period is cut short.
        (OPTED_IN, {}, NOON, True, False),
        (CRASHED, HOUR, (TODAY + 1) * DAY - 1, True, True),
        (CRASHED, HOUR, (TODAY + 1) * DAY, False, False),
    ],
)
def test_a_window_is_open_while_its_last_epoch_runs(
    metric: Metric, parameters: dict[str, str], now: float, is_open: bool, is_unfinished: bool
) -> None:
    found = reading(metric, parameters, now)

    assert (found.is_open, found.is_unfinished) == (is_open, is_unfinished)


def test_an_answer_adds_the_epochs_of_its_window_and_no_others() -> None:
    text = segment_text(PAGE, {})
    counts = {(epoch, text): [2**i, 0, 0] for i, epoch in enumerate(range(FIRST - 1, LAST + 2))}
    storage = stored(counts)

    n = reports(run(ask(PAGE, {"from": day(FIRST), "to": day(LAST)}, NOON), storage))

    assert n == sum(2**i for i in range(1, LAST - FIRST + 2))


def test_a_segment_below_min_reports_has_no_number_even_if_the_whole_has() -> None:
    counts = {
        (TODAY, segment_text(PAGE, {"platform": value})): [count, 0, 0]
        for value, count in (("mac", 99), ("linux", 500))
    }

    part = run(ask(PAGE, {"segment.platform": "mac"}, NOON), stored(counts))

    assert [row.value for row in part.rows] == [None, None, None]


def test_another_metric_in_the_same_epoch_is_not_counted() -> None:
    storage = stored({(TODAY, segment_text(PAGE, {})): [150, 0, 0]})

    n = reports(run(ask(THEME, {}, NOON), storage))

    assert n == 0
    assert epoch_of("1d", NOON) == TODAY


def versions_at(now: float, **parameters: str) -> int | None:
    window = {"from": day(FIRST), "to": day(LAST)}
    return reading(PAGE, {**window, **parameters}, now).version


def late_store() -> MemoryStorage:
    """Return a store with LAST folded in each class: 100 reports, 10, 1, 1 000 and 10 000."""
    storage = MemoryStorage()
    for lateness, n in enumerate((100, 10, 1, 1_000, 10_000)):
        cell = Cell(PAGE.digest, LAST, segment_text(PAGE, {}), lateness)
        storage.put({cell: [(0, n), (1, n)]})
    return storage


def test_a_window_is_asked_for_as_published_once_no_more_can_come() -> None:
    """Law: until then all reports count, also those that came late for a period long over."""
    after = [(LAST + days) * DAY + DAY / 2 for days in (1, 2, 4, 8, 30, 300)]
    window = {"from": day(LAST), "to": day(LAST)}

    assert [versions_at(now) for now in after] == [None, None, None, None, 3, 3]
    counted = [reports(run(ask(PAGE, window, now), late_store())) for now in after]
    assert counted == [11_111] * 4 + [1_111] * 2


def test_an_answer_counts_the_classes_of_its_version_and_says_what_is_late() -> None:
    """Version v is the sum of the classes 0 to v; beyond the horizon counts in none."""
    window = {"from": day(FIRST), "to": day(LAST)}
    far = (LAST + 300) * DAY

    replies = [run(ask(PAGE, {**window, "version": str(v)}, far), late_store()) for v in range(4)]

    assert [reports(reply) for reply in replies] == [100, 110, 111, 1_111]
    assert [late_of(reply) for reply in replies] == [0, 10, 11, 1_011]


def test_a_published_version_gives_the_same_integers_for_ever() -> None:
    """Whatever is folded afterwards, on its own day, and whenever it is asked for."""
    storage = stored({(LAST, segment_text(PAGE, {})): [70, 20, 10]})
    window = {"from": day(LAST), "to": day(LAST), "version": "0"}
    first = (LAST + 2) * DAY + 2 * 3_600
    before = run(ask(PAGE, window, first), storage)

    for days in range(2, 60):
        now = (LAST + days) * DAY + 2 * 3_600
        lateness, _ = class_of(PAGE.every, LAST, now)
        cell = Cell(PAGE.digest, LAST, segment_text(PAGE, {}), lateness)
        storage.put({cell: [(0, 1_000), (3, 1_000)]})

        assert run(ask(PAGE, window, now), storage) == before


@pytest.mark.parametrize("version", ["1", "3", "4", "-1", "", "01", "latest"])
def test_a_version_that_is_not_published_is_refused(version: str) -> None:
    """At most the published one: another could still change."""
    with pytest.raises(QueryError, match=r"^version"):
        versions_at((LAST + 2) * DAY + DAY / 2, version=version)


@pytest.mark.parametrize(
    "pairs",
    [
        [(0, 5_000), (1, 5_001)],
        [(0, -5)],
        [(0, 5), (4, 5)],
        [(0, 5_000), (1, -1), (2, 5_000)],
    ],
)
def test_a_tally_that_no_reports_can_give_is_named_as_damaged(pairs: list[tuple[int, int]]) -> None:
    """Not as an error of whoever asked, nor as numbers."""
    storage = MemoryStorage()
    storage.put({Cell(PAGE.digest, TODAY, ""): pairs})

    with pytest.raises(DamagedTallyError, match="metric=page: "):
        run(ask(PAGE, {}, NOON), storage)
