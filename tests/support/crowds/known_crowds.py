"""Crowds whose values are known, and the tallies that their reports give on average.

A subject is a metric of one type of values, with values that devices hold.  Nothing is drawn: so
many devices of each segment and epoch hold each value as is stated, and a tally has as many reports
of each payload as the exact law of the mechanism gives them on average, to the nearest report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from client_sdk.core.epoch import ONCE
from client_sdk.mechanisms import UNIT, TextMechanism
from client_sdk.mechanisms.numbers.codebook import Codebook
from client_sdk.registry.metric import Metric
from tests.support.enumeration.enumeration import distribution

UNLIKELY: Final = Fraction(1, 10**15)  # a path of randomize that no crowd here ever sees
EVERY: Final = ("1h", "1d", "7d", "28d", ONCE)
ONE, TWO, REDRAWN = "one", "two", "redrawn"  # definitions that registries know of a metric


@dataclass(frozen=True)
class Subject:
    """A metric of a *type*, declared in *form*, of devices that hold one of *values* each.

    ``held`` returns what a value adds to the number of each item, ``number`` what it is itself, and
    ``numbers`` what it is by key.  ``steps`` say whether a device took a step, or was active in a
    period; ``answers`` returns what a value joins.
    """

    type: str
    form: str
    values: tuple[Any, ...]
    held: Callable[[Any], Mapping[str, float]] = lambda _: {}
    number: Callable[[Any], float] | None = None
    numbers: Callable[[Any], Mapping[str, float]] = lambda _: {}
    steps: Mapping[str, Callable[[Any], bool]] = field(default_factory=dict)
    answers: Callable[[Any], Mapping[str, str]] = lambda _: {}
    items: tuple[str, ...] = ()  # two, in the order of the form: that verbs are asked for
    earlier: str | None = None  # its form in the definition before, if it is another
    every: tuple[str, ...] = EVERY
    definitions: tuple[str, ...] = (ONE, TWO, REDRAWN)

    @property
    def is_summed(self) -> bool:
        """Whether a device reports when its epoch is over, and not before."""
        return "aggregate" in self.form

    def mean(
        self,
        of: Callable[[Any], float],
        devices: Any,
        whole: Callable[[Any], bool] = lambda _: True,
    ) -> float:
        """Return the mean of *of* over the devices with values of *whole*, or a share of them.

        Args: devices: that hold each value, shape (values,).
        """
        inside = devices * [whole(value) for value in self.values]
        return float(
            sum(n and n * of(v) for n, v in zip(inside, self.values, strict=True)) / inside.sum()
        )

    def share(self, item: str, devices: Any) -> float:
        """Return the share of *item*, or the mean of a coordinate."""
        return self.mean(lambda value: self.held(value).get(item, 0), devices)


def _only(value: Any) -> Mapping[str, float]:
    return {str(value).lower(): 1}


def _each(value: Any) -> Mapping[str, float]:
    return dict.fromkeys(value, 1)


def _cell(at: Any) -> Mapping[str, float]:
    return {f"{int(at[1] - 40)},{int(at[0])}": 1}


def _of_record(value: Any) -> Mapping[str, str]:
    age = "below 30" if value["age"] < 30 else "30 or more"
    return {"plan": value["plan"], "age": age, "label": value["label"]}


def _cells_of_record(value: Any) -> Mapping[str, float]:
    told = _of_record(value)
    return {f"{name}: {told[name]} | {told['label']}": 1 for name in ("plan", "age")}


def _reached(step: str) -> Callable[[Any], bool]:
    return lambda furthest: STEPS.index(furthest) >= STEPS.index(step)


def _active(period: str) -> Callable[[Any], bool]:
    return lambda periods: period in periods


ABC: Final = 'type = "category"\nvalues = ["a", "b", "c"]'
STEPS: Final = ("visit", "cart", "paid")
PERIODS: Final = ("first", "second", "third")
RECORD: Final = (
    'type = "record"\nlabel = ["stayed", "left"]\n'
    'attributes = { plan = ["free", "pro"], age = { edges = [30] } }'
)
SUBJECTS: Final[Mapping[str, Subject]] = {
    "boolean": Subject(
        "boolean", 'type = "boolean"', (True, False), _only, items=("false", "true")
    ),
    "category": Subject("category", ABC, ("a", "b", "c"), _only, items=("a", "b")),
    "kept": Subject(
        "category", f'{ABC}\nlongitudinal = "permanent"', ("a", "b"), _only,
        items=("a", "b"), every=EVERY[:-1], definitions=(ONE, TWO),
    ),
    "layered": Subject(
        "category", f'{ABC}\nlongitudinal = "two_layer"\nepsilon_permanent = "10"', ("a", "b"),
        _only, items=("a", "b"), every=EVERY[:-1], definitions=(ONE, TWO),
    ),
    "renamed": Subject(
        "category", ABC, ("a", "b"), _only,
        items=("a", "b"), earlier='type = "category"\nvalues = ["a", "b"]', definitions=(TWO,),
    ),
    "set": Subject(
        "set", 'type = "set"\nvalues = ["a", "b", "c"]', (["a"], ["a", "b"], []), _each,
        items=("a", "b"),
    ),
    "count": Subject(
        "count", 'type = "count"\nmin = 0\nmax = 4\nstep = 1\nunit = "files"', (0, 3, 4),
        number=float,
    ),
    "summed": Subject(
        "count",
        'type = "count"\nmin = 0\nmax = 4\nstep = 1\nunit = "EUR"\naggregate = "sum"\n'
        "otherwise = 0",
        (0, 1, 4), number=float, every=EVERY[:-1],
    ),
    "duration": Subject(
        "duration",
        'type = "duration"\nmin = 0\nmax = 8\nstep = 1\nunit = "ms"\nask = ["mean", "quantiles"]\n'
        'shape = "grid"',
        (1, 4, 5), number=float,
    ),
    "number": Subject(
        "number",
        'type = "number"\nmin = -2\nmax = 10\nstep = 1\nunit = "degrees"\nask = ["quantiles"]',
        (-2, 3, 7), number=float,
    ),
    "key_value": Subject(
        "key_value",
        'type = "key_value"\nvalues = ["a", "b"]\nmin = 0\nmax = 8\nunit = "h"\nmost = 2',
        ({"a": 2.0}, {"a": 3.0, "b": 5.0}, {}), _each, numbers=dict, items=("a", "b"),
    ),
    "location": Subject(
        "location", 'type = "location"\nmin = [0, 40]\nmax = [2, 42]\ncells = [2, 2]',
        ((0.5, 40.5), (1.5, 41.5)), _cell, items=("0,0", "1,1"),
    ),
    "pair": Subject(
        "pair", 'type = "pair"\nparts = { sex = ["f", "m"], age = ["young", "old"] }',
        ({"sex": "f", "age": "young"}, {"sex": "f", "age": "old"}, {"sex": "m", "age": "old"}),
        lambda told: {f"{told['sex']} | {told['age']}": 1}, answers=dict,
        items=("f | young", "f | old"),
    ),
    "funnel": Subject(
        "funnel", f'type = "funnel"\nvalues = {list(STEPS)}', STEPS, _only,
        steps={step: _reached(step) for step in STEPS}, items=("cart", "paid"),
    ),
    "retention": Subject(
        "retention", f'type = "retention"\nperiods = {list(PERIODS)}',
        (["first"], ["first", "third"], ["second"]),
        lambda told: {"".join(str(int(each in told)) for each in PERIODS): 1},
        steps={period: _active(period) for period in PERIODS}, items=("second", "third"),
    ),
    "string": Subject(
        "string",
        'type = "string"\nlength = 2\nmechanism = "pem"\nparameters = { rows = 4, order = 23 }',
        ("oh", "no"), _only,
    ),
    "record": Subject(
        "record", RECORD,
        (
            {"plan": "free", "age": 23, "label": "left"},
            {"plan": "free", "age": 41, "label": "stayed"},
            {"plan": "pro", "age": 65, "label": "stayed"},
        ),
        _cells_of_record, answers=_of_record, items=("plan: free | stayed", "plan: free | left"),
    ),
    "vector": Subject(
        "vector", 'type = "vector"\nvalues = ["speed", "size"]\nunit = "x"',
        ((0.5, -0.25), (0.75, 0.5)), lambda v: {"speed": v[0], "size": v[1]},
        items=("speed", "size"),
    ),
    "taste": Subject(
        "taste", 'type = "taste"\nvalues = ["a", "b", "c"]', (["a"], ["a", "b"], ["c"]),
        lambda liked: dict.fromkeys(liked, 100 / len(liked)), items=("a", "b"), every=(ONCE,),
    ),
}  # fmt: skip


class Law(NamedTuple):
    """The *chances* of each of some reports by value, and the *tallies* of each report alone."""

    chances: Any  # shape (values, reports)
    tallies: Any = None  # shape (reports, cells); None: each report has a cell

    def reports(self, crowd: Any) -> tuple[Any, int]:
        """Return the tally of the reports that a crowd makes on average, and how many they are."""
        up_to = np.rint(np.cumsum(crowd @ self.chances))  # so that the sum is exact, too
        counts = np.diff(up_to, prepend=0).astype(np.int64)
        tally = counts if self.tallies is None else np.rint(counts @ self.tallies)
        return tally.astype(np.int64), int(counts.sum())


def law_of(subject: Subject, metric: Metric) -> Law:
    """Return the law of one report of each value of *subject*, as ``randomize`` draws it."""
    mechanism, encoded = metric.mechanism, [metric.encode(value) for value in subject.values]
    if isinstance(mechanism, TextMechanism):
        return _of_strings(mechanism, encoded)
    if isinstance(mechanism, Codebook):
        return _of_vectors(mechanism, encoded)
    drawn: list[Any] = [
        distribution(partial(_randomized, metric, value), UNLIKELY).pmf for value in encoded
    ]
    payloads = sorted(set().union(*drawn))
    chances = [[float(pmf.get(payload, 0)) for payload in payloads] for pmf in drawn]
    return Law(np.array(chances), np.array([mechanism.tally(p, np) for p in payloads]))


def _randomized(metric: Metric, value: Any, fresh: Any) -> bytes:
    """Return a report; what is permanent is drawn anew for each device, so on average as fresh."""
    if metric.policy is None:
        return metric.mechanism.randomize(value, fresh)
    return metric.policy.randomize(value, fresh, fresh)


def _of_strings(mechanism: Any, texts: list[Any]) -> Law:
    """Return the law of prefixes: a fair group, and in it the response over the cell of a text."""
    oracle, groups = mechanism.oracle, mechanism.levels * mechanism.rows
    rows = []
    for text in texts:
        law = []
        for level in range(mechanism.levels):
            for row in range(mechanism.rows):
                cell = mechanism.cell_of(level, row, text)
                near = np.array([oracle.is_orthogonal(p, cell) for p in range(oracle.points)])
                truth = float(mechanism.truth)
                law.append(np.where(near, truth / near.sum(), (1 - truth) / (~near).sum()))
        rows.append(np.concatenate(law) / groups)
    return Law(np.array(rows))


def _of_vectors(mechanism: Any, vectors: list[Any]) -> Law:
    """Return reports whose sums and squares are those that codewords have on average.

    The sums are those that debias to the vector; the squares those of normal codewords, which
    scatter by ``stretch`` more along the vector (the law is that of the module of the mechanism).
    """
    tallies = []
    for vector in vectors:
        parts = np.array(vector) / UNIT
        length = max(float(parts @ parts), 1e-12)
        variance = mechanism.noise / (4 * mechanism.scale**2)
        squares = variance * (1 + mechanism.stretch * parts**2 / length)
        tallies.append(np.concatenate([parts / (2 * mechanism.scale), squares]))
    return Law(np.eye(len(vectors)), np.array(tallies))
