"""Decode the body of an upload, JSON or MessagePack: one schema, closed, strict.  Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from client_sdk.core.base64url import from_base64url
from client_sdk.core.limits import DIGEST_SIZE, MAX_COLUMNS, MAX_LABEL, MAX_NAME, UPLOAD_ID_SIZE
from client_sdk.wire.reports import Column

from ..core.errors import MalformedUploadError

JSON: Final = "application/json"
MSGPACK: Final = "application/msgpack"

MAX_DIMENSIONS: Final = 16  # segment dimensions an upload
_MAX_EPOCH: Final = 1 << 31  # hours until the year 246,000
_DIGEST_TEXT: Final = DIGEST_SIZE * 4 // 3  # characters of base64url
_ID_TEXT: Final = -(-UPLOAD_ID_SIZE * 4 // 3)
_DIGEST_RULE: Final = f"metric: must be {DIGEST_SIZE} bytes"
_TWICE: Final = "an object has a key twice"
_SHORT: Final = 3  # characters of payloads at most, so two bytes, of columns that are kept
_COLUMNS_KEPT: Final = 16_384  # some 300 bytes each
_HEAD_FIELDS, _COLUMN_FIELDS = 4, 3  # fields of an upload without its segment, of a column
_MAP16, _MAP32 = 0xDE, 0xDF  # MessagePack's maps whose number of entries takes 2 or 4 bytes

_MANY: Final = "^([A-Za-z0-9_-]{4})*([A-Za-z0-9_-]{2,3})?$"  # base64url of any length

Data = TypeVar("Data", str, bytes)  # what carries bytes: base64url, or bytes

_Epoch = Annotated[int, Meta(ge=-_MAX_EPOCH, le=_MAX_EPOCH)]
_Label = Annotated[str, Meta(max_length=MAX_LABEL)]
_Segment = Annotated[
    dict[Annotated[str, Meta(max_length=MAX_NAME)], _Label], Meta(max_length=MAX_DIMENSIONS)
]


def _documented(pattern: str) -> Meta:
    """Return a type with a rule that only the JSON schema shows: later steps check it."""
    return Meta(extra_json_schema={"pattern": pattern})


class _Column(Struct, Generic[Data], forbid_unknown_fields=True):
    metric: Annotated[Data, _documented(f"^[A-Za-z0-9_-]{{{_DIGEST_TEXT}}}$")]
    epoch: _Epoch
    payloads: Annotated[Data, _documented(_MANY)]


class _Head(Struct, Generic[Data], forbid_unknown_fields=True):
    v: Literal[1]
    id: Annotated[Data, _documented(f"^[A-Za-z0-9_-]{{{_ID_TEXT}}}$")]
    sealed: _Epoch


class JsonColumn(_Column[str], forbid_unknown_fields=True):
    """A column as JSON has it: bytes are unpadded base64url."""


class JsonUpload(_Head[str], forbid_unknown_fields=True):
    """An upload as JSON has it: bytes are unpadded base64url."""

    columns: Annotated[list[JsonColumn], Meta(max_length=MAX_COLUMNS)]
    segment: _Segment | UnsetType = UNSET


class _BinaryUpload(_Head[bytes], forbid_unknown_fields=True):
    columns: Annotated[list[Raw], Meta(max_length=MAX_COLUMNS)]
    segment: Raw | UnsetType = UNSET


class Upload(Struct, frozen=True):
    """One HTTP body: who sent it is not in it."""

    id: bytes
    sealed: int  # epoch day
    segment: Mapping[str, str]
    columns: tuple[Column, ...]


_json = msgspec.json.Decoder(JsonUpload)
_binary = msgspec.msgpack.Decoder(_BinaryUpload)
_binary_column = msgspec.msgpack.Decoder(_Column[bytes])
_binary_segment = msgspec.msgpack.Decoder(_Segment)


def decode(body: bytes, content_type: str) -> Upload:
    """Return the upload in *body*, of type JSON or MSGPACK.

    Raises: MalformedUploadError: not an upload; says where, without repeating what was sent.
    """
    try:
        return _from_json(body) if content_type == JSON else _from_binary(body)
    except msgspec.ValidationError as error:
        raise MalformedUploadError(_place_and_rule(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise MalformedUploadError(f"the body is not valid {content_type}") from None
    except MalformedUploadError:
        raise
    except ValueError as error:  # from_base64url
        raise MalformedUploadError(f"id, metric and payloads: {error}") from None


def _from_json(body: bytes) -> Upload:
    upload = _json.decode(body)
    _require_each_key_once(body, upload)
    columns = tuple(
        [  # a list first: a generator costs as much as what it does here
            (_known if len(c.payloads) <= _SHORT else _column)(c.metric, c.epoch, c.payloads)
            for c in upload.columns
        ]
    )
    upload_id = _upload_id(from_base64url(upload.id))
    return Upload(upload_id, upload.sealed, upload.segment or {}, columns)


def _column(metric: str, epoch: int, payloads: str) -> Column:
    """Return the column of these JSON texts.  Raises ValueError, MalformedUploadError."""
    return Column(_digest(metric), epoch, from_base64url(payloads))


def _digest_of(text: str) -> bytes:
    if len(text) != _DIGEST_TEXT:
        raise MalformedUploadError(_DIGEST_RULE)
    return from_base64url(text)


# A fleet sends the same few all day.
_digest = lru_cache(maxsize=1_024)(_digest_of)
_known = lru_cache(maxsize=_COLUMNS_KEPT)(_column)


def _require_each_key_once(body: bytes, upload: JsonUpload) -> None:
    """Raise MalformedUploadError if an object has a key twice: readers differ in which they take.

    Without escapes, quotes stand around strings only, and what was decoded says how many there are.
    """
    if b"\\" in body:
        json.loads(body, object_pairs_hook=_each_once)
        return
    segment = upload.segment
    strings = 5 + 5 * len(upload.columns)  # v, id and its value, sealed, columns; three keys, two
    if segment is not UNSET:
        strings += 1 + 2 * len(segment)
    if body.count(b'"') != 2 * strings:
        raise MalformedUploadError(_TWICE)


def _each_once(pairs: list[tuple[str, object]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise MalformedUploadError(_TWICE)


def _from_binary(body: bytes) -> Upload:
    upload = _binary.decode(body)
    segment: dict[str, str] = {}
    fields = _HEAD_FIELDS
    if upload.segment is not UNSET:
        fields += 1
        segment = _binary_segment.decode(upload.segment)
        _require_entries(memoryview(upload.segment), len(segment))
    _require_entries(body, fields)
    columns = tuple(_binary_column_of(raw) for raw in upload.columns)
    return Upload(_upload_id(upload.id), upload.sealed, segment, columns)


def _binary_column_of(raw: Raw) -> Column:
    column = _binary_column.decode(raw)
    _require_entries(memoryview(raw), _COLUMN_FIELDS)
    if len(column.metric) != DIGEST_SIZE:
        raise MalformedUploadError(_DIGEST_RULE)
    return Column(column.metric, column.epoch, column.payloads)


def _require_entries(packed: bytes | memoryview, fields: int) -> None:
    """Raise MalformedUploadError unless the MessagePack map announces so many entries."""
    announced = packed[0] & 0x0F
    if packed[0] in (_MAP16, _MAP32):
        announced = int.from_bytes(packed[1:3] if packed[0] == _MAP16 else packed[1:5], "big")
    if announced != fields:
        raise MalformedUploadError(_TWICE)


def _upload_id(upload_id: bytes) -> bytes:
    if len(upload_id) != UPLOAD_ID_SIZE:
        raise MalformedUploadError(f"id: must be {UPLOAD_ID_SIZE} bytes")
    return upload_id


def _place_and_rule(error: msgspec.ValidationError) -> str:
    """Return msgspec's text, except where it would echo a key or value of the sender's choosing."""
    text = str(error)
    if "unknown field" in text:  # the key could also look like a place, so none is taken from it
        return "an object has an unknown field"
    return "v: must be 1" if text.startswith("Invalid enum value") else text
