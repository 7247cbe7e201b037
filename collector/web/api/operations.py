"""What a route takes and answers, declared beside its view; ``openapi`` makes a document of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

V = TypeVar("V", bound=Callable[..., Any])
Parameter: TypeAlias = Mapping[str, Any]  # a Parameter Object of OpenAPI

JSON: Final = "application/json"
PLACES: Final = "#/components/schemas/{name}"  # of forms in the document
_MARK: Final = "hearsay_operation"  # the attribute of a view that holds its declaration


@dataclass(frozen=True)
class Operation:
    """One route: the form of its answer, and what may be asked of it."""

    answer: type | None  # of an answer in JSON; None for one of another kind
    status: int = 200
    media_type: str = JSON  # of the answer
    parameters: tuple[Parameter, ...] = ()
    # The form of the body by media type; it has exactly one of several.
    takes: Mapping[str, type | Sequence[type]] | None = None
    # Schemas of the answer in other forms, by media type.
    alternatives: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    is_kept: bool = False  # a browser that has the answer may be told so: 304
    problems: tuple[int, ...] = ()  # statuses beside those that its scope brings
    summary: str = ""  # what it does; the first line of the view's docstring if left out


def documented(operation: Operation) -> Callable[[V], V]:
    """Declare what a view takes and answers."""

    def declare(view: V) -> V:
        setattr(view, _MARK, operation)
        return view

    return declare


def operation_of(view: Callable[..., Any]) -> Operation | None:
    """Return what *view* declares, or None."""
    declared: Operation | None = getattr(view, _MARK, None)
    return declared


def in_path(name: str, pattern: str, what: str) -> Parameter:
    """Return a parameter that is a part of the path."""
    schema = {"type": "string", "pattern": pattern}
    return {"name": name, "in": "path", "required": True, "description": what, "schema": schema}


def in_query_as_json(name: str, forms: Sequence[type], what: str) -> Parameter:
    """Return a parameter that must be given: a JSON document of one of *forms*."""
    content = {JSON: {"schema": schema_of(forms)}}
    parameter = {"name": name, "in": "query", "required": True, "description": what}
    return {**parameter, "content": content}


def schema_of(forms: type | Sequence[type]) -> dict[str, Any]:
    """Return the schema of what has exactly one of *forms*, each defined among the components."""
    if isinstance(forms, type):
        return {"$ref": PLACES.format(name=forms.__name__)}
    return {"oneOf": [schema_of(form) for form in forms]}


def in_query(name: str, schema: Mapping[str, Any], what: str) -> Parameter:
    """Return a parameter that may be left out."""
    return {"name": name, "in": "query", "description": what, "schema": schema}
