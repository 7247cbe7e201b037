"""The questions of a manager: how answers are judged, and what the page says became of them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask, request

from benchmarks.accuracy.questions import (
    FEW,
    KINDS,
    LEAST_EASY,
    MISSING,
    NEAR,
    PAGE,
    REFUSED,
    RIGHT,
    STRUGGLE,
    WRONG,
    Verdict,
    fleet_questions,
    judge,
    judged,
    rows_of,
    shows,
    summary,
    week_of,
)
from benchmarks.lib.fleet_shop import DIFFERENCES, asked_fleet, fleet_shop
from benchmarks.lib.manager import Question, questions
from benchmarks.lib.page import part
from benchmarks.lib.shop import TOKEN, asker, crowd, shop_app
from client_sdk.privacy.budget import epsilon
from client_sdk.privacy.caps import DEFAULT_CAPS

ROW: dict[str, Any] = {
    "dimensions": {"item": "home"},
    "value": 0.43,
    "ci_low": 0.40,
    "ci_high": 0.46,
    "std_error": 0.0153,
    "unit": "share",
}
ASKED = Question(1, "How many?", "/page?metric=screen", {"metrics": ["screen"]}, lambda row: 0.44)
REASON = "spent: tells a mean only"
FEW_REPORTS = "not enough reports: 12 of at least 300 needed"


def collector(row: dict[str, Any], page: str, refuses: str = "") -> Flask:
    """A collector that answers every question with one row, and every page with one text."""
    app = Flask(__name__)

    @app.post("/v1/query")
    def query() -> Any:
        assert request.get_json()
        return ({"detail": refuses}, 400) if refuses else {"rows": [row], "meta": {}}

    @app.get("/page")
    def shown() -> Any:
        return page

    return app


COUNTED: dict[str, Any] = {
    **ROW,
    **dict.fromkeys(("value", "ci_low", "ci_high"), 6_000),
    "std_error": 0.0,
    "unit": "devices",
}
EMPTY: dict[str, Any] = {**ROW, **dict.fromkeys(("value", "ci_low", "ci_high", "std_error"))}
SMALL: dict[str, Any] = {**EMPTY, "reason": {"code": "too_few", "text": FEW_REPORTS}}
NO_RATIO: dict[str, Any] = {**EMPTY, "reason": {"code": "no_base", "text": "no ratio"}}
REST: dict[str, Any] = {**ROW, "dimensions": {"version": "(other)", "item": "home"}}
MEAN_ONLY = replace(ASKED, refusal="mean only")


def asked(truth: float) -> Question:
    """Return the question with another truth."""
    return replace(ASKED, truth=lambda row: truth)


@pytest.mark.parametrize(
    ("question", "row", "page", "refuses", "expected"),
    [
        (ASKED, ROW, "<b>43 %</b> ± 3", "", RIGHT),
        (asked(0.43 - ROW["std_error"] * (NEAR + 0.1)), ROW, "43 %", "", WRONG),
        (asked(6_000), COUNTED, "6,000 devices", "", RIGHT),
        (asked(6_001), COUNTED, "6,000 devices", "", WRONG),
        (ASKED, ROW, "44 % of 430 devices", "", MISSING),
        (ASKED, ROW, "<script>43</script>", "", MISSING),
        (ASKED, EMPTY, "43 %", "", MISSING),
        (ASKED, SMALL, f"<p>{FEW_REPORTS}</p>", "", FEW),
        (ASKED, SMALL, f"<p>{FEW_REPORTS.capitalize()}.</p>", "", FEW),
        (ASKED, SMALL, "<p>no</p>", "", MISSING),
        (
            ASKED,
            {**EMPTY, "reason": {"code": "no_base", "text": "no ratio"}},
            "<p>no ratio</p>",
            "",
            MISSING,
        ),
        (ASKED, REST, "<p>(other): 43 %</p>", "", FEW),
        (
            replace(ASKED, page="/page?" + "&".join(f"choice{i}=x" for i in range(5))),
            *(ROW, "43 %", "", STRUGGLE),
        ),
        (MEAN_ONLY, ROW, f"<p>{REASON}</p>", REASON, REFUSED),
        (MEAN_ONLY, ROW, "no", REASON, MISSING),
        (MEAN_ONLY, ROW, f"<p>{REASON}</p>", "no", MISSING),
        (MEAN_ONLY, ROW, f"<p>{REASON}</p>", "", MISSING),
    ],
)
def test_an_answer_is_judged_by_its_number_and_by_what_the_page_shows(
    question: Question, row: dict[str, Any], page: str, refuses: str, expected: str
) -> None:
    """A number near the truth that the page shows is right; a refusal needs its reason there."""
    assert judge(collector(row, page, refuses).test_client(), question).kind == expected


@pytest.mark.parametrize(
    ("text", "is_shown"),
    [("43 %", True), ("43.0 %", True), ("40 %", False), ("430", False), ("4", False)],
)
def test_a_number_is_shown_if_it_is_rounded_as_its_interval_deserves(
    text: str, is_shown: bool
) -> None:
    assert shows(text, [ROW]) is is_shown


def test_large_numbers_may_be_rounded_to_hundreds() -> None:
    row = {**ROW, "value": 1_422.0, "ci_low": 1_281.0, "ci_high": 1_573.0, "unit": "ms"}

    assert shows("1,400 ± 100 ms", [row])
    assert not shows("1,000 ms", [row])


def test_one_wrong_answer_misses_the_bar() -> None:
    asked = questions(crowd())
    right = [Verdict(question, RIGHT, "") for question in asked]

    assert "is met" in summary(right)
    assert "is missed" in summary([*right[1:], Verdict(asked[0], WRONG, "")])
    assert "is missed" in summary(right[: LEAST_EASY - 1])


@pytest.mark.parametrize(
    ("table_name", "summary_name"),
    [("questions", "summary"), ("fleet-questions", "fleet-summary")],
)
def test_every_question_is_asked_once_and_its_verdict_is_on_the_page(
    table_name: str, summary_name: str
) -> None:
    table, words = part(PAGE, table_name), part(PAGE, summary_name)

    verdicts = [line.rsplit(" | ", 1)[1].removesuffix(" |") for line in table.split("\n")[3:-1]]
    counts = Counter(verdicts)
    assert [question.number for question in questions(crowd())] == list(range(1, 39))
    assert re.findall(r"^\| (\d+) \|", table, re.MULTILINE) == [str(i) for i in range(1, 39)]
    assert ", ".join(f"{counts[kind]} {kind}" for kind in KINDS) in words
    assert len(verdicts) == 38


def test_the_shop_within_the_cap_asks_the_same_questions_and_keeps_the_cap() -> None:
    shop = fleet_shop(50)
    asked = fleet_questions(shop)

    assert [q.words for q in asked] == [q.words for q in questions(crowd())]
    assert set(DIFFERENCES) <= {q.number for q in asked}
    assert week_of(shop) == epsilon(DEFAULT_CAPS.week)
    assert float(week_of(crowd())) > 8
    assert shop.registry.panel_week is not None


def test_each_question_of_a_small_fleet_is_answered_or_refused_with_the_reason() -> None:
    """Numbers of so few devices are counts; a false alarm takes noise of 4.5 standard errors."""
    with asked_fleet(40) as client:
        verdicts = list(judged(client, fleet_questions(fleet_shop(40))))

    kinds = Counter(verdict.kind for verdict in verdicts)
    assert kinds[WRONG] == kinds[MISSING] == 0, rows_of(verdicts)
    assert min(kinds[RIGHT], kinds[REFUSED], kinds[FEW]) > 0


@pytest.mark.slow
def test_the_questions_of_a_manager_are_answered_right() -> None:
    """With the fixed seed, so nothing is left to chance but the few draws of the system."""
    verdicts = list(judged(asker(shop_app(), TOKEN), questions(crowd())))

    assert "is met" in summary(verdicts), rows_of(verdicts)
