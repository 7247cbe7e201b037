"""Requests and responses as bytes: binary HTTP, as it stands inside a capsule.

It is written with known length and may be padded with zeros to a size that reveals nothing; it is
read in both of its forms.  A reader is strict: fields and parts are few, names are lower case,
values have no control characters, lengths end where the message does, and what is not padding must
not stand behind it.

Source: RFC 9292, sections 3.1 to 3.8; integers as in RFC 9000, section 16; valid fields as in
RFC 9113, section 8.2.1.
"""

from __future__ import annotations

from ..core.typing import Final, NamedTuple, TypeAlias

Fields: TypeAlias = tuple[tuple[str, str], ...]

MAX_FIELDS: Final = 64  # field lines of a section; ours has four
MAX_PARTS: Final = 64  # of content whose length is not known; each costs time, ours comes whole
_REQUEST, _RESPONSE = 0, 1  # framing indicators; two more say that the length is not known
_UNKNOWN_LENGTH: Final = 2
_NAME: Final = frozenset(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")
_BREAKS: Final = frozenset("\0\r\n")
_BLANK: Final = " \t"
_INFORMATIONAL, _FINAL, _END = 100, 200, 600  # status codes


class Request(NamedTuple):
    """A request; text is Latin-1, as each of its bytes may be anything that a field may hold."""

    method: str
    scheme: str
    authority: str
    path: str
    fields: Fields = ()
    content: bytes = b""
    trailers: Fields = ()


class Response(NamedTuple):
    """A final response."""

    status: int
    fields: Fields = ()
    content: bytes = b""
    trailers: Fields = ()


def encode_request(request: Request, size: int = 0) -> bytes:
    """Return *request* with known length, padded to *size* bytes; longer as it is."""
    control = (request.method, request.scheme, request.authority, request.path)
    parts = [_integer(_REQUEST), *(_with_length(text.encode("latin-1")) for text in control)]
    return _whole(parts, request, size)


def encode_response(response: Response, size: int = 0) -> bytes:
    """Return *response* with known length, padded to *size* bytes; longer as it is."""
    return _whole([_integer(_RESPONSE), _integer(response.status)], response, size)


def decode_request(message: bytes) -> Request:
    """Return the request that *message* is.  Raises ValueError, which shows nothing of it."""
    reader = _Reader(message)
    unknown = reader.framing(_REQUEST)
    method, scheme, authority, path = (reader.text() for _ in range(4))
    if not method or not scheme:
        raise ValueError("control data: must have a method and a scheme")
    fields = reader.fields(unknown)
    content, trailers = reader.content(unknown), reader.fields(unknown)
    reader.end()
    return Request(
        method=method,
        scheme=scheme,
        authority=authority,
        path=path,
        fields=fields,
        content=content,
        trailers=trailers,
    )


def decode_response(message: bytes) -> Response:
    """Return the final response of *message*.  Raises ValueError, which shows nothing of it."""
    reader = _Reader(message)
    unknown = reader.framing(_RESPONSE)
    status = reader.integer()
    while _INFORMATIONAL <= status < _FINAL:
        reader.fields(unknown)
        status = reader.integer()
    if not _FINAL <= status < _END:
        raise ValueError("status: must be from 100 to 599")
    fields = reader.fields(unknown)
    content, trailers = reader.content(unknown), reader.fields(unknown)
    reader.end()
    return Response(status=status, fields=fields, content=content, trailers=trailers)


def _whole(parts: list[bytes], message: Request | Response, size: int) -> bytes:
    parts += (
        _with_length(_section(message.fields)),
        _with_length(message.content),
        _with_length(_section(message.trailers)),
    )
    return b"".join(parts).ljust(size, b"\0")


def _section(fields: Fields) -> bytes:
    return b"".join(_with_length(text.encode("latin-1")) for field in fields for text in field)


def _with_length(data: bytes) -> bytes:
    return _integer(len(data)) + data


def _integer(number: int) -> bytes:
    """Return *number* in its shortest form: its first two bits say how many bytes it takes."""
    for length in range(4):
        size = 1 << length
        if number < 1 << (8 * size - 2):
            return (number | length << (8 * size - 2)).to_bytes(size, "big")
    raise ValueError("must fit 62 bits")


class _Reader:
    """What is left of a message.  A section that the end of the message cuts off is empty."""

    def __init__(self, message: bytes) -> None:
        self._message, self._at, self._size = message, 0, len(message)

    def framing(self, kind: int) -> bool:
        """Read the framing indicator; return whether the length is not known."""
        indicator = self.integer()
        if indicator not in (kind, kind + _UNKNOWN_LENGTH):
            raise ValueError(f"framing indicator: must be {kind} or {kind + _UNKNOWN_LENGTH}")
        return indicator != kind

    def integer(self) -> int:
        at = self._at
        if at >= self._size:
            raise ValueError("message: ends too soon")
        first = self._message[at]
        if first < 1 << 6:
            self._at = at + 1
            return first
        size = 1 << (first >> 6)
        number = int.from_bytes(self._take(size), "big")
        return number & ((1 << (8 * size - 2)) - 1)

    def text(self) -> str:
        return self._take(self.integer()).decode("latin-1")

    def fields(self, unknown: bool) -> Fields:
        """Read a section of fields, which a length precedes or a zero ends."""
        if self._ended:
            return ()
        fields: list[tuple[str, str]] = []
        if not unknown:
            section = _Reader(self._take(self.integer()))
            while not section._ended:
                fields.append(section._field(section.integer(), len(fields)))
            return tuple(fields)
        while length := self.integer():
            fields.append(self._field(length, len(fields)))
        return tuple(fields)

    def content(self, unknown: bool) -> bytes:
        """Read the content after its length, or its chunks up to the empty last one."""
        if self._ended:
            return b""
        if not unknown:
            return self._take(self.integer())
        parts: list[bytes] = []
        while length := self.integer():
            if len(parts) >= MAX_PARTS:
                raise ValueError(f"content: must be at most {MAX_PARTS} parts")
            parts.append(self._take(length))
        return b"".join(parts)

    def end(self) -> None:
        """Read the padding."""
        if self._message[self._at :].strip(b"\0"):
            raise ValueError("padding: must be zeros")

    @property
    def _ended(self) -> bool:
        return self._at >= self._size

    def _take(self, size: int) -> bytes:
        at = self._at
        self._at = at + size
        if self._at > self._size:
            raise ValueError("message: ends too soon")
        return self._message[at : self._at]

    def _field(self, length: int, before: int) -> tuple[str, str]:
        """Read a field whose name has *length* bytes, as the one after *before* others."""
        if before >= MAX_FIELDS:
            raise ValueError(f"fields: must be at most {MAX_FIELDS} a section")
        name, value = self._take(length), self.text()
        if not name or not _NAME.issuperset(name):
            raise ValueError("field name: must be a token in lower case")
        if not _BREAKS.isdisjoint(value) or value != value.strip(_BLANK):
            raise ValueError("field value: must have no line breaks, and no blanks around it")
        return name.decode("ascii"), value
