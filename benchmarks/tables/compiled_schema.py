"""The JSON Schema of compiled registries, from the table of their keys.

Run: ``python -m benchmarks compiled_schema --write``, which puts it into its file; a test compares
them, so a new key needs no line written by hand.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from client_sdk.registry.compiled import VERSION
from client_sdk.registry.keys import FILE, FORMAT, METRIC, SPENT, Key

PLACE: Final = Path(__file__).parents[2] / "docs" / "design" / "compiled.schema.json"
_TEXT: Final = {"type": "string", "minLength": 1}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_COUNT: Final = {"type": "integer", "minimum": 0}
_NUMBER: Final = {"$ref": "#/$defs/number"}
_SEAT: Final = {
    "type": "array",
    "prefixItems": [_COUNT, _COUNT, {"enum": ["life", "7d", "28d"]}],
    "minItems": 3,
    "maxItems": 3,
}


def _table(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": of}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": required,
    }


_ENCODED: Final = _object(
    {
        "value": {"description": "As its meaning says it."},
        "encoded": {
            "description": "As the mechanism takes it: an item, sorted items, a position,"
            " [key, position] pairs, integers, or bytes in hexadecimal."
        },
    },
    ["value", "encoded"],
)


def _of_kind(kind: str) -> dict[str, Any]:
    """Return what is of a *kind* of the table of keys."""
    name, *limits = kind.rstrip("?").split(".")
    least = int(limits[0]) if limits else 0
    kinds: dict[str, dict[str, Any]] = {
        "count": {"type": "integer", "minimum": least},
        "date": {"type": "string", "format": "date"},
        "encoded": _ENCODED,
        "flag": {"type": "boolean"},
        "hex": {"type": "string", "pattern": f"^[0-9a-f]{{{least}}}$"},
        "lines": {"type": "string"},
        "list": {"type": "array", "minItems": least},
        "seats": _table(_SEAT),
        "segments": _table(_TEXTS),
        "table": {"type": "object"},
        "text": _TEXT,
        "texts": _TEXTS,
        "words": _table(_TEXT),
    }
    schema = kinds.get(name, {"enum": name.split("|")})
    return {"oneOf": [schema, {"type": "null"}]} if kind.endswith("?") else schema


def _of_keys(keys: tuple[Key, ...]) -> dict[str, Any]:
    compiled = [key for key in keys if key.compiled]
    properties = {key.name: {"description": key.help, **_of_kind(key.compiled)} for key in compiled}
    return _object(properties, [key.name for key in compiled])


def schema() -> str:
    """Return the schema as text."""
    file, metric = _of_keys(FILE), _of_keys(METRIC)
    file["properties"][FORMAT]["const"] = VERSION
    file["properties"]["metrics"]["items"] = {"$ref": "#/$defs/metric"}
    file["properties"]["separate"] = {
        "description": "The name of the application is in the digest of each metric. Absent if it"
        " is not.",
        "const": True,
    }
    parameter = {"oneOf": [{"type": "integer"}, {"type": "string", "pattern": "^0x[0-9a-f]+$"}]}
    constant = {"oneOf": [_NUMBER, {"type": "array", "items": _NUMBER}]}
    properties = metric["properties"]
    properties["name"]["pattern"] = "^[a-z0-9_.]{1,64}$"
    properties["spent"] |= _of_keys(SPENT)
    properties["constants"] |= _table(constant)
    properties["mechanism"] |= _table(parameter) | {
        "properties": {"name": _TEXT},
        "required": ["name"],
    }
    number = {
        "description": "An exact number: 32 hexadecimal digits are units of 2^-128; otherwise"
        " numerator/denominator, both hexadecimal.",
        "type": "string",
        "pattern": "^([0-9a-f]{32}|[0-9a-f]{1,80}/[0-9a-f]{1,80})$",
    }
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Compiled registry of Hearsay, version {VERSION}",
        "description": "All that a device needs of a metrics.toml."
        " docs/design/compiled-registry.md says what to do with it.",
        **file,
        "$defs": {"number": number, "metric": metric},
    }
    return json.dumps(document, indent=1) + "\n"


def main() -> None:
    """Print it, or write it."""
    if "--write" in sys.argv:
        PLACE.write_text(schema(), encoding="utf-8")
    else:
        print(schema())
