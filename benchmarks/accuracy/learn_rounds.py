"""Logistic regression in rounds: real people, one real report each, beside what knows the rows.

Run: ``HEARSAY_PUBLIC_DATA=folder python -m benchmarks learn_rounds``; an hour, or name some of
``few``, ``many`` and ``pages`` in HEARSAY_LEARN.  examples/data/README.md says where the files are
published.

A device makes one report in its life: rounds, bounds and steps are those of the registry, and the
reports those of the mechanism that it ships.  Rounds, radius and the ``zero`` of flags were chosen
on people who were made up, twice: the first choice (a radius of 16 at every ε, 0 as the zero of
every flag) had been measured on Adult's test set and missed three bars; docs/learn/rounds.md has
its figures.  No number of the second was picked by them.

Beside it, on the same rows: gradients with Gaussian noise of the same ε and δ = 1e-5, which is the
weaker promise, in the same pass; the same pass without any noise; logistic regression that sees all
rows together as often as it likes; and the answer that is commoner.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from math import sqrt
from typing import Any, Final

import numpy as np

from benchmarks.accuracy.vectors import DELTA, gaussian
from benchmarks.lib import page
from benchmarks.lib.learned import Data, FastCodebook, few, many, pages
from client_sdk.core.dataclass import replace
from client_sdk.core.randomness import system_randomness
from client_sdk.learning.rounds import gradient, learning
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.learning.evaluation import Figure, of_truths
from collector.learning.rounds import Pass, Reports, averaged, step_size

ROUNDS: Final = 80
_TEXT: Final = """
schema = 1
app = "benchmark"
[metrics.m]
title = "t"
question = "q"
type = "vector"
epsilon = "{epsilon}"
every = "once"
longitudinal = "fresh"
owner = "benchmarks"
expected_devices = 1000
min_reports = 100
expires = 2099-12-31
[metrics.m.learning]
kind = "logistic"
rounds = {rounds}
devices = {devices}
key = "{key}"
[metrics.m.learning.features]
{features}
"""
DATA: Final[dict[str, tuple[Callable[[], Data], int]]] = {  # and how many passes are made
    "few": (few, 5),
    "many": (many, 3),
    "pages": (pages, 1),
}
BARS: Final = {  # AUC, then accuracy, at least
    ("few", "1"): (0.84, 0.78),
    ("few", "2"): (0.86, 0.81),
    ("few", "4"): (0.87, 0.82),
    ("many", "1"): (0.78, None),
    ("many", "2"): (0.82, None),
    ("many", "4"): (0.85, None),
    ("pages", "0.5"): (0.64, None),
    ("pages", "1"): (0.68, None),
    ("pages", "2"): (0.70, None),
    ("pages", "4"): (0.71, None),
}
HEADS: Final = ("data", "ε", "pass", "AUC", "accuracy", "bar", "verdict")


def metric_text(features: str, epsilon: str, rounds: int, devices: int) -> str:
    """Return a registry with a metric that learns a truth from *features*."""
    return _TEXT.format(
        epsilon=epsilon, rounds=rounds, devices=devices, key="0" * 64, features=features
    )


def metric_of(data: Data, epsilon: str) -> Metric:
    """Return the metric that learns from *data*, with the mechanism whose products are fast."""
    text = metric_text(data.features, epsilon, ROUNDS, len(data.train) // ROUNDS)
    metric = Registry.from_text(text).metric("m")
    return replace(metric, mechanism=FastCodebook(epsilon, metric.domain.size))


def one_pass(metric: Metric, rows: Any, targets: Any) -> tuple[float, ...]:
    """Return the model of one pass over devices, in their order, by their reports."""
    domain, randomness, state = learning(metric), system_randomness(), Pass(metric)
    for turn in range(domain.rounds):
        begin = turn * domain.devices
        payloads = []
        for at in range(begin, begin + domain.devices):
            numbers = gradient(domain, rows[at].tolist(), float(targets[at]), state.theta)
            encoded = metric.encode({"round": state.number, "gradient": numbers})
            payloads.append(metric.mechanism.randomize(encoded, randomness))
        tally = metric.mechanism.tally(b"".join(payloads), np)
        reports = Reports(domain.devices, tuple(map(int, tally)))
        state = state.stepped({state.number: reports})
    return averaged(state)


def central_pass(metric: Metric, rows: Any, targets: Any, noise: float, dice: Any) -> Any:
    """Return the model of the same pass with exact gradients, and *noise* variance on each."""
    domain, size = learning(metric), step_size(metric)
    theta, models = np.zeros(domain.size), []
    if noise:  # its own step, by the same rule
        size = float(domain.radius) / sqrt(
            domain.rounds * (1 + noise * domain.size / domain.devices)
        )
    for turn in range(domain.rounds):
        part = slice(turn * domain.devices, (turn + 1) * domain.devices)
        error = chances(rows[part] @ theta) - targets[part]
        mean = (rows[part] * error[:, None]).mean(axis=0)
        mean += dice.standard_normal(domain.size) * sqrt(noise / domain.devices)
        theta = theta - size * mean
        theta = theta * min(1, float(domain.radius) / np.linalg.norm(theta))
        models.append(theta)
    return np.mean(models[domain.rounds // 2 :], axis=0)


def best(rows: Any, targets: Any) -> Any:
    """Return the coefficients of the least loss, by Newton's method, with a ridge of 1e-6."""
    theta, ridge = np.zeros(rows.shape[1]), 1e-6
    for _ in range(50):
        chance = chances(rows @ theta)
        slope = rows.T @ (chance - targets) / len(rows) + ridge * theta
        curve = (rows * (chance * (1 - chance))[:, None]).T @ rows / len(rows)
        theta = theta - np.linalg.solve(curve + ridge * np.eye(len(theta)), slope)
    return theta


