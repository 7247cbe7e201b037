"""Options of a verb as they are typed: ``k=5``, ``control=2.2``, ``levels=0.5,0.9``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from .analytics.verb import load, names


def options_of(verb: str, texts: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return options by name, each as the type that *verb* declares for it.

    "2.2" is a text where a text is wanted, such as a version, and a number where one is; a list
    may be typed with commas, and blanks around them mean nothing.  What fits nothing is left for
    the collector to refuse.
    """
    types = types_of(verb)
    return {
        name: _typed(types[name], text) if name in types else _json(text) for name, text in texts
    }


def types_of(verb: str) -> dict[str, Any]:
    """Return the type of each option of *verb*; nothing of an unknown one."""
    fields = msgspec.structs.fields(load(verb).options) if verb in names() else ()
    return {field.encode_name: field.type for field in fields}


def _typed(type_: Any, text: str) -> Any:
    for value in _readings(text):
        try:
            msgspec.convert(value, type_)
        except msgspec.ValidationError:
            continue
        return value
    return _json(text)


def _readings(text: str) -> Iterator[Any]:
    """Yield what *text* may mean, the plainest first."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    yield from (text, _json(text), parts, [_json(part) for part in parts])


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
