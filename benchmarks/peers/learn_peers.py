"""Learners of scikit-learn, which see every row, beside ours from one report a device.

Run, in an environment with scikit-learn: ``HEARSAY_PUBLIC_DATA=folder python -m benchmarks
learn_peers``.  All models of a table are of the same rows, in one run, and ours make one report of
each.  Theirs promise no privacy: they show what is lost by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np

from benchmarks.accuracy import learn_bayes, learn_rounds
from benchmarks.accuracy.learn_bayes import Task, census, news
from benchmarks.lib import page
from benchmarks.lib.learned import Data, few, pages
from client_sdk.learning.naive_bayes import NaiveBayes
from client_sdk.learning.rounds import learning
from collector.learning.evaluation import area
from collector.learning.naive_bayes import learn

EPSILON: Final = "2"
HEADS: Final = ("data", "model", "sees", "AUC (95 %)")
OURS: Final = f"one report a device, ε {EPSILON}"
ALL: Final = "every row"


def places(records: Any, firsts: Sequence[int], labels: int) -> Any:
    """Return the values of encoded *records* as whole numbers from 0, shape (rows, attributes).

    Args: records: items, each a value and a label.  firsts: the first item of each attribute.
    """
    return (np.asarray(records) - np.asarray(firsts)) // labels


def flags(columns: Any, sizes: Sequence[int]) -> Any:
    """Return columns of whole numbers as zeros and ones, one for each value of each column."""
    parts = [np.eye(size)[column] for column, size in zip(columns.T, sizes, strict=True)]
    return np.hstack(parts)


def of_records(task: Task) -> Iterator[tuple[object, ...]]:
    """Yield a row for each model of records."""
    bayes, linear = import_module("sklearn.naive_bayes"), import_module("sklearn.linear_model")
    metric, label = learn_bayes.metric_of(task, EPSILON), task.label[1]
    domain: Any = metric.domain
    encoded = [metric.encode(row) for row in task.training]
    testing = task.testing()
    private = NaiveBayes.of(learn(learn_bayes.reported(metric, encoded)))
    whole = learn_bayes.metric_of(task, learn_bayes.NO_NOISE)
    bare = NaiveBayes.of(learn(learn_bayes.bare(whole, encoded)))
    truth = np.array([row["label"] == label for row in testing])
    for model, sees in ((private, OURS), (bare, f"{ALL}, without noise")):
        odds = np.array([model.log_odds(row) for row in testing])
        yield task.name, "Hearsay, naive Bayes", sees, _figure(odds, truth)
    sizes = [attribute.values.size for attribute in domain.attributes]
    held = np.array([row["label"] == label for row in task.training])
    train, test = (
        places(records, domain.firsts[:-1], domain.outcome.size)
        for records in (encoded, [metric.encode(row) for row in testing])
    )
    theirs = bayes.CategoricalNB(min_categories=sizes).fit(train, held)
    odds = np.diff(theirs.predict_log_proba(test)).ravel()
    yield task.name, "scikit-learn, CategoricalNB", ALL, _figure(odds, truth)
    logistic = linear.LogisticRegression(max_iter=1_000).fit(flags(train, sizes), held)
    odds = logistic.decision_function(flags(test, sizes))
    yield (
        task.name,
        "scikit-learn, LogisticRegression of the same values",
        ALL,
        _figure(odds, truth),
    )


def of_rounds(name: str, data: Data) -> Iterator[tuple[object, ...]]:
    """Yield a row for each logistic regression."""
    linear = import_module("sklearn.linear_model")
    metric = learn_rounds.metric_of(data, EPSILON)
    domain = learning(metric)
    train, test = (
        np.array([domain.row(row) for row, _ in part]) for part in (data.train, data.test)
    )
    targets, truth = (
        np.array([float(label) for _, label in part]) for part in (data.train, data.test)
    )
    order = np.random.default_rng(0).permutation(len(train))
    theta = learn_rounds.one_pass(metric, train[order], targets[order])
    yield name, "Hearsay, rounds", OURS, _figure(test @ np.array(theta), truth)
    best = learn_rounds.best(train, targets)
    yield name, "Newton's method, as in learn_rounds", ALL, _figure(test @ best, truth)
    model = linear.LogisticRegression(penalty=None, max_iter=10_000, fit_intercept=False)
    odds = model.fit(train, targets).decision_function(test)
    yield name, "scikit-learn, LogisticRegression", ALL, _figure(odds, truth)


def _figure(scores: Any, truth: Any) -> str:
    figure = area(scores, truth)
    return f"{figure.value:.4f} ({figure.low:.4f} to {figure.high:.4f})"


def main() -> None:
    """Print a table of records and one of rounds."""
    page.show(HEADS, (row for task in (census(), news()) for row in of_records(task)))
    print()
    each = (("Adult, 15", few), ("MSNBC, 36", pages))
    page.show(HEADS, (row for name, read in each for row in of_rounds(name, read())))
