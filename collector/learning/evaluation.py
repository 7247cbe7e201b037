"""How well a model predicts rows that it was not learned from, with intervals.

The rows are not devices': they are a test set that the developer has.

*Accuracy* is a share of rows and has the score interval of shares (Wilson, JASA 1927).

*The area under the curve* is A = P(a true row's score is above a false row's), equal scores
counting half.  Its interval is a score interval, too: all θ with |A - θ| <= z sqrt(V(θ)).  With m
true rows, n false ones and N = (m + n)/2 Newcombe's method 5 has, by Hanley and McNeil's variance
of exponential scores with N in place of m and n,

    V(θ) = θ(1-θ) (2N - 1 - (3N - 3)/((2-θ)(1+θ))) / (mn).

That is too little where the scores of the smaller class scatter more, so of V(θ) and DeLong's
variance D at A, taken along as D θ(1-θ)/(A(1-A)), the larger holds.  Derived; tests draw from laws
where either alone holds the truth too seldom.  It lies in [0, 1], and has a length at A = 1, too.

Of numbers, errors are means of squares, with the interval of means, cut at 0.

Below LEAST rows of either class there is no figure but the reason.

Source: Newcombe, Statistics in Medicine 2006, 25:559-573, method 5; Hanley, McNeil, Radiology 1982;
    DeLong, DeLong, Clarke-Pearson, Biometrics 1988.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any, Final

import numpy as np

from client_sdk.learning.model import ModelSource, read
from client_sdk.learning.rounds import ROUND, final_model
from client_sdk.registry.metric import Metric

from ..core.errors import QueryError
from ..estimation.arrays import Floats
from ..estimation.estimate import normal_quantile, sampled_limits
from .reading import EXCLUDED

ALPHA: Final = 0.05
LEAST: Final = 30  # rows of each class, below which no interval is one of 95 %
TRUE: Final = frozenset({"1", "true", "yes"})
FALSE: Final = frozenset({"0", "false", "no"})
_HALVINGS: Final = 60  # of [0, 1], to the last digit of a float


@dataclass(frozen=True)
class Figure:
    """A number of a test set with its 95 % interval; None, and the *reason*, if there is none."""

    name: str
    value: float | None
    low: float = 0.0
    high: float = 0.0
    reason: str = ""


def evaluate(metric: Metric, source: ModelSource, path: Path, label: str) -> list[Figure]:
    """Return how the final model of *metric* does on the rows of a CSV file.

    Args:   path: a file whose head names every feature, and the column *label*; other columns are
            left alone, and an empty field is a feature that is not said.
    Raises: InvalidParameterError: the model is wrong.  QueryError: the file is, or the rounds are
            not over.
    """
    model = read(source)
    if model.kind == ROUND:
        rule = "is the model of a round; there is one to evaluate once every round had its step"
        raise QueryError("metric", f"{rule}: hearsay learn rounds status", metric.name)
    domain, theta = final_model(metric, model)
    rows, targets = [], []
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # spreadsheets begin with a mark
            for row, target in _read(csv.DictReader(file, skipinitialspace=True), domain, label):
                rows.append(row)
                targets.append(target)
    except _LineError as error:
        raise QueryError("file", str(error), path) from None
    except UnicodeDecodeError:
        raise QueryError("file", "must be text in UTF-8", path) from None
    except OSError as error:
        raise QueryError("file", f"cannot be read: {error.strerror}", path) from None
    except csv.Error as error:
        raise QueryError("file", f"must be CSV: {error}", path) from None
    if not rows:
        raise QueryError("file", "must have rows below its head", path)
    scores, truth = np.array(rows) @ np.array(theta), np.array(targets)
    return of_numbers(scores, truth) if domain.label else of_truths(scores, truth)


class _LineError(ValueError):
    """What is wrong with a file, and where."""


def _read(
    reader: csv.DictReader[str], domain: Any, label: str
) -> Iterator[tuple[list[float], float]]:
    """Yield every row with what is to be predicted.

    Raises: _LineError, UnicodeDecodeError, csv.Error.
    """
    head = list(reader.fieldnames or ())
    names = [feature.name for feature in domain.features]
    if missing := {*names, label} - set(head):
        raise _LineError(f"must have the columns {', '.join(sorted(missing))}")
    if len(set(head)) < len(head):
        raise _LineError("must have each column once")
    numeric = {feature.name for feature in domain.features if not feature.values}
    for entry in reader:
        if None in entry or None in entry.values():
            raise _LineError(f"line {reader.line_num} has another number of fields than the head")
        try:
            yield _row(entry, names, numeric, domain), _target(entry[label], domain)
        except (ValueError, TypeError):
            kind = "a number" if domain.label else "yes or no"
            rule = f"is no row: features as the registry has them, and a label that is {kind}"
            raise _LineError(f"line {reader.line_num} {rule}") from None


def _row(entry: Mapping[str, str], names: Sequence[str], numeric: set[str], domain: Any) -> Any:
    """Return the row of the fields that are not empty.  Raises ValueError."""
    said = {name: entry[name] for name in names if entry[name]}
    return domain.row({k: float(v) if k in numeric else v for k, v in said.items()})


def _target(text: str, domain: Any) -> Any:
    """Return what is to be predicted.  Raises ValueError."""
    if domain.label:
        return domain.target(float(text))
    if (word := text.strip().lower()) not in TRUE | FALSE:
        raise ValueError("must be yes or no")
    return domain.target(word in TRUE)


def of_truths(scores: Floats, truth: Floats) -> list[Figure]:
    """Return accuracy, that of always saying what is commoner, and the area under the curve."""
    yes = int(np.sum(truth > 0))
    right = int(np.sum((scores > 0) == (truth > 0)))
    commoner = max(yes, len(truth) - yes)
    return [
        part("accuracy", right, len(truth)),
        part("accuracy of the commoner", commoner, len(truth)),
        area(scores, truth),
    ]


def part(name: str, hits: int, n: int) -> Figure:
    """Return which part of *n* rows *hits* are."""
    if n < LEAST:
        return Figure(name, None, reason=_few(f"{n:,} of at least {LEAST}"))
    low, high = sampled_limits(np.array(hits / n), 0.0, 1 / n, ALPHA)
    ends = max(float(low), 0.0), min(float(high), 1.0)
    return Figure(name, hits / n, min(ends[0], hits / n), max(ends[1], hits / n))


def area(scores: Floats, truth: Floats) -> Figure:
    """Return the area under the curve."""
    yes, no = np.sort(scores[truth > 0]), np.sort(scores[truth <= 0])
    m, n = len(yes), len(no)
    if min(m, n) < LEAST:
        which = f"{m:,} true and {n:,} false ones, of at least {LEAST} each"
        return Figure("AUC", None, reason=_few(which))
    above, below = _place(yes, no), 1 - _place(no, yes)
    value = min(float(above.mean()), 1.0)
    delong = float(above.var(ddof=1)) / m + float(below.var(ddof=1)) / n
    relative = delong / (value * (1 - value)) if 0 < value < 1 else 0.0
    mean = (m + n) / 2

    def error(theta: float) -> float:
        newcombe = (2 * mean - 1 - (3 * mean - 3) / ((2 - theta) * (1 + theta))) / (m * n)
        return sqrt(theta * (1 - theta) * max(newcombe, relative))

    return Figure("AUC", value, *_score_limits(value, error))


def _score_limits(value: float, error: Callable[[float], float]) -> tuple[float, float]:
    """Return the ends of all θ that *value* is within z times the *error* at θ of."""
    z = normal_quantile(ALPHA)

    def end(outer: float) -> float:
        inner = value
        for _ in range(_HALVINGS):
            middle = (inner + outer) / 2
            if abs(value - middle) <= z * error(middle):
                inner = middle
            else:
                outer = middle
        return outer

    return end(0.0), end(1.0)


def _place(scores: Floats, others: Floats) -> Floats:
    """Return of each score the part of *others*, which are sorted, below it; equal ones half."""
    left, right = (np.searchsorted(others, scores, side) for side in ("left", "right"))
    return (left + right) / 2 / len(others)


def of_numbers(scores: Floats, truth: Floats) -> list[Figure]:
    """Return the mean square error of places from -1 to 1, and that of always saying the mean."""
    squares, apart = (truth - np.clip(scores, -1, 1)) ** 2, (truth - truth.mean()) ** 2
    return [_mean("mean square error", squares), _mean("that of the mean", apart)]


def _mean(name: str, squares: Floats) -> Figure:
    n = len(squares)
    if n < LEAST:
        return Figure(name, None, reason=_few(f"{n:,} of at least {LEAST}"))
    value, reach = float(squares.mean()), normal_quantile(ALPHA) * float(squares.std(ddof=1))
    return Figure(name, value, max(value - reach / sqrt(n), 0.0), value + reach / sqrt(n))


def _few(rows: str) -> str:
    return f"not enough rows: {rows}"


def left_out_of(source: ModelSource) -> list[str]:
    """Return what a model says of reports that were left out of it.

    Raises: InvalidParameterError: it cannot be read.
    """
    parts = read(source).parts
    excluded = parts.get(EXCLUDED)
    notes = excluded.get("notes") if isinstance(excluded, dict) else None
    said = [f"when it was learned: {note}" for note in notes] if isinstance(notes, list) else []
    if otherwise := parts.get("steps_otherwise_excluded"):
        said.append(f"steps that were taken while other exclusions were in force: {otherwise}")
    return said


def lines_of(figures: Sequence[Figure]) -> list[str]:
    """Return the figures as they are printed."""
    return [
        f"{f.name}: {f.reason}"
        if f.value is None
        else f"{f.name}: {f.value:.4f} (95 %: {f.low:.4f} to {f.high:.4f})"
        for f in figures
    ]
