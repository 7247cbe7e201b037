"""What came under which key, by the rule of small sources, beside an estimate without the worst."""

from __future__ import annotations

import json
from typing import Any

import pytest

from collector.core.cells import Cell, key_source, segment_text
from collector.core.entry import AcceptedColumn
from collector.core.errors import QueryError
from collector.core.remarks import Code
from collector.query import plan, read, run, without_pruned
from collector.query.exclusions import LEAST
from collector.query.sources import SMALL, SourceReports, by_source
from tests.collector.query.test_exclusions import (
    CATALOG,
    DAYS,
    KEYS,
    PLATFORMS,
    columns,
    day,
    exclusion,
    holding,
    many,
)
from tests.support.crowds.uploads import NOON
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.store.memory_storage import MemoryStorage


def few(key: str, epoch: int) -> int:
    return 60 if key in KEYS[:2] else 4 * LEAST


def report(storage: MemoryStorage) -> SourceReports:
    query = {"metrics": ["page"], "date_range": [day(DAYS[0]), day(DAYS[-1])]}
    made = plan(read(json.dumps(query).encode()), CATALOG, NOON)
    return by_source(without_pruned(made, storage), storage)


def test_keys_are_told_with_their_reports_and_their_sum_is_the_whole() -> None:
    found = report(holding(columns(1, many)))

    sizes = {key: len(PLATFORMS) * sum(many(key, epoch) for epoch in DAYS) for key in KEYS}
    assert {name: part.n for name, part in found.by_source.items()} == sizes
    assert list(found.by_source) == sorted(KEYS, key=lambda key: -sizes[key])
    assert found.n == sum(sizes.values())
    assert all(part.tally.sum() == part.n for part in found.by_source.values())


def test_small_keys_are_told_together_and_nothing_finer() -> None:
    found = report(holding(columns(2, few)))

    places = len(PLATFORMS) * len(DAYS)
    sizes = {name: part.n for name, part in found.by_source.items()}
    assert sizes == {KEYS[2]: 4 * LEAST * places, SMALL: 120 * places}


def test_what_is_excluded_is_left_out_and_said() -> None:
    found = report(holding(columns(3, many), exclusion(KEYS[0], DAYS[0], DAYS[-1])))

    assert set(found.by_source) == set(KEYS[1:])
    assert Code.EXCLUDED in [note.code for note in found.notes]


@pytest.mark.parametrize(
    ("part", "said"),
    [(0.1, "needs 10 sources of 500 reports or more, and there are 3"), (0.5, "must be above 0")],
)
def test_a_trimmed_mean_of_too_few_sources_is_refused_with_the_reason(part: Any, said: str) -> None:
    with pytest.raises(QueryError, match=rf"^trim={part}: {said}"):
        report(holding(columns(4, many))).trimmed(part, 0.05)


@pytest.mark.parametrize(("name", "verb", "held"), [("page", "estimate", 2), ("age", "mean", 80)])
def test_a_trimmed_mean_stands_beside_the_answer_in_its_unit(
    name: str, verb: str, held: int
) -> None:
    """Ten keys that hold the same, of a fixed seed: the estimate lies in the other's interval."""
    chance, metric = SeededRandomness(b"ten keys"), CATALOG.metric(name)
    reports = [
        AcceptedColumn(
            Cell(metric.digest, DAYS[0], segment_text(metric, {}, key_source(f"{place:012x}"))),
            b"".join(metric.mechanism.randomize(i % held, chance) for i in range(600)),
        )
        for place in range(10)
    ]
    storage = holding(reports)
    days = [day(DAYS[0]), day(DAYS[-1])]
    query = json.dumps({"metrics": [name], "date_range": days, "verb": verb}).encode()
    made = without_pruned(plan(read(query), CATALOG, NOON), storage)

    found, rows = by_source(made, storage), run(made, storage).rows
    mean = found.trimmed(0.1, 0.05)

    assert (mean.dropped, mean.of) == (1, 10)
    values = {row.item: row.value for row in rows}
    assert set(values) == set(found.names)
    for item, low, high in zip(found.names, mean.low, mean.high, strict=True):
        value = values[item]
        assert value is not None
        assert low < value < high
