"""Capsules as devices seal them, and the keys of a collector that opens them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import NamedTuple

from client_sdk.upload.ohttp import Capsule, configuration_of, seal
from client_sdk.wire import binary_http
from client_sdk.wire.binary_http import Fields, Request, Response
from client_sdk.wire.oblivious import PATH, REQUEST_TYPE
from collector.intake.oblivious_keys import add_key, relay_key
from tests.support.crowds.uploads import WRITE_KEY
from tests.support.sites import rsgi

DAY = date(2026, 11, 1)
HEADERS = {"content-type": REQUEST_TYPE}
FIELDS: Fields = (("authorization", f"Bearer {WRITE_KEY}"), ("content-type", "application/json"))


class Keys(NamedTuple):
    """A file of keys, and what applications are given."""

    path: str
    relay_key: str


def make_keys(folder: Path) -> Keys:
    path = str(folder / "oblivious.json")
    return Keys(path, relay_key(add_key(path, DAY)))


def upload_request(body: bytes, fields: Fields = FIELDS) -> Request:
    return Request("POST", "https", "t.example.org", "/v1/reports", fields, body)


def sealed(keys: Keys, request: Request | bytes) -> Capsule:
    inner = request if isinstance(request, bytes) else binary_http.encode_request(request)
    return seal(configuration_of(keys.relay_key), inner)


def carried(message: bytes, headers: dict[str, str] = HEADERS) -> rsgi.Request:
    """Return the request of a relay that carries *message*."""
    return rsgi.Request(PATH, "POST", headers, (message,))


def opened(capsule: Capsule, answer: rsgi.Response | None) -> Response:
    """Return what the collector answered inside *capsule*."""
    assert answer is not None
    assert answer.status == 200, answer
    return binary_http.decode_response(capsule.open_answer(answer.body))


def without(fields: Fields, *names: str) -> Fields:
    return tuple(field for field in fields if field[0] not in names)


def with_field(name: str, value: str, among: Iterable[tuple[str, str]] = FIELDS) -> Fields:
    return (*((n, v) for n, v in among if n != name), (name, value))
