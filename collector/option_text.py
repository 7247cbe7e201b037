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
    may be typed with commas.  What fits nothing is left for the collector to refuse.
    """
    fields = msgspec.structs.fields(load(verb).options) if verb in names() else ()
    forms = {field.encode_name: field.type for field in fields}
    return {
        name: _typed(forms[name], text) if name in forms else _json(text) for name, text in texts
    }


def _typed(form: Any, text: str) -> Any:
    for meant in _readings(text):
        try:
            msgspec.convert(meant, form)
        except msgspec.ValidationError:
            continue
        return meant
    return _json(text)


def _readings(text: str) -> Iterator[Any]:
    """Yield what *text* may mean, the plainest first."""
    parts = text.split(",")
    yield from (text, _json(text), parts, [_json(part) for part in parts])


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
