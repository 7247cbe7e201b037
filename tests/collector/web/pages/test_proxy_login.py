"""People whom a proxy names: what they see, and everybody who only pretends to be a proxy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from flask import Flask, request
from flask.testing import FlaskClient

from collector.core.credentials import ANALYST, READ, Credential
from collector.core.errors import ConfigError
from collector.web.auth import PEER
from collector.web.ingest.front import Front
from collector.workspace.documents import Author, Document, Note
from tests.support.crowds.uploads import TODAY, WRITE_KEY, bearer, registry_text
from tests.support.sites.in_memory import in_memory
from tests.support.sites.rsgi import Request, answers
from tests.support.store.memory_credentials import MemoryCredentials

PROXY: Final = "10.0.3.7"
HTML: Final = {"Accept": "text/html"}
GROUPS: Final = (
    "shop-team=other:owner,everyone=test:viewer,everyone=other:viewer,sre=operator,"
    "writers=other:analyst"
)
TOKEN: Final = "hsr_a-token-of-the-store"
OTHER: Final = "192.0.2.9"  # the address of somebody who comes directly


@pytest.fixture
def app(tmp_path: Path) -> Flask:
    return app_of(tmp_path)


def app_of(folder: Path, **changes: str) -> Flask:
    own = 'app = { name = "other", separate = true }'
    texts = registry_text(), registry_text().replace('app = "test"', own)
    settings = {
        "HEARSAY_WRITE_KEY": WRITE_KEY,
        "HEARSAY_TRUSTED_PROXIES": f"{PROXY},10.0.4.0/30",
        "HEARSAY_GROUPS": GROUPS,
    }
    stored = MemoryCredentials()
    stored.add(TOKEN, Credential(READ, role=ANALYST, expires=TODAY + 9))
    for token, label in (("a-token-labelled-ada", "ada"), ("one-token", ""), ("another-token", "")):
        credential = Credential(READ, app="other", role=ANALYST, expires=TODAY + 9, label=label)
        stored.add(token, credential)
    return in_memory(folder, *texts, credentials=stored, settings={**settings, **changes})


def named(user: str = "ada@example.org", groups: str = "everyone", **more: str) -> dict[str, str]:
    return {**HTML, "X-Forwarded-User": user, "X-Forwarded-Groups": groups, **more}


def visit(
    app: Flask, path: str, headers: dict[str, str], peer: str = PROXY, token: str = ""
) -> Any:
    client: FlaskClient = app.test_client()
    if token:
        client.set_cookie("hearsay", token)
    return client.get(path, headers=headers, environ_overrides={PEER: peer})


LOG_IN: Final = "/login?next=/metric/test/page"
BUTTON: Final = '<a class="button primary" href="/metric/test/page">Continue {}</a>'
BOTH: Final = named(groups="everyone,shop-team")  # a viewer of test who owns other
BASIC: Final = {"Authorization": "Basic YWRhOg=="}  # of oauth2-proxy, unless it is told not to
DEAD: Final = "hsr_of-last-year"


class Seen(NamedTuple):
    """A visit, its status, and what its page has and has not."""

    path: str
    headers: dict[str, str]
    status: int
    said: str = ""
    unsaid: str | None = None
    token: str = ""  # of the cookie
    peer: str = PROXY


VISITS: Final = [
    Seen("/", named(), 200, "ada@example.org", "Log out"),  # that is the proxy's
    Seen("/ask", named(), 403),
    Seen("/operations", named(groups="everyone,sre"), 200),
    Seen(LOG_IN, named(), 200, BUTTON.format("as ada@example.org")),
    Seen(LOG_IN, HTML, 200, BUTTON.format("with the log-in of your organization"), peer=OTHER),
    # A right in one app asks nothing of another.
    Seen("/", BOTH, 200, 'href="/metric/test/page"'),
    Seen("/ask", BOTH, 200, "Overview"),
    Seen("/compare?metric=test/page", BOTH, 404),
    Seen("/compare?metric=other/page", BOTH, 200),
    # A forwarded address is not looked at either way.
    Seen("/", named(**{"X-Forwarded-For": "6.6.6.6"}), 200),
    # Without a name there is the log-in as ever.
    Seen("/", HTML, 303),
    Seen("/", named(user=" "), 303),
    Seen("/", {**HTML, "X-Forwarded-Groups": "sre"}, 303),
    # A browser sends the proxy's cookie also for other sites: what a name opens is for eyes.
    Seen("/v1/metrics", named(groups="sre"), 401),
    Seen("/v1/metrics/other%2Fpage/estimate", named(groups="sre"), 401),
    Seen("/metrics", named(groups="sre"), 401),
    Seen("/v1/metrics", {**named(), **bearer(TOKEN)}, 200),
    # A token goes before the name, and a dead one does not.
    Seen("/ask", named(), 200, token=TOKEN),
    Seen("/", named(), 200, token=DEAD),
    Seen("/ask", named(), 403, token=DEAD),
    # A header that the proxy adds for itself is not taken for a token.
    Seen("/", named(**BASIC), 200),
    Seen("/", {**HTML, **BASIC}, 303),
    # Another site may link here and take nothing in.
    *(
        Seen("/", named(**{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}), status)
        for site, mode, status in (
            ("none", "navigate", 200),
            ("same-origin", "cors", 200),
            ("cross-site", "navigate", 200),
            ("cross-site", "no-cors", 403),
            ("same-site", "cors", 403),
            ("cross-site", "", 403),
        )
    ),
    Seen("/", named(groups="kitchen"), 403, "HEARSAY_GROUPS"),
    Seen(
        "/",
        named(user="<script>alert(1)</script>"),
        200,
        "&lt;script&gt;alert",
        "<script>alert",
    ),
]


@pytest.mark.parametrize("seen", VISITS)
def test_a_visit_through_the_proxy_sees_what_its_name_and_groups_open(
    app: Flask, seen: Seen
) -> None:
    page = visit(app, seen.path, seen.headers, seen.peer, seen.token)

    assert page.status_code == seen.status
    assert seen.said in page.text
    assert seen.unsaid is None or seen.unsaid not in page.text


def test_the_operator_of_an_app_is_told_that_counts_are_of_all_apps(tmp_path: Path) -> None:
    groups = "team=other:operator,sre=operator"
    app = app_of(tmp_path, HEARSAY_GROUPS=groups)

    page, whole = (visit(app, "/operations", named(groups=group)) for group in ("team", "sre"))

    assert (page.status_code, whole.status_code) == (200, 200)
    assert "counts cover the whole collector, including apps that you may not see" in page.text
    assert "cover the whole collector" not in whole.text


@pytest.mark.parametrize("peer", ["10.0.3.8", "127.0.0.1", "", "10.0.4.4", "unix:"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"X-Forwarded-For": PROXY},
        {"X-Forwarded-For": f"{PROXY}, {PROXY}", "X-Real-IP": PROXY},
        {"Forwarded": f"for={PROXY}", "Client-IP": PROXY, "True-Client-IP": PROXY},
        {"Hearsay.Peer": PROXY, "Remote-Addr": PROXY},
    ],
)
def test_a_name_from_any_other_address_is_refused_whatever_it_says_of_its_way(
    app: Flask, peer: str, more: dict[str, str]
) -> None:
    page = visit(app, "/", named(groups="sre", **more), peer)

    assert page.status_code == 403
    assert "HEARSAY_TRUSTED_PROXIES" in page.text
    assert "ada" not in page.text


def test_other_headers_can_name_people(tmp_path: Path) -> None:
    headers = {"HEARSAY_USER_HEADER": "Remote-User", "HEARSAY_GROUPS_HEADER": "Remote-Groups"}
    app = app_of(tmp_path, **headers)

    said = {**HTML, "Remote-User": "ada", "Remote-Groups": "everyone"}
    assert visit(app, "/", said).status_code == 200
    assert visit(app, "/", named()).status_code == 303  # headers of nobody


def test_a_role_in_an_app_that_there_is_not_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="HEARSAY_GROUPS=shop"):
        app_of(tmp_path, HEARSAY_GROUPS="team=shop:viewer")


@pytest.mark.parametrize(
    ("client", "status"),
    [(f"{PROXY}:50123", 200), ("[::ffff:10.0.3.7]:9", 200), ("10.0.3.8:50123", 403), ("", 403)],
)
def test_the_address_is_that_of_the_socket(app: Flask, client: str, status: int) -> None:
    """By the server's own protocol: the environment of Flask holds what the socket says."""
    said = {**named(), "x-forwarded-for": PROXY, "hearsay.peer": PROXY}

    [answer] = answers(Front(app), Request("/", "GET", said, client=client))

    assert answer is not None
    assert answer.status == status


