"""A stream entry comes back as it was written or not at all, with its cell and segment."""

from __future__ import annotations

import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.core.cells import Cell, is_declared, matches, segment_text
from collector.core.entry import ENTRY_VERSION, AcceptedColumn, decode, encode
from collector.core.errors import CorruptEntryError
from tests.support.crowds.uploads import registry, registry_text

CELL = Cell(b"\x01\x02\x03\x04\x05\x06", 20_000, "platform=mac")
ENTRY = encode([AcceptedColumn(CELL, b"payloads"), AcceptedColumn(CELL, b"")])

cells = st.builds(
    Cell,
    st.binary(min_size=6, max_size=6),
    st.integers(-(2**63), 2**63 - 1),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.just(0),  # the class is that of the fold; an entry does not know it
)
columns = st.lists(st.builds(AcceptedColumn, cells, st.binary(max_size=200)), max_size=8)


def framed(body: bytes) -> bytes:
    return bytes([ENTRY_VERSION]) + zlib.crc32(body).to_bytes(4, "big") + body


@given(columns)
def test_decode_undoes_encode(written: list[AcceptedColumn]) -> None:
    assert decode(encode(written)) == written


@given(st.integers(0, 8 * len(ENTRY) - 1))
def test_a_flipped_bit_is_found_wherever_it_is(place: int) -> None:
    flipped = bytearray(ENTRY)
    flipped[place // 8] ^= 1 << place % 8

    with pytest.raises(CorruptEntryError):
        decode(bytes(flipped))


@pytest.mark.parametrize("size", range(len(ENTRY)))
def test_a_truncated_entry_is_found_wherever_it_ends(size: int) -> None:
    with pytest.raises(CorruptEntryError):
        decode(ENTRY[:size])


@given(st.binary(max_size=60))
def test_bytes_that_are_no_entry_are_refused(noise: bytes) -> None:
    with pytest.raises(CorruptEntryError):
        decode(noise)


@pytest.mark.parametrize(
    "rows",
    [
        {"a": 1},
        [1],
        [[b"123456", 1, "segment"]],
        [[b"12345", 1, "segment", b"x"]],
        [[b"1234567", 1, "segment", b"x"]],
        [[b"123456", "1", "segment", b"x"]],
        [[b"123456", 1.5, "segment", b"x"]],
        [[b"123456", 1, b"segment", b"x"]],
        [[b"123456", 1, "segment", "x"]],
        [[b"123456", 1, "segment", b"x", None]],
    ],
)
def test_a_whole_entry_of_another_form_is_refused(rows: object) -> None:
    with pytest.raises(CorruptEntryError, match=r"entry\."):
        decode(framed(msgspec.msgpack.encode(rows)))


def test_an_error_never_shows_what_an_entry_holds() -> None:
    with pytest.raises(CorruptEntryError) as caught:
        decode(framed(msgspec.msgpack.encode(["canary"])))

    assert "canary" not in str(caught.value)


def test_the_layout_is_version_checksum_body() -> None:
    body = msgspec.msgpack.encode([[b"123456", 7, "s", b"xy"]])

    assert decode(framed(body)) == [AcceptedColumn(Cell(b"123456", 7, "s"), b"xy")]


REGISTRY = registry()
PAGE = REGISTRY.metric("page")  # has the dimension platform
AGE = REGISTRY.metric("age")  # has none


@pytest.mark.parametrize(
    ("segment", "declared"),
    [
        *(({}, True), ({"platform": "mac"}, True)),
        ({"platform": "linux", "channel": "beta"}, True),  # the metric keeps no channels apart
        ({"platform": "mac", "colour": "unheard of"}, True),
        *(({"platform": "amiga"}, False), ({"platform": ""}, False)),
        ({"platform": "amiga", "channel": "beta"}, False),
    ],
)
def test_a_segment_is_declared_if_all_that_is_kept_apart_is(
    segment: dict[str, str], declared: bool
) -> None:
    assert is_declared(segment, PAGE) is declared


@pytest.mark.parametrize(
    ("metric", "segment", "of_mac"),
    [
        (PAGE, {"platform": "mac"}, True),
        (PAGE, {"platform": "mac", "channel": "beta"}, True),  # which leaves no trace
        (PAGE, {"platform": "linux"}, False),
        (PAGE, {}, False),  # a device that did not say has a tally of its own
        (AGE, {"platform": "mac"}, False),  # a metric without dimensions has one for everybody
    ],
)
def test_a_tally_is_met_by_questions_about_its_segment_and_about_everybody(
    metric: Metric, segment: dict[str, str], of_mac: bool
) -> None:
    text = segment_text(metric, segment)

    assert matches(text, {})
    assert matches(text, {"platform": "mac"}) is of_mac
    assert (text == segment_text(PAGE, {"platform": "mac"})) is of_mac


def test_what_was_stored_keeps_its_meaning_when_a_dimension_comes_or_goes() -> None:
    wider = Registry.from_text(
        registry_text().replace('segments = ["platform"]', 'segments = ["channel", "platform"]')
    ).metric("page")
    before = segment_text(PAGE, {"platform": "mac"})
    after = segment_text(wider, {"platform": "mac", "channel": "beta"})

    assert wider.digest == PAGE.digest
    assert matches(before, {"platform": "mac"})
    assert not matches(before, {"channel": "beta"})
    assert matches(after, {"platform": "mac"})
    assert matches(after, {"channel": "beta"})
