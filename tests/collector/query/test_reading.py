"""Slices add up what is stored, and no report is missing from an answer."""

from __future__ import annotations

import json
from itertools import product
from random import Random
from typing import Any

import msgspec
import pytest

from collector.analytics.rows import ALL
from collector.analytics.verb import NOT_SAID, OTHER, Origin, merged
from collector.core.catalog import Catalog
from collector.core.cells import ATTESTED, FACTS, RELAYED, UNKNOWN, Cell, segment_text
from collector.core.errors import QueryError
from collector.core.remarks import Code, remark
from collector.query import Answer, plan, read, run
from collector.query.basis import Sources
from collector.query.reading import slices_of
from collector.rendering.tables import lines_of
from tests.support.crowds.uploads import NOON, TODAY, registry
from tests.support.store.memory_storage import MemoryStorage

LEAST = 150
CATALOG = Catalog([registry(min_reports=LEAST)])
PAGE = CATALOG.metric("page")
PLATFORMS = ("linux", "mac", "")  # "" is a device that did not say
FILTERS: tuple[list[Any], ...] = (
    [],
    [["is", "platform", ["linux"]]],
    [["is", "platform", ["mac"]]],
    [["is_not", "platform", ["mac"]]],
    [["is", "platform", ["linux", "mac"]]],
)
DIMENSIONS: tuple[list[str], ...] = ([], ["platform"], ["time"], ["time:week", "platform"])


def stored(counts: dict[tuple[int, str], int]) -> MemoryStorage:
    storage = MemoryStorage()
    for (epoch, platform), n in counts.items():
        if not n:
            continue
        segment = segment_text(PAGE, {"platform": platform} if platform else {})
        storage.put({Cell(PAGE.digest, epoch, segment): [(0, n), (1, n)]})
    return storage


def asked(storage: MemoryStorage, **fields: Any) -> list[Any]:
    made = plan(read(json.dumps({"metrics": ["page"], **fields}).encode()), CATALOG, NOON)
    return slices_of(made, made.readings[0], PAGE, storage)


def answered(storage: MemoryStorage, **fields: Any) -> Answer:
    made = plan(read(json.dumps({"metrics": ["page"], **fields}).encode()), CATALOG, NOON)
    return run(made, storage)


def test_groups_stand_in_the_order_of_time_and_vocabulary() -> None:
    storage = stored({(TODAY - day, platform): 200 for day in (0, 1) for platform in PLATFORMS})

    found = asked(storage, dimensions=["time", "platform"])

    assert [one.dimensions["platform"] for one in found] == ["linux", "mac", NOT_SAID] * 2
    assert [one.n for one in found] == [200] * 6
    assert len({one.dimensions["time"] for one in found}) == 2


def test_stretches_of_time_hold_whole_epochs() -> None:
    storage = stored({(TODAY - day, "mac"): 100 + day for day in range(20)})

    found = asked(storage, dimensions=["time:week"])

    assert sum(one.n for one in found) == sum(100 + day for day in range(20))
    assert all(one.epochs[-1] - one.epochs[0] < 7 for one in found)


def test_a_group_without_reports_is_left_out_but_the_whole_never_is() -> None:
    assert asked(MemoryStorage(), dimensions=["platform"]) == []
    (whole,) = asked(MemoryStorage())
    assert whole.n == 0
    assert whole.refusal is not None
    assert whole.refusal.text.startswith(f"not enough reports: 0 of at least {LEAST} needed")


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.whole) for seed in range(8, 40))]
)
def test_every_report_is_in_every_answer(seed: int) -> None:
    """Whatever is asked: the reports of all rows are those that the filters take."""
    random = Random(seed)
    counts = {
        (TODAY - day, platform): random.choice((0, 1, 40, 99, 100, 150, 400))
        for day in range(4)
        for platform in PLATFORMS
    }
    storage = stored(counts)
    for filters, dimensions in product(FILTERS, DIMENSIONS):
        for verb, options in (("estimate", {}), ("trend", {"item": "home"}), ("actives", {})):
            fields = {"verb": verb, "options": options, "dimensions": dimensions}
            found = answered(storage, filters=filters, **fields)
            rows = [row for row in found.rows if row.item in ("", "home")]
            rows = [row for row in rows if row.dimensions.get("time") != ALL]
            taken = sum(n for (_, name), n in counts.items() if in_filter(filters, name))
            assert sum(row.n for row in rows) == taken
            assert found.meta.n == taken


