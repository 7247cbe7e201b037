"""A question about a key takes what an exclusion of it would take out, and nothing finer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.core.cells import UNKNOWN, Cell, key_in, key_source, segment_text, split_source
from collector.query import plan, read
from collector.query.cache import Cache
from collector.query.exclusions import LEAST, KeyFilter, Selection, taken_out
from collector.query.reader import Reader
from collector.query.reading import slices_of, without_pruned
from tests.collector.query.test_exclusions import (
    CATALOG,
    DAYS,
    DIMENSIONS,
    KEYS,
    PAGE,
    answer,
    columns,
    day,
    exclusion,
    holding,
    integers,
    many,
    never_sent,
    slices,
)
from tests.support.crowds.uploads import NOON

UNKNOWN_KEY: Final = "0123456789ab"


def of_keys(kind: str, *keys: str) -> list[Any]:
    return [kind, "@source", [f"key:{key}" for key in keys]]


def few(key: str, epoch: int) -> int:
    return {KEYS[0]: 7, KEYS[1]: 40}.get(key, many(key, epoch))


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("kind", ["is", "is_not"])
def test_a_key_of_many_reports_is_asked_about_as_if_others_or_it_had_never_sent(
    dimensions: list[str], kind: str
) -> None:
    reports = columns(1, many)
    others = KEYS[1:] if kind == "is" else KEYS[:1]
    kept = [c for c in reports if key_in(split_source(c.cell.segment)[0]) not in others]

    found = slices(holding(reports), dimensions=dimensions, filters=[of_keys(kind, KEYS[0])])

    assert integers(found) == integers(slices(holding(kept), dimensions=dimensions))


@pytest.mark.parametrize("of", [many, few])
@pytest.mark.parametrize("dimensions", DIMENSIONS)
def test_a_question_without_a_key_is_that_after_its_exclusion(of: Any, dimensions: Any) -> None:
    reports = columns(2, of)
    excluded = holding(reports, exclusion(KEYS[0], DAYS[0], DAYS[-1]))

    found = slices(holding(reports), dimensions=dimensions, filters=[of_keys("is_not", KEYS[0])])

    assert integers(found) == integers(slices(excluded, dimensions=dimensions))


@pytest.mark.parametrize("of", [many, few])
def test_what_a_key_and_all_but_it_give_is_the_whole(of: Any) -> None:
    storage = holding(columns(3, of))

    (own,) = slices(storage, filters=[of_keys("is", KEYS[0])])
    (rest,) = slices(storage, filters=[of_keys("is_not", KEYS[0])])
    (whole,) = slices(storage)

    assert (own.n + rest.n, (own.tally + rest.tally).tolist()) == (whole.n, whole.tally.tolist())
    assert own.n >= LEAST
    assert (rest.n > 0) == (of is many)


def test_an_excluded_key_is_not_asked_about_either() -> None:
    reports = columns(4, many)
    storage = holding(reports, exclusion(KEYS[0], DAYS[0], DAYS[0]))

    found = slices(storage, filters=[of_keys("is", *KEYS[:2])])

    expected = slices(
        holding([c for c in reports if key_in(split_source(c.cell.segment)[0]) != KEYS[2]])
    )
    gone = never_sent(reports, KEYS[0], DAYS[:1])
    assert integers(found) == integers(slices(gone, filters=[of_keys("is", *KEYS[:2])]))
    assert sum(part.excluded for part in found) == expected[0].n - found[0].n > 0


def test_a_key_without_reports_has_no_answer_and_not_nothing() -> None:
    said = answer(holding(columns(5, many)), filters=[of_keys("is", UNKNOWN_KEY)])

    assert [(row.value, (row.reason or "")[:18]) for row in said.rows] == [
        (None, "not enough reports")
    ] * len(said.rows)
    assert slices(
        holding(columns(5, many)), filters=[of_keys("is", UNKNOWN_KEY)], dimensions=["time"]
    ) == []  # fmt: skip


def test_an_answer_about_keys_says_what_it_leaves_out() -> None:
    storage = holding(columns(6, many))

    own, rest = (
        [remark.text for remark in answer(storage, filters=[keys]).meta.warnings]
        for keys in (of_keys("is", KEYS[0]), of_keys("is_not", *KEYS[:2]))
    )

    rule = "keys with fewer than 100 reports go together"
    assert any(f"did not come under key {KEYS[0]} are left out" in text for text in own)
    assert any(f"did come under key {KEYS[0]} or key {KEYS[1]}" in text for text in rest)
    assert all(any(rule in text for text in texts) for texts in (own, rest))


COUNTS: Final = st.dictionaries(
    st.sampled_from([*KEYS, "dddddddddddd", None]), st.integers(1, 3 * LEAST), min_size=1
)
SOME: Final = st.frozensets(st.sampled_from([*KEYS, UNKNOWN_KEY]), max_size=3)
QUESTIONS: Final = st.tuples(st.lists(st.builds(Selection, SOME, st.booleans()), max_size=2), SOME)


def sources_in(counts: Mapping[str | None, int], selections: Any, gone: Any) -> frozenset[Any]:
    """Return the sources of a place of which the answer has the reports."""
    cells = {
        key: Cell(PAGE.digest, DAYS[0], segment_text(PAGE, {}, key_source(key) if key else UNKNOWN))
        for key in counts
    }
    excluded = [exclusion(key, DAYS[0], DAYS[0], id=key) for key in gone]
    sieve = KeyFilter(excluded, PAGE, cells.values(), selections)
    taken = [
        key
        for key, cell in cells.items()
        if sieve.passes(cell, counts[key].to_bytes(8, "big"), wanted=True)
    ]
    rest = [cell for cell, _ in sieve.rest()]
    left_out = [cell for cell, _, _ in sieve.left_out]
    assert not set(rest) & set(left_out)
    return frozenset([*taken, *(key for key, cell in cells.items() if cell in rest)])


@given(COUNTS, QUESTIONS, QUESTIONS)
def test_no_two_questions_about_keys_tell_of_a_few_reports_whose_they_are(
    counts: Mapping[str | None, int], first: Any, then: Any
) -> None:
    """Of a place: whatever is asked and excluded, what differs is many reports, or all."""
    one, other = sources_in(counts, *first), sources_in(counts, *then)

    for differing in (one, one - other, other - one):
        reports = sum(counts[source] for source in differing)
        assert not differing or reports >= LEAST or differing == frozenset(counts)


def test_that_bound_fails_where_a_filter_takes_just_what_it_names() -> None:
    """The control, and the planted bug."""
    counts: dict[str | None, int] = {KEYS[0]: 1, KEYS[1]: 500, KEYS[2]: 700}
    own = [Selection(frozenset(KEYS[:1]), is_wanted=True)]

    assert sources_in(counts, own, ()) == frozenset(KEYS[:2])
    assert counts[KEYS[0]] < LEAST


@given(COUNTS, SOME)
def test_what_a_question_takes_is_what_the_exclusion_would(
    counts: Mapping[str | None, int], keys: frozenset[str]
) -> None:
    assert sources_in(counts, [Selection(keys, is_wanted=True)], ()) == taken_out(counts, keys)
    assert sources_in(counts, [Selection(keys, is_wanted=False)], ()) == sources_in(
        counts, [], keys
    )


def test_the_panels_of_a_page_do_not_share_what_was_read_of_other_keys() -> None:
    page = Reader(holding(columns(9, many)), answers=Cache())
    found = []
    for key in KEYS[:2]:
        days, filters = [day(DAYS[0]), day(DAYS[-1])], [of_keys("is", key)]
        query = {"metrics": ["page"], "date_range": days, "filters": filters}
        made = without_pruned(plan(read(json.dumps(query).encode()), CATALOG, NOON), page)
        shared = page.slices(made, made.readings[0], PAGE)
        assert integers(shared) == integers(slices_of(made, made.readings[0], PAGE, page))
        found.append(shared[0].n)

    assert found[0] != found[1]
