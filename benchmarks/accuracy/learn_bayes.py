"""Naive Bayes of real reports on real data: how well it ranks, and how right its chances are.

Run: ``HEARSAY_PUBLIC_DATA=folder python -m benchmarks learn_bayes``; docs/learn/naive-bayes.md has
the table.  Every training row is a device that makes one report by the entropy of the operating
system.  All settings stand here: attributes, groups of values and edges were chosen on training
rows alone, and the learner has none.  A number is the mean of SEEDS runs, with the least of them;
beside them are the same learner without noise, and always saying what is commoner.  *Read plainly*
is the same reports without any shrinkage: every cell is its estimate, at least one device.

Of a rare label there are drawn crowds, whose attributes are independent given the label: values
fall off as 1/rank, and their log-odds scatter by STRENGTH.
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
from client_sdk.core.dataclass import replace
from client_sdk.core.randomness import system_randomness
from client_sdk.learning.naive_bayes import NaiveBayes
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.record import ATTRIBUTE
from collector.analytics.records import by_attribute
from collector.analytics.sums import Shares
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
CROWDS: Final = 3  # drawn
SAME: Final = 0.005  # of an AUC: by how much less than plain reading it may be
BINS: Final = 10  # of equally many test rows, of the error of chances
HELD_OUT: Final = 100_000  # visits, drawn once by a seed
RARE: Final = 0.117  # share of the label of drawn crowds
DRAWN: Final = (27_000, 20_000)  # rows of a drawn crowd, to report and to predict
STRENGTH: Final = 0.6  # standard deviation of their log-odds
VALUES: Final = (5, 12, 3, 4, 2, 5, 2, 2, 3, 12, 3, 4, 4)  # of their attributes
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


def crowd(seed: int, rows: tuple[int, int] = DRAWN) -> Task:
    """Return a drawn crowd with a rare label: so many *rows* to report, and to predict."""
    draw = np.random.default_rng(seed)
    laws = [_law(values, draw) for values in VALUES]
    training, testing = (_people(count, laws, draw) for count in rows)
    return Task(
        f"drawn {seed}",
        ("no", "yes"),
        {f"a{i}": str([str(value) for value in range(k)]) for i, k in enumerate(VALUES)},
        training,
        lambda: testing,
        {"1": 0.55, "2": 0.65, "4": 0.75},
    )


def _law(values: int, draw: np.random.Generator) -> tuple[Any, Any]:
    """Return the shares of values among those without the label, and with it."""
    held = draw.permutation(1 / np.arange(1, values + 1))
    laws = held, held * np.exp(STRENGTH * draw.normal(size=values))
    return laws[0] / laws[0].sum(), laws[1] / laws[1].sum()


def _people(rows: int, laws: Sequence[tuple[Any, Any]], draw: np.random.Generator) -> Rows:
    label = draw.random(rows) < RARE
    columns = {
        f"a{i}": np.where(label, *(draw.choice(law.size, rows, p=law) for law in (labelled, bare)))
        for i, (bare, labelled) in enumerate(laws)
    }
    texts = {name: column.astype(str).tolist() for name, column in columns.items()}
    texts["label"] = np.where(label, "yes", "no").tolist()
    return [dict(zip(texts, cells, strict=True)) for cells in zip(*texts.values(), strict=True)]


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


def read_plainly(part: Slice, model: NaiveBayes) -> NaiveBayes:
    """Return *model* with the weights of its reports as they are: cells of one device at least."""
    attributes = dict(model.attributes)
    for table in by_attribute(part):
        name, shares = table.dimensions[ATTRIBUTE], Shares.of_slice(table)
        labels = table.metric.domain.parts["label"]
        cells = np.maximum(shares.values.reshape(-1, len(labels)) * part.n, 1)
        place = labels.index(model.label)
        weights = np.log(cells[:, place] / (cells.sum(axis=1) - cells[:, place]))
        attributes[name] = replace(attributes[name], weights=tuple(weights.tolist()), centre=0.0)
    return replace(model, attributes=attributes, slope=1.0)


class Score(NamedTuple):
    """How well a model ranks the test rows, and how far its chances are off, slope and without."""

    auc: float
    miss: float
    raw: float


def area_of(model: NaiveBayes, rows: Rows) -> float:
    """Return how well *model* ranks the test rows."""
    held = np.array([row["label"] == model.label for row in rows])
    auc = area(np.array([model.log_odds(row) for row in rows]), held).value
    assert auc is not None  # there are thousands of rows of either label
    return auc


def score(model: NaiveBayes, rows: Rows) -> Score:
    """Return what *model* makes of test rows; raw chances are those with a slope of 1."""
    held = np.array([row["label"] == model.label for row in rows])
    odds = np.array([model.log_odds(row) for row in rows])
    start = np.log(model.prior / (1 - model.prior))
    centres = sum(attribute.centre for attribute in model.attributes.values())
    raw = start + (odds - start) / model.slope + centres
    chances = [1 / (1 + np.exp(-np.clip(each, -500, 500))) for each in (odds, raw)]
    return Score(area_of(model, rows), miss(chances[0], held), miss(chances[1], held))


def measured(task: Task) -> Iterator[tuple[object, ...]]:
    """Yield a row for each ε, after one without noise."""
    models: dict[str, list[tuple[NaiveBayes, NaiveBayes]]] = {}
    metric = metric_of(task, NO_NOISE)
    encoded = [metric.encode(row) for row in task.training]
    models["no noise"] = [_both(bare(metric, encoded))]
    for epsilon in task.bars:
        metric = metric_of(task, epsilon)
        models[epsilon] = [_both(reported(metric, encoded)) for _ in range(SEEDS)]
    testing = task.testing()
    most = max(fmean(row["label"] == label for row in testing) for label in task.label)
    yield task.name, f"always the same (right: {most:.3f})", "0.500", "", "", "", "", ""
    for epsilon, made in models.items():
        scores = [score(model, testing) for model, _ in made]
        mean, least = fmean(s.auc for s in scores), min(s.auc for s in scores)
        plain = fmean(area_of(model, testing) for _, model in made)
        bar = task.bars.get(epsilon)
        told = (
            "" if bar is None else f"{bar:.2f} {page.verdict(mean >= bar and mean >= plain - SAME)}"
        )
        yield (
            *(task.name, f"{len(task.training):,} devices, ε {epsilon}" if bar else epsilon),
            *(f"{mean:.3f}", f"{least:.3f}", f"{plain:.3f}", told),
            *(f"{fmean(s.miss for s in scores):.3f}", f"{fmean(s.raw for s in scores):.3f}"),
        )


def _both(part: Slice) -> tuple[NaiveBayes, NaiveBayes]:
    """Return the model of a tally, and the same reports read plainly."""
    model = NaiveBayes.of(learn(part))
    return model, read_plainly(part, model)


def main() -> None:
    """Print all that is measured."""
    heads = ("data", "model", "AUC", "least", "read plainly", "bar", "chances off by")
    began = time.monotonic()
    tasks = (census(), news(), *map(crowd, range(CROWDS)))
    rows = (row for task in tasks for row in measured(task))
    page.show((*heads, "without the slope"), rows)
    print(f"\n{SEEDS} runs each; {time.monotonic() - began:,.0f} s")
