"""Any question, path and body: an answer in good order that repeats nothing of it."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.crowds.examples import FEW, MANY, trying
from tests.support.crowds.uploads import ADMIN_TOKEN, READ_TOKEN, bearer
from tests.support.sites.attacked_site import AttackedSite, today
from tests.support.sites.hostile_bodies import CANARY, Hostile, bodies, good
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

ESTIMATE: Final = "/v1/metrics/page/estimate"
LONG: Final = 15_000  # characters of a query, with which the headers are near their limit
READER: Final = bearer(READ_TOKEN)
NAMES: Final = ("from", "to", "alpha", "version", "segment.platform", "segment.", "segment", "x")
ODD: Final = (
    *("", "0", "-1", "nan", "inf", "1e999", "1e-999", "0_1", "٠.٥", " 0.05", "0x1", "9" * 5_000),
    *("2026-1-1", "２０２６-01-01", "0000-00-00", "9999-12-31", "2999-12-31", "1970-01-01"),
    *("2026-02-30", "2026-01-01T00:00:00Z", "20260101", "2026-W01-1", "-2026-01-01", "mac", "MAC"),
    *("\0", "\r\nX: y", "<script>alert(1)</script>", "' or 1=1 --", "%00", "{{7*7}}", CANARY),
)
ROOTS: Final = ("/static/", "/v1/metrics/", "/", "/v1/", "/static/x/", "/metrics/")
STEPS: Final = (
    *(
        "../",
        "..%2f",
        "%2e%2e/",
        "%2e%2e%2f",
        "..%252f",
        "..\\",
        "..%5c",
        "....//",
        "..;/",
        "./.././",
    ),
    *("%c0%ae%c0%ae/", "..%c0%af", "..%00/", "%uff0e%uff0e/", "/", "//", "file:///", "..%ef%bc%8f"),
)
FILES: Final = ("etc/passwd", "app.py", "metrics.toml")
LOOKALIKES: Final = "аеорсухіјѕԁɡⅼ０１ｐａｇｅＰＡＧＥΑΕΟΡ\u200b\u200d\u00ad\ufeff\u0301\u2024․。．"


@pytest.mark.parametrize("examples", [FEW, MANY])
def test_any_parameters_are_answered_or_refused_by_name(site: AttackedSite, examples: int) -> None:
    """200 or 400, never a 5xx, and the text of a parameter does not come back."""
    names = st.sampled_from(NAMES) | st.text(max_size=5)
    values = st.sampled_from(ODD) | st.text(max_size=12)

    @trying(examples)
    @given(st.lists(st.tuples(names, values), max_size=4))
    def law(parameters: list[tuple[str, str]]) -> None:
        query = urlencode(parameters, errors="surrogatepass")
        answer = site.ask("GET", f"{ESTIMATE}?{query}", READER).require_sound()
        assert answer.status in ((200, 400) if len(query) < LONG else (414, 431, 200, 400))
        assert CANARY.encode() not in answer.body
        assert b"<script" not in answer.body

    law()


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        *(("alpha", odd) for odd in ODD if odd != "0_1"),
        ("alpha", "0_1"),
        *(("from", odd) for odd in ODD if odd != "1970-01-01"),
        *(("version", odd) for odd in ("-1", "4", "00", "1.0", "٠", " 0", "true", "9" * 5_000)),
    ],
)
def test_a_value_that_only_looks_like_one_is_refused(
    site: AttackedSite, parameter: str, value: str
) -> None:
    """Digits of other scripts, underscores, spaces and short dates are read by Python, not here."""
    if (parameter, value) == ("from", "2026-01-01"):
        return

    answer = site.ask("GET", f"{ESTIMATE}?{parameter}={quote(value)}", READER)

    assert answer.require_sound().status == 400
    assert parameter in answer.problem["detail"]


def traversals() -> Iterator[str]:
    for root, step, file in product(ROOTS, STEPS, FILES):
        yield f"{root}{step * 3}{file}"


def test_no_path_leads_out_of_its_folder(site: AttackedSite) -> None:
    """324 ways to write a path upwards: none finds a file, none redirects."""
    paths = list(traversals())
    assert len(paths) >= 200

    for path in paths:
        answer = site.ask("GET", quote(path, safe="/%;.:\\"), READER)

        assert answer.status in (404, 401), path
        assert b"root:" not in answer.body
        assert b"import " not in answer.body
        assert b"[metrics" not in answer.body


def aliases(name: str) -> Iterator[str]:
    """Yield names that look like *name*, or become it when somebody is too helpful."""
    for place, mark in product(range(len(name) + 1), LOOKALIKES):
        yield name[:place] + mark + name[place:]
        if place < len(name):
            yield name[:place] + mark + name[place + 1 :]
    for bits in range(1, 1 << len(name)):
        yield "".join(c.upper() if bits >> i & 1 else c for i, c in enumerate(name))
    for code in range(0x21):
        for place in (0, len(name)):
            yield name[:place] + chr(code) + name[place:]
    for code in range(0x2000, 0x2600):
        yield chr(code) + name
        yield name + chr(code)
    yield from (name * times for times in range(2, 200))
    wide = {ord(c): chr(ord(c) + 0xFEE0) for c in name}
    yield from (unicodedata.normalize(form, name.translate(wide)) for form in ("NFC", "NFD"))


@pytest.mark.slow
def test_no_other_name_is_taken_for_a_metric(site: AttackedSite) -> None:
    """5,000 look-alikes, cases, paddings and repetitions of a name are all unknown."""
    others = {alias for name in ("page", "theme") for alias in aliases(name)} - {"page", "theme"}
    assert len(others) >= 5_000

    for alias in sorted(others):
        path = f"/v1/metrics/{quote(alias, safe='')}/estimate"
        assert site.ask("GET", path, READER).status == 404, ascii(alias)


PATH: Final = "/v1/query"
HEADERS: Final = {**bearer(READ_TOKEN), "Content-Type": "application/json"}
SOON: Final = 5.0  # seconds of a processor; an honest question takes milliseconds
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
    before = site.work()

    answer = site.ask("POST", PATH, HEADERS, body).require_sound()

    assert answer.status in (200, 400, 404, 413)
    assert site.work() - before < SOON


def test_an_honest_question_is_answered(site: AttackedSite) -> None:
    """The control: a collector that refused everything would pass the laws above."""
    answer = site.ask("POST", PATH, HEADERS, b'{"metrics":["page"],"verb":"top_k"}')

    assert answer.status == 200
    assert json.loads(answer.body)["meta"]["verb"] == "top_k"


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
