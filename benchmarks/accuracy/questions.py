"""Thirty-eight questions of a product manager, asked on pages and over the API, held against truth.

Run: ``python -m benchmarks questions``; a minute or two.  With ``--write`` the table goes into
docs/evidence/questions.md, between its marks.

Every question goes the way of a newcomer: the address of a page, as links and lists make it, and
the same question of the API.  What the API says is held against what the devices of
``benchmarks.lib.shop`` really hold, and the page must show the same numbers.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from flask.testing import FlaskClient
from pyarrow import ipc

from benchmarks.lib.manager import BOARD, FORMATS, QUESTIONS, RELEASE, Question, Truth
from benchmarks.lib.page import PAGES, ROOT, publish, table
from benchmarks.lib.shop import FIRST, TODAY, TOKEN, shop_app
from collector.query.release.publish import ReleaseRequest, release
from collector.web.services import services

PAGE: Final = PAGES / "evidence" / "questions.md"
MOST_CHOICES: Final = 5  # of an easy way, the page's own link included
LEAST_EASY: Final = 33  # the bar
NEAR: Final = 4.5  # standard errors: of a thousand right numbers fewer than 0.01 are further off
RIGHT, STRUGGLE, REFUSED = "right and easy", "right, but not easy", "refused, with the reason"
WRONG, MISSING = "wrong", "not to be had"
_HEADERS: Final = {"Authorization": f"Bearer {TOKEN}"}
_TAG: Final = re.compile(r"<(script|style|pre)\b.*?</\1>|<[^>]*>", re.DOTALL)
_NUMBER: Final = re.compile(r"−?\d[\d,]*(?:\.\d+)?")
_Z: Final = 1.96
_SAME: Final = 1e-9  # between two ways to one number: what floats in texts may lose
GRAFANA: Final = ROOT / "examples" / "grafana" / "answers.json"
_SHARES: Final = frozenset({"share", "relative"})


@dataclass(frozen=True)
class Verdict:
    """What became of one question."""

    question: Question
    kind: str
    answer: str  # in words
    choices: int = 0
    held: int = 0  # intervals that hold the truth
    of: int = 0


def main() -> None:
    """Print what goes between the marks of the page, or put it there."""
    verdicts = list(judged(shop_app().test_client()))
    publish((PAGE, {"summary": summary(verdicts), "questions": rows_of(verdicts)}))


def judged(client: FlaskClient, questions: Sequence[Question] = QUESTIONS) -> Iterator[Verdict]:
    """Yield the verdict on each question."""
    for question in questions:
        yield judge(client, question)


def judge(client: FlaskClient, question: Question) -> Verdict:
    """Ask a page and the API, and say what the answer is worth."""
    got = client.get(question.page, headers=_HEADERS)
    page = text_of(got.get_data(as_text=True))
    choices = 1 + len(parse_qsl(urlsplit(question.page).query)) if question.page != "/" else 0
    if question.refusal:
        return _refused(client, question, page, choices)
    if got.status_code != 200:
        return Verdict(question, MISSING, f"the page answers {got.status_code}", choices)
    absent = [words for words in question.says if words not in page]
    if absent:
        return Verdict(question, MISSING, f"the page does not say {absent[0]!r}", choices)
    if question.truth is None:
        return Verdict(question, _ease(choices), question.says[0], choices)
    return _held(client, question, question.truth, page, choices)


def _held(
    client: FlaskClient, question: Question, truth: Truth, page: str, choices: int
) -> Verdict:
    """Hold the rows of the API's answer against the truth, and the page against them."""
    reply = client.post("/v1/query", json=question.request, headers=_HEADERS)
    answer = json.loads(reply.data)
    if reply.status_code != 200:
        return Verdict(question, MISSING, answer["detail"], choices)
    numbers = [row for row in question.part(answer) if row["value"] is not None]
    pairs = [(row, true) for row in numbers if (true := truth(row)) is not None]
    if len(pairs) < question.rows:
        few = f"{len(pairs)} numbers of {question.rows}"
        return Verdict(question, MISSING, few, choices)
    row, true = max(pairs, key=lambda pair: distance(*pair))
    words = in_words(row, true)
    held = sum(row["ci_low"] <= true <= row["ci_high"] for row, true in pairs)
    if distance(row, true) > NEAR:
        return Verdict(question, WRONG, words, choices, held, len(pairs))
    if question.way and (fault := other_way(client, question, pairs)):
        return Verdict(question, MISSING, fault, choices)
    if not shows(page, [row for row, _ in pairs], question.shown):
        return Verdict(question, MISSING, f"the page shows no such number: {words}", choices)
    return Verdict(question, _ease(choices), words, choices, held, len(pairs))


def other_way(
    client: FlaskClient, question: Question, pairs: Sequence[tuple[Mapping[str, Any], float]]
) -> str:
    """Return what is wrong with the same numbers by the other way of a question, "" if nothing."""
    ways = {RELEASE: _released, FORMATS: _in_formats, BOARD: _on_board}
    expected = [row["value"] for row, _ in pairs]
    for name, values in ways[question.way](client, question):
        if any(abs(value - want) > _SAME for value, want in zip(values, expected, strict=True)):
            return f"{name} has other numbers"
    return ""


def _released(client: FlaskClient, question: Question) -> Iterator[tuple[str, list[float]]]:
    """Yield the unbiased numbers that ``hearsay release`` writes."""
    (name,) = question.request["metrics"]
    with client.application.app_context(), TemporaryDirectory() as folder:
        shared = services()
        files = release(
            ReleaseRequest(name), shared.catalog, shared.tallies, shared.clock(), Path(folder)
        )
        with files[0].open(encoding="utf-8", newline="") as file:
            yield files[0].name, [float(row["unbiased"]) for row in csv.DictReader(file)]


