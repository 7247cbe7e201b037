"""The forms of a question by verb, as the OpenAPI document tells them.  Nothing is decoded here."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ..analytics.verb import ESTIMATE, load, names, summary
from ..query import Query
from .formats import ARROW
from .operations import JSON

# The answers in other forms than that of JSON: see ``formats``.
ALTERNATIVES: Final[dict[str, dict[str, Any]]] = {
    JSON: {"type": "array", "items": {"type": "object"}, "title": "Flat records"},
    "text/csv": {"type": "string"},
    ARROW: {},
}


def forms() -> list[type[Struct]]:
    """Return the question of each verb, with the verb's own options and post-processings."""
    return [_form(name) for name in names()]


def _form(name: str) -> type[Struct]:
    verb = load(name)
    camel = name.title().replace("_", "")
    options = msgspec.defstruct(
        f"{camel}Options",
        [],
        bases=(verb.options,),
        namespace={"__doc__": verb.options.__doc__},
        frozen=True,
        forbid_unknown_fields=True,
    )
    may_be_left_out = not any(one.required for one in msgspec.structs.fields(verb.options))
    said: Any = Literal[name] | UnsetType if name == ESTIMATE else Literal[name]
    own: dict[str, tuple[Any, ...]] = {
        "verb": ("verb", said, UNSET) if name == ESTIMATE else ("verb", said),
        "options": ("options", options | UnsetType, UNSET)
        if may_be_left_out
        else ("options", options),
        "postprocess": ("postprocess", Literal[verb.postprocess], "raw"),
    }
    fields: list[Any] = [own.get(field.name) or _as_it_is(field) for field in _common()]
    return msgspec.defstruct(
        f"{camel}Query",
        fields,
        namespace={"__doc__": summary(name)},
        frozen=True,
        forbid_unknown_fields=True,
        kw_only=True,
    )


def _common() -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(Query)


def _as_it_is(field: msgspec.structs.FieldInfo) -> tuple[Any, ...]:
    if field.required:
        return field.name, field.type
    if field.default_factory is not msgspec.NODEFAULT:
        return field.name, field.type, msgspec.field(default_factory=field.default_factory)
    return field.name, field.type, field.default
