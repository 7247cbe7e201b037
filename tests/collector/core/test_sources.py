"""How a report came is a part of its tally's address, and of nothing else."""

from __future__ import annotations

import json
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.registry.metric import Metric
from collector.core.cells import (
    ATTESTED,
    FACTS,
    RELAYED,
    UNKNOWN,
    Cell,
    key_in,
    key_source,
    matches,
    segment_text,
    split_source,
)
from collector.core.entry import ENTRY_VERSION, AcceptedColumn, decode, encode
from collector.storage.keys import Keys
from tests.support.crowds.uploads import registry

PAGE = registry().metric("page")  # has the dimension platform
AGE = registry().metric("age")  # has none
SOURCES = [
    frozenset(facts) for facts in chain(*(combinations(FACTS, n) for n in range(len(FACTS) + 1)))
]
KEY_SOURCE = key_source("1f2e3d4c5b6a")
SOURCES += [source | KEY_SOURCE for source in SOURCES]
SEGMENTS: list[dict[str, str]] = [{}, {"platform": "mac"}, {"platform": "linux"}]
KNOWN = [source for source in SOURCES if source]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("segment", SEGMENTS)
@pytest.mark.parametrize("metric", [PAGE, AGE])
def test_a_text_gives_back_its_source_and_the_text_without_it(
    metric: Metric, segment: dict[str, str], source: frozenset[str]
) -> None:
    text = segment_text(metric, segment, source)

    assert split_source(text) == (source, segment_text(metric, segment))


def test_a_source_names_its_key_or_none() -> None:
    assert key_in(KEY_SOURCE | {RELAYED}) == "1f2e3d4c5b6a"
    assert key_in(frozenset({RELAYED, ATTESTED})) is key_in(UNKNOWN) is None


def test_every_source_has_tallies_of_its_own() -> None:
    texts = {segment_text(PAGE, segment, source) for segment in SEGMENTS for source in SOURCES}

    assert len(texts) == len(SEGMENTS) * len(SOURCES)


def test_an_unknown_source_leaves_the_text_as_releases_without_sources_wrote_it() -> None:
    assert segment_text(AGE, {}, UNKNOWN) == ""
    assert segment_text(PAGE, {"platform": "mac"}, UNKNOWN) == '{"platform":"mac"}'


@given(st.text(max_size=60))
def test_a_text_that_names_no_source_is_returned_as_it_is(text: str) -> None:
    assert split_source(text) == (UNKNOWN, text) or text.startswith('{"@source":')


@pytest.mark.parametrize("source", KNOWN)
def test_a_reader_that_knows_no_sources_sees_the_same_segment(source: frozenset[str]) -> None:
    """What the release before did with a text: JSON, and the value of each dimension asked for."""
    text = segment_text(PAGE, {"platform": "mac"}, source)

    assert json.loads(text)["platform"] == "mac"
    assert matches(text, {"platform": "mac"})
    assert not matches(text, {"platform": "linux"})
    assert matches(segment_text(AGE, {}, source), {})


def test_no_segment_of_a_device_can_name_a_source() -> None:
    """A segment's text holds declared dimensions only, and no registry can declare this one."""
    forged = {"@source": "relayed", "platform": "mac"}

    assert segment_text(PAGE, forged) == segment_text(PAGE, {"platform": "mac"})


@pytest.mark.parametrize("source", KNOWN)
def test_an_entry_and_a_key_give_back_the_source(source: frozenset[str]) -> None:
    cell = Cell(PAGE.digest, 7, segment_text(PAGE, {"platform": "mac"}, source), 3)
    keys = Keys("hearsay", 4)

    (column,) = decode(encode([AcceptedColumn(cell._replace(lateness=0), b"\1")]))

    assert split_source(column.cell.segment)[0] == source
    assert keys.place_of(keys.tally(2, cell)) == (2, cell)


def test_entries_have_the_form_that_every_worker_reads() -> None:
    """A worker of the release before folds what a web process of this one has queued."""
    text = segment_text(AGE, {}, frozenset({ATTESTED, RELAYED}))

    assert encode([AcceptedColumn(Cell(AGE.digest, 7, text), b"")])[0] == ENTRY_VERSION == 1
