"""MessagePack: what we write, another implementation reads, and would have written just so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk.core.wire import pack

leaves = st.integers(-(1 << 63), (1 << 64) - 1) | st.text(max_size=300) | st.binary(max_size=300)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(), inner, max_size=20),
    max_leaves=30,
)
EDGES = [sign * (1 << power) + step for power in range(5, 63) for sign in (1, -1)
         for step in (-1, 0, 1)] + [(1 << 64) - 1, 1 << 63, -(1 << 63)]  # fmt: skip


@settings(max_examples=50)
@given(values)
def test_what_is_packed_is_what_another_encoder_packs(value: Any) -> None:
    """Law: the same bytes as msgspec's, which writes the shortest form too."""
    assert pack(value) == msgspec.msgpack.encode(value)


def test_whole_numbers_at_every_edge_of_a_form_come_back() -> None:
    """Law: each form ends where the next begins."""
    assert [msgspec.msgpack.decode(pack(number)) for number in EDGES] == EDGES


@pytest.mark.parametrize("size", [0, 15, 16, 31, 32, 255, 256, 65_535, 65_536])
def test_texts_bytes_lists_and_maps_at_every_edge_of_a_form_come_back(size: int) -> None:
    """Law: each form ends where the next begins."""
    whole = ["x" * size, bytes(size), [1] * size, {str(key): 1 for key in range(size)}]

    assert [msgspec.msgpack.decode(pack(value)) for value in whole] == whole


@pytest.mark.parametrize("value", [True, None, 1.5, {1, 2}, [object()]])
def test_what_no_upload_holds_is_refused(value: object) -> None:
    """Law: a kind that the wire does not know is an error, and the error does not show it."""
    with pytest.raises(TypeError, match=r"^[a-zA-Z]+: is in no upload$"):
        pack(value)


@pytest.mark.parametrize("number", [1 << 64, -(1 << 63) - 1])
def test_a_number_of_more_than_64_bits_is_refused(number: int) -> None:
    """Law: nothing is cut off."""
    with pytest.raises(ValueError, match="must"):
        pack(number)
