"""A credential allows what its record says; a record that could mean two things allows nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.core.credentials import (
    ADMIN,
    ANALYST,
    ASK,
    GATEWAY,
    KINDS,
    MANAGE,
    OPERATE,
    OPERATOR,
    OWNER,
    READ,
    REPORT,
    ROLES,
    SCOPES,
    VIEW,
    VIEWER,
    WRITE,
    Credential,
    digest_of,
    id_of,
    parse,
    presented,
)
from collector.core.errors import CredentialError
from collector.operations.issuing import new_secret

TOKEN = Credential(READ, "app", frozenset({"b", "a"}), VIEWER, expires=100, label="Ann")

credentials = st.builds(
    Credential,
    kind=st.sampled_from([WRITE, GATEWAY]),
    app=st.none() | st.text(min_size=1, max_size=8),
    metrics=st.none() | st.frozensets(st.text(min_size=1, max_size=8), min_size=1, max_size=3),
    expires=st.none() | st.integers(0, 1 << 31),
    quota=st.none() | st.integers(1, 1 << 62),
    label=st.text("abc é", max_size=64),
    revoked=st.booleans(),
)
by_app = st.builds(
    Credential,
    kind=st.just(READ),
    roles=st.dictionaries(st.text(min_size=1, max_size=8), st.sampled_from(ROLES), min_size=1),
    expires=st.integers(0, 1 << 31),
    service=st.booleans(),
)


@given(credentials | by_app)
def test_a_record_is_read_as_it_was_written(credential: Credential) -> None:
    assert parse(credential.to_json()) == credential


@pytest.mark.parametrize(
    ("credential", "scopes"),
    [
        (Credential(WRITE), {REPORT}),
        (Credential(GATEWAY), {REPORT}),
        (Credential(READ, role=VIEWER), {VIEW}),
        (Credential(READ, role=ANALYST), {VIEW, ASK}),
        (Credential(READ, role=OWNER), {VIEW, ASK, MANAGE}),
        (Credential(READ, role=OPERATOR), {VIEW, ASK, MANAGE, OPERATE}),
        (Credential(READ, roles={"app": OWNER, "other": OPERATOR}), {VIEW, ASK, MANAGE}),
        (Credential(READ, roles={"*": VIEWER, "other": OPERATOR}), {VIEW}),
        (Credential(READ, roles={"other": OPERATOR}), set()),
        (Credential(ADMIN), {OPERATE}),
    ],
)
def test_a_kind_and_role_open_these_scopes_and_no_other(
    credential: Credential, scopes: set[str]
) -> None:
    assert {scope for scope in SCOPES if credential.may(scope, "app", "m", 0)} == scopes


@pytest.mark.parametrize(
    ("app", "metric", "day", "allowed"),
    [
        ("app", "a", 99, True),
        ("app", "b", 0, True),
        ("app", "c", 99, False),
        ("App", "a", 99, False),
        ("", "a", 99, False),
        ("app", "a", 100, False),
        ("app", "a", 1 << 40, False),
    ],
)
def test_one_rule_decides_by_token_app_metric_and_day(
    app: str, metric: str, day: int, allowed: bool
) -> None:
    assert TOKEN.may(VIEW, app, metric, day) is allowed


def test_a_revoked_credential_allows_nothing() -> None:
    revoked = Credential(WRITE, revoked=True)

    assert not any(revoked.may(scope, "app", "m", 0) for scope in SCOPES)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"kind": "writer"}, "kind"),
        ({"kind": None}, "kind"),
        ({"role": "root"}, "role"),
        ({"role": None}, "role"),
        ({"kind": WRITE}, "role"),
        ({"expires": None}, "expires"),
        ({"expires": "2026-01-01"}, "expires"),
        ({"expires": True}, "expires"),
        ({"expires": 1.5}, "expires"),
        ({"quota": 5}, "quota"),
        ({"kind": WRITE, "role": None, "quota": 0}, "quota"),
        ({"kind": WRITE, "role": None, "quota": -1}, "quota"),
        ({"kind": WRITE, "role": None, "quota": True}, "quota"),
        ({"kind": ADMIN, "role": None}, "metrics"),
        ({"metrics": []}, "metrics"),
        ({"metrics": "a"}, "metrics"),
        ({"metrics": [1]}, "metrics"),
        ({"metrics": [["a"]]}, "metrics"),
        ({"app": 7}, "app"),
        ({"label": "x" * 65}, "label"),
        ({"label": "two\nlines"}, "label"),
        ({"label": None}, "label"),
        ({"revoked": "false"}, "revoked"),
        ({"revoked": 0}, "revoked"),
        ({"scope": "everything"}, "record"),
    ],
)
def test_a_record_that_could_be_misread_is_refused_by_its_field(
    change: dict[str, object], named: str
) -> None:
    record = json.loads(TOKEN.to_json()) | change

    with pytest.raises(CredentialError, match=f"^{named}: "):
        parse(json.dumps(record))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '"x"', "{}", "[" * 100_000, b"\xff"])
def test_what_is_no_record_is_refused(text: str | bytes) -> None:
    with pytest.raises(CredentialError):
        parse(text)


@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_tells_its_kind_and_nothing_else(kind: str) -> None:
    secrets = {new_secret(kind) for _ in range(100)}

    assert len(secrets) == 100
    assert {secret[:4] for secret in secrets} == {f"hs{kind[0]}_"}
    assert {len(secret) for secret in secrets} == {4 + 43}  # 256 bits as base64


def test_the_kinds_differ_in_their_first_letter() -> None:
    assert len({kind[0] for kind in KINDS}) == len(KINDS)


def test_what_is_compared_is_a_digest_of_one_length_whatever_is_presented() -> None:
    texts = ["a", "a" * 10_000, "é", "\udcff", new_secret(READ)]

    digests = [presented(f"Bearer {text}") for text in texts]

    assert {len(digest or b"") for digest in digests} == {32}
    assert len(set(digests)) == len(texts)
    assert presented(f"Bearer {texts[-1]}") == digest_of(texts[-1])


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic x", "x", "\0"])
def test_a_header_without_a_bearer_secret_presents_nothing(header: str) -> None:
    assert presented(header) is None


def test_the_id_of_a_credential_is_no_help_in_using_it() -> None:
    secret = new_secret(WRITE)

    assert id_of(digest_of(secret)) not in secret
    assert len(id_of(digest_of(secret))) == 12


def test_no_role_is_without_a_right() -> None:
    assert all(Credential(READ, role=role).scopes for role in ROLES)
