"""Forms that pages send: read as a struct, each field once, and nothing that is not in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar

import msgspec
from flask import request
from msgspec import Struct, structs

from ..core.errors import CollectorError, QueryError, UnsupportedTypeError

FORM: Final = "application/x-www-form-urlencoded"
MOST_BYTES: Final = 4_096  # of a form: a cookie holds no longer token
LARGE_FORM: Final = 256 * 1024  # bytes of a board: four times what is kept, as letters are escaped
F = TypeVar("F", bound=Struct)


class FormFault(NamedTuple):
    """The fault of a form that is shown again, and its field."""

    field: str  # "" for none of them
    text: str


def fault_of(error: CollectorError | None, labels: Mapping[str, str]) -> FormFault:
    """Return *error* by the *labels* that fields have on their page; without one an empty fault."""
    if not isinstance(error, QueryError) or error.place not in labels:
        return FormFault("", str(error or ""))
    return FormFault(error.place, f"{labels[error.place]} {error.rule}.")


def form_of(form: type[F], most_bytes: int = MOST_BYTES) -> F:
    """Return the form that was sent as a *form*, whose fields are texts or lists of texts.

    Raises: QueryError: a field is missing, is not known, or a text is given twice.
    """
    request.max_content_length = most_bytes
    fields = {field.name: field for field in structs.fields(form)}
    sent = dict(request.form.lists())
    if sent and request.mimetype != FORM:
        raise UnsupportedTypeError(f"the body must be {FORM}")
    missing = [name for name, field in fields.items() if field.required and name not in sent]
    many = {name for name, field in fields.items() if field.type is not str}
    is_twice = any(len(values) > 1 for name, values in sent.items() if name not in many)
    if missing or set(sent) - set(fields) or is_twice:
        raise QueryError("form", f"must hold {', '.join(fields) or 'nothing'}, each once")
    values: dict[str, object] = {
        name: texts if name in many else texts[0] for name, texts in sent.items()
    }
    return msgspec.convert(values, form)


def number_of(text: str, place: str) -> int:
    """Return the count that *text* is.  Raises QueryError, which names *place*."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise QueryError(place, "must be a number")
    return int(text)
