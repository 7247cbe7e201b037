"""A stream entry comes back as it was written, or not at all."""

from __future__ import annotations

import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.core.cells import Cell
from collector.core.entry import ENTRY_VERSION, AcceptedColumn, decode, encode
from collector.core.errors import CorruptEntryError

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
