"""Uploads decode exactly, and everything else is refused without being repeated."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core.limits import MAX_COLUMNS
from client_sdk.wire.reports import Column, seal
from collector.core.errors import MalformedUploadError
from collector.intake.wire import JSON, MAX_DIMENSIONS, MSGPACK, Upload, decode
from tests.support.crowds.uploads import TODAY, UPLOAD_ID, as_json, as_msgpack, upload

COLUMNS = (Column(b"digest", TODAY, b"\0\1\2"), Column(b"\xff" * 6, 0, b"\xfe\xff"))
SEGMENT = {"platform": "mac"}
CANARY = "canary7f3a"  # stands for whatever a sender does not want repeated


def bent(**changes: object) -> bytes:
    return as_json({**upload(COLUMNS), **changes})


def bent_column(**changes: object) -> bytes:
    table = upload(COLUMNS)
    table["columns"][1] |= changes
    return as_json(table)


def without(key: str) -> bytes:
    return as_json({k: v for k, v in upload(COLUMNS).items() if k != key})


def raw(**tokens: str) -> bytes:
    """Return an upload with JSON *tokens* that ``json.dumps`` does not write."""
    text = json.dumps({**upload(COLUMNS), **{key: f"@{key}" for key in tokens}})
    for key, token in tokens.items():
        text = text.replace(f'"@{key}"', token)
    return text.encode()


DEEP = b"[" * 100_000
MANY_COLUMNS = upload([COLUMNS[0]] * (MAX_COLUMNS + 1))
MANY_DIMENSIONS = {f"d{i}": "x" for i in range(MAX_DIMENSIONS + 1)}

BAD_JSON: dict[str, bytes] = {
    "empty": b"",
    "no object": b'["canary7f3a"]',
    "not UTF-8": b"\xff\xfe" + CANARY.encode(),
    "not UTF-8 in a text": raw(id='"\x00"').replace(b"\x00", b"\xff"),
    "trailing": bent() + CANARY.encode(),
    "NaN": raw(sealed="NaN"),
    "Infinity": raw(sealed="-Infinity"),
    "infinite after parsing": raw(sealed="1e999"),
    "a bool for an int": bent(sealed=True),
    "a bool for the version": bent(v=True),
    "a float for an int": bent(sealed=1.5),
    "a whole float for an int": bent(sealed=1.0),
    "a text for an int": bent(sealed=CANARY),
    "null for an int": bent(sealed=None),
    "another version": bent(v=2),
    "a text as version": bent(v=CANARY),
    "a huge epoch": bent_column(epoch=1 << 40),
    "5,000 digits": raw(sealed="7" * 5_000),
    "an unknown field": bent(**{CANARY: 1}),
    "an unknown field that looks like a place": bent(**{f"x` - at `{CANARY}": 1}),
    "an unknown field of a column": bent_column(**{CANARY: 1}),
    "no version": without("v"),
    "no id": without("id"),
    "no sealed day": without("sealed"),
    "no columns": without("columns"),
    "a short id": bent(id="AAAA"),
    "a padded id": bent(id="AAAAAAAAAAAAAAAAAAAAAA=="),
    "an id in the other alphabet": bent(id="+AAAAAAAAAAAAAAAAAAAA/"),
    "an id beyond ASCII": bent(id="é" * 22),
    "an id with a line break": bent(id="AAAAAAAAAAA\nAAAAAAAAAAA"),
    "a short metric": bent_column(metric="AAAA"),
    "payloads of an impossible length": bent_column(payloads="AAAAA"),
    "payloads that are not base64": bent_column(payloads=f"{CANARY}!"),
    "payloads that are a list": bent_column(payloads=[1, 2]),
    "a lone surrogate": bent(id="\ud800"),
    "a lone surrogate as a segment": bent(segment={"\udfff": CANARY}),
    "a number as a segment": bent(segment={CANARY: 5}),
    "a long dimension": bent(segment={CANARY * 10: "x"}),
    "a long segment": bent(segment={"x": CANARY * 20}),
    "too many dimensions": bent(segment=MANY_DIMENSIONS),
    "too many columns": as_json(MANY_COLUMNS),
    "deep": DEEP,
    "deep in a column": b'{"columns":' + DEEP,
    "deep in an unknown field": b'{"canary7f3a":' + DEEP,
}

WHOLE = as_msgpack(COLUMNS, segment=SEGMENT)
TEXT = as_json(upload(COLUMNS, segment=SEGMENT))
# (what is there once, what to put in its place): a key of every object, twice
TWICE_JSON = {
    "the version": (b'"v": 1', b'"v": 1, "v": 1'),
    "the columns": (b'"columns": ', b'"columns": [], "columns": '),
    "the segment": (b'"segment": ', b'"segment": {}, "segment": '),
    "a dimension": (b'"platform"', b'"platform": "x", "platform"'),
    "an epoch": (b'"epoch": 0', b'"epoch": 0, "epoch": 0'),
    "a key in disguise": (b'"v": 1', b'"v": 1, "\\u0076": 1'),
    "a dimension in disguise": (b'"platform"', b'"platfor\\u006d": "x", "platform"'),
}
TWICE_MSGPACK = {
    "the version": (b"\x85\xa1v\x01", b"\x86\xa1v\x01\xa1v\x01"),
    "the version, in a wide map": (b"\x85\xa1v\x01", b"\xde\0\x06\xa1v\x01\xa1v\x01"),
    "a dimension": (b"\x81\xa8platform", b"\x82\xa8platform\xa1x\xa8platform"),
    "an epoch": (b"\x83\xa6metric", b"\x84\xa5epoch\x00\xa6metric"),
}
BAD_MSGPACK: dict[str, bytes] = {
    "empty": b"",
    "truncated": WHOLE[:-1],
    "trailing": WHOLE + b"\0",
    "deep": b"\x91" * 100_000,
    "another version": as_msgpack(COLUMNS, v=3),
    "a bool as version": as_msgpack(COLUMNS, v=True),
    "a float for an int": as_msgpack(COLUMNS, sealed=1.0),
    "a text for bytes": as_msgpack(COLUMNS, id=CANARY),
    "an unknown field": as_msgpack(COLUMNS, canary7f3a=1),
    "a short id": as_msgpack(COLUMNS, upload_id=b"short"),
    "a short metric": as_msgpack([Column(b"five5", 0, b"")]),
    "an announced array that never comes": b"\x81\xa7columns\xdd\xff\xff\xff\xff",
    "announced bytes that never come": b"\x81\xa2id\xc6\xff\xff\xff\xff",
    "an announced map that never comes": b"\xdf\xff\xff\xff\xff",
    "a text that is not UTF-8": b"\x81\xa7segment\x81\xa3\xff\xff\xff\xa1a",
    "an extension type": b"\x81\xa2id\xd6\x01aaaa",
    "a number as key": b"\x81\x01\x01",
    "too many columns": as_msgpack([COLUMNS[0]] * (MAX_COLUMNS + 1)),
    "too many dimensions": as_msgpack(COLUMNS, segment=MANY_DIMENSIONS),
    "JSON": as_json(upload(COLUMNS)),
}


def test_what_the_device_seals_decodes_to_the_same_upload() -> None:
    body = seal(UPLOAD_ID, TODAY, SEGMENT, COLUMNS)

    assert decode(body, JSON) == Upload(UPLOAD_ID, TODAY, SEGMENT, COLUMNS)


def test_an_upload_without_a_segment_has_none() -> None:
    assert decode(without("segment"), JSON).segment == {}


@pytest.mark.parametrize(
    ("whole", "once", "twice", "content_type"),
    [
        *((TEXT, *case, JSON) for case in TWICE_JSON.values()),
        *((WHOLE, *case, MSGPACK) for case in TWICE_MSGPACK.values()),
    ],
    ids=[*TWICE_JSON, *TWICE_MSGPACK],
)
def test_an_upload_with_a_key_twice_is_malformed(
    whole: bytes, once: bytes, twice: bytes, content_type: str
) -> None:
    """Readers differ in which of the two they take."""
    assert once in whole

    with pytest.raises(MalformedUploadError, match="a key twice"):
        decode(whole.replace(once, twice, 1), content_type)


def test_escapes_and_wide_maps_are_read_where_no_key_comes_twice() -> None:
    text = TEXT.replace(b'"mac"', b'"m\\u0061c"').replace(b'"v"', b'"\\u0076"')
    wide = WHOLE.replace(b"\x85\xa1v", b"\xdf\0\0\0\x05\xa1v").replace(b"\x83", b"\xde\0\x03")

    assert decode(text, JSON) == decode(TEXT, JSON)
    assert decode(wide, MSGPACK) == decode(WHOLE, MSGPACK)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        *((body, JSON) for body in BAD_JSON.values()),
        *((body, MSGPACK) for body in BAD_MSGPACK.values()),
    ],
    ids=[*BAD_JSON, *(f"messagepack: {name}" for name in BAD_MSGPACK)],
)
def test_a_bad_body_is_malformed_and_not_repeated(body: bytes, content_type: str) -> None:
    with pytest.raises(MalformedUploadError) as caught:
        decode(body, content_type)

    assert CANARY not in str(caught.value)
    assert len(str(caught.value)) < 200


def decodes_or_is_malformed(body: bytes, content_type: str) -> bool:
    try:
        return isinstance(decode(body, content_type), Upload)
    except MalformedUploadError:
        return True


@given(st.binary(max_size=300), st.sampled_from([JSON, MSGPACK]))
def test_arbitrary_bytes_are_an_upload_or_malformed(body: bytes, content_type: str) -> None:
    assert decodes_or_is_malformed(body, content_type)


@given(st.data())
def test_an_upload_with_damage_is_an_upload_or_malformed(data: st.DataObject) -> None:
    content_type = data.draw(st.sampled_from([JSON, MSGPACK]))
    body = bytearray(WHOLE if content_type == MSGPACK else bent())
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))

    assert decodes_or_is_malformed(bytes(body), content_type)


_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.sampled_from(["v", "id", "sealed", "segment", "columns"]), _values)
def test_a_field_of_any_other_kind_is_an_upload_or_malformed(field: str, value: object) -> None:
    assert decodes_or_is_malformed(bent(**{field: value}), JSON)
