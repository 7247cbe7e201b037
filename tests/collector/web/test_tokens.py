"""Uploads with one-time tokens: which are good, what is answered, and that each counts once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from client_sdk.wire.private_token import header_of, last_day_of, upload_id_of, week_of
from client_sdk.wire.reports import Column
from collector.core.cells import ATTESTED, RELAYED, split_source
from collector.core.entry import decode
from collector.core.errors import ConfigError
from collector.intake.memory_quota import daily_uploads
from collector.intake.tokens import SETTING, Tokens, days_kept
from collector.intake.wire import decode as decode_upload
from collector.issuer.keys import IssuerKeys, make_keys, write_keys
from collector.storage.records import UPLOADS_SENT
from collector.storage.redis import SEEN_DAYS
from tests.support.crowds.uploads import (
    GATEWAY_KEY,
    TODAY,
    WRITE_KEY,
    as_json,
    facts_of,
    registry,
    upload,
)
from tests.support.device.issuing import NAME, keys_from, token_by
from tests.support.sites.capsules import FIELDS, Keys, carried, opened, sealed, upload_request
from tests.support.sites.capsules import make_keys as make_capsule_keys
from tests.support.sites.posting import problem_of
from tests.support.sites.rsgi import answers
from tests.support.store.memory_storage import MemoryStorage

from .conftest import MakeApp

WEEK: Final = week_of(TODAY)
PAGE: Final = registry().metric("page")


@pytest.fixture(scope="module")
def issuer() -> IssuerKeys:
    return keys_from(WEEK - 1)


@pytest.fixture
def public(tmp_path: Path, issuer: IssuerKeys) -> str:
    path = tmp_path / "issuer.public"
    write_keys(issuer, tmp_path / "issuer.json", path)
    return str(path)


@pytest.fixture
def app(make_app: MakeApp, public: str) -> Flask:
    return make_app(issuer_keys=(public,))


def test_the_people_are_told_of_the_issuer_where_there_is_one(
    app: Flask, make_app: MakeApp
) -> None:
    texts = [one.test_client().get("/privacy/people").text for one in (app, make_app())]

    assert "shows it a licence, an account or the name of the machine" in texts[0]
    assert "can together find your reports by the address" in texts[0]
    assert "issuer" not in texts[1]
    assert not [text for text in texts if "identifies you or your device is sent" in text]


@pytest.fixture
def strict(make_app: MakeApp, public: str) -> FlaskClient:
    return make_app(issuer_keys=(public,), require_token=True).test_client()


def body_of(upload_id: bytes, sealed: int = TODAY) -> bytes:
    return as_json(upload([Column(PAGE.digest, sealed, b"\1")], upload_id=upload_id, sealed=sealed))


def spend(
    client: FlaskClient,
    token: bytes | str | None,
    upload_id: bytes | None = None,
    *,
    sealed: int = TODAY,
    key: str = WRITE_KEY,
) -> TestResponse:
    """Send an upload with *token*, under the id that it has to have or another one."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    if token is not None:
        headers["Hearsay-Token"] = token if isinstance(token, str) else header_of(token)
    own = upload_id_of(token) if isinstance(token, bytes) else bytes(16)
    return client.post("/v1/reports", data=body_of(upload_id or own, sealed), headers=headers)


def sources(storage: MemoryStorage) -> list[frozenset[str]]:
    return [
        facts_of(split_source(column.cell.segment)[0])
        for entry in storage.entries.values()
        for column in decode(entry)
    ]


def test_an_upload_with_a_good_token_is_attested(
    client: FlaskClient, storage: MemoryStorage, issuer: IssuerKeys
) -> None:
    response = spend(client, token_by(issuer, "test", TODAY))

    assert response.get_json() == {"accepted": 1, "duplicate": False, "rejected": []}
    assert sources(storage) == [frozenset({ATTESTED})]