def _in_formats(client: FlaskClient, question: Question) -> Iterator[tuple[str, list[float]]]:
    """Yield the numbers of each format of the API."""
    replies = {form: _reply(client, question, form) for form in ("csv", "rows", "arrow")}
    lines = csv.DictReader(io.StringIO(replies["csv"].decode()))
    yield "csv", [float(line["value"]) for line in lines]
    yield "rows", [row["value"] for row in json.loads(replies["rows"])]
    yield "arrow", ipc.open_stream(replies["arrow"]).read_all().column("value").to_pylist()


def _reply(client: FlaskClient, question: Question, form: str) -> bytes:
    said = {"format": form, "q": json.dumps(question.request)}
    reply = client.get("/v1/query", query_string=said, headers=_HEADERS)
    return bytes(reply.data)


def _on_board(client: FlaskClient, question: Question) -> Iterator[tuple[str, list[float]]]:
    """Yield the numbers over time by the link of the board's first panel, its variables filled."""
    (name,) = question.request["metrics"]
    link = json.loads(GRAFANA.read_text(encoding="utf-8"))["panels"][0]["targets"][0]["url"]
    of_dates = "${__%s:date:YYYY-MM-DD}"
    variables = {"${metric}": name, "${step}": "time", of_dates % "from": f"{FIRST}"}
    for variable, value in (variables | {of_dates % "to": f"{TODAY}"}).items():
        link = link.replace(variable, value)
    reply = client.get(link, headers=_HEADERS)
    yield GRAFANA.name, [row["value"] for row in json.loads(reply.data)]


def _refused(client: FlaskClient, question: Question, page: str, choices: int) -> Verdict:
    reply = client.post("/v1/query", json=question.request, headers=_HEADERS)
    detail = json.loads(reply.data).get("detail", "")
    if reply.status_code != 400 or question.refusal not in detail:
        return Verdict(question, MISSING, "is not refused with the reason", choices)
    if question.refusal not in page:
        return Verdict(question, MISSING, "the page does not give the reason", choices)
    return Verdict(question, REFUSED, detail.partition(": ")[2], choices)


def _ease(choices: int) -> str:
    return RIGHT if choices <= MOST_CHOICES else STRUGGLE


def distance(row: Mapping[str, Any], true: float) -> float:
    """Return how many standard errors a number is off; infinitely many if it should be exact."""
    error: float = row["std_error"] or (row["ci_high"] - row["ci_low"]) / (2 * _Z)
    off: float = abs(row["value"] - true)
    if not error:
        return 0.0 if off < 1e-9 else float("inf")
    return off / error if not row["ci_low"] <= true <= row["ci_high"] else min(off / error, NEAR)


def shows(page: str, rows: Sequence[Mapping[str, Any]], least: float = 0.5) -> bool:
    """Return whether the numbers of at least this part of *rows* stand in the text of a *page*.

    Rounded to a digit that the half-width of the interval deserves, or to a finer one.
    """
    numbers = {text.replace(",", "").replace("−", "-") for text in _NUMBER.findall(page)}
    return sum(not numbers.isdisjoint(_roundings(row)) for row in rows) >= least * len(rows)


def _roundings(row: Mapping[str, Any]) -> Iterator[str]:
    scale = 100 if row["unit"] in _SHARES else 1
    value, half_width = scale * row["value"], scale * (row["ci_high"] - row["ci_low"]) / 2
    for digits in range(-6, 4):
        if digits >= 0 or 10**-digits <= half_width:
            yield f"{round(value, digits):.{max(digits, 0)}f}"


def text_of(html: str) -> str:
    """Return the words of a page, without tags, scripts and programs."""
    return unescape(_TAG.sub(" ", html))


def in_words(row: Mapping[str, Any], true: float) -> str:
    """Return a row beside the truth."""
    scale, unit = (100, "%") if row["unit"] in _SHARES else (1, row["unit"])
    value, low, high, truth = (
        f"{scale * number:,.4g}" if scale * abs(number) < 10_000 else f"{scale * number:,.0f}"
        for number in (row["value"], row["ci_low"], row["ci_high"], true)
    )
    exactly = low == high
    words = f"{value} {unit}{'' if exactly else f' ({low} to {high})'}; true {truth}"
    return words.replace("-", "−")


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return in words how many questions went how."""
    kinds = Counter(verdict.kind for verdict in verdicts)
    held, of = sum(v.held for v in verdicts), sum(v.of for v in verdicts)
    counts = ", ".join(
        f"{kinds[kind]} {kind}" for kind in (RIGHT, STRUGGLE, REFUSED, WRONG, MISSING)
    )
    met = kinds[RIGHT] >= LEAST_EASY and not kinds[WRONG]
    return (
        f"Of {len(verdicts)}: {counts}. The bar, at least {LEAST_EASY} right and easy and none "
        f"wrong, is {'met' if met else 'missed'}. "
        f"{held:,} of {of:,} intervals and counts hold the truth."
    )


def rows_of(verdicts: Sequence[Verdict]) -> str:
    """Return a line a question."""
    heads = ("#", "question", "where", "choices", "answer", "verdict")
    rows = (
        (v.question.number, v.question.words, f"`{urlsplit(v.question.page).path}`", v.choices,
         v.answer.replace("|", "\\|"), v.kind)
        for v in verdicts
    )  # fmt: skip
    return table(heads, rows)
