"""Exclusions: what is left out of answers, by key and by source, and what is said of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from itertools import chain, combinations
from random import Random
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core.epoch import DAY
from client_sdk.registry.metric import Metric
from collector.analytics.rows import LEFT_OUT, Chart
from collector.analytics.verb import Slice
from collector.core.catalog import Catalog
from collector.core.cells import (
    ATTESTED,
    UNKNOWN,
    Cell,
    key_in,
    key_source,
    segment_text,
    split_source,
)
from collector.core.entry import AcceptedColumn
from collector.core.errors import QueryError, StorageUnavailableError
from collector.core.exclusions import Exclusion, Inclusion, to_json
from collector.core.remarks import Code
from collector.estimation.tally import tally_entries
from collector.query import Answer, plan, read, run, without_pruned
from collector.query.cache import Cache, key_of
from collector.query.exclusions import LEAST, ExclusionFilter, taken_out, together
from collector.query.reader import Reader
from collector.query.reading import slices_of
from collector.query.run import answer as answered
from collector.query.sources import SMALL, SourceReports, by_source
from collector.rendering.charts import chart_of
from collector.rendering.tables import csv_of, lines_of
from tests.support.crowds.uploads import NOON, TODAY, registry
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.store.memory_storage import MemoryStorage

CATALOG: Final = Catalog([registry()])
PAGE: Final = CATALOG.metric("page")
MECHANISMS: Final = {digest: metric.mechanism for digest, metric in CATALOG.by_digest.items()}
DAYS: Final = (TODAY - 3, TODAY - 2, TODAY - 1)
KEYS: Final = ("aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc")
PLATFORMS: Final[tuple[dict[str, str], ...]] = ({"platform": "mac"}, {"platform": "linux"}, {})
DIMENSIONS: Final[tuple[list[str], ...]] = ([], ["platform"], ["time"], ["time", "platform"])


def day(epoch: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=epoch)).isoformat()


def exclusion(name: str, first: int, last: int, **fields: Any) -> Exclusion:
    known: dict[str, Any] = {
        "id": f"{name[:4]}{first}",
        "by": "key",
        "metrics": ("test/page",),
        "author": "ada",
        "because": "2.3 counted twice",
        "at": int(NOON),
    }
    return Exclusion(name=name, first=day(first), last=day(last), **(known | fields))


def columns(seed: int, of: Callable[[str, int], int]) -> list[AcceptedColumn]:
    """Return reports of every key, day and platform: as many as *of* says of a key and a day."""
    chance = Random(seed)
    return [
        AcceptedColumn(
            Cell(PAGE.digest, epoch, segment_text(PAGE, segment, key_source(key))),
            bytes(chance.choices(range(3), k=of(key, epoch))),
        )
        for key in KEYS
        for epoch in DAYS
        for segment in PLATFORMS
        if of(key, epoch)
    ]


def many(key: str, epoch: int) -> int:
    return LEAST + KEYS.index(key) * 20 + epoch % 7


def holding(reports: Iterable[AcceptedColumn], *exclusions: Exclusion) -> MemoryStorage:
    storage = MemoryStorage()
    storage.clock = int(NOON)
    storage.put(tally_entries([list(reports)], MECHANISMS))
    storage.excluded = {each.id: to_json(each) for each in exclusions}
    return storage


def slices(storage: MemoryStorage, **fields: Any) -> list[Slice]:
    query = {"metrics": ["page"], "date_range": [day(DAYS[0]), day(DAYS[-1])], **fields}
    made = without_pruned(plan(read(json.dumps(query).encode()), CATALOG, NOON), storage)
    return slices_of(made, made.readings[0], PAGE, storage)


def integers(read: Iterable[Slice]) -> list[tuple[Any, ...]]:
    return [
        (tuple(part.dimensions.items()), part.n, part.tally.tolist(), part.epochs, part.late,
         dict(part.reports), dict(part.origins), part.refusal)
        for part in read
    ]  # fmt: skip


def answer(storage: MemoryStorage, **fields: Any) -> Answer:
    query = {"metrics": ["page"], "date_range": [day(DAYS[0]), day(DAYS[-1])], **fields}
    return run(plan(read(json.dumps(query).encode()), CATALOG, NOON), storage)


def never_sent(reports: Iterable[AcceptedColumn], key: str, days: Iterable[int]) -> MemoryStorage:
    gone = set(days)
    return holding(
        column
        for column in reports
        if key_in(split_source(column.cell.segment)[0]) != key or column.cell.epoch not in gone
    )


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("filters", [[], [["is", "platform", ["mac"]]]])
@pytest.mark.parametrize("days", [DAYS[:1], DAYS[:2], DAYS])
def test_excluded_is_as_never_sent_integer_for_integer(
    dimensions: list[str], filters: list[Any], days: tuple[int, ...]
) -> None:
    reports = columns(1, many)
    storage = holding(reports, exclusion(KEYS[1], days[0], days[-1]))

    found = slices(storage, dimensions=dimensions, filters=filters)

    expected = slices(never_sent(reports, KEYS[1], days), dimensions=dimensions, filters=filters)
    assert integers(found) == integers(expected)
    assert integers(found) != integers(
        slices(holding(reports), dimensions=dimensions, filters=filters)
    )
    gone = sum(part.excluded for part in found)
    assert gone == sum(len(c.payloads) for c in reports) - sum(p.n for p in found) or filters


def test_exclusions_that_overlap_count_once() -> None:
    reports = columns(2, many)
    alone = holding(reports, exclusion(KEYS[0], DAYS[0], DAYS[2]))
    twice = holding(
        reports,
        exclusion(KEYS[0], DAYS[0], DAYS[1]),
        exclusion(KEYS[0], DAYS[1], DAYS[2], id="another"),
    )

    assert integers(slices(twice)) == integers(slices(alone))
    assert [part.excluded for part in slices(twice)] == [part.excluded for part in slices(alone)]


def test_what_is_excluded_twice_would_be_missed_twice_if_each_were_subtracted() -> None:
    """The planted bug: a sum over exclusions in place of their union."""
    reports = columns(2, many)
    both = (
        exclusion(KEYS[0], DAYS[0], DAYS[1]),
        exclusion(KEYS[0], DAYS[1], DAYS[2], id="another"),
    )
    (whole,) = slices(holding(reports))
    (union,) = slices(holding(reports, *both))

    each = [slices(holding(reports, one))[0] for one in both]
    subtracted = whole.tally - sum(whole.tally - part.tally for part in each)

    assert union.tally.tolist() != subtracted.tolist()
    assert union.n == whole.n - union.excluded


def test_a_fold_that_loses_the_source_leaves_nothing_to_be_taken_out() -> None:
    """The planted bug: tallies under the segment alone, as releases before keys wrote them."""
    reports = columns(2, many)
    lost = [
        column._replace(cell=column.cell._replace(segment=split_source(column.cell.segment)[1]))
        for column in reports
    ]
    gone = exclusion(KEYS[1], DAYS[0], DAYS[2])

    expected = integers(slices(never_sent(reports, KEYS[1], DAYS)))

    assert integers(slices(holding(reports, gone))) == expected
    assert integers(slices(holding(lost, gone))) != expected


def test_what_was_taken_back_counts_again() -> None:
    reports = columns(3, many)
    back = Inclusion(author="bob", because="it was right", at=int(NOON))
    storage = holding(reports, exclusion(KEYS[0], DAYS[0], DAYS[2], included=back))

    assert integers(slices(storage)) == integers(slices(holding(reports)))
    assert LEFT_OUT not in answer(storage).meta.facts


@pytest.mark.parametrize(
    "other",
    [
        {"metrics": ("test/theme",)},
        {"first": "2020-01-01", "last": "2020-01-05"},
        {"by": "version", "name": "2.3"},  # which the metric does not keep apart
    ],
)
def test_an_exclusion_elsewhere_changes_and_says_nothing(other: dict[str, Any]) -> None:
    reports, fields = columns(4, many), {"first": day(DAYS[0]), "last": day(DAYS[0]), **other}
    elsewhere = Exclusion(
        id="x", author="ada", because="why", at=1,
        **{"by": "key", "name": KEYS[0], "metrics": (), **fields},
    )  # fmt: skip

    said = answer(holding(reports, elsewhere))

    assert said == answer(holding(reports))


def test_a_version_goes_as_if_a_filter_had_left_it_out() -> None:
    text = registry().metric("page")
    metric = _with_versions(text)
    reports = [
        AcceptedColumn(
            Cell(metric.digest, epoch, segment_text(metric, {"version": version})), bytes(n)
        )
        for epoch in DAYS
        for version, n in (("2.2", 500), ("2.3", 3))
    ]
    cells = tally_entries([reports], {metric.digest: metric.mechanism})
    gone = exclusion("2.3", DAYS[0], DAYS[1], by="version", metrics=())
    sieve = ExclusionFilter([gone], metric, cells)

    kept = [cell for cell in cells if sieve.passes(cell, _vector(cells[cell]), wanted=True)]

    assert {(cell.epoch, "2.3" in cell.segment) for cell in kept} == {
        *((epoch, False) for epoch in DAYS), (DAYS[2], True)
    }  # fmt: skip
    assert [(n, along) for _, n, along in sieve.left_out] == [(3, False)] * 2


def _with_versions(metric: Metric) -> Metric:
    from client_sdk.core.dataclass import replace

    return replace(metric, segments={"version": ("2.2", "2.3")})


def _vector(pairs: Iterable[tuple[int, int]]) -> bytes:
    return np.array([dict(pairs)[0]], dtype=">i8").tobytes()


COUNTS: Final = st.dictionaries(
    st.sampled_from([*KEYS, "dddddddddddd", None]), st.integers(1, 3 * LEAST), min_size=1
)


@given(COUNTS, st.sets(st.sampled_from(KEYS)), st.sets(st.sampled_from(KEYS)))
def test_no_difference_of_two_answers_tells_of_a_few_reports_whose_they_are(
    counts: Mapping[str | None, int], before: set[str], after: set[str]
) -> None:
    """Of a place: whatever is excluded first and then, what differs is many reports, or all."""
    first, then = taken_out(counts, before), taken_out(counts, after)

    for differing in (first - then, then - first):
        reports = sum(counts[source] for source in differing)
        assert not differing or reports >= LEAST or differing == frozenset(counts)
    assert (before & set(counts)) <= first
    assert taken_out(counts, before | after) == first | then


@given(
    st.lists(
        st.tuples(st.sampled_from([*KEYS, "dddddddddddd", None]), st.integers(1, LEAST)),
        min_size=1,
        max_size=12,
    ),
    st.sets(st.sampled_from(KEYS), min_size=1),
)
def test_what_stays_is_the_same_in_whichever_order_tallies_of_shards_come(
    parts: list[tuple[str | None, int]], keys: set[str]
) -> None:
    counts = Counter[str | None]()
    cells = {
        key: Cell(PAGE.digest, DAYS[0], segment_text(PAGE, {}, key_source(key) if key else UNKNOWN))
        for key, _ in parts
    }
    sieve = ExclusionFilter(
        [exclusion(key, DAYS[0], DAYS[0], id=key) for key in keys], PAGE, cells.values()
    )
    stays = []
    for key, n in parts:
        counts[key] += n
        vector = np.array([n], dtype=">i8").tobytes()
        if sieve.passes(cells[key], vector, wanted=True):
            stays.append((key, n))
    keys_of = {cell: key for key, cell in cells.items()}
    stays += [(keys_of[cell], int.from_bytes(vector, "big")) for cell, vector in sieve.rest()]

    gone = taken_out(counts, keys)
    assert Counter(stays) == Counter((key, n) for key, n in parts if key not in gone)
    assert sum(n for _, n, _ in sieve.left_out) == sum(counts[key] for key in gone)
    assert {keys_of[cell] for cell, _, along in sieve.left_out if along} == gone - keys


@pytest.mark.parametrize(("shards", "keys"), [(200, 2), (4, 2)])
def test_what_waits_is_added_up_over_shards_and_bounded(shards: int, keys: int) -> None:
    """A key of few reports on many shards refuses no question; nor is a report lost by it."""
    width = PAGE.mechanism.tally_size + 1
    names = [Cell(PAGE.digest, DAYS[0], segment_text(PAGE, {}, key_source(key))) for key in KEYS]
    few, *others = names[: keys + 1]
    sieve = ExclusionFilter([exclusion(KEYS[0], DAYS[0], DAYS[0])], PAGE, names, most=6 * width * 8)
    few_and_many = [(few, [1, 1, 0, 0]), *((cell, [7, 0, 3, 4]) for cell in others)]
    total = np.zeros(width, dtype=np.int64)

    for shard in range(shards):
        for cell, counts in few_and_many if shard < 50 else few_and_many[1:]:
            assert not sieve.passes(cell, np.array(counts, dtype=">i8").tobytes(), wanted=True)
    for _, vector in sieve.rest():
        total += np.frombuffer(vector, dtype=">i8")

    gone = sum(n for _, n, _ in sieve.left_out)
    assert total[0] + gone == min(shards, 50) + 7 * keys * shards
    assert total[0] == (0 if shards == 4 else 7 * shards)
    assert total.tolist() == [total[0], 0, 3 * total[0] // 7, 4 * total[0] // 7]


def test_more_than_may_wait_is_refused_and_says_what_to_do() -> None:
    width = PAGE.mechanism.tally_size + 1
    names = [
        Cell(PAGE.digest, epoch, segment_text(PAGE, {}, key_source(key)))
        for epoch in range(TODAY - 20, TODAY)
        for key in KEYS
    ]
    sieve = ExclusionFilter(
        [exclusion(KEYS[0], DAYS[0] - 99, DAYS[2])], PAGE, names, most=6 * width * 8
    )
    with pytest.raises(QueryError, match="excluded in too many of these epochs"):  # noqa: PT012
        for cell in names:
            sieve.passes(cell, bytes(width * 8), wanted=True)


def test_that_bound_fails_where_small_sources_are_not_together() -> None:
    """The control: a rule that takes out what is named, and no more, tells of a few reports."""
    counts: dict[str | None, int] = {KEYS[0]: 1, KEYS[1]: 500}

    assert sum(counts[source] for source in taken_out(counts, [KEYS[0]])) >= LEAST
    assert sum(counts[key] for key in {KEYS[0]} & set(counts)) < LEAST
    assert together(counts) == set(counts)


def _subsets(keys: Iterable[str]) -> Iterable[tuple[str, ...]]:
    names = list(keys)
    return chain.from_iterable(combinations(names, n) for n in range(len(names) + 1))


def test_answers_by_segment_time_and_way_of_coming_keep_the_rule() -> None:
    """Every question of a store with small sources, with every set of exclusions and one more."""
    chance = Random(5)
    reports = [
        AcceptedColumn(
            Cell(PAGE.digest, epoch, segment_text(PAGE, segment, key_source(key) | facts)),
            bytes(chance.choice([1, 30, 99, 100, 250])),
        )
        for key in KEYS
        for epoch in DAYS[:2]
        for segment in PLATFORMS[:2]
        for facts in (frozenset({ATTESTED}), frozenset[str]())
    ]
    places = Counter[tuple[int, str, bool]]()
    for column in reports:
        source, segment = split_source(column.cell.segment)
        places[column.cell.epoch, segment, ATTESTED in source] += len(column.payloads)
    filters = [[], [["is", "@source", [ATTESTED]]], [["is_not", "@source", [ATTESTED]]]]
    for chosen in filters:
        counts = {}
        for keys in _subsets(KEYS):
            gone = [exclusion(key, DAYS[0], DAYS[1], id=key) for key in keys]
            storage = holding(reports, *gone)
            found = slices(storage, filters=chosen, dimensions=["time", "platform"])
            counts[keys] = {tuple(part.dimensions.values()): part.n for part in found}
        for fewer, more in combinations(counts, 2):
            for place in counts[fewer] if set(fewer) < set(more) else ():
                left = counts[more].get(place, 0)
                difference = counts[fewer][place] - left
                assert difference == 0 or difference >= LEAST or left in {0, *places.values()}


EXCLUDING: Final = (Code.EXCLUSION, Code.EXCLUDED)


def test_an_answer_says_what_is_left_out_and_why_in_every_form() -> None:
    storage = holding(columns(6, many), exclusion(KEYS[0], DAYS[0], DAYS[1]))

    said = answer(storage)

    (basis,) = said.meta.metrics
    assert basis.exclusions
    (entry,) = basis.exclusions
    assert (entry.source, entry.because, entry.author) == (
        f"key {KEYS[0]}", "2.3 counted twice", "ada",
    )  # fmt: skip
    assert (entry.first, entry.last, entry.applied) == (day(DAYS[0]), day(DAYS[1]), True)
    assert basis.left_out == sum(many(KEYS[0], epoch) for epoch in DAYS[:2]) * len(PLATFORMS)
    texts = said.meta.facts[LEFT_OUT]
    assert texts == [str(each) for each in said.meta.warnings if each.code in EXCLUDING]
    meta = json.loads(json.dumps({"facts": dict(said.meta.facts)}))
    assert "2.3 counted twice" in csv_of(said.rows, meta["facts"])
    assert "2.3 counted twice" in chart_of(Chart.ROWS, said.rows, "Page", facts=said.meta.facts)


def test_a_count_of_what_is_left_out_has_the_reports_under_earlier_definitions() -> None:
    """Also where nothing of such a definition stays."""
    earlier = Catalog([registry(), registry(epsilon="2.0")])
    old = next(each for each in earlier.definitions(earlier.metric("page")) if each != PAGE)
    assert old.digest != PAGE.digest
    cell = Cell(old.digest, DAYS[0], segment_text(old, {}, key_source(KEYS[0])))
    storage = holding(columns(6, many), exclusion(KEYS[0], DAYS[0], DAYS[0]))
    storage.put({cell: [(0, 300), (1, 300)]})
    query = {"metrics": ["page"], "date_range": [day(DAYS[0])] * 2}

    said = run(plan(read(json.dumps(query).encode()), earlier, NOON), storage)

    assert said.meta.metrics[0].left_out == 300 + many(KEYS[0], DAYS[0]) * len(PLATFORMS)


@pytest.mark.parametrize("dimensions", DIMENSIONS)
def test_what_is_left_out_is_counted_though_no_group_has_a_report_left(
    dimensions: list[str],
) -> None:
    """It was 0 where the question was by groups."""
    everything = [exclusion(key, DAYS[0], DAYS[-1]) for key in KEYS]
    total = sum(many(key, epoch) for key in KEYS for epoch in DAYS) * len(PLATFORMS)

    said = answer(holding(columns(6, many), *everything), dimensions=dimensions)

    assert said.meta.n == 0
    assert said.meta.metrics[0].left_out == total
    assert f"page: {total:,} reports left out by exclusions" in said.meta.facts[LEFT_OUT][-1]


def test_an_answer_does_not_tell_how_few_reports_a_small_key_has() -> None:
    def few(key: str, epoch: int) -> int:
        return 7 if key == KEYS[0] else many(key, epoch)

    said = answer(holding(columns(6, few), exclusion(KEYS[0], DAYS[0], DAYS[1])))

    total = sum(7 + many(KEYS[1], epoch) for epoch in DAYS[:2]) * len(PLATFORMS)
    texts = " ".join(said.meta.facts[LEFT_OUT])
    assert said.meta.metrics[0].left_out == total
    assert f"{total:,} reports left out by exclusions, some of other keys" in texts
    assert f"{total - 42:,}" not in texts
    assert "42 " not in texts


def test_a_version_that_was_asked_for_stays_and_says_that_an_exclusion_exists() -> None:
    reports = columns(7, many)
    storage = holding(reports, exclusion(KEYS[0], DAYS[0], DAYS[0]))
    asked = {"date_range": [day(DAYS[0]), day(DAYS[0])], "version": 0}

    now, before = answer(storage, **asked), answer(holding(reports), **asked)

    assert now.rows == before.rows
    assert now.meta.metrics[0].exclusions
    assert not now.meta.metrics[0].exclusions[0].applied
    assert now.meta.warnings[0].code == Code.EXCLUDED_LATER
    assert answer(storage, date_range=asked["date_range"]).rows != before.rows


def test_a_version_to_which_exclusions_are_applied_would_be_another() -> None:
    """The planted bug: what was published changes."""
    reports = columns(7, many)
    storage = holding(reports, exclusion(KEYS[0], DAYS[0], DAYS[0]))
    query = {"metrics": ["page"], "date_range": [day(DAYS[0])] * 2, "version": 0}
    made = plan(read(json.dumps(query).encode()), CATALOG, NOON)

    published = run(made, holding(reports)).rows

    assert run(made, storage).rows == published
    assert run(replace(made, is_as_folded=False), storage).rows != published


def test_an_answer_that_was_kept_is_not_given_once_something_is_excluded() -> None:
    storage = holding(columns(8, many))
    made = plan(
        read(json.dumps({"metrics": ["page"], "date_range": [day(DAYS[0])] * 2}).encode()),
        CATALOG,
        NOON + 30 * DAY,
    )
    from collector.core.config import RelayTerms

    keys = set()
    for excluded in ({}, {"x": to_json(exclusion(KEYS[0], DAYS[0], DAYS[0]))}):
        storage.excluded = excluded
        keys.add(key_of(without_pruned(made, storage), "json", "memory.0", RelayTerms()))

    assert len(keys) == 2
    assert None not in keys


def test_the_panels_of_a_page_share_what_was_read_and_leave_out_the_same() -> None:
    reports = columns(9, many)
    storage = holding(reports, exclusion(KEYS[2], DAYS[0], DAYS[2]))
    page = Reader(storage, answers=Cache())
    query = {"metrics": ["page"], "date_range": [day(DAYS[0]), day(DAYS[-1])]}
    made = plan(read(json.dumps(query).encode()), CATALOG, NOON)

    assert answered(made, page) == answered(made, page) == run(made, storage)


def test_an_exclusion_that_cannot_be_read_stops_answers() -> None:
    """What it leaves out is not known, so no number would be right."""
    storage = holding(columns(10, many))
    storage.excluded = {"x": b'{"of": "a newer release"}'}

    with pytest.raises(StorageUnavailableError, match="an exclusion cannot be read"):
        answer(storage)


def test_an_answer_in_text_lists_the_exclusion() -> None:
    import msgspec

    said = answer(holding(columns(11, many), exclusion(KEYS[0], DAYS[0], DAYS[0])))

    text = "\n".join(lines_of("Page", said.rows, msgspec.to_builtins(said.meta)))

    assert f"reports of key {KEYS[0]} of {day(DAYS[0])} are left out: 2.3 counted twice" in text


def by_day(counts: Mapping[str, list[int]], *exclusions: Exclusion) -> list[str]:
    """Return what is called sudden of days with these reports of each key."""
    first = TODAY - len(next(iter(counts.values())))
    reports = [
        AcceptedColumn(
            Cell(PAGE.digest, first + place, segment_text(PAGE, {}, key_source(key))),
            bytes(range(3)) * (n // 3),
        )
        for key, days in counts.items()
        for place, n in enumerate(days)
    ]
    days = [day(first), day(TODAY - 1)]
    said = answer(holding(reports, *exclusions), date_range=days, dimensions=["time"])
    return [str(each) for each in said.meta.warnings if each.code == Code.CHANGED_SUDDENLY]


def test_days_of_which_something_is_left_out_make_the_others_no_sudden_change() -> None:
    """The planted bug: 7,500 reports a day after days of 6,000, because an operator took 1,500."""
    counts = {KEYS[0]: [1_500] * 12, KEYS[1]: [6_000] * 12}
    gone = exclusion(KEYS[0], TODAY - 12, TODAY - 4)

    assert by_day(counts, gone) == by_day(counts) == []


@pytest.mark.parametrize("last", [TODAY - 8, TODAY - 1])
def test_a_sudden_change_among_whole_days_or_among_their_like_is_still_called_so(last: int) -> None:
    counts = {KEYS[0]: [1_500] * 12, KEYS[1]: [*[6_000] * 11, 9_000]}

    (text,) = by_day(counts, exclusion(KEYS[0], TODAY - 12, last))

    assert day(TODAY - 1) in text


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
