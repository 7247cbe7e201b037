"""Options of verbs as fields of a form: texts become what the option takes."""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.inspect import (
    BoolType,
    FloatType,
    IntType,
    ListType,
    StrType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

Kinds: TypeAlias = tuple[Type, ...]
_SEVERAL: Final = (ListType, VarTupleType)
_NUMBERS: Final = (IntType, FloatType, BoolType)


def fields_of(options: type[Struct]) -> dict[str, Kinds]:
    """Return the options with the types that each takes."""
    told = type_info(options)
    assert isinstance(told, StructType)  # noqa: S101 - what a struct is told as
    return {field.name: _kinds(field.type) for field in told.fields}


def value_of(kinds: Kinds, text: str) -> Any:
    """Return what *text* stands for: a list by commas, a number, or the text itself."""
    several = next((kind for kind in kinds if isinstance(kind, _SEVERAL)), None)
    if several is not None:
        if text.startswith("["):
            return _json_or_text(text)
        item = _kinds(several.item_type)
        return [value_of(item, part.strip()) for part in text.split(",") if part.strip()]
    if any(isinstance(kind, _NUMBERS) for kind in kinds):
        return _json_or_text(text)
    if any(isinstance(kind, StrType) for kind in kinds) or text.isalpha():
        return text
    return _json_or_text(text)


def _kinds(kind: Type) -> Kinds:
    return kind.types if isinstance(kind, UnionType) else (kind,)


def _json_or_text(text: str) -> Any:
    """Return JSON as what it means; the verb says what is wrong with anything else."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