def chances(scores: Any) -> Any:
    """Return the chance that a score stands for."""
    return 1 / (1 + np.exp(-np.clip(scores, -36, 36)))


def measured(name: str) -> Iterator[tuple[object, ...]]:
    """Yield a row a pass over the data called *name*, then those beside it."""
    read, passes = DATA[name]
    data = read()
    epsilons = [epsilon for of, epsilon in BARS if of == name]
    plain = learning(metric_of(data, epsilons[0]))
    rows, test = (np.array([plain.row(row) for row, _ in part]) for part in (data.train, data.test))
    targets, truth = (
        np.array([float(label) for _, label in part]) for part in (data.train, data.test)
    )
    figures = of_truths(test @ best(rows, targets), truth)
    yield _row(name, "none", "all rows at once", figures)
    yield name, "none", "the commoner", "0.5", f"{figures[1].value:.4f}", "", ""
    for epsilon in epsilons:
        metric = metric_of(data, epsilon)
        areas = []
        for turn in range(passes):
            dice = np.random.default_rng(turn)
            order = dice.permutation(len(rows))
            mine, own = rows[order], targets[order]
            figures = of_truths(test @ np.array(one_pass(metric, mine, own)), truth)
            areas.append([figure.value or 0.0 for figure in (figures[2], figures[0])])
            yield _row(name, epsilon, f"reports, {turn + 1}", figures)
            noise = gaussian(float(epsilon), DELTA)
            figures = of_truths(test @ central_pass(metric, mine, own, noise, dice), truth)
            yield _row(name, epsilon, f"Gaussian at the device, {turn + 1}", figures)
        figures = of_truths(test @ central_pass(metric, mine, own, 0.0, dice), truth)
        yield _row(name, epsilon, "the pass without noise", figures)
        area, right = np.mean(areas, axis=0)
        least, accuracy = BARS[name, epsilon]
        met = area >= least and (accuracy is None or right >= accuracy)
        bar = f"≥ {least}" + ("" if accuracy is None else f", ≥ {accuracy}")
        yield (
            *(name, epsilon, f"**mean of {passes}**", f"**{area:.4f}**", f"**{right:.4f}**"),
            *(bar, page.verdict(bool(met))),
        )


def _row(name: str, epsilon: str, what: str, figures: list[Figure]) -> tuple[object, ...]:
    right, _, area = figures
    return name, epsilon, what, _with(area), _with(right), "", ""


def _with(figure: Figure) -> str:
    return f"{figure.value:.4f} ({figure.low:.4f} to {figure.high:.4f})"


def main() -> None:
    """Print the tables of all data, or of those that HEARSAY_LEARN names."""
    for name in os.environ.get("HEARSAY_LEARN", " ".join(DATA)).split():
        page.show(HEADS, measured(name))
        print()
