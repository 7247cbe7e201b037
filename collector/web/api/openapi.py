"""GET /v1/openapi.json: the API as an OpenAPI 3.1 document, made from what the code declares.

What a route takes and answers is declared at its view, by an ``Operation``.
Forms come from msgspec, scopes from the decorator that enforces them, statuses from the table of
problems.  A route that declares nothing is a page, for people, and is not in the document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from flask import Blueprint, Flask, current_app
from flask.typing import ResponseReturnValue
from werkzeug.routing import Rule

from client_sdk import __version__

from ...core.credentials import OPEN, REPORT
from ...intake.wire import JSON
from ...serving.application import PROBLEM
from ..auth import scope, scope_of
from ..problems import titles
from .schemas import Problem

V = TypeVar("V", bound=Callable[..., Any])
Parameter: TypeAlias = Mapping[str, Any]  # a Parameter Object of OpenAPI

blueprint = Blueprint("openapi", __name__)

PATH: Final = "/v1/openapi.json"
_SILENT: Final = frozenset({"HEAD", "OPTIONS"})  # methods that every route has
_SCHEMES: Final = {
    "writeKey": "A write or gateway key.  It ships in applications, so it is no secret.",
    "readToken": "A read or admin token; what it opens depends on its role.",
}
# Of the HTTP server itself, as is 400 for what is no HTTP; a long question is sent by POST.
_TOO_LONG: Final = {"431": {"description": "The address and headers are too long.  No body."}}
_OF_REPORT: Final = (400, 401, 403, 408, 410, 413, 415, 422, 429, 503)
_OF_OTHERS: Final = (401, 403, 503)
_PLACES: Final = "#/components/schemas/{name}"  # of forms in the document
_MARK: Final = "hearsay_operation"  # the attribute of a view that holds its declaration


@dataclass(frozen=True)
class Operation:
    """One route: the form of its answer, and what may be asked of it.  It decorates the view."""

    answer: type | None = None  # of an answer in JSON; None for one of another kind
    status: int = 200
    media_type: str = JSON  # of the answer
    parameters: tuple[Parameter, ...] = ()
    # The form of the body by media type; it has exactly one of several.
    takes: Mapping[str, type | Sequence[type]] | None = None
    carries: str = ""  # media type of a body that only its receiver can read
    # Schemas of the answer in other forms, by media type.
    alternatives: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    is_kept: bool = False  # a browser that has the answer may get a 304
    problems: tuple[int, ...] = ()  # statuses in addition to its scope's
    summary: str = ""  # by default the first line of the view's docstring

    def __call__(self, view: V) -> V:
        """Declare that *view* takes and answers this."""
        setattr(view, _MARK, self)
        return view


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
    content = {JSON: {"schema": _schema_of(forms)}}
    parameter = {"name": name, "in": "query", "required": True, "description": what}
    return {**parameter, "content": content}


def _schema_of(forms: type | Sequence[type]) -> dict[str, object]:
    """Return the schema of what has exactly one of *forms*, each defined among the components."""
    if isinstance(forms, type):
        return {"$ref": _PLACES.format(name=forms.__name__)}
    return {"oneOf": [_schema_of(form) for form in forms]}


def in_query(name: str, schema: Mapping[str, object], what: str) -> Parameter:
    """Return a parameter that may be left out."""
    return {"name": name, "in": "query", "description": what, "schema": schema}


@blueprint.get(PATH)
@scope(OPEN)
@Operation()
def describe_routes() -> ResponseReturnValue:
    """Tell what can be asked of this collector, as OpenAPI 3.1."""
    return _document_of(current_app._get_current_object())  # type: ignore[attr-defined]  # a proxy


@lru_cache(maxsize=8)
def _document_of(app: Flask) -> dict[str, Any]:
    return document(app)


def declare_files(app: Flask) -> None:
    """Declare Flask's own route of files, which has no view of ours."""
    name = in_path("filename", "^[^/]+$", "The name of a style sheet, a script or a picture.")
    files: Any = app.view_functions["static"]
    Operation(
        media_type="text/css; charset=utf-8",
        parameters=(name,),
        problems=(404,),
        summary="Send a file of the pages: style sheets, scripts, the icon.",
    )(files)


