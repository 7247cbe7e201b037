"""What scikit-learn is given of the rows of a benchmark; its learners are not run here."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.learn_peers import flags, places
from client_sdk.registry import Registry
from tests.support.device.registries import HEAD, RECORD, table


def test_the_values_of_a_record_are_numbers_from_0_without_the_label() -> None:
    metric = Registry.from_text(HEAD + table("m", RECORD)).metric("m")
    domain: Any = metric.domain
    rows = [("free", 20, "left"), ("free", 20, "stayed"), ("team", 60, "left"), ("pro", 40, "left")]
    records = [metric.encode(dict(zip(("plan", "age", "label"), row, strict=True))) for row in rows]

    columns = places(records, domain.firsts[:-1], domain.outcome.size)

    assert columns.tolist() == [[0, 0], [0, 0], [2, 2], [1, 1]]


def test_each_value_of_each_attribute_has_a_flag() -> None:
    rows = flags(np.array([[0, 1], [2, 0]]), [3, 2])

    assert rows.tolist() == [[1, 0, 0, 0, 1], [0, 0, 1, 1, 0]]
