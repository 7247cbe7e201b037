"""Naive Bayes of real reports on real data: how well it ranks, and how right its chances are.

Run: ``HEARSAY_PUBLIC_DATA=folder python -m benchmarks learn_bayes``; docs/learn/naive-bayes.md has
the table.  Every training row is a device that makes one report by the entropy of the operating
system.  All settings stand here: attributes, groups of values and edges were chosen on training
rows alone, and the learner has none.  A number is the mean of SEEDS runs, with the least of them;
beside them are the same learner without noise, and always saying what is commoner.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.lib import page
from benchmarks.lib.public_data import opened
from client_sdk.core.randomness import system_randomness
from client_sdk.learning.naive_bayes import NaiveBayes
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.analytics.verb import Slice
from collector.learning.evaluation import area
from collector.learning.naive_bayes import learn

Rows = Sequence[Mapping[str, object]]

SEEDS: Final = 5  # runs of a setting
COLUMNS: Final = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation"),
    *("relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week"),
    *("native_country", "income"),
)
BINS: Final = 10  # of equally many test rows, of the error of chances
HELD_OUT: Final = 100_000  # visits, drawn once by a seed
NO_NOISE: Final = "16"  # at this ε a report is all but sure; see ``bare``
SCHOOL: Final = {
    **dict.fromkeys(("Preschool", "1st-4th", "5th-6th", "7th-8th"), "up to 8th"),
    **dict.fromkeys(("9th", "10th", "11th", "12th"), "9th to 12th"),
    **dict.fromkeys(("Prof-school", "Doctorate"), "Prof or Doctorate"),
}
MARRIED: Final = {
    **dict.fromkeys(("Married-civ-spouse", "Married-AF-spouse"), "Married"),
    **dict.fromkeys(("Divorced", "Separated", "Widowed", "Married-spouse-absent"), "Was married"),
}
WORK: Final = dict.fromkeys(("Without-pay", "Never-worked"), "?")
TRADE: Final = {"Armed-Forces": "?", "Priv-house-serv": "Other-service"}
GROUPS: Final = {
    "workclass": WORK,
    "education": SCHOOL,
    "marital_status": MARRIED,
    "occupation": TRADE,
    "relationship": {},
    "race": {},
    "sex": {},
}
EDGES: Final = {
    "age": (25, 30, 35, 45, 60),
    "capital_gain": (1, 5_000, 7_000),
    "capital_loss": (1, 1_500, 2_000),
    "hours_per_week": (35, 40, 41, 50),
}
REGISTRY: Final = """
schema = 1
app = "benchmark"
[metrics.records]
title = "Records"
question = "How likely is the label?"
type = "record"
label = {label}
epsilon = "{epsilon}"
every = "once"
longitudinal = "fresh"
expected_devices = 50000
owner = "benchmark"
expires = 2099-12-31
[metrics.records.attributes]
{attributes}
"""


class Task(NamedTuple):
    """Rows to report and rows to predict, how they are declared, and what is asked of them."""

    name: str
    label: tuple[str, str]
    attributes: Mapping[str, str]  # as TOML
    training: Rows
    testing: Callable[[], Rows]  # opened after all models are there
    bars: Mapping[str, float]  # AUC by ε


def census() -> Task:
    """Return Adult: who earns more than 50,000 dollars, by eleven attributes."""
    training = list(people("train"))
    attributes = {name: f"{{ edges = {list(edges)} }}" for name, edges in EDGES.items()}
    for name in GROUPS:
        attributes[name] = str(sorted({str(row[name]) for row in training}))
    return Task(
        "Adult",
        ("<=50K", ">50K"),
        attributes,
        training,
        lambda: list(people("test")),
        {"1": 0.80, "2": 0.86, "4": 0.88},
    )


def people(part: str) -> Iterator[dict[str, object]]:
    """Yield the records of Adult's *part*, train or test, whose labels end in a full stop."""
    with opened(f"adult_{part}.csv") as file:
        for cells in csv.reader(file, skipinitialspace=True):
            if len(cells) != len(COLUMNS):
                continue
            row = dict(zip(COLUMNS, cells, strict=True))
            groups = {name: group.get(row[name], row[name]) for name, group in GROUPS.items()}
            numbers = {name: float(row[name]) for name in EDGES}
            yield {**numbers, **groups, "label": row["income"].rstrip(".")}


