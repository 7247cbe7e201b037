"""Reports: an upload is canonical bytes, and nothing tells in which order values were recorded."""

from __future__ import annotations

import base64
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core.limits import WIRE_VERSION
from client_sdk.core.wire import Column, Report, base64url, columns_of, from_base64url, seal

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


def test_payloads_within_a_column_are_sorted() -> None:
    recorded = [Report(A, 1, payload) for payload in (b"\x02", b"\x00", b"\x01")]

    assert columns_of(recorded) == [Column(A, 1, b"\x00\x01\x02")]


def test_a_sealed_upload_is_exactly_these_bytes() -> None:
    upload = seal(
        bytes(range(16)), 19_800, {"plan": "free", "os": "é"}, [Column(A, 7, b"\xff\xfe")]
    )

    assert upload == (
        b'{"v":1,"id":"AAECAwQFBgcICQoLDA0ODw","sealed":19800,'
        b'"segment":{"os":"\\u00e9","plan":"free"},'
        b'"columns":[{"metric":"bWV0cmlj","epoch":7,"payloads":"__4"}]}'
    )


def test_sealing_again_gives_identical_bytes_whatever_the_order_of_the_segment() -> None:
    columns = [Column(A, 7, b"\x01"), Column(B, -1, b"")]

    first = seal(b"i" * 16, 1, {"a": "1", "b": "2"}, columns)
    again = seal(b"i" * 16, 1, {"b": "2", "a": "1"}, iter(columns))

    assert first == again


def test_a_sealed_upload_holds_the_fields_of_the_schema_and_no_other() -> None:
    upload = json.loads(seal(b"i" * 16, 1, {}, [Column(A, 7, b"\x01")]))

    assert set(upload) == {"v", "id", "sealed", "segment", "columns"}
    assert set(upload["columns"][0]) == {"metric", "epoch", "payloads"}
    assert upload["v"] == WIRE_VERSION
