"""The OpenAPI document against a running collector: valid and invalid requests made from it.

The document is the only thing that these requests know; a fault in either shows as a difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.wire.oblivious import REQUEST_TYPE
from collector.web.api.openapi import document as document_of
from tests.support.crowds.examples import trying
from tests.support.crowds.uploads import ADMIN_TOKEN, READ_TOKEN, WRITE_KEY, bearer
from tests.support.patience import PATIENCE
from tests.support.sites.attacked_site import AttackedSite
from tests.support.sites.page_routes import unasked
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

FEW: Final = 25
JSON: Final = "application/json"
MANY: Final = pytest.param(2_000, marks=pytest.mark.slow)
SECRETS: Final = {"/v1/reports": WRITE_KEY, "/metrics": ADMIN_TOKEN}
API: Final = (
    *("GET /livez", "GET /metrics", "GET /readyz", "GET /static/{filename}"),
    *("GET /v1/metrics", "GET /v1/metrics/{name}/estimate", "GET /v1/openapi.json"),
    *("GET /v1/query", "POST /v1/query", "POST /v1/reports"),
)


def labels() -> list[str]:
    """Return every operation that is described."""
    paths = document_of(unasked())["paths"].items()
    return [f"{method.upper()} {path}" for path, methods in paths for method in methods]


LABELS: Final = sorted(labels())


@pytest.fixture(scope="module")
def document(site: AttackedSite) -> Any:
    import schemathesis  # takes a second, and only these tests need it

    schemathesis.serializer(REQUEST_TYPE)(lambda _, value: value)  # bytes, as they are
    served = requests.get(f"{site.url}/v1/openapi.json", timeout=PATIENCE).json()
    return schemathesis.openapi.from_dict(served)


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as kept:
        yield kept


def operation_of(document: Any, label: str) -> Any:
    [found] = [one.ok() for one in document.get_all_operations() if one.ok().label == label]
    return found


def test_every_operation_of_the_document_is_tried(document: Any) -> None:
    assert {one.ok().label for one in document.get_all_operations()} == set(LABELS)
    assert set(API) < set(LABELS)


def leaves_empty(operation: Any, url: str) -> bool:
    """Whether known fields of a request are empty, or lists: on the wire these say other things."""
    parameters = operation.definition.raw.get("parameters", ())
    known = {field["name"]: field["schema"] for field in parameters if "schema" in field}
    sent = parse_qsl(urlsplit(url).query, keep_blank_values=True)
    if any(known.get(name, {}).get("type") == "array" for name, _ in sent):
        return True  # what is no list goes as a text, which is a list of one
    empty = {name for name, value in sent if not value}
    return bool(empty) and all(name in known and may_be_empty(known[name]) for name in empty)


def leaves_out(case: Any, url: str) -> bool:
    """Whether a field of the query is not on the wire, as an empty list is none: nobody sees it."""
    sent = {name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)}
    return not {str(name) for name in case.query or ()} <= sent


def may_be_empty(schema: Any) -> bool:
    """Whether a parameter of this form may be sent as an empty text."""
    texts = [schema, *schema.get("anyOf", ()), schema.get("items", {})]
    return any(
        form.get("const") == "" or "" in form.get("enum", ()) or form == {"type": "string"}
        for form in texts
    )


@pytest.mark.parametrize("examples", [FEW, MANY])
@pytest.mark.parametrize("label", LABELS)
def test_a_request_made_from_the_document_is_answered_as_it_says(
    site: AttackedSite, document: Any, session: requests.Session, label: str, examples: int
) -> None:
    """Statuses, types, headers and forms of the answers; no 5xx; invalid requests are refused."""
    from schemathesis import GenerationMode
    from schemathesis.checks import CHECKS

    operation = operation_of(document, label)
    headers = bearer(SECRETS.get(operation.path, READ_TOKEN))
    # A valid form is not yet an upload of today, and a pattern not yet the name of a metric.
    names = ["positive_data_acceptance", "ignored_auth"]
    left_out = CHECKS.get_by_names(names)
    kinds = [body.media_type for body in operation.body]
    media = {"media_type": REQUEST_TYPE if REQUEST_TYPE in kinds else JSON} if kinds else {}
    modes = [operation.as_strategy(generation_mode=mode, **media) for mode in GenerationMode]

    @trying(examples if label in API else examples // 3)
    @given(st.one_of(modes))
    def law(case: Any) -> None:
        answer = case.call(base_url=site.url, session=session, headers=headers, timeout=PATIENCE)
        # A refusal of the HTTP server itself is no verdict on what the request says; and a null or
        # an empty list goes as "", which the document allows where a form leaves a field empty.
        url = answer.request.url or ""
        is_told = answer.status_code == 431 or leaves_empty(operation, url) or leaves_out(case, url)
        more = CHECKS.get_by_names(["negative_data_rejection"] * is_told)
        case.validate_response(answer, excluded_checks=[*left_out, *more])

    law()


def test_a_field_that_goes_as_nothing_is_known_from_one_that_is_seen(
    site: AttackedSite, document: Any, session: requests.Session
) -> None:
    """The server refuses a field that it does not know, and cannot refuse what was never sent."""
    statuses: dict[bool, int] = {}
    values: tuple[Any, ...] = ("x", [])
    for value in values:
        case = operation_of(document, "GET /v1/metrics/{name}/estimate").Case(
            path_parameters={"name": "page"}, query={"unknown": value}
        )
        answer = case.call(
            base_url=site.url, session=session, headers=bearer(READ_TOKEN), timeout=PATIENCE
        )
        statuses[leaves_out(case, answer.request.url or "")] = answer.status_code

    assert statuses == {False: 400, True: 200}


def test_a_document_that_does_not_tell_the_truth_would_be_caught(
    site: AttackedSite, session: requests.Session
) -> None:
    """The control: a form that the answer has not, and a status that is not told."""
    import schemathesis
    from schemathesis.core.failures import FailureGroup

    told = session.get(f"{site.url}/v1/openapi.json", timeout=PATIENCE).json()
    told["components"]["schemas"]["Ready"]["properties"]["backlog"] = {"type": "string"}
    del told["paths"]["/v1/metrics"]["get"]["responses"]["401"]
    lying = schemathesis.openapi.from_dict(told)

    for label in ("GET /readyz", "GET /v1/metrics"):
        case = operation_of(lying, label).Case()
        with pytest.raises(FailureGroup):
            case.call_and_validate(base_url=site.url, session=session, timeout=PATIENCE)


@pytest.mark.parametrize("label", [label for label in API if "{" not in label])
def test_without_a_credential_a_route_that_needs_one_refuses(
    site: AttackedSite, document: Any, session: requests.Session, label: str
) -> None:
    """As the document says of each route."""
    operation = operation_of(document, label)
    case = operation.Case()

    status = case.call(base_url=site.url, session=session, timeout=PATIENCE).status_code

    assert (status == 401) == bool(operation.definition.raw["security"])
