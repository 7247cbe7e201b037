"""Log-in by read token: the cookie's flags, forged forms, where it leads, and when it ends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from flask import Flask
from flask.testing import FlaskClient

from client_sdk.core.epoch import DAY
from collector.core.credentials import ANALYST, OPERATOR, READ, VIEWER, Credential, digest_of
from collector.web import create_app
from tests.collector.web.conftest import MakeApp
from tests.collector.web.pages.conftest import BROWSER, END, ONE_METRIC, token_of
from tests.support.crowds.uploads import ADMIN_TOKEN, NOON, READ_TOKEN, WRITE_KEY
from tests.support.device.every_type import NAMES, registry_text
from tests.support.sites.in_memory import browser_of, in_memory
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

TODAY: Final = int(NOON // DAY)
SAME_SITE: Final = {"Sec-Fetch-Site": "same-origin", "Origin": "null"}  # as a form of ours has it
PAGES: Final = (
    *("/", "/metric/category", "/metric/category/answer.csv", "/compare", "/ask", "/plan"),
    *("/privacy", "/privacy/record.json", "/operations"),
)
ELSEWHERE: Final = (
    *("//evil.example", "/\\evil.example", "\\\\evil.example", "https://evil.example/", "evil"),
    *("javascript:alert(1)", "/\t/evil.example", "/\n//evil.example", " //evil.example", ""),
    *("///evil.example", "/ /evil.example", "http:/\\evil.example", "//", "/\\", "/\x00/evil"),
    *("data:text/html,x", "//user@evil.example", "/é//evil"),
)


def log_in(client: FlaskClient, token: str, wanted: str = "/", **headers: str):  # type: ignore[no-untyped-def]  # a response
    given = headers or SAME_SITE
    form = {"token": token, "next": wanted}
    return client.post("/login", data=form, headers={**BROWSER, **given})


def test_the_log_in_page_says_what_this_is_and_leads_to_the_page_for_people(
    browser: FlaskClient,
) -> None:
    page = browser.get("/login", headers=BROWSER).text

    assert "what a crowd of devices does" in page
    assert '<a href="/privacy/people">what is asked of you</a>' in page
    assert "Continue" not in page  # no proxy names people here


@pytest.mark.parametrize(
    ("host", "name", "flags"),
    [
        ("127.0.0.1:8000", "hearsay", {"HttpOnly", "SameSite=Strict", "Path=/"}),
        ("[::1]:8000", "hearsay", {"HttpOnly", "SameSite=Strict", "Path=/"}),
        (
            "stats.example.org",
            "__Host-hearsay",
            {"HttpOnly", "SameSite=Strict", "Path=/", "Secure"},
        ),
        (
            "127.0.0.1.example.org",
            "__Host-hearsay",
            {"HttpOnly", "SameSite=Strict", "Path=/", "Secure"},
        ),
    ],
)
def test_the_cookie_is_for_no_script_no_other_site_and_by_tls_but_on_this_machine(
    browser: FlaskClient, host: str, name: str, flags: set[str]
) -> None:
    response = log_in(browser, READ_TOKEN, Host=host, **SAME_SITE)

    (told,) = response.headers.getlist("Set-Cookie")
    assert told.split("=")[0] == name
    assert set(told.split("; ")[1:]) == flags


@pytest.mark.parametrize(
    ("sent_from", "own"),
    [
        ("none", True),
        ("cross-site", False),
        ("same-site", False),
        ("same-origin", False),
        ("", False),
    ],
)
def test_a_link_is_sent_at_once_only_if_no_page_led_to_it(
    browser: FlaskClient, sent_from: str, own: bool
) -> None:
    """A page elsewhere that leads here with its own token would log a reader in as somebody."""
    headers = {**BROWSER, "Sec-Fetch-Site": sent_from} if sent_from else BROWSER

    assert (" data-own>" in browser.get("/login", headers=headers).text) == own


def test_a_log_in_leads_to_the_page_that_was_asked_for(browser: FlaskClient) -> None:
    asked = browser.get("/metric/category?range=7d", headers=BROWSER)
    form = browser.get(asked.headers["Location"], headers=BROWSER)
    response = log_in(browser, READ_TOKEN, "/metric/category?range=7d")
    page = browser.get(response.headers["Location"], headers=BROWSER)

    assert (asked.status_code, response.status_code) == (303, 303)
    assert asked.headers["Location"].startswith("/login?next=")
    assert 'value="/metric/category?range=7d"' in form.text
    assert page.status_code == 200
    assert "All of category" in page.text


@pytest.mark.parametrize("wanted", ELSEWHERE)
def test_a_log_in_leads_nowhere_else(browser: FlaskClient, wanted: str) -> None:
    response = log_in(browser, READ_TOKEN, wanted)

    assert response.headers["Location"] == "/"
    assert 'name="next" value="/"' in browser.get("/login", query_string={"next": wanted}).text


@pytest.mark.parametrize("path", PAGES)
def test_no_page_is_shown_without_a_log_in(browser: FlaskClient, path: str) -> None:
    as_browser = browser.get(path, headers=BROWSER)
    as_program = browser.get(path)

    assert as_browser.status_code == 303
    assert as_browser.headers["Location"].startswith("/login?next=")
    assert as_program.status_code == 401
    assert as_program.content_type == "application/problem+json"


@pytest.mark.parametrize("token", ["", "wrong", WRITE_KEY, READ_TOKEN[:-1], READ_TOKEN + "x"])
def test_what_is_no_good_token_opens_nothing_and_is_not_repeated(
    browser: FlaskClient, token: str
) -> None:
    response = log_in(browser, token)

    assert response.status_code == 401
    assert "Set-Cookie" not in response.headers
    assert "not valid here" in response.text
    assert not token or f'"{token}"' not in response.text


FORGED: Final = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost.evil.example"},
    {"Origin": "http://localhost:8080"},
]


FORM: Final = f"token={READ_TOKEN}"
OURS: Final = [SAME_SITE, {}, {"Origin": "http://localhost"}, {"Sec-Fetch-Site": "same-origin"}]


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        *((path, FORM, headers, 403) for path in ("/login", "/logout") for headers in FORGED),
        *(("/login", FORM, headers, 303) for headers in OURS),  # the control of the law above
        *(
            (path, body, SAME_SITE, 400)
            for path, body in (
                ("/login", ""),
                ("/login", "next=/"),
                ("/login", "token=a&token=b"),
                ("/login", f"token={READ_TOKEN}&role=admin"),
                ("/logout", "all=1"),
            )
        ),
        ("/login", "token=" + "x" * 10_000, SAME_SITE, 413),
    ],
)
def test_a_form_is_taken_from_our_own_pages_and_with_our_fields_alone(
    browser: FlaskClient, path: str, body: str, headers: dict[str, str], status: int
) -> None:
    """From another site it changes nothing, whoever is logged in."""
    browser.set_cookie("hearsay", READ_TOKEN)
    kind = "application/x-www-form-urlencoded"

    response = browser.post(path, data=body, content_type=kind, headers={**BROWSER, **headers})

    assert response.status_code == status
    assert ("Set-Cookie" in response.headers) == (status == 303)


def test_a_log_out_takes_the_cookie_away(browser: FlaskClient) -> None:
    log_in(browser, READ_TOKEN)

    response = browser.post("/logout", headers={**BROWSER, **SAME_SITE})

    assert response.headers["Location"] == "/login"
    assert browser.get("/", headers=BROWSER).status_code == 303


def test_a_log_out_is_no_link(browser: FlaskClient) -> None:
    browser.set_cookie("hearsay", READ_TOKEN)

    assert browser.get("/logout", headers=BROWSER).status_code == 405


@pytest.mark.parametrize("end", ["revoked", "expired"])
def test_a_token_that_ends_logs_out_at_once(
    make_app: MakeApp, storage: MemoryStorage, credentials: MemoryCredentials, end: str
) -> None:
    """The cookie holds the token, and every page asks whether it is good: nothing is remembered."""
    token = credentials.add("hsr_short-lived-token", Credential(READ, role=VIEWER, expires=END))
    seconds = [0.0]
    config = make_app().extensions["hearsay"].config
    app = create_app(config, storage, lambda: NOON, credentials, lambda: seconds[0])
    client = app.test_client()
    log_in(client, token)
    before = client.get("/", headers=BROWSER).status_code

    gone = Credential(READ, role=VIEWER, expires=TODAY if end == "expired" else END)
    record = Credential(**{**vars(gone), "revoked": end == "revoked"}).to_json()
    credentials.put(digest_of(token), record)
    seconds[0] += 5.0
    after = client.get("/", headers=BROWSER)

    assert before == 200
    assert (after.status_code, after.headers["Location"]) == (303, "/login?next=/")


def test_pages_show_the_metrics_of_the_token_and_no_other(site: Flask) -> None:
    client = site.test_client()
    client.set_cookie("hearsay", token_of(ONE_METRIC))
    hidden = [name for name in NAMES if name != ONE_METRIC]

    for path in ("/", "/metric/set", "/compare", "/ask", "/plan", "/privacy"):
        text = client.get(path, headers=BROWSER).text
        assert "All of set" in text, path
        assert not [name for name in hidden if f"All of {name}" in text], path
    operations = client.get("/operations", headers=BROWSER)
    assert operations.status_code == 200
    assert not [name for name in hidden if f">{name}<" in operations.text]
    unknown = client.get("/metric/nobody", headers=BROWSER)
    for name in hidden:
        response = client.get(f"/metric/{name}", headers=BROWSER)
        assert response.status_code == 404
        assert response.text.replace(name, "nobody") == unknown.text
        assert client.get(f"/plan?metric={name}", headers=BROWSER).status_code == 404
        assert client.get(f"/metric/{name}/answer.csv", headers=BROWSER).status_code == 404
    assert not [name for name in hidden if f'"{name}"' in client.get("/privacy/record.json").text]


@pytest.mark.parametrize(
    ("role", "opened"),
    [
        (VIEWER, {"/", "/plan", "/privacy"}),
        (ANALYST, {"/", "/plan", "/privacy", "/compare", "/ask"}),
        (OPERATOR, {"/", "/plan", "/privacy", "/compare", "/ask", "/operations"}),
    ],
)
def test_the_navigation_has_the_pages_that_the_role_opens_and_no_other(
    site: Flask, role: str, opened: set[str]
) -> None:
    client = site.test_client()
    client.set_cookie("hearsay", token_of(role))
    text = client.get("/", headers=BROWSER).text

    for path in ("/", "/plan", "/privacy", "/compare", "/ask", "/operations"):
        assert (f'<a href="{path}"' in text) == (path in opened)
        assert client.get(path, headers=BROWSER).status_code == (200 if path in opened else 403)


def test_an_admin_sees_operations_and_no_answer(browser: FlaskClient) -> None:
    response = log_in(browser, ADMIN_TOKEN)

    assert response.headers["Location"] == "/operations"
    assert browser.get("/operations", headers=BROWSER).status_code == 200
    assert browser.get("/", headers=BROWSER).status_code == 403


BEHIND_A_PROXY: Final = "https://stats.example.org"


def behind_a_proxy(make_app: MakeApp) -> FlaskClient:
    """Return a client of a collector that is told where browsers see it."""
    return make_app(registry_text(), origin=BEHIND_A_PROXY).test_client()


def test_an_origin_that_is_set_decides_the_cookie_whatever_the_host_is(make_app: MakeApp) -> None:
    """As behind a proxy that passes neither Host nor X-Forwarded-Proto on."""
    client = behind_a_proxy(make_app)
    response = log_in(client, READ_TOKEN, Host="127.0.0.1:8000", Origin=BEHIND_A_PROXY)

    (told,) = response.headers.getlist("Set-Cookie")
    assert told.startswith("__Host-hearsay=")
    assert "Secure" in told.split("; ")
    client.set_cookie("__Host-hearsay", READ_TOKEN)
    assert client.get("/", headers=BROWSER).status_code == 200


@pytest.mark.parametrize("origin", ["http://stats.example.org", "http://127.0.0.1:8000"])
def test_an_origin_that_is_set_is_the_only_one_that_forms_come_from(
    make_app: MakeApp, origin: str
) -> None:
    same = {"Sec-Fetch-Site": "same-origin", "Origin": origin, "Host": "127.0.0.1:8000"}

    response = log_in(behind_a_proxy(make_app), READ_TOKEN, **same)

    assert response.status_code == 403
    assert "Set-Cookie" not in response.headers


def test_a_proxy_that_hides_the_address_gets_no_cookie_that_plain_http_would_carry(
    browser: FlaskClient,
) -> None:
    """The browser is at https, the proxy asks 127.0.0.1: the setting that is missing is named."""
    seen = {"Sec-Fetch-Site": "same-origin", "Origin": BEHIND_A_PROXY, "Host": "127.0.0.1:8000"}

    response = log_in(browser, READ_TOKEN, **seen)

    assert response.status_code == 403
    assert "Set-Cookie" not in response.headers
    assert "HEARSAY_ORIGIN" in response.text
    assert "stats.example.org" not in response.text


def test_the_log_in_lets_the_browser_tell_where_it_is(browser: FlaskClient) -> None:
    """Under the policy of the other pages it would say null, and the law above could not hold."""
    text = browser.get("/login", headers=BROWSER).text

    assert '<meta name="referrer" content="same-origin">' in text


def test_a_token_that_a_visitor_had_before_the_log_in_is_not_kept(browser: FlaskClient) -> None:
    """Session fixation: whoever plants a cookie gains nothing, as the log-in puts another there."""
    browser.set_cookie("hearsay", "planted-by-somebody-else-0123456789")

    log_in(browser, READ_TOKEN)

    cookie = browser.get_cookie("hearsay")
    assert cookie is not None
    assert cookie.value == READ_TOKEN


def test_operations_and_the_record_tell_of_no_metric_and_no_app_of_others(
    tmp_path: Path, storage: MemoryStorage, credentials: MemoryCredentials
) -> None:
    """Not even that one of them is about to expire."""
    texts = []
    for app in ("ours", "theirs"):
        text = registry_text().replace('app = "types"', f'app = "{app}"')
        renamed = re.sub(r"\[metrics\.(\w+)\]", rf"[metrics.{app}_\1]", text)
        texts.append(renamed.replace("2027-12-31", "2026-03-10"))
    ours = Credential(READ, app="ours", role=OPERATOR, expires=END)
    token = credentials.add("hsr_of-one-app", ours)
    client = browser_of(
        in_memory(tmp_path, *texts, storage=storage, credentials=credentials, settings={}), token
    )

    pages = {
        path: client.get(path, headers=BROWSER).text for path in PAGES if "category" not in path
    }

    assert "expires within" in pages["/operations"]
    assert [path for path, text in pages.items() if "theirs" in text] == []
    assert all("ours" in pages[path] for path in ("/operations", "/privacy/record.json"))
