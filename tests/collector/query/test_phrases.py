"""What people type is the question that they mean: two hundred phrases, and laws of any text."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.lib.shop import REGISTRY
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.analytics.rows import TIME, Period
from collector.query.phrases import Match, changed_range, find
from collector.query.window import RANGES
from collector.web.pages.questions import questions_of
from tests.support.device.device import metric_text

PHRASES: Final = Path(__file__).parents[2] / "data" / "phrases.tsv"
METRICS: Final = list(Registry.from_file(REGISTRY))
NOTHING: Final = "-"  # what no metric of the registry answers
LEAST_FIRST: Final = 0.9  # of the phrases: their question is the first that is found
LEAST_AMONG: Final = 0.95  # among the first six, which the page shows
LEAST_NOTHING: Final = 0.8  # of the phrases that no metric answers: nothing is found
NOT_13: Final = [("is_not", "version", ["1.3"])]
TODAY: Final = date(2026, 11, 29)  # a Sunday, as the last day of a week is
Phrase = Mapping[str, str]


def found(text: str) -> list[Match]:
    return find(text, METRICS, verbs_of, TODAY, 6)


def verbs_of(metric: Metric) -> list[str]:
    return [question.verb for question in questions_of(metric, METRICS)]


def phrases() -> list[Phrase]:
    with PHRASES.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def words() -> list[str]:
    return sorted({word for phrase in phrases() for word in phrase["phrase"].split()})


def is_meant(phrase: Phrase, match: Match) -> bool:
    """Whether *match* is the question that was written down beside the phrase."""
    query = match.query
    filters = {f"{name}={value}" for _, name, values in query.filters for value in values}
    by = {*query.dimensions} - {TIME}
    return (
        query.metrics[0].split("/")[-1] == phrase["metric"]
        and query.verb in phrase["verbs"].split("|")
        and by == {*filter(None, phrase["by"].split(","))} - {"time"}
        and filters == {*filter(None, phrase["filters"].split(","))}
        and range_of(match) == phrase["range"]
    )


def range_of(match: Match) -> str:
    """Return the range of a question as the phrases have it: in words, or as two days."""
    date_range = match.query.date_range or ""
    return date_range if isinstance(date_range, str) else "/".join(date_range)


def test_the_phrases_are_two_hundred_of_the_whole_registry() -> None:
    asked = {phrase["metric"] for phrase in phrases()}

    assert len(phrases()) >= 200
    assert asked == {metric.name for metric in METRICS} | {NOTHING}
    named = {phrase["range"] for phrase in phrases() if not Period.read(phrase["range"])}
    assert named <= {"", *RANGES}


def test_what_people_type_is_the_question_that_they_mean() -> None:
    meant = [phrase for phrase in phrases() if phrase["metric"] != NOTHING]
    ranks = {
        phrase["phrase"]: next(
            (rank for rank, match in enumerate(found(phrase["phrase"])) if is_meant(phrase, match)),
            None,
        )
        for phrase in meant
    }
    first = [text for text, rank in ranks.items() if rank != 0]
    among = [text for text, rank in ranks.items() if rank is None]

    others = [phrase["phrase"] for phrase in phrases() if phrase["metric"] == NOTHING]
    wrong = [text for text in others if found(text)]

    assert 1 - len(first) / len(meant) >= LEAST_FIRST, first
    assert 1 - len(among) / len(meant) >= LEAST_AMONG, among
    assert 1 - len(wrong) / len(others) >= LEAST_NOTHING, wrong


@pytest.mark.parametrize(
    ("typed", "verb", "options"),
    [
        ("p95 startup", "quantile", {"levels": [0.95]}),
        ("median and 90th percentile start-up time", "quantile", {"levels": [0.5, 0.9]}),
        ("did the cart screen change", "compare", {"item": "cart"}),
        ("how many users by platform last week", "actives", {}),
        ("how many users this week vs last", "actives", {"average": True}),
        ("which arm wins", "lift", {}),
        ("crash rate by version", "segments", {}),  # of yes alone
        ("crashes per day by version", "trend", {}),
        ("trend of home and deals screen", "trend", {}),  # of several, none is chosen
    ],
)
def test_what_else_is_typed_are_options(typed: str, verb: str, options: dict[str, Any]) -> None:
    query = found(typed)[0].query

    assert (query.verb, query.options) == (verb, options)


@pytest.mark.parametrize(
    ("typed", "days"),
    [
        ("crash rate yesterday", "2026-11-28/2026-11-28"),
        ("how many devices crash yesterday", "2026-11-28/2026-11-28"),
        ("crash rate last week", "2026-11-16/2026-11-22"),
        ("crash rate last month", "2026-10-01/2026-10-31"),
        ("crash rate last quarter", "2026-07-01/2026-09-30"),
        ("crash rate last year", "2025-01-01/2025-12-31"),
        ("crash rate 28 november", "2026-11-28/2026-11-28"),
        ("crash rate nov 28th", "2026-11-28/2026-11-28"),
        ("crash rate on 2026-11-28", "2026-11-28/2026-11-28"),
        ("crash rate 28 november 2025", "2025-11-28/2025-11-28"),
        ("crash rate 1 december", "2025-12-01/2025-12-01"),
        ("WAU yesterday", "2026-11-16/2026-11-22"),  # its running week is not whole
        ("crash rate today", "day"),
        ("crash rate 1 november to 20 november", "2026-11-01/2026-11-20"),
        ("crash rate from 1st to 20 nov", "2026-11-01/2026-11-20"),
        ("crash rate nov 3 until nov 9", "2026-11-03/2026-11-09"),
        ("crash rate 20 december to 5 january", "2025-12-20/2026-01-05"),
        ("crash rate past week", "7d"),
        ("crash rate change vs last week", "7d"),
        ("crash rate change this week vs last", "7d"),
        ("crash rate change this month vs last month", "30d"),
    ],
)
def test_days_and_periods_are_whole_ones_of_the_calendar(typed: str, days: str) -> None:
    assert range_of(found(typed)[0]) == days
    assert found(typed)[0].unread == ()


@pytest.mark.parametrize("typed", ["how many people crash", "how many users crash yesterday"])
def test_people_count_only_where_nothing_else_is_asked(typed: str) -> None:
    match, plain = found(typed)[0], found("crash")[0]

    assert (match.query.metrics, match.query.verb) == (plain.query.metrics, plain.query.verb)
    assert match.unread == ()


def test_a_day_that_there_is_not_stays_words() -> None:
    (match, *_) = found("crash rate 31 november")

    assert (range_of(match), match.unread) == ("", ("31", "november"))


@pytest.mark.parametrize(
    ("typed", "verb", "dimensions"),
    [
        ("compare ios and androids", "segments", ["platform"]),
        ("is 1.3 better than 1.2", "compare", ["version"]),
    ],
)
def test_values_alone_are_enough_for_a_question(
    typed: str, verb: str, dimensions: list[str]
) -> None:
    (match, *_) = found(typed)

    assert (match.query.verb, match.query.dimensions, match.unread) == (verb, dimensions, ())


@pytest.mark.parametrize(
    ("typed", "by"),
    [
        ("start-up within by day last 7 days", [TIME]),
        ("start-up within by day this year", []),
        ("start-up within by day by platform", []),
    ],
)
def test_days_are_no_rows_where_they_are_more_than_a_question_may_have(
    typed: str, by: list[str]
) -> None:
    (match, *_) = [match for match in found(typed) if match.query.verb == "range"]

    assert [name for name in match.query.dimensions if name == TIME] == by


@pytest.mark.parametrize(
    ("typed", "days"),
    [
        ("What changed?", ""),
        ("what changed lately", ""),
        ("what changed yesterday", ("2026-11-28", "2026-11-28")),
        ("changes of the last 7 days", "7d"),
        ("what changed since the last release", ""),
        ("what changed on android", None),
        ("not changed", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_what_changed_is_asked_of_all_metrics(
    typed: str, days: str | tuple[str, str] | None
) -> None:
    assert changed_range(typed, METRICS, TODAY) == days


def test_words_that_have_to_do_with_nothing_are_named() -> None:
    (match, *_) = found("crash rate of unicorns on android")

    assert match.unread == ("unicorns",)


@pytest.mark.parametrize(
    ("typed", "filters", "unread"),
    [
        ("crash not android", [("is_not", "platform", ["android"])], ()),
        ("crash on android not 1.3", [("is", "platform", ["android"]), *NOT_13], ()),
        ("crash not often", [], ("often", "not")),
    ],
)
def test_what_stands_after_not_is_left_out(
    typed: str, filters: list[tuple[str, str, list[str]]], unread: tuple[str, ...]
) -> None:
    match = found(typed)[0]

    assert (match.query.filters, match.unread) == (filters, unread)


@pytest.mark.parametrize(
    ("typed", "filters", "unread"),
    [
        ("crash de", [("is", "country", ["de"])], ()),
        ("crash US", [("is", "country", ["us"])], ()),
        ("crash in de", [("is", "country", ["de"])], ("in",)),
        ("crash us", [], ("us",)),
    ],
)
def test_a_value_that_is_a_usual_word_is_meant_in_capitals_and_never_dropped_in_silence(
    typed: str, filters: list[tuple[str, str, list[str]]], unread: tuple[str, ...]
) -> None:
    countries = '[segments]\ncountry = ["us", "de", "it", "in"]\n'
    text = metric_text("crash") + 'segments = ["country"]\n'
    metrics = list(Registry.from_text(f'schema = 1\napp = "x"\n{countries}{text}'))

    match = find(typed, metrics, lambda _: ["frequency"], TODAY)[0]

    assert (match.query.filters, match.unread) == (filters, unread)


@given(st.text(max_size=400) | st.lists(st.sampled_from(words()), max_size=40).map(" ".join))
def test_any_text_is_a_few_questions_or_none(text: str) -> None:
    """Law: each is of a metric and a verb that it answers, once, with values that there are."""
    matches = found(text)

    assert len(matches) <= 6
    assert len({(match.query.metrics[0], match.query.verb) for match in matches}) == len(matches)
    for query in (match.query for match in matches):
        (metric,) = [metric for metric in METRICS if metric.address == query.metrics[0]]
        assert query.verb in {question.verb for question in questions_of(metric, METRICS)}
        assert {*query.dimensions} <= {*metric.segments, TIME}
        assert all(v in metric.segments[name] for _, name, values in query.filters for v in values)


def test_a_metric_of_another_script_is_found_by_its_title_and_value() -> None:
    text = metric_text(
        "farbe", 'type = "category"\nvalues = ["größe", "日本", "λ"]\n', epsilon="1", every="1d"
    ).replace("A metric", "Täglich gewählte Farbe")
    metrics = list(Registry.from_text(f'schema = 1\napp = "x"\n{text}'))

    def first(typed: str) -> str:
        return find(typed, metrics, lambda _: ["frequency", "top_k"], TODAY)[0].query.metrics[0]

    assert first("taglich") == first("FARBE") == first("日本") == metrics[0].address


def test_of_very_many_values_only_one_that_is_typed_as_it_is_is_read() -> None:
    """Law: what a question costs to read does not grow with the values that a metric has."""
    values = [f"w{number}x" for number in range(3_000)]
    form = f'type = "category"\nvalues = {values}\n'.replace("'", '"')
    text = metric_text("setting", form, epsilon="1", every="1d")
    metrics = list(Registry.from_text(f'schema = 1\napp = "x"\n{text}'))

    (match,) = find("setting w2871x w2872y", metrics, lambda _: ["trend"], TODAY)

    assert match.query.options == {"item": "w2871x"}
    assert match.unread == ("w2872y",)