def test_an_address_reaches_no_view_without_the_setting(tmp_path: Path) -> None:
    """The control of the above, and a promise: otherwise addresses are not even passed on."""
    for trusted, expected in (("", False), (PROXY, True)):
        folder = tmp_path / str(expected)
        folder.mkdir()
        groups = GROUPS if trusted else ""
        app = app_of(folder, HEARSAY_TRUSTED_PROXIES=trusted, HEARSAY_GROUPS=groups)
        seen: list[bool] = []
        app.before_request(lambda seen=seen: seen.append(PEER in request.environ))

        answers(Front(app), Request("/login", "GET", HTML, client=f"{PROXY}:1"))

        assert seen[-1] == expected  # of Flask's requests the first is of the process itself


def test_a_form_is_taken_from_who_is_named_though_the_proxy_adds_a_header(app: Flask) -> None:
    """By the server's own protocol, which looks at a head before it reads a body."""
    body = b"at=2026-11-20&text=2.4+out&about=app%3Aother"
    said = {
        **named(groups="shop-team", Authorization="Basic YWRhOg=="),
        "content-type": "application/x-www-form-urlencoded",
        "Sec-Fetch-Site": "same-origin",
    }
    from_elsewhere = {**said, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}

    def status(headers: dict[str, str], client: str) -> int:
        request = Request("/notes", "POST", headers, (body,), client=client)
        [answer] = answers(Front(app), request)
        assert answer is not None
        return answer.status

    assert status(from_elsewhere, f"{PROXY}:1") == 403
    assert status(said, "10.0.3.8:1") == 403
    assert status({**said, "X-Forwarded-Groups": "everyone"}, f"{PROXY}:1") == 403
    assert status(said, f"{PROXY}:1") == 303