def test_an_upload_without_a_token_is_counted_and_not_attested(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    assert spend(client, None).status_code == 202
    assert sources(storage) == [frozenset()]


def test_a_token_inside_a_capsule_is_as_good(
    make_app: MakeApp, public: str, tmp_path: Path, storage: MemoryStorage, issuer: IssuerKeys
) -> None:
    keys: Keys = make_capsule_keys(tmp_path)
    app = make_app(issuer_keys=(public,), require_token=True, oblivious_keys=keys.path)
    token = token_by(issuer, "test", TODAY)
    fields = (*FIELDS, ("hearsay-token", header_of(token)))
    good = sealed(keys, upload_request(body_of(upload_id_of(token)), fields))
    bad = sealed(keys, upload_request(body_of(bytes(16))))

    first, second = answers(app, carried(good.message), carried(bad.message))

    assert opened(good, first).status == 202
    assert opened(bad, second).status == 403
    assert sources(storage) == [frozenset({ATTESTED, RELAYED})]


def bad_tokens(keys: IssuerKeys) -> Iterator[tuple[str, bytes | str, bytes | None]]:
    good = token_by(keys, "test", TODAY)
    yield "forged", good[:-1] + bytes([good[-1] ^ 1]), None
    yield "of a past week", token_by(keys, "test", TODAY - 7), None
    yield "of the week to come", token_by(keys, "test", TODAY + 7), None
    yield "of another app", token_by(keys, "other", TODAY), None
    yield "by another name", token_by(keys, "test", TODAY, "else.example.org"), None
    yield "by another key", token_by(make_keys(NAME, WEEK, 1, 1), "test", TODAY), None
    yield "for another upload", good, bytes(15) + b"\1"
    yield "another kind", b"\0\1" + good[2:], None
    yield "cut", header_of(good)[:-2], upload_id_of(good)
    yield "none", "", bytes(16)
    yield "no base64url", "*" * 472, bytes(16)
    yield "twice", f"{header_of(good)}, {header_of(good)}", upload_id_of(good)


def test_what_is_no_good_token_has_one_answer_and_nothing_is_stored(
    client: FlaskClient, strict: FlaskClient, storage: MemoryStorage, issuer: IssuerKeys
) -> None:
    said = {
        (response.status_code, response.data)
        for _, token, upload_id in bad_tokens(issuer)
        for wanting in (client, strict)
        for response in [spend(wanting, token, upload_id)]
    }
    response = spend(strict, None)
    said.add((response.status_code, response.data))

    [(status, _)] = said
    assert status == 403
    assert problem_of(response)["type"] == "urn:hearsay:problem:token-needed"
    assert storage.entries == {}


def test_a_gateway_needs_no_token(strict: FlaskClient) -> None:
    assert spend(strict, None, key=GATEWAY_KEY).status_code == 202


def test_a_token_is_spent_once_on_whichever_day_of_its_week(
    client: FlaskClient, storage: MemoryStorage, issuer: IssuerKeys
) -> None:
    token = token_by(issuer, "test", TODAY)
    days = [day for day in range(TODAY - 6, TODAY + 2) if week_of(day) == WEEK]

    answered = [spend(client, token, sealed=day).get_json()["duplicate"] for day in days]

    assert len(days) > 2
    assert answered == [False] + [True] * (len(days) - 1)
    assert len(storage.entries) == 1


def test_ids_under_the_day_of_sealing_would_let_a_token_be_spent_each_day(
    storage: MemoryStorage, issuer: IssuerKeys
) -> None:
    """The control of the test above: the store itself keeps days apart."""
    spent = upload_id_of(token_by(issuer, "test", TODAY))

    assert all(storage.append(spent, day, b"entry", 1) for day in (TODAY - 1, TODAY, TODAY + 1))


def test_a_retry_counts_once_though_the_keys_were_taken_away_meanwhile(
    make_app: MakeApp, client: FlaskClient, storage: MemoryStorage, issuer: IssuerKeys
) -> None:
    token = token_by(issuer, "test", TODAY)
    first = spend(client, token, sealed=TODAY - 1)

    again = spend(make_app().test_client(), token, sealed=TODAY - 1)

    assert not first.get_json()["duplicate"]
    assert again.get_json()["duplicate"]
    assert len(storage.entries) == 1


@pytest.mark.parametrize("shown", [(True, False), (False, True)])
def test_an_upload_counts_once_though_one_try_shows_no_token(
    client: FlaskClient, storage: MemoryStorage, issuer: IssuerKeys, shown: tuple[bool, bool]
) -> None:
    """A proxy may drop the header, and an older release does not know it; on each day of a week."""
    days = [day for day in range(TODAY - 6, TODAY + 1) if week_of(day) == WEEK]
    tokens = [token_by(issuer, "test", TODAY) for _ in days]

    answered = [
        spend(client, token if shows else None, upload_id_of(token), sealed=day).get_json()
        for shows in shown
        for day, token in zip(days, tokens, strict=True)
    ]

    assert [answer["duplicate"] for answer in answered] == [False] * len(days) + [True] * len(days)
    assert len(storage.entries) == len(days) > 1


def test_without_keys_an_upload_is_remembered_under_its_day_and_a_gateways_always(
    public: str,
) -> None:
    day = last_day_of(WEEK) - 3
    sent = decode_upload(body_of(bytes(16), day), "application/json")
    some = Tokens.of_files([public], required=False)

    assert Tokens({}).remembered_day(None, sent, of_device=True) == day
    assert some.remembered_day(None, sent, of_device=False) == day
    assert some.remembered_day(None, sent, of_device=True) == day + 3


def test_an_id_is_counted_for_as_long_as_the_store_keeps_it() -> None:
    """From the first day of a week to the end of the memory of its last."""
    longest = max(last_day_of(week_of(day)) - day for day in range(TODAY, TODAY + 7)) + SEEN_DAYS

    assert (days_kept(False), days_kept(True)) == (SEEN_DAYS, longest)
    assert UPLOADS_SENT.days > longest + 1
    limit = 1 << 30
    assert (daily_uploads(limit, longest) or 0) * longest <= (
        daily_uploads(limit) or 0
    ) * SEEN_DAYS + longest


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"plan": {}, "keys": []}', '{"keys": []}', "\xff"],
)
def test_a_file_that_is_none_is_refused_at_the_start(tmp_path: Path, text: str) -> None:
    path = tmp_path / "public"
    path.write_text(text, encoding="latin-1")

    with pytest.raises(ConfigError, match=SETTING):
        Tokens.of_files([str(path)], required=False)
    with pytest.raises(ConfigError, match="cannot be read"):
        Tokens.of_files([str(tmp_path / "none")], required=False)
