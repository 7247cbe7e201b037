"""What the largest of many shares are worth: unbiased, shrunken by `top_k`, and by other rules.

Run: ``python -m benchmarks picked``; a few seconds.  Devices are drawn, and supports of items are
what they are: c Bernoulli(p) + (n - c) Bernoulli(q).  The answer is that of the verb.  *Sum shown*
is that of the items shown over what is true of them; *error* is the root mean square over them in
standard errors of an unbiased share, over RUNS answers.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.lib.page import named_once, show
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.analytics.postprocess import simplex_l2
from collector.analytics.verb import Slice, VerbQuery, load

RUNS: Final = 40
SHOWN: Final = 20
SETTINGS: Final = (
    (2_800, "2", 77_500),
    (2_800, "2", 775_000),
    (200, "1", 20_000),
    (50, "1", 5_000),
)


class Seen(NamedTuple):
    """Of the items shown: what is true, the unbiased shares, and what each rule makes of them."""

    truth: Any
    error: float
    rules: dict[str, Any]


def populations(items: int) -> dict[str, Any]:
    """Return shares of *items* by name."""
    ranks = np.arange(1, items + 1)
    clear = np.where(ranks <= SHOWN, 1.0, 0.0)
    shapes = {"all alike": ranks**0.0, "1/rank": 1 / ranks, "20 alone": clear}
    return {name: shape / shape.sum() for name, shape in shapes.items()}


def metric_of(items: int, epsilon: str) -> Metric:
    """Return a metric of *items*."""
    values = ", ".join(f'"v{i}"' for i in range(items))
    return Registry.from_text(
        f"""
schema = 1
app = "picked"
[metrics.m]
title = "Item"
question = "Which item?"
type = "category"
values = [{values}]
epsilon = "{epsilon}"
mechanism = "oue"
longitudinal = "fresh"
every = "once"
expected_devices = 100000
min_reports = 100
owner = "benchmarks"
expires = 2099-12-31
"""
    ).metric("m")


def asked(metric: Metric, n: int, shares: Any, chance: np.random.Generator) -> Seen:
    """Return one answer of ``top_k`` beside what other rules make of the same reports."""
    assert isinstance(metric.mechanism, OUE)
    p, q = float(metric.mechanism.channel.p), float(metric.mechanism.channel.q)
    held = chance.multinomial(n, shares)
    tally = chance.binomial(held, p) + chance.binomial(n - held, q)
    verb = load("top_k")
    query = VerbQuery(0.05, options=verb.options(k=SHOWN), metrics=(metric,))
    rows = verb.answer([Slice(metric, {}, n, tally, (0,))], query).rows
    places = [int(row.item[1:]) for row in rows]
    unbiased = (tally / n - q) / (p - q)
    error = float(np.sqrt(q * (1 - q) / n) / (p - q))
    spread = max(float(np.mean((unbiased - unbiased.mean()) ** 2)) - error**2, 0.0)
    linear = unbiased.mean() + spread / (spread + error**2) * (unbiased - unbiased.mean())
    rules = {
        "unbiased": unbiased[places],
        "shrunken": np.array([row.value if row.shrunken is None else row.shrunken for row in rows]),
        "James–Stein": linear[places],
        "simplex": simplex_l2(unbiased * n, n)[places] / n,
    }
    return Seen(held[places] / n, error, rules)


def rows_of(items: int, epsilon: str, n: int) -> Any:
    """Yield a row a population: the ratio of the sums and the error of each rule."""
    metric = metric_of(items, epsilon)
    for name, shares in populations(items).items():
        chance = np.random.default_rng([items, n])
        seen = [asked(metric, n, shares, chance) for _ in range(RUNS)]
        cells = []
        for rule in seen[0].rules:
            over = np.mean([each.rules[rule].sum() / each.truth.sum() for each in seen])
            errors = [np.mean(((e.rules[rule] - e.truth) / e.error) ** 2) for e in seen]
            cells.append(f"{over:.2f}, {np.sqrt(np.mean(errors)):.2f}")
        yield (f"{items:,}", epsilon, f"{n:,}", name, *cells)


def main() -> None:
    """Print sums over the truth and errors, of every rule."""
    rules = ("unbiased", "shrunken", "James–Stein", "simplex")
    show(
        ("items", "ε", "devices", "shares", *(f"{rule}: sum, error" for rule in rules)),
        named_once((row for setting in SETTINGS for row in rows_of(*setting)), 3),
    )
