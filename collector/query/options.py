"""Options of a verb as people type them, and queries as commands that people can run.

Options read ``k=5``, ``control=2.2``, ``levels=0.5,0.9``.  The commands get the same
answer elsewhere.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from ..analytics.verb import load, names
from . import Query

_DEFAULTS: Final = msgspec.to_builtins(Query(metrics=[""]))
_SEPARATOR: Final = ",\n    "
_TOKEN: Final = "HEARSAY_READ_TOKEN"  # noqa: S105 - the name of a variable, no secret


def options_of(verb: str, texts: Sequence[tuple[str, str]]) -> dict[str, object]:
    """Return options by name, each as the type that *verb* declares for it.

    "2.2" is a text where a text is wanted, such as a version, and a number where one is; a list
    may be typed with commas, and blanks around them mean nothing.  What fits nothing is left for
    the collector to refuse.
    """
    types = types_of(verb)
    return {
        name: _typed(types[name], text) if name in types else _json(text) for name, text in texts
    }


def types_of(verb: str) -> dict[str, object]:
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


def fields_of(query: Query) -> dict[str, object]:
    """Return *query* as JSON types, without what it has by default."""
    fields = msgspec.to_builtins(query)
    return {name: value for name, value in fields.items() if value != _DEFAULTS[name]}


def as_json(query: Query) -> str:
    """Return *query* as one line of JSON."""
    return json.dumps(fields_of(query), ensure_ascii=False)


def curl(query: Query, origin: str) -> str:
    """Return a command line that asks *query* of the collector at *origin*."""
    return (
        f'curl -H "Authorization: Bearer ${_TOKEN}" -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(as_json(query))} \\\n"
        f"  {origin}/v1/query"
    )


def python(query: Query, origin: str) -> str:
    """Return a program that asks *query* of the collector at *origin*."""
    fields = fields_of(query)
    arguments = [repr(fields.pop("metrics")), *(f"{k}={v!r}" for k, v in fields.items())]
    call = arguments[0] if len(arguments) == 1 else f"\n    {_SEPARATOR.join(arguments)},\n"
    return (
        "import os\n\n"
        "from collector.client import Client\n\n"
        f'client = Client("{origin}", os.environ["{_TOKEN}"])\n'
        f"answer = client.query({call})\n"
        'print(*answer.records(), sep="\\n")'
    )
