"""Any question to POST /v1/query: an answer in good order, soon, that repeats nothing of it."""

from __future__ import annotations

import json
import time
from typing import Any, Final
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.crowds.examples import FEW, MANY, trying
from tests.support.crowds.uploads import READ_TOKEN, bearer
from tests.support.sites.attacked_site import AttackedSite
from tests.support.sites.hostile_bodies import CANARY
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

PATH: Final = "/v1/query"
HEADERS: Final = {**bearer(READ_TOKEN), "Content-Type": "application/json"}
SOON: Final = 5.0  # seconds; an honest question takes milliseconds
FIELDS: Final = (
    *("metrics", "verb", "date_range", "dimensions", "filters", "order_by", "include", "alpha"),
    *("postprocess", "version", "pagination", "options", "limit", "offset", CANARY),
)
LEAVES: Final = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from((CANARY, "page", "top_k", "12mo", "platform", "is", "time:hour", "k", ""))
    | st.text(max_size=6)
)
ANY: Final = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize("examples", [FEW // 4, MANY])
def test_any_document_is_answered_or_refused_at_its_place(
    site: AttackedSite, examples: int
) -> None:
    """No 5xx, and no text of it but what the collector itself has declared comes back."""
    seen: set[int] = set()

    @trying(examples)
    @given(st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, ANY)))
    def law(document: dict[str, Any]) -> None:
        body = json.dumps({"metrics": ["page"]} | document).encode("utf-8", "surrogatepass")
        answer = site.ask("POST", PATH, HEADERS, body).require_sound()
        assert answer.status in (200, 400, 404)
        assert CANARY.encode() not in answer.body
        seen.add(answer.status)
        linked = site.ask("GET", f"{PATH}?q={quote(body)}", HEADERS).require_sound()
        assert linked.status == answer.status

    law()

    assert 400 in seen


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 60_000,
        b'{"metrics":' * 5_000,
        b'{"metrics":["page"],"options":' + b'{"a":' * 9_000 + b"1" + b"}" * 9_001,
        b'{"metrics":["page"],"alpha":' + b"9" * 60_000 + b"}",
        b'{"metrics":["page"],"alpha":1e' + b"9" * 60_000 + b"}",
        b'{"metrics":["page"],"options":{' + b",".join(b'"%d":1' % i for i in range(6_000)) + b"}}",
        b'{"metrics":["page"],"filters":[["is","platform",['
        + b",".join([b'"mac"'] * 9_000)
        + b"]]]}",
        b'{"metrics":["' + b"\\u0000" * 10_000 + b'"]}',
        b'{"metrics":["page"],"date_range":["0001-01-01","9999-12-31"]}',
        b'{"metrics":["crashed"],"date_range":"12mo","dimensions":["time:hour"]}',
        b"\xff" * 60_000,
        b" " * 65_537,
        b"x" * 1_000_000,
    ],
    ids=lambda body: repr(body[:24]),
)
def test_a_costly_question_is_answered_or_refused_soon(site: AttackedSite, body: bytes) -> None:
    """Deep, wide, long and large documents within the limit, and one byte beyond it."""
    begun = time.monotonic()

    answer = site.ask("POST", PATH, HEADERS, body).require_sound()

    assert answer.status in (200, 400, 404, 413)
    assert time.monotonic() - begun < SOON


def test_an_honest_question_is_answered(site: AttackedSite) -> None:
    """The control: a collector that refused everything would pass the laws above."""
    answer = site.ask("POST", PATH, HEADERS, b'{"metrics":["page"],"verb":"top_k"}')

    assert answer.status == 200
    assert json.loads(answer.body)["meta"]["verb"] == "top_k"
