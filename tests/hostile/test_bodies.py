"""Any body on any route: an answer in good order, soon, that repeats nothing of what was sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.crowds.examples import FEW, MANY, trying
from tests.support.crowds.uploads import ADMIN_TOKEN, READ_TOKEN, bearer
from tests.support.sites.attacked_site import AttackedSite, today
from tests.support.sites.hostile_bodies import CANARY, Hostile, bodies, good
from tests.support.store.servers import needs_real

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@dataclass(frozen=True)
class Route:
    """A path and the headers that open it."""

    path: str
    headers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.path


ROUTES: Final = (
    Route("/", bearer(READ_TOKEN)),
    Route("/metric/page", bearer(READ_TOKEN)),
    Route("/metric/page/answer.csv", bearer(READ_TOKEN)),
    Route("/compare", bearer(READ_TOKEN)),
    Route("/ask?metric=page&verb=top_k", bearer(READ_TOKEN)),
    Route("/ask.csv?q=%7B%22metrics%22:[%22page%22]%7D", bearer(READ_TOKEN)),
    Route("/plan?metric=page", bearer(READ_TOKEN)),
    Route("/privacy", bearer(READ_TOKEN)),
    Route("/privacy/people"),
    Route("/privacy/differencing", bearer(READ_TOKEN)),
    Route("/privacy/record.json", bearer(READ_TOKEN)),
    Route("/operations", bearer(ADMIN_TOKEN)),
    Route("/login"),
    Route("/v1/metrics", bearer(READ_TOKEN)),
    Route("/v1/metrics/page/estimate", bearer(READ_TOKEN)),
    Route("/v1/query?q=%7B%22metrics%22:[%22page%22]%7D", bearer(READ_TOKEN)),
    Route("/v1/openapi.json"),
    Route("/metrics", bearer(ADMIN_TOKEN)),
    Route("/livez"),
    Route("/readyz"),
    Route("/static/hearsay.css"),
)


pytestmark = [pytest.mark.real, needs_real]


@pytest.mark.parametrize("examples", [FEW, MANY])
def test_any_upload_is_accepted_or_refused_for_a_reason(site: AttackedSite, examples: int) -> None:
    """No 5xx, no hang, and nothing of the body in the answer."""
    seen: set[int] = set()

    @trying(examples)
    @given(bodies(today()))
    def law(sent: Hostile) -> None:
        answer = site.report(*sent).require_sound()
        assert CANARY.encode() not in answer.body
        seen.add(answer.status)

    law()

    assert {202, 400, 415} <= seen


@pytest.mark.parametrize("examples", [FEW // 10, MANY])  # of these only the log-in reads one
@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_any_body_on_any_other_route_changes_nothing(
    site: AttackedSite, route: Route, examples: int
) -> None:
    """A route that reads no body answers as if there were none, or refuses the method."""
    kinds = st.sampled_from(("application/json", "application/x-www-form-urlencoded", "x"))

    @trying(examples)
    @given(st.sampled_from(METHODS), st.binary(max_size=64), kinds)
    def law(method: str, body: bytes, kind: str) -> None:
        headers = {"Content-Type": kind, **route.headers}
        sent = CANARY.encode() + body
        answer = site.ask(method, route.path, headers, sent)
        refused = (400, 401, 413) if route.path == "/login" else (400, 405, 415)
        expected = (200, 304) if method in ("GET", "HEAD", "OPTIONS") else (405, *refused)
        assert answer.status in expected
        assert CANARY.encode() not in answer.body

    law()


@pytest.mark.parametrize("charset", ["", "; charset=utf-16", "; charset=utf-7", "; charset=x"])
@pytest.mark.parametrize(
    "coding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp500"]
)
def test_an_upload_in_any_coding_but_utf_8_is_refused(
    site: AttackedSite, coding: str, charset: str
) -> None:
    """Whatever its headers claim: two readers must not read two uploads."""
    body = good("application/json", today()).decode().encode(coding)

    answer = site.report(body, f"application/json{charset}")

    assert answer.require_sound().status == 400


def test_the_honest_upload_that_hostile_ones_are_bent_from_is_accepted(
    site: AttackedSite,
) -> None:
    """Otherwise the laws above would hold for a collector that refuses everything."""
    answer = site.report(good("application/json", today()))

    assert answer.status == 202
