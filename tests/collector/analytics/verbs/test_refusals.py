"""What no verb answers: metrics of another kind, small slices, options that are wrong."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from client_sdk.core.dataclass import replace
from collector.analytics.verb import Slice, load
from collector.core.errors import QueryError
from tests.support.crowds.asking import ask
from tests.support.crowds.boolean_slices import PAGE, SHOWN, exact
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    FUNNEL,
    KEY_VALUE,
    LOCATION,
    NUMBER,
    PAIR,
    RECORD,
    RETENTION,
    SET,
    STRING,
    VECTOR,
)
from tests.support.enumeration.populations import WAVE, category, metric_of, reported, slice_of

Fields = dict[str, str]
CURVES: Final = ("quantile", "cdf", "histogram")
NO_TEXTS: Final = ("mean", "sum", "quantile", "trend", "compare", "map", "funnel", "range", "top_k")
NO_VECTORS: Final = ("mean", "sum", "frequency", "top_k", *CURVES, "variance")
TYPES: Final = {"funnel": "funnel", "retention": "retention", "map": "location"}  # of verbs


@pytest.mark.parametrize(
    ("verb", "kinds"),
    [
        ("compare", [BOOLEAN, CATEGORY, NUMBER]),
        ("crosstab", [PAIR, RECORD]),
        ("frequency", [SET, KEY_VALUE, RECORD]),
        *((verb, [RECORD]) for verb in ("estimate", "top_k", "segments", "compare", "trend")),
        ("funnel", [FUNNEL]),
        ("heavy_hitters", [STRING]),
        ("map", [LOCATION]),
        ("mean", [NUMBER]),
        ("range", [CATEGORY, FUNNEL, WAVE]),
        ("retention", [RETENTION]),
        *((verb, [VECTOR]) for verb in ("vector", "estimate", "segments", "compare", "trend")),
        *((verb, [WAVE]) for verb in (*CURVES, "variance")),
    ],
)
def test_a_verb_takes_the_metrics_that_it_is_for(verb: str, kinds: list[Fields]) -> None:
    assert [load(verb).refusal(metric_of(fields)) for fields in kinds] == [None] * len(kinds)


@pytest.mark.parametrize(
    ("verb", "word", "kinds"),
    [
        ("crosstab", "the type pair", [SET, NUMBER]),
        ("frequency", "histogram", [NUMBER]),
        ("heavy_hitters", "top_k", [CATEGORY]),
        ("key_values", "key_value", [CATEGORY]),
        ("range", "frequency", [SET]),
        ("range", "crosstab", [PAIR, RECORD]),
        ("range", "map", [LOCATION]),
        ("range", "retention", [RETENTION]),
        ("top_k", "quantile", [NUMBER]),
        ("vector", "the type vector", [NUMBER, CATEGORY]),
        *((verb, "ask for vector", [VECTOR]) for verb in NO_VECTORS),
        *((verb, "heavy_hitters", [STRING]) for verb in ("estimate", "frequency")),
        *((verb, "", [STRING]) for verb in NO_TEXTS),
        *((verb, "frequency", [CATEGORY]) for verb in (*CURVES, "mean", "sum", "variance")),
        *((verb, "key_values", [KEY_VALUE]) for verb in ("mean", "sum", "variance", "range")),
        *((verb, 'ask = ["quantiles"]', [NUMBER]) for verb in (*CURVES, "variance", "range")),
        *((verb, f"the type {kind}", [CATEGORY, SET]) for verb, kind in TYPES.items()),
    ],
)
def test_another_metric_is_refused_with_what_would_work(
    verb: str, word: str, kinds: list[Fields]
) -> None:
    """The refusal names a verb, a type or a mechanism."""
    for fields in kinds:
        refusal = load(verb).refusal(metric_of(fields))

        assert refusal is not None
        assert word in refusal


@pytest.mark.parametrize(
    ("verb", "fields", "options"),
    [
        *((verb, WAVE, {}) for verb in (*CURVES, "mean", "sum", "variance", "estimate")),
        ("frequency", CATEGORY, {}),
        ("range", CATEGORY, {"high": "pro"}),
        ("funnel", FUNNEL, {}),
        ("retention", RETENTION, {}),
        ("map", LOCATION, {}),
        ("crosstab", PAIR, {}),
    ],
)
def test_a_slice_that_is_too_small_has_as_many_rows_with_reasons(
    verb: str, fields: Fields, options: dict[str, Any]
) -> None:
    """Its shape is that of a full one; nothing is 0, and no fact tells a rest or an association."""
    metric = metric_of(fields) if fields is WAVE else metric_of(fields, mechanism='"grr"')
    small, full = (
        ask(verb, [slice_of(metric, [held] * metric.mechanism.domain_size)], options=options)
        for held in (2, 5_000)
    )

    assert [row.dimensions for row in small.rows] == [row.dimensions for row in full.rows]
    assert all(row.value is None for row in small.rows)
    assert all("not enough reports" in (row.reason or "") for row in small.rows)
    assert not any(small.facts.get(name) for name in ("unallocated", "association"))


ARMS: Final = [exact({"arm": name}, 0.3, 900) for name in ("old", "new")]
NUMBERS: Final = slice_of(metric_of(WAVE), [500] * 48)
SIZES: Final = slice_of(category("none", "some", "many", "all"), [500] * 4)
SEXES: Final = slice_of(metric_of(PAIR, mechanism='"grr"'), [900] * 6, {"sex": "?"})
KEYS: Final = Slice(metric_of(KEY_VALUE), {}, 3_000, np.array([900, 600] * 3), (0,))
CELLS: Final = metric_of(STRING).mechanism.tally_size
TEXTS: Final = Slice(metric_of(STRING), {}, CELLS, np.ones(CELLS, dtype=np.int64), (0,))
PAGES: Final = Slice(PAGE, {"time": "2026"}, 300, np.array([100, 100, 100]), (0,))

SIDES: Final = [exact({}, 0.5, 500, metric=replace(SHOWN, name=name)) for name in ("over", "under")]
WEEKLY: Final = exact({}, 0.5, 500, metric=replace(SHOWN, name="weekly", every="7d"))
CELLS_OF_PAIR: Final = slice_of(
    replace(metric_of(PAIR, mechanism='"grr"'), name="pair"), [2_000, 1_500, 500, 500, 1_500, 4_000]
)
RECORDS: Final = Slice(
    metric_of(RECORD, min_reports="100"),
    {},
    *reported(metric_of(RECORD), [{"plan": "free", "age": 20, "label": "left"}] * 200, "0")[::-1],
    (0,),
)
WEEK: Final = slice_of(metric_of(WAVE), [500] * 48, {"time": "2026-03-01"})


def answers(*dimensions: str) -> list[Slice]:
    """Return a slice of a boolean that has a value of each of *dimensions*."""
    return [exact(dict.fromkeys(dimensions, "2026"), 0.5, 500)]


@pytest.mark.parametrize(
    ("verb", "slices", "options", "message"),
    [
        ("adoption", answers("time"), {}, "dimensions: must"),
        ("adoption", answers("a", "b"), {}, r"options\.dimension: must"),
        ("compare", answers(), {}, "dimensions: must hold what to compare along"),
        ("compare", answers("os"), {"by": "arm"}, r"options\.by: must be one of .*: os"),
        ("compare", answers("os", "time"), {}, r"options\.by: must be one of"),
        ("compare", answers("os"), {"against": "b"}, r"options\.against: must be a value of os"),
        ("compare", answers("time"), {"against": "last"}, r"options\.against: .* be previous or"),
        ("crosstab", [SIZES], {}, ".*the type pair"),
        ("crosstab", [SEXES], {}, "dimensions: sex"),
        ("heavy_hitters", [TEXTS], {"candidates": ["x" * 8, "x" * 9]}, ".*: must be different"),
        ("key_values", [KEYS], {"keys": ["golf"]}, r"options\.keys\.0: must be one of the 3 keys"),
        ("lift", ARMS, {"control": "none"}, r"options\.control: must .* reports: old, new"),
        ("lift", ARMS, {"dimension": "time"}, r"options\.dimension: must be a dimension asked for"),
        ("lift", ARMS, {"item": "maybe"}, r"options\.item: must be one of"),
        ("quantile", [NUMBERS], {"levels": [0.5, 0.5]}, r"options\.levels"),
        *(
            ("range", [one], {"ranges": [[None, None], ends]}, r"options\.ranges\.1: must")
            for one, ends in (
                *((NUMBERS, ends) for ends in ([20, 10], ["few", 10])),
                *((SIZES, ends) for ends in (["many", "some"], ["few", "many"], [0, 1])),
            )
        ),
        ("ratio", SIDES, {"denominator": "maybe"}, r"options\.denominator: must be one of"),
        (
            "ratio",
            SIDES,
            {"of": "totals", "population": "drawn"},
            r"options\.population: totals",
        ),
        ("ratio", [SIDES[0], WEEKLY], {}, "metrics: must be reported equally often"),
        ("ratio", [WEEKLY, SIZES], {}, r"options\.denominator: must be one of: none, some"),
        ("crosstab", [CELLS_OF_PAIR], {"of": "age"}, r"options\.of: must be one of: sex, income"),
        ("crosstab", [SIZES, CELLS_OF_PAIR], {"of": "m"}, r"options\.of: the two were collected"),
        ("crosstab", [RECORDS], {"of": "answer"}, r"options\.of: must be one of: plan, age, label"),
        ("segments", [PAGES], {}, r"options\.item: must be one of: home, news, shop"),
        (
            "trend",
            answers("time"),
            {"levels": [0.5]},
            r"options\.levels: metric=crashed has no",
        ),
        ("trend", [WEEK], {"levels": [0.5, 0.5]}, r"options\.levels: must be different"),
        ("trend", [WEEK], {"levels": [0.5], "item": "mean"}, ".*without an item"),
        ("trend", [WEEK] * 401, {"levels": [0.5]}, ".*leaves 401 stretches, must be at most 400"),
        ("trend", [PAGES], {"item": "maybe"}, r"options\.item: must be one of: home, news, shop"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_its_place_and_not_repeated(
    verb: str, slices: list[Slice], options: dict[str, Any], message: str
) -> None:
    """With what would work: an item, a value of a dimension, another end."""
    given = {"dimension": "arm", "control": "old", **options} if verb == "lift" else options

    with pytest.raises(QueryError, match=f"^{message}") as caught:
        ask(verb, slices, options=given)
    assert not {"few", "golf", "maybe"} & set(str(caught.value).replace(",", "").split())