@pytest.mark.parametrize("verb", ["estimate", "segments", "top_k", "frequency"])
def test_small_groups_are_told_together(verb: str) -> None:
    """What is in the row together is what no other row has."""
    storage = stored({(TODAY, "linux"): 900, (TODAY, "mac"): 80, (TODAY, ""): 90})
    options = {"item": "home"} if verb == "segments" else {}

    found = answered(storage, verb=verb, dimensions=["platform"], options=options)

    homes = {row.dimensions["platform"]: row for row in found.rows if row.item == "home"}
    assert list(homes) == ["linux", OTHER]
    assert (homes[OTHER].n, homes[OTHER].reason) == (170, None)
    assert "page: (other) is 2 groups with fewer than 150 reports each, together" in map(
        str, found.meta.warnings
    )


def test_a_group_that_is_small_alone_keeps_its_name_and_says_why_it_has_no_number() -> None:
    storage = stored({(TODAY, "linux"): 900, (TODAY, "mac"): 800, (TODAY, ""): 3})

    found = answered(storage, dimensions=["platform"])

    (row,) = [row for row in found.rows if row.n == 3 and row.item == "home"]
    assert row.dimensions["platform"] == NOT_SAID
    assert (row.reason or "").startswith("not enough reports: 3 of at least 150 needed")


def test_the_row_together_is_of_the_same_groups_in_every_stretch_of_time() -> None:
    """A group that has a number on some day keeps its own row on all days."""
    days = {(TODAY - 1, "linux"): 900, (TODAY - 1, "mac"): 20, (TODAY - 1, ""): 140}
    storage = stored({**days, (TODAY, "linux"): 20, (TODAY, "mac"): 900, (TODAY, ""): 140})

    found = answered(storage, dimensions=["time", "platform"])

    sizes = [(row.dimensions["platform"], row.n) for row in found.rows if row.item == "home"]
    assert sizes == [
        *[("linux", 900), ("mac", 20), (NOT_SAID, 140)],
        *[("linux", 20), ("mac", 900), (NOT_SAID, 140)],
    ]


def test_withheld_groups_say_how_far_a_total_of_the_others_can_be_off() -> None:
    """No row together, and 170 of 1070 reports are 15.9 %."""
    storage = stored({(TODAY, "linux"): 900, (TODAY, "mac"): 80, (TODAY, ""): 90})

    found = answered(storage, dimensions=["platform"], small_cells="withhold")

    assert {row.dimensions["platform"] for row in found.rows} == {"linux", "mac", NOT_SAID}
    assert [row.n for row in found.rows if row.value is None and row.item == "home"] == [80, 90]
    assert (
        "page: 170 of 1,070 reports are in groups with fewer than 150, which have no number; "
        "a total of the other rows is off by at most 15.9 points" in map(str, found.meta.warnings)
    )


def test_the_rest_of_a_comparison_holds_every_other_report() -> None:
    storage = stored({(TODAY, "linux"): 900, (TODAY, "mac"): 800, (TODAY, ""): 3})

    found = answered(storage, verb="compare", dimensions=["platform"], options={"item": "home"})

    assert [row.n for row in found.rows if row.value is not None] == [1_703, 1_703]


def in_filter(filters: list[Any], name: str) -> bool:
    """Return whether filters take devices of platform *name*, "" of those that did not say."""
    return all(name != "" and (name in values) == (kind == "is") for kind, _, values in filters)


def test_a_whole_answer_says_what_it_rests_on() -> None:
    storage = stored({(TODAY, "linux"): 900})
    made = plan(read(b'{"metrics":["page"],"include":["total_rows"]}'), CATALOG, NOON)

    meta = run(made, storage).meta

    assert (meta.n, meta.total_rows, meta.intervals) == (900, 3, "pointwise")
    assert meta.query.verb == "estimate"
    assert meta.warnings[0] == remark(Code.IN_PROGRESS, "page")


RELAY, BOTH = frozenset({RELAYED}), frozenset({RELAYED, ATTESTED})


