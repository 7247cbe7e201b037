"""How often the intervals of a model that was learned in rounds hold what they are about.

Run: ``python -m benchmarks rounds_coverage``; docs/learn/rounds.md holds its table.

People are made up: numbers and truths that depend on two hidden factors, as does the label.  Each
pass draws its devices from 100,000 of them.  What a round's reports are of is drawn as a normal
error of the mechanism's variance, since a pass of real reports takes half a minute; the steps and
the intervals are the collector's own code.  *The same pass* is the one with the exact mean gradient
of all people in each round; *the best* are the coefficients of least loss, which it is not
about.

The interval takes rounds for exchangeable.  A second table has rounds that are not: people come in
the order of their first number, each round from the half of them whose turn it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any, Final

import numpy as np

from benchmarks.accuracy.learn_rounds import best, chances, metric_text
from benchmarks.lib import page
from client_sdk.learning.rounds import learning
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.learning.rounds import Pass, Step, averaged, half_width, step_size, vectors_of

PEOPLE: Final = 100_000
PASSES: Final = 100
NUMBERS: Final = 5
SETTINGS: Final = (  # truths of a person, rounds, devices of each
    (9, 80, 400),
    (9, 20, 1_600),
    (2, 40, 2_000),
)
EPSILONS: Final = ("1", "2", "4")
BAR: Final = 0.93
HEADS: Final = (
    *("coefficients", "rounds × devices", "ε", "half-width", "holds the same pass"),
    *("at least, of a coefficient", "holds the best", "verdict"),
)


def population(truths: int, domain: Any, dice: Any) -> tuple[Any, Any]:
    """Return the rows of all people, and their labels."""
    factors = dice.standard_normal((PEOPLE, 2))

    def answer(spread: float) -> Any:
        mixed = factors @ (spread * dice.standard_normal(2))
        return mixed + spread * dice.standard_normal(PEOPLE)

    columns = [np.ones(PEOPLE), *(np.clip(answer(0.5), -1, 1) for _ in range(NUMBERS))]
    for _ in range(truths):
        told = answer(1.0)
        columns.append((told > np.quantile(told, dice.uniform(0.5, 0.95))).astype(float))
    raw = np.stack(columns, axis=1)
    assert raw.shape[1] == domain.size
    score = raw @ dice.standard_normal(domain.size) + factors @ dice.standard_normal(2)
    chance = chances(score - np.quantile(score, 0.75))
    labels = (dice.random(PEOPLE) < chance).astype(float)
    return raw / np.linalg.norm(raw, axis=1, keepdims=True), labels


def simulated(metric: Metric, rows: Any, labels: Any, dice: Any, order: Any = None) -> Pass:
    """Return a pass over devices drawn by *dice*; without, the one over all people each time.

    Args: order: in which people come, if each round is drawn from the half whose turn it is.
    """
    domain, state = learning(metric), Pass(metric)
    noise = vectors_of(metric).noise / domain.devices  # type: ignore[attr-defined]  # a codebook
    for turn in range(domain.rounds):
        mine = slice(None) if dice is None else dice.integers(0, PEOPLE, domain.devices)
        if order is not None:
            begin = PEOPLE // 2 * turn // (domain.rounds - 1)
            mine = order[begin + dice.integers(0, PEOPLE // 2, domain.devices)]
        error = chances(rows[mine] @ np.array(state.theta)) - labels[mine]
        mean = (rows[mine] * error[:, None]).mean(axis=0)
        if dice is not None:
            mean += dice.standard_normal(domain.size) * sqrt(noise)
        theta = np.array(state.theta) - step_size(metric) * mean
        theta *= min(1.0, float(domain.radius) / max(float(np.linalg.norm(theta)), 1e-300))
        step = Step(domain.devices, noise, tuple(mean), tuple(map(float, theta)))
        state = Pass(metric, (*state.steps, step))
    return state


def measured(*, drifts: bool = False) -> Iterator[tuple[object, ...]]:
    """Yield a row a setting; of the first one only where people *drift*."""
    for truths, rounds, devices in SETTINGS[: 1 if drifts else None]:
        names = [f"n{at}" for at in range(NUMBERS)] + [f"t{at}" for at in range(truths)]
        features = "".join(f"{name} = {{ min = -1, max = 1 }}\n" for name in names)
        for epsilon in EPSILONS:
            dice = np.random.default_rng(7)
            text = metric_text(features, epsilon, rounds, devices)
            metric = Registry.from_text(text).metric("m")
            rows, labels = population(truths, learning(metric), dice)
            aim = np.array(averaged(simulated(metric, rows, labels, None)))
            optimum = best(rows, labels)
            order = np.argsort(rows[:, 1] / rows[:, 0]) if drifts else None
            passes = [simulated(metric, rows, labels, dice, order) for _ in range(PASSES)]
            found = np.array([averaged(done) for done in passes])
            reach = np.array([half_width(done) for done in passes])[:, None]
            holds = np.abs(found - aim) <= reach
            of_best = float((np.abs(found - optimum) <= reach).mean())
            least = float(holds.mean(axis=0).min())
            yield (
                *(len(aim), f"{rounds} × {devices:,}", epsilon, f"{float(reach.mean()):.2f}"),
                *(f"{holds.mean():.1%}", f"{least:.1%}", f"{of_best:.1%}"),
                *(() if drifts else (page.verdict(bool(holds.mean() >= BAR)),)),
            )


def main() -> None:
    """Print the tables, or with ``--write`` put them into their page."""
    tables = {
        "coverage": page.table(HEADS, page.named_once(measured(), 2)),
        "drift": page.table(HEADS[:-1], page.named_once(measured(drifts=True), 2)),
    }
    page.publish((page.PAGES / "learn" / "rounds.md", tables))
