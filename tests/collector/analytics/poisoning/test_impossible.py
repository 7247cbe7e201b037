"""Numbers that no honest devices give are called impossible in the answer itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.analytics.poisoning.findings import BEYOND, SELDOM
from collector.analytics.rows import POOR, Row
from collector.core.catalog import Catalog
from collector.core.cells import Cell
from collector.core.remarks import Code
from collector.estimation.significance import binomial_tail
from collector.query import Answer, plan, read, run
from tests.support.crowds.uploads import NOON, TODAY
from tests.support.device.registries import CATEGORY, NUMBER, file_with
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.known import known
from tests.support.store.memory_storage import MemoryStorage

HONEST, FAKES = 9_500, 500


def metric_of(mechanism: str) -> tuple[Registry, Metric]:
    fields = {**NUMBER, "every": '"1d"', "mechanism": f'"{mechanism}"', "max": "100", "step": "1"}
    registry = Registry.from_text(file_with(fields))
    return registry, registry.metric("m")


def answer(mechanism: str, verb: str, best: bytes | None, middle: int = 40) -> Answer:
    """Ask of honest devices at *middle*, and of fakes that send *best*, if there are any."""
    registry, metric = metric_of(mechanism)
    chance = SeededRandomness(b"honest")
    reports = b"".join(metric.mechanism.randomize(middle, chance) for _ in range(HONEST))
    tally = metric.mechanism.tally(reports + (best or b"") * FAKES, np)
    n = HONEST + FAKES * (best is not None)
    storage = MemoryStorage()
    pairs = [*enumerate([n, *tally.tolist()])]
    storage.put({Cell(metric.digest, TODAY - 2, ""): pairs})
    body = json.dumps({"metrics": ["m"], "verb": verb}).encode()
    return run(plan(read(body), Catalog([registry]), NOON), storage)


def impossible(reply: Answer) -> list[str]:
    return [str(each) for each in reply.meta.warnings if each.code == Code.IMPOSSIBLE]


def largest(mechanism: str) -> bytes:
    """Return the report that stands for most: the greatest number that is valid."""
    made: Any = metric_of(mechanism)[1].mechanism
    count = made.payload_count if hasattr(made, "payload_count") else made.symbols
    return int(count - 1).to_bytes(made.payload_size, "big")


def test_a_mean_far_outside_of_its_range_is_impossible() -> None:
    reply = answer("discrete_laplace", "mean", largest("discrete_laplace"))

    (row,) = reply.rows
    (text,) = impossible(reply)
    assert known(row.value) > 100
    assert "m: impossible for honest devices: the mean of" in text
    assert text.endswith("standard errors above 100; see poisoning")


def test_a_variance_that_its_interval_misses_is_impossible_and_never_good() -> None:
    """Half of the range squared is the most that numbers of a range can vary."""
    attacked = np.zeros(metric_of("square_wave")[1].mechanism.tally_size, dtype=np.int64)
    attacked[[0, -1]] = 5_000  # the two ends and nothing between
    registry, metric = metric_of("square_wave")
    storage = MemoryStorage()
    pairs = [*enumerate([10_000, *attacked.tolist()])]
    storage.put({Cell(metric.digest, TODAY - 2, ""): pairs})
    body = json.dumps({"metrics": ["m"], "verb": "variance"}).encode()

    reply = run(plan(read(body), Catalog([registry]), NOON), storage)

    (row,) = reply.rows
    (text,) = impossible(reply)
    assert known(row.raw) > known(row.ci_high) == known(row.value)
    assert row.quality == POOR
    assert "outside of its own interval, 2500 to 2500" in text


def test_honest_devices_at_an_end_of_the_range_are_possible() -> None:
    for mechanism in ("discrete_laplace", "duchi", "piecewise", "hybrid", "square_wave"):
        for end in (0, 100):
            assert not impossible(answer(mechanism, "mean", None, end))
    for end in (0, 100):
        assert not impossible(answer("square_wave", "variance", None, end))


def share_of(fields: Mapping[str, str], n: int, supports: int) -> tuple[Row, list[str]]:
    """Return what is answered about the first item, of *n* reports, and what is impossible."""
    registry = Registry.from_text(file_with({**CATEGORY, "every": '"1d"', **fields}))
    metric = registry.metric("m")
    tally = np.zeros(metric.mechanism.tally_size, dtype=np.int64)
    tally[:2] = supports, n - supports
    storage = MemoryStorage()
    storage.put({Cell(metric.digest, TODAY - 2, ""): [*enumerate([n, *tally.tolist()])]})
    body = json.dumps({"metrics": ["m"], "verb": "frequency"}).encode()
    reply = run(plan(read(body), Catalog([registry]), NOON), storage)
    name = repr(metric.domain.labels[0])
    return reply.rows[0], [text for text in impossible(reply) if f"share of {name}" in text]


def items(count: int) -> str:
    return json.dumps([f"i{item}" for item in range(count)])


@pytest.mark.parametrize("epsilon", ["8", "10", "12", "16"])
@pytest.mark.parametrize("count", [2, 16, 200])
def test_honest_devices_that_hardly_ever_lie_are_possible(epsilon: str, count: int) -> None:
    """None holds the item, or all: the interval has the truth and the value, and blames no one."""
    fields = {"values": items(count), "epsilon": f'"{epsilon}"', "mechanism": '"grr"'}
    for supports, truth in ((0, 0), (100, 1)):
        row, texts = share_of({**fields, "min_reports": "100"}, 100, supports)

        assert not texts
        assert known(row.ci_low) <= min(truth, known(row.value))
        assert max(truth, known(row.value)) <= known(row.ci_high)


def test_a_share_is_called_impossible_no_more_often_than_is_said() -> None:
    """Exactly: all devices hold one of many items, and few of their reports say so.

    The control takes these few for normal noise.
    """
    fields = {"values": items(200), "epsilon": '"0.5"', "mechanism": '"grr"'}
    metric = Registry.from_text(file_with({**CATEGORY, **fields})).metric("m")
    mechanism: Any = metric.mechanism
    n, p = 1_000, mechanism.chances[0]
    least = round(n * p + BEYOND * (n * p * (1 - p)) ** 0.5) + 1  # by standard errors

    assert binomial_tail(least, n, p) > SELDOM
    for supports in range(least, least + 20):
        _, texts = share_of({**fields, "min_reports": "100"}, n, supports)
        assert bool(texts) == (binomial_tail(supports, n, p) <= SELDOM)
