"""Binary HTTP against the messages of RFC 9292, and what no message is."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.wire.binary_http import (
    MAX_FIELDS,
    MAX_PARTS,
    Fields,
    Request,
    Response,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)

VECTORS: Final[dict[str, Any]] = json.loads(
    Path("tests/vectors/http/binary_http.json").read_text("utf-8")
)
NAMES: Final = [case["name"] for kind in ("requests", "responses") for case in VECTORS[kind]]
TOKENS: Final = st.text("abcdefghijklmnopqrstuvwxyz0123456789-!#", min_size=1, max_size=20)
VALUES: Final = st.text(
    st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="\x7f"), max_size=80
)
FIELDS: Final = st.lists(st.tuples(TOKENS, VALUES), max_size=5).map(tuple)


def pairs(rows: list[list[str]]) -> Fields:
    return tuple((name, value) for name, value in rows)


def message_of(case: dict[str, Any]) -> Request | Response:
    rest: Any = {
        "fields": pairs(case["fields"]),
        "content": bytes.fromhex(case["content"]),
        "trailers": pairs(case["trailers"]),
    }
    if "status" in case:
        return Response(case["status"], **rest)
    control = (case[name] for name in ("method", "scheme", "authority", "path"))
    return Request(*control, **rest)


def decoded(data: bytes, message: Request | Response) -> Request | Response:
    return decode_request(data) if isinstance(message, Request) else decode_response(data)


@pytest.mark.parametrize("name", NAMES)
def test_the_messages_of_the_standard_are_read_as_it_says(name: str) -> None:
    case = next(
        case for kind in ("requests", "responses") for case in VECTORS[kind] if case["name"] == name
    )
    data, message = bytes.fromhex(case["message"]), message_of(case)

    assert decoded(data, message) == message
    for cut in range(1, case["truncatable"] + 1):
        assert decoded(data[:-cut], message) == message
    if case["known_length"]:
        encode = encode_request if isinstance(message, Request) else encode_response
        assert encode(message) == data  # type: ignore[arg-type]  # of the same kind


@pytest.mark.parametrize("case", VECTORS["bad"], ids=lambda case: str(case["because"]))
def test_what_is_no_message_is_refused(case: dict[str, str]) -> None:
    decode = decode_request if case["kind"] == "request" else decode_response

    with pytest.raises(ValueError, match=": "):
        decode(bytes.fromhex(case["message"]))


@pytest.mark.parametrize("size", [0, 63, 64, 16_383, 16_384, 70_000])
def test_lengths_of_every_width_come_back(size: int) -> None:
    response = Response(202, content=b"x" * size)

    assert decode_response(encode_response(response)) == response


@given(
    control=st.tuples(TOKENS, TOKENS, VALUES, VALUES),
    fields=FIELDS,
    content=st.binary(max_size=100),
    trailers=FIELDS,
    size=st.integers(0, 600),
)
def test_what_is_encoded_comes_back_at_its_size(
    control: tuple[str, str, str, str],
    fields: Fields,
    content: bytes,
    trailers: Fields,
    size: int,
) -> None:
    request = Request(*control, fields=fields, content=content, trailers=trailers)

    data = encode_request(request, size)

    assert decode_request(data) == request
    assert len(data) == max(size, len(encode_request(request)))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_a_value_error(data: bytes) -> None:
    with suppress(ValueError):
        request = decode_request(data)
        assert decode_request(encode_request(request)) == request
    with suppress(ValueError):
        response = decode_response(data)
        assert decode_response(encode_response(response)) == response


def test_more_fields_than_anybody_sends_are_refused() -> None:
    fields = (("a", "b"),) * MAX_FIELDS

    assert decode_response(encode_response(Response(200, fields))).fields == fields
    with pytest.raises(ValueError, match="fields: must be at most"):
        decode_response(encode_response(Response(200, (*fields, ("a", "b")))))


def test_more_parts_than_anybody_sends_are_refused() -> None:
    """The collector reads on its event loop what anybody may send."""
    head = encode_request(Request("POST", "https", "x", "/")).rstrip(b"\0")
    unknown = b"\x02" + head[1:] + b"\0"

    content = decode_request(unknown + b"\1a" * MAX_PARTS + b"\0\0").content
    assert content == b"a" * MAX_PARTS
    with pytest.raises(ValueError, match="content: must be at most"):
        decode_request(unknown + b"\1a" * (MAX_PARTS + 1) + b"\0\0")
