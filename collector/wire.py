"""Decode the body of an upload, JSON or MessagePack: one schema, closed, strict.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from client_sdk.limits import DIGEST_SIZE, MAX_COLUMNS, MAX_LABEL, MAX_NAME, UPLOAD_ID_SIZE
from client_sdk.report import Column, from_base64url

from .errors import MalformedUploadError

JSON: Final = "application/json"
MSGPACK: Final = "application/msgpack"

MAX_DIMENSIONS: Final = 16  # segment dimensions an upload
_MAX_EPOCH: Final = 1 << 31  # hours until the year 246,000

_Epoch = Annotated[int, Meta(ge=-_MAX_EPOCH, le=_MAX_EPOCH)]
_Label = Annotated[str, Meta(max_length=MAX_LABEL)]
_Segment = Annotated[
    dict[Annotated[str, Meta(max_length=MAX_NAME)], _Label], Meta(max_length=MAX_DIMENSIONS)
]


class _JsonColumn(Struct, forbid_unknown_fields=True):
    metric: str
    epoch: _Epoch
    payloads: str


class _JsonUpload(Struct, forbid_unknown_fields=True):
    v: Literal[1]
    id: str
    sealed: _Epoch
    columns: Annotated[list[_JsonColumn], Meta(max_length=MAX_COLUMNS)]
    segment: _Segment = {}


class _BinaryColumn(Struct, forbid_unknown_fields=True):
    metric: bytes
    epoch: _Epoch
    payloads: bytes


class _BinaryUpload(Struct, forbid_unknown_fields=True):
    v: Literal[1]
    id: bytes
    sealed: _Epoch
    columns: Annotated[list[_BinaryColumn], Meta(max_length=MAX_COLUMNS)]
    segment: _Segment = {}


@dataclass(frozen=True)
class Upload:
    """One HTTP body: who sent it is not in it."""

    id: bytes
    sealed: int  # epoch day
    segment: Mapping[str, str]
    columns: tuple[Column, ...]


_json = msgspec.json.Decoder(_JsonUpload)
_binary = msgspec.msgpack.Decoder(_BinaryUpload)


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
    columns = tuple(
        _column(from_base64url(c.metric), c.epoch, from_base64url(c.payloads))
        for c in upload.columns
    )
    return _upload(from_base64url(upload.id), upload.sealed, upload.segment, columns)


def _from_binary(body: bytes) -> Upload:
    upload = _binary.decode(body)
    columns = tuple(_column(c.metric, c.epoch, c.payloads) for c in upload.columns)
    return _upload(upload.id, upload.sealed, upload.segment, columns)


def _column(metric: bytes, epoch: int, payloads: bytes) -> Column:
    if len(metric) != DIGEST_SIZE:
        raise MalformedUploadError(f"metric: must be {DIGEST_SIZE} bytes")
    return Column(metric, epoch, payloads)


def _upload(
    upload_id: bytes, sealed: int, segment: dict[str, str], columns: tuple[Column, ...]
) -> Upload:
    if len(upload_id) != UPLOAD_ID_SIZE:
        raise MalformedUploadError(f"id: must be {UPLOAD_ID_SIZE} bytes")
    return Upload(upload_id, sealed, segment, columns)


def _place_and_rule(error: msgspec.ValidationError) -> str:
    """Return msgspec's text, except where it would echo a key or value of the sender's choosing."""
    text = str(error)
    if "unknown field" in text:  # the key could also look like a place, so none is taken from it
        return "an object has an unknown field"
    return "v: must be 1" if text.startswith("Invalid enum value") else text
