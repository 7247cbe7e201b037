"""A question resolved: any document is a plan or is refused."""

from __future__ import annotations

import json
import sys
from datetime import date, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core.epoch import DAY, epoch_of
from client_sdk.core.errors import UnknownMetricError
from client_sdk.registry.metric import Metric
from collector.core.catalog import Catalog
from collector.core.cells import Cell, class_of, segment_text
from collector.core.errors import DamagedTallyError, QueryError
from collector.query import Answer, Plan, plan, question, read, run
from collector.query.options import options_of
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


CATALOG = Catalog([registry(min_reports=100)])
CANARY = "canary-7f3a"


def planned(**fields: Any) -> Plan:
    return plan(read(json.dumps({"metrics": ["page"], **fields}).encode()), CATALOG, NOON)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"metrics": []}, "metrics"),
        ({"metrics": ["page"] * 9}, "metrics"),
        ({"metrics": ["page", "page"]}, "metrics"),
        ({"metrics": ["page", "theme"]}, "metrics"),
        ({"metrics": "page"}, "metrics"),
        ({"metrics": ["age"], "verb": "frequency"}, "metrics.0"),
        ({"verb": "drop table"}, "verb"),
        ({"verb": ""}, "verb"),
        ({"verb": "../estimate"}, "verb"),
        ({"date_range": "forever"}, "date_range"),
        ({"date_range": ["2026-02-02"]}, "date_range"),
        ({"date_range": ["2026-02-02", "2026-02-01"]}, "date_range"),
        ({"date_range": ["1970-01-01", "2026-02-01"]}, "date_range"),
        ({"date_range": ["2026-02-01", "tomorrow"]}, "date_range.1"),
        ({"against": "last year"}, "against"),
        ({"against": ["2026-01-01"]}, "against"),
        ({"dimensions": ["channel"]}, "dimensions"),
        ({"dimensions": ["platform", "platform"]}, "dimensions.1"),
        ({"dimensions": ["time:second"]}, "dimensions"),
        ({"dimensions": ["time:"]}, "dimensions"),
        ({"dimensions": ["time:hour"]}, "dimensions"),
        ({"dimensions": ["a", "b", "c", "d", "e"]}, "dimensions"),
        ({"filters": [["is", "platform", ["amiga"]]]}, "filters.0"),
        ({"filters": [["is", "platform", []]]}, "filters.0.2"),
        ({"filters": [["like", "platform", ["mac"]]]}, "filters.0.0"),
        ({"filters": [["is", "platform' or 1=1 --", ["mac"]]]}, "filters.0"),
        ({"filters": [["is", "time:day", ["2026-01-01"]]]}, "filters.0"),
        ({"filters": [["is_not", "platform", ["mac", "linux"]]]}, "filters.0"),
        ({"filters": {"platform": "mac"}}, "filters"),
        ({"alpha": 0}, "alpha"),
        ({"alpha": 2}, "alpha"),
        ({"alpha": "0.05"}, "alpha"),
        ({"postprocess": "round"}, "postprocess"),
        ({"pagination": {"limit": 1_000_000}}, "pagination.limit"),
        ({"pagination": {"limit": 0}}, "pagination.limit"),
        ({"pagination": {"offset": -1}}, "pagination.offset"),
        ({"options": {"k": 5}}, "options"),
        ({"version": 9}, "version"),
        ({"version": 3}, "version"),
        ({"order_by": [["value", "up"]]}, "order_by.0.1"),
        ({"include": ["everything"]}, "include.0"),
        ({CANARY: 1}, "body"),
    ],
)
def test_what_cannot_be_answered_is_named_by_its_place(fields: dict[str, Any], place: str) -> None:
    with pytest.raises(QueryError) as caught:
        planned(**fields)

    assert caught.value.place == place
    assert caught.value.rule


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"null", b"[]", b"\xff", b'{"metrics":["page"]', b"{}{}", b"[" * 60_000),
        b'{"metrics":["page"],"alpha":' + b"9" * 60_000 + b"}",
        b'{"metrics":["page"],"alpha":NaN}',
    ],
)
def test_a_body_that_is_no_question_is_refused(body: bytes) -> None:
    with pytest.raises(QueryError):
        read(body)


def test_a_metric_that_nobody_declared_is_unknown() -> None:
    with pytest.raises(UnknownMetricError):
        planned(metrics=["pages"])


DOCUMENTS: Final = st.recursive(
    st.none() | st.booleans() | st.floats() | st.just(CANARY) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["metrics", "filters", "dimensions", "alpha", "options", "verb"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def test_any_document_is_answered_or_refused() -> None:
    """Nothing but our own errors, and some of both."""
    answered = set[bool]()

    @given(st.fixed_dictionaries({}, optional={"options": DOCUMENTS, "filters": DOCUMENTS}))
    def ask(fields: dict[str, Any]) -> None:
        try:
            plan(read(json.dumps({"metrics": ["page"], **fields}).encode()), CATALOG, NOON)
        except QueryError:
            answered.add(False)
        else:
            answered.add(True)

    ask()
    assert answered == {False, True}


def test_dimensions_that_give_too_many_groups_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[Plan.__module__], "MOST_GROUPS", 59)

    with pytest.raises(QueryError, match="would give 60 groups, must be at most 59"):
        planned(date_range="30d", dimensions=["time", "platform"])


def test_an_unknown_range_beside_is_told_with_all_that_work() -> None:
    """Words, and days: msgspec knows the words alone."""
    with pytest.raises(QueryError, match=r"^against: known are previous, year, or two dates such"):
        read(b'{"metrics": ["theme"], "against": "last"}')


@pytest.mark.parametrize("words", ["7d", "28d", "month"])
def test_an_address_takes_a_range_in_words_as_a_body_does(words: str) -> None:
    metric = CATALOG.metric("page")

    asked = plan(question(metric, {"range": words}, NOON), CATALOG, NOON)

    assert asked.readings[0].epochs == planned(date_range=words).readings[0].epochs
    with pytest.raises(QueryError, match=r"^range: must stand without from and to"):
        question(metric, {"range": words, "to": "2026-01-01"}, NOON)


@pytest.mark.parametrize(
    ("verb", "text", "meant"),
    [
        ("lift", ("control", "2.2"), "2.2"),
        ("trend", ("item", "true"), "true"),
        ("top_k", ("k", "5"), 5),
        ("quantile", ("levels", "0.5"), [0.5]),
        ("quantile", ("levels", "0.5,0.9"), [0.5, 0.9]),
        ("cdf", ("points", "[500, 1000]"), [500, 1000]),
        ("heavy_hitters", ("candidates", "null,cat"), ["null", "cat"]),
        ("quantile", ("levels", "0.5, 0.9,"), [0.5, 0.9]),
        ("range", ("low", "18"), "18"),
        ("range", ("ranges", '[["18", null]]'), [["18", None]]),
        ("histogram", ("simultaneous", "true"), True),
        ("top_k", ("k", "many"), "many"),
        ("no_such_verb", ("k", "5"), 5),
    ],
)
def test_an_option_has_the_type_that_its_verb_wants(
    verb: str, text: tuple[str, str], meant: Any
) -> None:
    """A version is a text, though it looks like a number."""
    assert options_of(verb, [text]) == {text[0]: meant}
