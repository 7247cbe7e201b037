"""Uploads as bytes: canonical, of four lengths, and silent of the order of recording."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk.core.base64url import base64url, from_base64url
from client_sdk.core.limits import MAX_DEVICE_BODY, SIZE_CLASSES
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import load
from client_sdk.wire.reports import Column, Report, columns_of, pack, seal, seal_binary, seal_padded
from collector.intake.wire import JSON, MSGPACK, decode

ALPHABET = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
A, B = b"metric", b"second"

reports = st.lists(
    st.builds(Report, st.sampled_from([A, B]), st.integers(0, 3), st.binary(min_size=2, max_size=2))
)


@given(st.binary(max_size=100))
def test_base64url_comes_back_and_is_without_padding(data: bytes) -> None:
    text = base64url(data)

    assert from_base64url(text) == data
    assert set(text) <= ALPHABET
    assert base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) == data


@given(st.text(max_size=12))
def test_whatever_text_is_accepted_is_unpadded_base64url(text: str) -> None:
    try:
        from_base64url(text)
    except ValueError:
        return

    assert set(text) <= ALPHABET
    assert len(text) % 4 != 1


@pytest.mark.parametrize(
    "text", ["A", "AAAAA", "QQ==", "QQ=", "a+b/", "Q Q", "QQ\n", "QUé", "٣٣", "QQ.."]
)
def test_from_base64url_refuses_what_is_not_unpadded_base64url(text: str) -> None:
    with pytest.raises(ValueError, match=r"^[A-Z]?[a-z]"):
        from_base64url(text)


@given(reports, st.randoms(use_true_random=False))
def test_columns_are_the_same_whatever_the_order_of_recording(
    recorded: list[Report], dice: random.Random
) -> None:
    shuffled = list(recorded)
    dice.shuffle(shuffled)

    assert columns_of(shuffled) == columns_of(recorded)


@given(reports)
def test_columns_hold_every_report_once_under_its_metric_and_epoch(recorded: list[Report]) -> None:
    columns = columns_of(recorded)

    unfolded = [
        Report(column.metric, column.epoch, column.payloads[i : i + 2])
        for column in columns
        for i in range(0, len(column.payloads), 2)
    ]
    keys = [(column.metric, column.epoch) for column in columns]
    assert keys == sorted(set(keys))
    assert sorted(unfolded, key=repr) == sorted(recorded, key=repr)


def test_a_sealed_upload_is_exactly_these_bytes() -> None:
    upload = seal(
        bytes(range(16)), 19_800, {"plan": "free", "os": "é"}, [Column(A, 7, b"\xff\xfe")]
    )

    assert upload == (
        b'{"v":1,"id":"AAECAwQFBgcICQoLDA0ODw","sealed":19800,'
        b'"segment":{"os":"\\u00e9","plan":"free"},'
        b'"columns":[{"metric":"bWV0cmlj","epoch":7,"payloads":"__4"}]}'
    )


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


UPLOAD_ID = bytes(range(16))
DRAWS = 10_000
Sealing = Callable[..., bytes]


def lengths_of(sealing: Sealing, name: str) -> set[int]:
    """Return the lengths of uploads of one report, over draws of values and of noise."""
    mechanism, randomness = load(name)("1", 64), system_randomness()
    payloads = (mechanism.randomize(draw % 64, randomness) for draw in range(DRAWS))
    return {
        len(sealing(UPLOAD_ID, 20_000, {}, [Column(b"digest", 20_000, payload)]))
        for payload in payloads
    }


@pytest.mark.parametrize("name", ["grr", "oue", "olh"])
def test_the_length_of_an_upload_is_the_same_for_every_value_and_every_noise(name: str) -> None:
    """Law: over 10^4 draws of a metric there is one length."""
    assert lengths_of(seal_padded, name) == {SIZE_CLASSES[0]}


def lengths_of_mixtures(sealing: Sealing, draws: int) -> set[int]:
    """Return the lengths of uploads of a chance number of reports, of a chance size each."""
    chance = random.Random(7)
    lengths = set()
    for _ in range(draws):
        count, size = int(30 ** chance.random()), chance.choice([1, 8, 128, 1_024])
        reports = [Report(b"digest", 20_000 - i, chance.randbytes(size)) for i in range(count)]
        lengths.add(len(sealing(UPLOAD_ID, 20_000, {}, columns_of(reports))))
    return lengths


def test_uploads_of_a_device_have_one_of_four_lengths() -> None:
    """Law: 10^4 uploads, whatever is in them, have at most four lengths, the size classes."""
    assert lengths_of_mixtures(seal_padded, DRAWS) == set(SIZE_CLASSES)


def test_without_padding_the_length_would_tell_the_number_of_reports() -> None:
    """Control: 500 of the same draws have over 50 lengths unpadded, so the law above can fail."""
    assert len(lengths_of_mixtures(seal, 500)) > 50


@pytest.mark.parametrize("count", [0, 1, 8, 9, 40, 41, 170, 171, 700, 2_000])
def test_padding_is_spaces_after_the_document_up_to_the_next_class(count: int) -> None:
    """Law: the padded body is the JSON, then spaces; beyond the last class nothing is added."""
    columns = [Column(b"digest", epoch, b"\x01") for epoch in range(count)]

    plain = seal(UPLOAD_ID, 20_000, {}, columns)
    padded = seal_padded(UPLOAD_ID, 20_000, {}, columns)

    expected = min((size for size in SIZE_CLASSES if size >= len(plain)), default=len(plain))
    assert padded == plain.ljust(expected, b" ")
    assert SIZE_CLASSES[-1] == MAX_DEVICE_BODY
    assert json.loads(padded) == json.loads(plain)


def test_the_collector_reads_every_form_alike() -> None:
    """Law: padded or not, JSON or MessagePack, it is the same upload."""
    columns = [Column(b"digest", 7, b"\xff\xfe"), Column(b"second", -1, bytes(300))]
    arguments = (UPLOAD_ID, 19_800, {"os": "é", "plan": "free"}, columns)

    uploads = [
        decode(seal(*arguments), JSON),
        decode(seal_padded(*arguments), JSON),
        decode(seal_binary(*arguments), MSGPACK),
    ]

    assert uploads[0].columns == tuple(columns)
    assert uploads[1:] == uploads[:1] * 2
