"""A question as commands: what to type to get the same answer elsewhere."""

from __future__ import annotations

import json
import shlex
from typing import Any, Final

import msgspec

from ...query import Query

_DEFAULTS: Final = msgspec.to_builtins(Query(metrics=[""]))
_SEPARATOR: Final = ",\n    "
_TOKEN: Final = "HEARSAY_READ_TOKEN"  # noqa: S105 - the name of a variable, no secret


def asked(query: Query) -> dict[str, Any]:
    """Return *query* as JSON types, without what it has by default."""
    fields = msgspec.to_builtins(query)
    return {name: value for name, value in fields.items() if value != _DEFAULTS[name]}


def as_json(query: Query) -> str:
    """Return *query* as one line of JSON."""
    return json.dumps(asked(query), ensure_ascii=False)


def curl(query: Query, origin: str) -> str:
    """Return a command line that asks *query* of the collector at *origin*."""
    return (
        f'curl -H "Authorization: Bearer ${_TOKEN}" -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(as_json(query))} \\\n"
        f"  {origin}/v1/query"
    )


def python(query: Query, origin: str) -> str:
    """Return a program that asks *query* of the collector at *origin*."""
    fields = asked(query)
    arguments = [repr(fields.pop("metrics")), *(f"{k}={v!r}" for k, v in fields.items())]
    call = arguments[0] if len(arguments) == 1 else f"\n    {_SEPARATOR.join(arguments)},\n"
    return (
        "import os\n\n"
        "from collector.client import Client\n\n"
        f'client = Client("{origin}", os.environ["{_TOKEN}"])\n'
        f"answer = client.query({call})\n"
        'print(*answer.records(), sep="\\n")'
    )