def test_a_right_in_every_app_sees_the_whole(tmp_path: Path) -> None:
    app = app_of(tmp_path, HEARSAY_GROUPS="a=analyst,v=viewer,v=other:analyst")

    everything = visit(app, "/privacy", named(groups="a")).text
    assert visit(app, "/privacy", named(groups="v")).text == everything
    assert visit(app, "/compare?metric=test/page", named(groups="a")).status_code == 200
    assert visit(app, "/compare?metric=test/page", named(groups="v")).status_code == 404


def test_what_others_began_is_deleted_by_an_owner_of_its_app_and_by_nobody_else(app: Flask) -> None:
    notes = app.extensions["hearsay"].workspace.notes
    note = notes.add(
        Note(at="2026-11-20", text="2.4 out", app="other"), Author("person:bob", "bob")
    )
    own = notes.add(Note(at="2026-11-20", text="2.5 out", app="other"), Author("person:ada", "ada"))

    def delete(document: Document[Note], user: str, groups: str) -> int:
        headers = {**named(user, groups), "Sec-Fetch-Site": "same-origin"}
        form = {"version": str(document.version)}
        address, peer = f"/notes/{document.name}/delete", {PEER: PROXY}
        client = app.test_client()
        return client.post(address, data=form, headers=headers, environ_overrides=peer).status_code

    assert delete(note, "ada", "writers") == 403
    assert delete(own, "ada", "writers") == 303
    assert delete(note, "eve", "shop-team") == 303
    assert [gone.deleted for gone in map(notes.document, (note.name, own.name))] == [True, True]


AUTHORS: Final = {
    "the person ada": ("", "ada"),
    "a token labelled ada": ("a-token-labelled-ada", ""),
    "a token without label": ("one-token", ""),
    "another without label": ("another-token", ""),
}


def test_authors_are_credentials_and_no_names(app: Flask) -> None:
    """Law: of two authors none deletes what the other began, however often it is saved."""
    notes = app.extensions["hearsay"].workspace.notes

    def send(who: str, path: str, **form: str) -> int:
        token, user = AUTHORS[who]
        headers = {**(named(user, "writers") if user else HTML), "Sec-Fetch-Site": "same-origin"}
        client = app.test_client()
        client.set_cookie("hearsay", token)
        peer = {PEER: PROXY if user else "192.0.2.9"}
        return client.post(path, data=form, headers=headers, environ_overrides=peer).status_code

    for who in AUTHORS:
        assert send(who, "/notes", at="2026-11-20", text=who, about="app:other") == 303
    began = {note.content.text: note for note in notes.documents()}
    answers = {
        (who, note.content.text): send(who, f"/notes/{note.name}/delete", version="1")
        for note in began.values()
        for who in sorted(AUTHORS, key=lambda who: who == note.content.text)
    }

    assert answers == {(who, of): 303 if who == of else 403 for who in AUTHORS for of in AUTHORS}


def test_a_token_is_the_second_way_where_people_come_by_a_proxy(app: Flask, tmp_path: Path) -> None:
    """Law: its field is closed until it is wanted, or a token was wrong; alone it is open."""
    alone = in_memory(tmp_path, registry_text(), settings={"HEARSAY_WRITE_KEY": WRITE_KEY})
    sent = {**HTML, "Origin": "http://localhost"}

    closed = visit(app, LOG_IN, HTML).text
    wrong = app.test_client().post("/login", data={"token": "x" * 20}, headers=sent)
    only = visit(alone, LOG_IN, HTML).text

    assert closed.index("Continue with") < closed.index("<details><summary>Use a read token")
    assert wrong.status_code == 401
    assert "<details open><summary>Use a read token" in wrong.text
    assert "Use a read token" not in only
    assert 'name="token"' in only