def mixed() -> MemoryStorage:
    """Reports of two days, on one platform and on none, of three sources."""
    storage = MemoryStorage()
    for day, platform, source, n in (
        (0, "mac", UNKNOWN, 100),
        (0, "mac", RELAY, 200),
        (0, "mac", BOTH, 30),
        (1, "mac", RELAY, 7),
        (1, "", RELAY, 5),
    ):
        segment = segment_text(PAGE, {"platform": platform} if platform else {}, source)
        storage.put({Cell(PAGE.digest, TODAY - day, segment): [(0, n), (1, n)]})
    return storage


def test_a_slice_tells_how_many_reports_of_each_source_epoch_and_segment_it_holds() -> None:
    (part,) = asked(mixed(), filters=[["is", "platform", ["mac"]]])
    mac = segment_text(PAGE, {"platform": "mac"})

    assert part.origins == {
        Origin(RELAY, TODAY, mac): 200,
        Origin(BOTH, TODAY, mac): 30,
        Origin(RELAY, TODAY - 1, mac): 7,
    }


def test_groups_that_are_told_together_keep_their_origins() -> None:
    parts = asked(mixed(), dimensions=["time", "platform"])

    together = merged(parts, {})

    assert together.origins == asked(mixed())[0].origins


def test_an_answer_tells_how_reports_came_where_it_is_known() -> None:
    (basis,) = answered(mixed()).meta.metrics

    assert basis.sources == Sources(relayed=242, attested=30, of=342)
    assert basis.n == 342


def test_an_answer_about_unknown_sources_is_that_of_a_release_without_sources() -> None:
    (basis,) = answered(stored({(TODAY, "mac"): 200})).meta.metrics

    assert b"sources" not in msgspec.json.encode(basis)


def test_every_fact_has_a_number_in_an_answer() -> None:
    assert Sources.__struct_fields__ == (*FACTS, "of")


def test_an_answer_in_text_tells_how_reports_came() -> None:
    answer = answered(mixed())

    text = "\n".join(lines_of("Page", answer.rows, msgspec.to_builtins(answer.meta)))

    assert "page: of 342 reports, 242 relayed, 30 attested" in text
    assert "relayed" not in "\n".join(
        lines_of("Page", answer.rows, msgspec.to_builtins(answered(stored({})).meta))
    )


@pytest.mark.parametrize(
    ("filters", "n"),
    [
        ([], 342),
        ([["is", "@source", ["attested"]]], 30),
        ([["is", "@source", ["relayed"]]], 242),
        ([["is_not", "@source", ["relayed"]]], 100),
        ([["is", "@source", ["relayed"]], ["is_not", "@source", ["attested"]]], 212),
        ([["is", "@source", ["relayed", "attested"]]], 242),
        ([["is", "@source", ["relayed"]], ["is", "platform", ["mac"]]], 237),
    ],
)
def test_a_filter_of_sources_takes_the_reports_that_have_the_facts(
    filters: list[Any], n: int
) -> None:
    (part,) = asked(mixed(), filters=filters)

    assert (part.n, part.tally.tolist()) == (n, [n, 0, 0])


def test_an_answer_about_some_sources_says_what_it_leaves_out() -> None:
    taken = answered(mixed(), filters=[["is", "@source", ["relayed"]]]).meta
    left_out = answered(mixed(), filters=[["is_not", "@source", ["relayed", "attested"]]]).meta

    assert "reports that are not relayed are left out, as asked" in map(str, taken.warnings)
    assert "reports that are relayed or attested are left out, as asked" in map(
        str, left_out.warnings
    )
    assert (taken.n, left_out.n) == (242, 100)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        *(
            ([value], r"^filters\.0: @source has the values relayed, attested, or key: and the id")
            for value in ("anonymous", "key:", "key:0123", "key:ABCDEFABCDEF")
        ),
        (["attested", "key:aaaaaaaaaaaa"], "take keys by a filter of their own$"),
    ],
)
def test_a_filter_of_no_facts_is_refused_with_those_that_there_are(
    values: list[str], rule: str
) -> None:
    with pytest.raises(QueryError, match=rule):
        asked(mixed(), filters=[["is", "@source", values]])