def news() -> Task:
    """Return MSNBC: is the third page of another category than the second."""
    with opened("msnbc_sessions.seq") as file:
        visits = [line.split() for line in file if line[:1].isdigit()]
    rows = [_visit(list(map(int, visit[:3]))) for visit in visits if len(visit) > 2]
    order = np.random.default_rng(0).permutation(len(rows)).tolist()
    testing = [rows[i] for i in order[:HELD_OUT]]
    steps = [f"{page} after {before}" for page in range(1, 18) for before in ("itself", "another")]
    return Task(
        "MSNBC",
        ("same", "other"),
        {"step": str(steps)},
        [rows[i] for i in order[HELD_OUT:]],
        lambda: testing,
        {"0.5": 0.64, "1": 0.68, "2": 0.70, "4": 0.71},
    )


def _visit(pages: Sequence[int]) -> dict[str, object]:
    first, second, third = pages
    before = "itself" if first == second else "another"
    label = "same" if second == third else "other"
    return {"step": f"{second} after {before}", "label": label}


def metric_of(task: Task, epsilon: str) -> Metric:
    """Return the metric of *task*."""
    attributes = "\n".join(f"{name} = {values}" for name, values in task.attributes.items())
    text = REGISTRY.format(label=list(task.label), epsilon=epsilon, attributes=attributes)
    return Registry.from_text(text).metric("records")


def reported(metric: Metric, encoded: Sequence[Any]) -> Slice:
    """Return the tally of one report of each device."""
    mechanism, randomness = metric.mechanism, system_randomness()
    column = b"".join(mechanism.randomize(value, randomness) for value in encoded)
    return Slice(metric, {}, len(encoded), mechanism.tally(column, np), (0,))


def bare(metric: Metric, encoded: Sequence[Any]) -> Slice:
    """Return the tally of reports of all attributes of every row, without noise."""
    cells: Any = np.bincount([item for record in encoded for item in record])
    tally = np.zeros(metric.mechanism.tally_size, dtype=np.int64)
    tally[: cells.size] = cells
    return Slice(metric, {}, int(tally.sum()), tally, (0,))


def miss(chances: Any, labels: Any) -> float:
    """Return the expected calibration error: how far bins of test rows are from their chance."""
    parts = np.array_split(np.argsort(chances, kind="stable"), BINS)
    off = [abs(chances[part].mean() - labels[part].mean()) * part.size for part in parts]
    return float(sum(off) / labels.size)


class Score(NamedTuple):
    """How well a model ranks the test rows, and how far its chances are off, slope and without."""

    auc: float
    miss: float
    raw: float


def score(model: NaiveBayes, rows: Rows, label: str) -> Score:
    """Return what *model* makes of test rows; raw chances are those with a slope of 1."""
    held = np.array([row["label"] == label for row in rows])
    odds = np.array([model.log_odds(row) for row in rows])
    start = np.log(model.prior / (1 - model.prior))
    centres = sum(attribute.centre for attribute in model.attributes.values())
    raw = start + (odds - start) / model.slope + centres
    chances = [1 / (1 + np.exp(-np.clip(each, -500, 500))) for each in (odds, raw)]
    auc = area(odds, held).value
    assert auc is not None  # there are thousands of rows of either label
    return Score(auc, miss(chances[0], held), miss(chances[1], held))


def measured(task: Task) -> Iterator[tuple[object, ...]]:
    """Yield a row for each ε, after one without noise."""
    models: dict[str, list[NaiveBayes]] = {}
    metric = metric_of(task, NO_NOISE)
    encoded = [metric.encode(row) for row in task.training]
    models["no noise"] = [NaiveBayes.of(learn(bare(metric, encoded)))]
    for epsilon in task.bars:
        metric = metric_of(task, epsilon)
        slices = (reported(metric, encoded) for _ in range(SEEDS))
        models[epsilon] = [NaiveBayes.of(learn(part)) for part in slices]
    testing = task.testing()
    most = max(fmean(row["label"] == label for row in testing) for label in task.label)
    yield task.name, f"always the same (right: {most:.3f})", "0.500", "", "", "", ""
    for epsilon, made in models.items():
        scores = [score(model, testing, task.label[1]) for model in made]
        mean, least = fmean(s.auc for s in scores), min(s.auc for s in scores)
        bar = task.bars.get(epsilon)
        told = "" if bar is None else f"{bar:.2f} {page.verdict(mean >= bar)}"
        yield (
            *(task.name, f"{len(task.training):,} devices, ε {epsilon}" if bar else epsilon),
            *(f"{mean:.3f}", f"{least:.3f}", told),
            *(f"{fmean(s.miss for s in scores):.3f}", f"{fmean(s.raw for s in scores):.3f}"),
        )


def main() -> None:
    """Print all that is measured."""
    heads = ("data", "model", "AUC", "least", "bar", "chances off by", "without the slope")
    began = time.monotonic()
    page.show(heads, (row for task in (census(), news()) for row in measured(task)))
    print(f"\n{SEEDS} runs each; {time.monotonic() - began:,.0f} s")