def document(app: Flask) -> dict[str, Any]:
    """Return the OpenAPI document of *app*."""
    routes = sorted(app.url_map.iter_rules(), key=lambda rule: rule.rule)
    declared = [
        (rule, method, operation)
        for rule in routes
        for method in sorted((rule.methods or set()) - _SILENT)
        if (operation := operation_of(app.view_functions[rule.endpoint]))
    ]
    paths: dict[str, dict[str, object]] = {}
    for rule, method, operation in declared:
        view = app.view_functions[rule.endpoint]
        described = {"operationId": rule.endpoint.rpartition(".")[2], **_operation(view, operation)}
        paths.setdefault(path_of(rule), {})[method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hearsay collector",
            "version": __version__,
            "description": "Takes perturbed reports, answers with estimates and their intervals.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": _schemas(operation for _, _, operation in declared),
            "securitySchemes": {
                name: {"type": "http", "scheme": "bearer", "description": what}
                for name, what in _SCHEMES.items()
            },
        },
    }


def path_of(rule: Rule) -> str:
    """Return the path of *rule* as OpenAPI writes it."""
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)


def _operation(view: Any, operation: Operation) -> dict[str, object]:
    needed = scope_of(view) or ""
    statuses = _OF_REPORT if needed == REPORT else () if needed == OPEN else _OF_OTHERS
    described: dict[str, object] = {
        "summary": operation.summary or (view.__doc__ or "").partition("\n")[0],
        "responses": {
            str(operation.status): {
                "description": "The answer.",
                "content": _contents(operation),
            },
            **(
                {"304": {"description": "The answer that was kept still holds."}}
                if operation.is_kept
                else {}
            ),
            **dict(_problems(sorted({*statuses, *operation.problems}), needed)),
            **(_TOO_LONG if operation.parameters else {}),
        },
        "security": [],
    }
    if needed != OPEN:
        described["security"] = [{"writeKey" if needed == REPORT else "readToken": []}]
    if operation.parameters:
        described["parameters"] = list(operation.parameters)
    if operation.takes:
        content = {kind: {"schema": _schema_of(forms)} for kind, forms in operation.takes.items()}
        described["requestBody"] = {"required": True, "content": content}
    if operation.carries:
        content = {operation.carries: {"schema": {"type": "string", "format": "binary"}}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _contents(operation: Operation) -> Mapping[str, object]:
    schema = _schema_of(operation.answer) if operation.answer else {"type": "object"}
    is_told = operation.answer or operation.media_type == JSON
    contents: dict[str, dict[str, Any]] = {
        operation.media_type: {"schema": schema} if is_told else {}
    }
    for kind, other in operation.alternatives.items():
        known = contents.get(kind)
        contents[kind] = {"schema": {"anyOf": [known["schema"], other]} if known else other}
    return contents


def _problems(statuses: Iterable[int], needed: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the answer of each status that is an error, with the headers that belong to it."""
    headers = {
        401: {"WWW-Authenticate": {"schema": {"const": "Bearer"}, "required": True}},
        429: {"Retry-After": {"schema": {"type": "integer"}, "required": True}},
        503: {"Retry-After": {"schema": {"type": "integer"}, "required": True}},
    }
    for status in statuses:
        response = {
            "description": HTTPStatus(status).phrase + "." if needed == OPEN else _reasons(status),
            "content": {PROBLEM: {"schema": _schema_of(Problem)}},
        }
        yield str(status), response | ({"headers": headers[status]} if status in headers else {})


def _reasons(status: int) -> str:
    return ("; or: ".join(titles(status)) or HTTPStatus(status).phrase) + "."


def _schemas(operations: Iterable[Operation]) -> dict[str, object]:
    forms: set[type] = {Problem}
    for operation in operations:
        forms.update([operation.answer] if operation.answer else [])
        for taken in (operation.takes or {}).values():
            forms.update([taken] if isinstance(taken, type) else taken)
    in_order = sorted(forms, key=lambda form: form.__name__)
    _, schemas = msgspec.json.schema_components(in_order, ref_template=_PLACES)
    # A default may be a tuple, which is a list in JSON.
    plain: dict[str, object] = msgspec.json.decode(msgspec.json.encode(schemas))
    return plain
