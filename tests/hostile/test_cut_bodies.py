"""Bodies whose end does not come: nothing is kept of them, on any route that reads one."""

from __future__ import annotations

import json
import socket
from typing import Final
from urllib.parse import urlencode

import pytest

from collector.intake.wire import JSON
from collector.web.forms import FORM
from tests.support.crowds.uploads import ADMIN_TOKEN, READ_TOKEN, WRITE_KEY, bearer
from tests.support.patience import PATIENCE
from tests.support.sites.attacked_site import AttackedSite, today
from tests.support.sites.hostile_bodies import good
from tests.support.sites.raw_requests import chunked, statuses
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

WORDS: Final = "Do NOT trust these numbers"
WAYS: Final = ("closed", "half-closed")


def body_of(text: str) -> bytes:
    """Return a form of a note, which is a good one wherever its text is cut."""
    return urlencode({"at": "2026-03-01", "about": "", "url": "", "text": text}).encode()


def request_of(path: str, token: str, kind: str, length: str, body: bytes) -> bytes:
    """Return a request as it stands on the wire."""
    lines = (
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {token}",
        f"Content-Type: {kind}",
        length,
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def sent(site: AttackedSite, message: bytes, way: str) -> bytes:
    """Send the begin of a message, end the connection, and return what comes back, if it can."""
    with socket.create_connection(("127.0.0.1", site.port), PATIENCE) as connection:
        connection.sendall(message)
        if way == "closed":
            return b""
        connection.shutdown(socket.SHUT_WR)
        try:
            return connection.recv(65_536)
        except ConnectionError:
            return b""


def notes(site: AttackedSite) -> list[str]:
    """Return the texts of the notes that are kept."""
    answer = site.ask("GET", "/v1/notes", bearer(READ_TOKEN))
    return [note["text"] for note in json.loads(answer.body)["notes"]]


def accepted(site: AttackedSite) -> float:
    """Return how many uploads were accepted."""
    text = site.ask("GET", "/metrics", bearer(ADMIN_TOKEN)).body.decode()
    return float(text.partition("\nhearsay_accepted_uploads_total ")[2].partition("\n")[0])


@pytest.mark.parametrize("way", WAYS)
def test_a_form_that_is_cut_off_changes_nothing(site: AttackedSite, way: str) -> None:
    """It says its length, so that what came of it is known not to be all."""
    whole, cut = body_of(f"{way}, whole"), body_of(f"{way}, {WORDS}")
    length = f"Content-Length: {len(cut)}"

    told = sent(site, request_of("/notes", READ_TOKEN, FORM, length, cut[:-4]), way)
    length = f"Content-Length: {len(whole)}"
    site.send(request_of("/notes", READ_TOKEN, FORM, f"{length}\r\nConnection: close", whole))

    assert statuses(told) == ([] if way == "closed" else [400])
    kept = [text for text in notes(site) if text.startswith(way)]
    assert kept == [f"{way}, whole"]


def test_a_form_without_a_length_is_refused(site: AttackedSite) -> None:
    """The server does not tell its end from a cut."""
    message = request_of(
        "/notes", READ_TOKEN, FORM, "Transfer-Encoding: chunked", chunked(body_of("in parts"))
    )

    said = site.send(message + b"", patience=PATIENCE)

    assert statuses(said) == [400]
    assert b"send Content-Length" in said
    assert "in parts" not in notes(site)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_chunked", [False, True])
def test_an_upload_that_is_cut_off_is_not_taken(
    site: AttackedSite, way: str, *, is_chunked: bool
) -> None:
    """Whether it says its length or comes in parts: no part of an upload is one."""
    body, before = good(JSON, today()), accepted(site)
    length = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {len(body)}"
    parts = (chunked(body).removesuffix(b"0\r\n\r\n") if is_chunked else body)[:-4]

    told = sent(site, request_of("/v1/reports", WRITE_KEY, JSON, length, parts), way)

    assert statuses(told) == ([] if way == "closed" else [400])
    assert accepted(site) == before
    assert site.report(body).status == 202
