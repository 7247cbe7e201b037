"""Thirty-eight questions of a product manager, asked on pages and over the API, held against truth.

Run: ``python -m benchmarks questions``; some minutes.  With ``--write`` the tables go into
docs/evidence/questions.md and a short form into README.md, between their marks.

Every question goes the way of a newcomer: the address of a page, as links and lists make it, and
the same question of the API.  What the API says is held against what the devices really hold, and
the page must show the same numbers.  All is asked of two shops: of ``benchmarks.lib.shop``, which
asks much, and of ``benchmarks.lib.fleet_shop``, which keeps the default cap of a device.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from flask.testing import FlaskClient
from pyarrow import ipc

from benchmarks.lib.fleet_shop import DIFFERENCES, asked_fleet, fleet_shop
from benchmarks.lib.manager import BOARD, FORMATS, RELEASE, Question, Truth, questions
from benchmarks.lib.page import PAGES, README, ROOT, publish, table
from benchmarks.lib.shop import TOKEN, Shop, asker, crowd, shop_app
from client_sdk.privacy.budget import costs_together, epsilon
from client_sdk.privacy.caps import DEFAULT_CAPS
from collector.core.remarks import Code
from collector.query.release.publish import ReleaseRequest, release
from collector.web.services import services

PAGE: Final = PAGES / "evidence" / "questions.md"
MOST_CHOICES: Final = 5  # of an easy way, the page's own link included
LEAST_EASY: Final = 33  # the bar
NEAR: Final = 4.5  # standard errors: of a thousand right numbers fewer than 0.01 are further off
RIGHT, STRUGGLE, REFUSED = "right and easy", "right, but not easy", "refused, with the reason"
_FEW: Final = frozenset({Code.TOO_FEW, Code.TOO_RARE, Code.NO_HOLDERS, Code.NO_GROUP})
FEW = "not enough reports, which it says"
_REST: Final = "(other)"
WRONG, MISSING = "wrong", "not to be had"
KINDS: Final = (RIGHT, STRUGGLE, FEW, REFUSED, WRONG, MISSING)
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
    shop = crowd()
    first = list(judged(asker(shop_app(), TOKEN), questions(shop)))
    staying = fleet_shop()
    with asked_fleet() as client:
        second = list(judged(client, fleet_questions(staying)))
    parts = {
        "crowd": population(shop),
        "summary": summary(first),
        "questions": rows_of(first, second),
        "fleet": population(staying),
        "fleet-summary": figures(second),
    }
    publish((PAGE, parts), (README, {"questions": in_short([(shop, first), (staying, second)])}))


def judged(client: FlaskClient, asked: Sequence[Question]) -> Iterator[Verdict]:
    """Yield the verdict on each question."""
    for question in asked:
        yield judge(client, question)


def judge(client: FlaskClient, question: Question) -> Verdict:
    """Ask a page and the API, and say what the answer is worth."""
    got = client.get(question.page)
    page = text_of(got.get_data(as_text=True))
    choices = 1 + len(parse_qsl(urlsplit(question.page).query)) if question.page != "/" else 0
    if question.refusal:
        return _refused(client, question, page, choices)
    if got.status_code != 200:
        return Verdict(question, MISSING, f"the page answers {got.status_code}", choices)
    if question.truth is not None:
        return _held(client, question, question.truth, page, choices)
    return _said(question, page, choices) or Verdict(
        question, _ease(choices), question.says[0], choices
    )


def _said(question: Question, page: str, choices: int) -> Verdict | None:
    """Return the verdict on a page that does not say what it must; None of others."""
    absent = [words for words in question.says if words not in page]
    if not absent:
        return None
    return Verdict(question, MISSING, f"the page does not say {absent[0]!r}", choices)


def _held(
    client: FlaskClient, question: Question, truth: Truth, page: str, choices: int
) -> Verdict:
    """Hold the rows of the API's answer against the truth, and the page against them."""
    reply = client.post("/v1/query", json=question.request)
    answer = json.loads(reply.data)
    if reply.status_code != 200:
        return Verdict(question, MISSING, answer["detail"], choices)
    rows = question.part(answer)
    numbers = [row for row in rows if row["value"] is not None]
    few = [reason for row in rows if (reason := _too_few(row))]
    remarks = [] if rows else answer["meta"]["warnings"]
    few = few or [
        f"{remark['metric']}: {remark['text']}"
        for remark in remarks
        if remark["code"] in ("no_reports", "no_earlier_reports")
    ]
    own = [row for row in numbers if not _is_rest(row)]
    pairs = [(row, true) for row in own if (true := truth(row)) is not None]
    if few and not pairs:
        reason = few[0].removeprefix(f"{question.request['metrics'][0]}: ")
        progress = re.sub(
            r"^not enough reports: (\S+) of at least (\S+) .*", r"\1 of \2 reports", reason
        )
        said = reason.casefold() in page.casefold() or progress in page
        words = "all of its groups together, as (other)" if few[0] == _REST else few[0]
        return Verdict(question, FEW if said else MISSING, words, choices)
    if len(pairs) + len(few) < question.rows and len(own) == len(numbers):
        missing = f"{len(pairs)} numbers of {question.rows}"
        return Verdict(question, MISSING, missing, choices)
    row, true = max(pairs, key=lambda pair: distance(*pair))
    words = in_words(row, true)
    if few:
        words += f"; {len(few)} of {len(rows)} rows have too few reports"
    noisy = [(row, true) for row, true in pairs if row["ci_low"] < row["ci_high"]]
    held = sum(row["ci_low"] <= true <= row["ci_high"] for row, true in noisy)
    if distance(row, true) > NEAR:
        return Verdict(question, WRONG, words, choices, held, len(noisy))
    if unsaid := _said(question, page, choices):
        return unsaid
    if question.way and (fault := other_way(client, question, pairs)):
        return Verdict(question, MISSING, fault, choices)
    if not shows(page, [row for row, _ in pairs], question.shown):
        return Verdict(question, MISSING, f"the page shows no such number: {words}", choices)
    return Verdict(question, _ease(choices), words, choices, held, len(noisy))


