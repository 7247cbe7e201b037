"""Bodies that nobody honest sends, as Hypothesis strategies, and the seeds they are bent from."""

from __future__ import annotations

import gzip
import json
from typing import Any, Final, NamedTuple

import msgspec
from hypothesis import strategies as st

from client_sdk.wire.reports import Column
from collector.intake.wire import JSON, MSGPACK
from tests.support.crowds.uploads import as_json, as_msgpack, registry, upload

CANARY: Final = "canary7f3a"  # must come back nowhere
PAGE: Final = registry().metric("page")
TYPES: Final = (
    *(JSON, MSGPACK, f"{JSON}; charset=utf-16", "text/html", "multipart/form-data; boundary=x"),
    *("application/x-www-form-urlencoded", "", f"{JSON}, {MSGPACK}", "application/xml", "*/*"),
)
ENCODINGS: Final = ("", "gzip", "identity", "br", "deflate", "gzip, gzip", "x")
# JSON that parsers disagree about, or choke on.
TOKENS: Final = (
    *("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1.0", "1E400", "0x10", "01", "+1", ".5"),
    *("7" * 5_000, "-" + "7" * 5_000, "0." + "0" * 5_000 + "1", "1e" + "9" * 5_000),
    *('"\\ud800"', '"\\udfff\\ud800"', '"\\u0000"', '"\ufeff"', "'a'", "true", "null", "[]", "{}"),
    *("[" * 100_000, '{"a":' * 20_000, "[" * 1_000 + "]" * 1_000, '"' + "a" * 70_000 + '"'),
    *(
        "/* */ 1",
        "1 // a",
        "1,",
        "undefined",
        '"\x00"',
        '"\x7f"',
        '"\x1b[31m"',
        '"' + "é" * 22 + '"',
    ),
)


class Hostile(NamedTuple):
    """One body and what its headers claim."""

    body: bytes
    content_type: str
    encoding: str


def good(kind: str, sealed: int) -> bytes:
    """Return an honest upload."""
    column = Column(PAGE.digest, sealed, b"\2")
    segment = {"platform": "mac"}
    if kind == JSON:
        return as_json(upload([column], sealed=sealed, segment=segment))
    return as_msgpack([column], sealed=sealed, segment=segment)


def bodies(sealed: int) -> st.SearchStrategy[Hostile]:
    """Return a strategy of hostile uploads, many of them one step from an honest one."""
    raw = st.one_of(
        st.sampled_from((good(JSON, sealed), good(MSGPACK, sealed))),
        st.binary(max_size=200),
        _values.map(lambda value: _dumps(value)),
        _values.map(msgspec.msgpack.encode),
        _bent(good(JSON, sealed)),
        _bent(good(MSGPACK, sealed)),
        _with_a_token(sealed),
        _with_a_field(sealed),
        _twice(sealed),
    )
    packed = raw.map(lambda body: gzip.compress(body, 1))
    plain = st.builds(Hostile, raw, st.sampled_from(TYPES), st.sampled_from(ENCODINGS))
    likely = st.builds(Hostile, raw, st.sampled_from((JSON, MSGPACK)), st.just(""))
    squeezed = st.builds(Hostile, packed, st.sampled_from((JSON, MSGPACK)), st.just("gzip"))
    return st.one_of(likely, likely, plain, squeezed)


def _dumps(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


_texts: Final = st.text(max_size=8) | st.sampled_from((CANARY, "\ud800", "<script>", "\r\n", "v"))
_values: Final[st.SearchStrategy[Any]] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(width=32)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def _bent(draw: st.DrawFn, body: bytes) -> bytes:
    """Change some bytes, and perhaps cut or lengthen."""
    bent = bytearray(body)
    for _ in range(draw(st.integers(1, 4))):
        bent[draw(st.integers(0, len(bent) - 1))] = draw(st.integers(0, 255))
    end = draw(st.sampled_from((len(bent), draw(st.integers(0, len(bent))))))
    return bytes(bent[:end]) + draw(st.sampled_from((b"", b"\0", b"{}", CANARY.encode())))


@st.composite
def _with_a_token(draw: st.DrawFn, sealed: int) -> bytes:
    """Put a piece of odd JSON in the place of a value."""
    text = good(JSON, sealed).decode()
    table = json.loads(text)
    place = draw(st.sampled_from((*table, "metric", "epoch", "payloads", "platform")))
    mark = "@here@"
    inner = {"platform": table["segment"]}.get(place, table["columns"][0])
    (table if place in table else inner)[place] = mark
    token = draw(st.sampled_from(TOKENS))
    return json.dumps(table).replace(f'"{mark}"', token).encode("utf-8", "surrogatepass")


@st.composite
def _with_a_field(draw: st.DrawFn, sealed: int) -> bytes:
    """Add a field, or put any value in the place of one."""
    table = json.loads(good(JSON, sealed))
    inner = draw(st.sampled_from((table, table["segment"], table["columns"][0])))
    inner[draw(st.sampled_from((*inner, CANARY, "__proto__", "constructor", "")) | _texts)] = draw(
        _values
    )
    return _dumps(table)


@st.composite
def _twice(draw: st.DrawFn, sealed: int) -> bytes:
    """Say one key twice."""
    text = good(JSON, sealed).decode()
    key = draw(st.sampled_from(("v", "id", "sealed", "segment", "columns", "metric", "platform")))
    value = draw(st.sampled_from(("1", "null", '"a"', "[]", "{}", str(sealed))))
    return text.replace(f'"{key}"', f'"{key}": {value}, "{key}"', 1).encode()
