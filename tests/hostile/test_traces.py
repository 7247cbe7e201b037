"""What a device says about itself while it reports is nowhere afterwards.

Addresses, agents, ids, cookies and labels are sent as canaries with uploads that are accepted, and
with some that are not; then the store, its files, the logs and the metrics are searched for them.
"""

from __future__ import annotations

import json
import os
from itertools import cycle
from typing import Final
from urllib.parse import quote

import pytest

from client_sdk.core.base64url import base64url
from client_sdk.wire.reports import Column
from collector.intake.wire import JSON
from tests.hostile.conftest import LISTED
from tests.hostile.markup import MARKUP
from tests.support.crowds.uploads import READ_TOKEN, WRITE_KEY, as_json, bearer, registry, upload
from tests.support.sites.attacked_site import AttackedSite, today
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

FEW: Final = 300
MANY: Final = pytest.param(10_000, marks=pytest.mark.slow)
ADDRESSES: Final = ("203.0.113.77", "2001:db8:dead:beef::77", "198.51.100.201")
AGENT: Final = "CanaryPhone/7.3 (model CX-9417)"
INSTALL: Final = "install-canary-5ce77a10"
COOKIE: Final = "session=canarycookie91e4"
HEADERS: Final = {
    "User-Agent": AGENT,
    "X-Forwarded-For": ", ".join(ADDRESSES),
    "X-Real-IP": ADDRESSES[0],
    "Forwarded": f'for="[{ADDRESSES[1]}]";by={ADDRESSES[2]}',
    "CF-Connecting-IP": ADDRESSES[2],
    "Cookie": COOKIE,
    "X-Device-Id": INSTALL,
    "Referer": f"https://app.example/{INSTALL}",
    "From": f"{INSTALL}@example.org",
    "traceparent": f"00-{INSTALL}-01",
    "Accept-Language": "canary-CX",
    "Sec-CH-UA": f'"Canary";v="{INSTALL}"',
    "Sec-CH-UA-Model": '"CX-9417"',
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Mode": "cors",
    "DNT": "1",
    "Sec-GPC": "1",
}
# What a browser says of the page that reports; the settings list one of them.
ORIGINS: Final = (LISTED, "https://canary-elsewhere.example", "null")
PREFLIGHT: Final = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
}
TRACES: Final = (
    *ADDRESSES,
    *("CanaryPhone", "CX-9417", INSTALL, "canarycookie91e4", "canary-CX", "canarylabel"),
    *("canary-page", "canary-elsewhere", "cross-site"),
    *("127.0.0.1", WRITE_KEY, READ_TOKEN),
)
PAGE: Final = registry().metric("page")


def traces(kept: bytes, wanted: tuple[str, ...] = TRACES) -> list[str]:
    """Return which of *wanted* are in *kept*, in any case, plain or as UTF-16 or hexadecimal."""
    text, found = kept.lower(), []
    for one in wanted:
        forms = (one.encode(), one.encode("utf-16-le"), one.encode().hex().encode())
        if any(form.lower() in text for form in forms):
            found.append(one)
    return found


@pytest.mark.parametrize("uploads", [FEW, MANY])
def test_nothing_that_tells_devices_apart_is_kept_anywhere(
    site: AttackedSite, uploads: int
) -> None:
    """Not in the store, its log, our logs or metrics; the upload's id only as long as it must."""
    segments: list[dict[str, str]] = [{}, {"platform": "mac"}, {"canarylabel": "canarylabel"}]
    kinds, column = cycle(segments), Column(PAGE.digest, today(), b"\1")
    for number in range(uploads):
        body = as_json(
            upload([column], upload_id=os.urandom(16), sealed=today(), segment=next(kinds))
        )
        body = body if number % 5 else body.replace(b'"v"', f'"{INSTALL}"'.encode())
        path = f"/v1/reports?device={INSTALL}" if number % 7 == 0 else "/v1/reports"
        secret = bearer(WRITE_KEY if number % 11 else INSTALL)
        browser = {**HEADERS, "Origin": ORIGINS[number % len(ORIGINS)]}
        if number % 13 == 0:
            site.ask("OPTIONS", path, browser | PREFLIGHT)
        answer = site.ask("POST", path, {**browser, **secret, "Content-Type": JSON}, body)
        assert answer.status in (202, 400, 401)
    for path in (
        "/",
        "/v1/retired",
        "/v1/metrics",
        f"/{INSTALL}",
        f"/v1/metrics/{INSTALL}/estimate",
        "/livez",
    ):
        site.ask("GET", f"{path}?{INSTALL}", HEADERS | bearer(READ_TOKEN))

    kept = site.kept()

    assert traces(kept, tuple(t for t in TRACES if t != "127.0.0.1")) == []
    assert "127.0.0.1" not in site.log.read_text(encoding="utf-8")


def test_a_trace_that_is_kept_would_be_found(site: AttackedSite) -> None:
    """The control: what the store does hold is seen by the search, and what a log would."""
    named = os.urandom(16)
    column = Column(PAGE.digest, today(), b"\1")
    site.report(as_json(upload([column], upload_id=named, sealed=today())))
    planted = site.folder / "access.log"
    planted.write_text(f"{AGENT}\n", encoding="utf-8")

    kept = site.kept()
    planted.unlink()

    assert traces(kept) == ["CanaryPhone", "CX-9417"]
    assert PAGE.digest in kept
    assert named not in kept  # nothing but a keyed hash of it is remembered


def test_a_thousand_scripts_in_every_field_are_neither_kept_nor_answered(
    site: AttackedSite,
) -> None:
    """Texts of clients are compared, never stored and never repeated."""
    assert len(set(MARKUP)) >= 1_000
    column = Column(PAGE.digest, today(), b"\1")
    sent = [f"{text} {number}" for number, text in enumerate(MARKUP)]  # as no form of a page is
    for number, text in enumerate(sent):
        table = upload([column], upload_id=os.urandom(16), sealed=today())
        fields = (
            {"id": text},
            {"segment": {"platform": text}},
            {"segment": {text: "mac"}},
            {text: 1},
            {"v": text},
            {"columns": [{"metric": text, "epoch": 0, "payloads": "AA"}]},
            {"columns": [{"metric": base64url(PAGE.digest), "epoch": 0, "payloads": text}]},
        )
        answer = site.report(as_json({**table, **fields[number % len(fields)]}))
        assert answer.status in (202, 400)
        assert text.encode() not in answer.body
        assert answer.headers["content-type"].endswith("json")

    kept = site.kept()
    assert [text for text in sent if len(text) > 8 and text.encode() in kept] == []


CONTROLS: Final = ("\x00", "\x1b[31m", "\x07", "\x08", "\u2028", "\x85", "%0d%0a", "\\r\\n")


def test_every_line_of_the_log_is_one_event_whatever_is_sent(site: AttackedSite) -> None:
    """Control characters in bodies, parameters and names: no line that is not JSON of ours."""
    for mark in (*CONTROLS, "\r\n", "\n", "\r"):
        text = f'{mark}{{"level": "error", "message": "forged"}}{mark}'
        site.report(as_json({"v": text}))
        site.report(text.encode("utf-8", "surrogatepass"), kind="application/json")
        for path in ("/v1/metrics/{}/estimate", "/v1/metrics/page/estimate?from={}", "/{}"):
            site.ask("GET", path.format(quote(text)), bearer(READ_TOKEN))

    lines = site.log.read_text(encoding="utf-8").splitlines()
    assert all(isinstance(json.loads(line), dict) for line in lines)
    assert not [line for line in lines if "forged" in line]