def _too_few(row: Mapping[str, Any]) -> str:
    """Return what a row says that has too few reports for a number of its own, "" of others."""
    reason = row.get("reason")
    text = reason["text"] if reason and reason["code"] in _FEW else ""
    return _REST if _is_rest(row) else text


def _is_rest(row: Mapping[str, Any]) -> bool:
    """Return whether a row is of all small groups together, which it does not name."""
    return _REST in row["dimensions"].values()


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
    reply = client.get("/v1/query", query_string=said)
    return bytes(reply.data)


def _on_board(client: FlaskClient, question: Question) -> Iterator[tuple[str, list[float]]]:
    """Yield the numbers over time by the link of the board's first panel, its variables filled."""
    (name,) = question.request["metrics"]
    link = json.loads(GRAFANA.read_text(encoding="utf-8"))["panels"][0]["targets"][0]["url"]
    of_dates = "${__%s:date:YYYY-MM-DD}"
    first, last = question.window
    variables = {"${metric}": name, "${step}": "time", of_dates % "from": f"{first}"}
    for variable, value in (variables | {of_dates % "to": f"{last}"}).items():
        link = link.replace(variable, value)
    reply = client.get(link)
    yield GRAFANA.name, [row["value"] for row in json.loads(reply.data)]


def _refused(client: FlaskClient, question: Question, page: str, choices: int) -> Verdict:
    reply = client.post("/v1/query", json=question.request)
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


def fleet_questions(shop: Shop) -> tuple[Question, ...]:
    """Return the same questions of the shop within the cap, with what differs."""
    return tuple(
        replace(question, **DIFFERENCES.get(question.number, {})) for question in questions(shop)
    )


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return in words how many questions went how, and whether the bar is met."""
    kinds = Counter(verdict.kind for verdict in verdicts)
    met = kinds[RIGHT] >= LEAST_EASY and not kinds[WRONG]
    return (
        f"{figures(verdicts)} The bar, at least {LEAST_EASY} right and easy and none wrong, "
        f"is {'met' if met else 'missed'}."
    )


def figures(verdicts: Sequence[Verdict]) -> str:
    """Return in words how many questions went how, and how many intervals hold the truth."""
    held = _held_of(verdicts)
    return f"Of {len(verdicts)}: {_counts(verdicts)}. {held[0].upper()}{held[1:]}."


def _held_of(verdicts: Sequence[Verdict]) -> str:
    held, of = sum(v.held for v in verdicts), sum(v.of for v in verdicts)
    part = f" ({100 * held / of:.3g} %)" if of else ""
    return f"{held:,} of {of:,} intervals hold the truth{part}, where 95 % are expected"


def _counts(
    verdicts: Sequence[Verdict], named: Callable[[str, int], bool] = lambda kind, number: True
) -> str:
    kinds = Counter(verdict.kind for verdict in verdicts)
    return ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS if named(kind, kinds[kind]))


def population(shop: Shop) -> str:
    """Return what the registry of a shop costs a device, and how many devices report what."""
    registry = shop.registry
    counts = Counter(device.day for device in shop.of(shop.daily))
    fewest, most = min(counts.values()), max(counts.values())
    devices = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    words = (
        f"The registry can cost a device ε {week_of(shop)} in any seven days; the default cap "
        f"is ε {epsilon(DEFAULT_CAPS.week)}. On a day {devices} devices use the shop. "
    )
    if registry.panel_week is None:
        return f"{words}It has no panel."
    inside = [metric for metric in registry if metric.panel]
    shares = sorted({round(100 * float(metric.sample.share)) for metric in inside})
    return (
        f"{words}Its panel of ε {epsilon(registry.panel_week)} a week draws which devices report "
        f"of {len(inside)} of its {len(registry.metrics)} metrics: "
        f"{' or '.join(map(str, shares))} in 100, by the metric; of the others all do."
    )


def week_of(shop: Shop) -> str:
    """Return the most ε that a device is charged for any seven days, as ``registry budget``."""
    registry = shop.registry
    return epsilon(costs_together(registry, registry.panel_week).week)


def in_short(runs: Sequence[tuple[Shop, Sequence[Verdict]]]) -> str:
    """Return what became of all runs, a line each, for readers of the README."""
    return "\n".join(
        f"- At up to ε {week_of(shop)} a week of a device: "
        f"{_counts(verdicts, lambda kind, number: number > 0 or kind == WRONG)}; "
        f"{_held_of(verdicts)}."
        for shop, verdicts in runs
    )


def rows_of(*runs: Sequence[Verdict]) -> str:
    """Return a line a question: what each run answers, after the choices that it takes."""
    heads = ("#", "question", *("choices, answer" for _ in runs))
    rows = (
        (verdicts[0].question.number, verdicts[0].question.words, *map(_cell, verdicts))
        for verdicts in zip(*runs, strict=True)
    )
    return table(heads, rows)


def _cell(verdict: Verdict) -> str:
    kind = "" if verdict.kind == RIGHT else f"**{verdict.kind}**: "
    return f"{verdict.choices}: {kind}{verdict.answer}".replace("|", "\\|")
