"""Keys and tokens as operators make them: what is granted, what is refused, what is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from client_sdk.registry import Registry
from collector.cli import main
from collector.core.catalog import Catalog
from collector.core.credentials import (
    ADMIN,
    ANALYST,
    GATEWAY,
    KINDS,
    MAX_READ_DAYS,
    MAX_SERVICE_DAYS,
    READ,
    VIEWER,
    WRITE,
    Credential,
    digest_of,
    parse,
)
from collector.core.errors import CredentialError, NotPreparedError
from collector.demo.embedded import EmbeddedStore
from collector.operations.issuing import (
    CredentialRequest,
    day_text,
    issue,
    listed,
    renew,
    revoke,
    set_quota,
)
from collector.storage.connection import Connection
from collector.storage.hashes import RedisHashes
from collector.storage.keys import Keys
from collector.storage.records import CredentialStore
from collector.storage.redis import RedisStorage
from tests.collector.cli.test_cli import ENVIRONMENT
from tests.support.store.credential_cases import OURS, THEIRS, registry_text
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.servers import fake_connection, needs_real, own_keys

TODAY = 20_000
ONE_APP = Catalog([Registry.from_text(registry_text(OURS))])
TWO_APPS = Catalog([Registry.from_text(registry_text(app)) for app in (OURS, THEIRS)])


def made(wish: CredentialRequest, catalog: Catalog = ONE_APP) -> Credential:
    store = MemoryCredentials()
    secret, name = issue(wish, store, catalog, TODAY)
    [(digest, record)] = store.stored.items()
    assert digest == digest_of(secret)
    assert digest.hex().startswith(name)
    assert secret.encode() not in record
    return parse(record)


@pytest.mark.parametrize(
    ("wish", "granted"),
    [
        (CredentialRequest(WRITE), Credential(WRITE, OURS)),
        (
            CredentialRequest(WRITE, days=5, quota=9),
            Credential(WRITE, OURS, expires=TODAY + 5, quota=9),
        ),
        (
            CredentialRequest(GATEWAY, metrics=["beta"]),
            Credential(GATEWAY, OURS, frozenset({"beta"})),
        ),
        (CredentialRequest(READ), Credential(READ, OURS, role=VIEWER, expires=TODAY + 90)),
        (
            CredentialRequest(READ, OURS, role=ANALYST, days=1, label="Ann"),
            Credential(READ, OURS, role=ANALYST, expires=TODAY + 1, label="Ann"),
        ),
        (CredentialRequest(ADMIN), Credential(ADMIN, expires=TODAY + 90)),
    ],
)
def test_a_wish_is_granted_with_what_its_kind_usually_has(
    wish: CredentialRequest, granted: Credential
) -> None:
    assert made(wish) == granted


@pytest.mark.parametrize(
    ("wish", "named"),
    [
        (CredentialRequest(READ, days=91), "days"),
        (CredentialRequest(ADMIN, days=3_650), "days"),
        (CredentialRequest(READ, quota=5), "quota"),
        (CredentialRequest(ADMIN, role=VIEWER), "role"),
        (CredentialRequest(WRITE, role=VIEWER), "role"),
        (CredentialRequest(WRITE, "another"), "app"),
        (CredentialRequest(WRITE, metrics=["alpha", "gamma"]), "metric"),
        (CredentialRequest(READ, label="x" * 65), "label"),
        (CredentialRequest(READ, label="a\x1b[2Jb"), "label"),
        (CredentialRequest("root"), "kind"),
    ],
)
def test_a_wish_that_goes_too_far_is_refused_by_its_field_and_nothing_is_stored(
    wish: CredentialRequest, named: str
) -> None:
    store = MemoryCredentials()

    with pytest.raises(CredentialError, match=f"^{named}: "):
        issue(wish, store, ONE_APP, TODAY)

    assert store.stored == {}


def test_among_several_apps_one_must_be_chosen() -> None:
    with pytest.raises(CredentialError, match=f"app: must be one of {OURS}, {THEIRS}"):
        made(CredentialRequest(WRITE), TWO_APPS)

    assert made(CredentialRequest(WRITE, THEIRS, ["gamma"]), TWO_APPS).app == THEIRS


def test_a_revoked_credential_stays_in_the_list_and_opens_nothing() -> None:
    store = MemoryCredentials()
    _, first = issue(CredentialRequest(READ), store, ONE_APP, TODAY)
    _, second = issue(CredentialRequest(READ), store, ONE_APP, TODAY)

    revoke(first, store)

    states = {name: state for name, state, _ in listed(store, TODAY)}
    assert states == {first: "revoked", second: "good"}
    assert {state for _, state, _ in listed(store, TODAY + 90)} == {"revoked", "expired"}


def test_a_renewed_token_keeps_its_secret_and_lasts_for_longer() -> None:
    """Law: a scrape goes on past the first 90 days if somebody renews it, and no shorter."""
    store = MemoryCredentials()
    secret, name = issue(CredentialRequest(ADMIN), store, ONE_APP, TODAY)

    renewed = renew(name, 90, store, TODAY + 80)
    shorter = renew(name, 1, store, TODAY + 80)

    assert renewed == parse(store.stored[digest_of(secret)]) == shorter
    assert renewed.is_good(TODAY + 169)
    assert not renewed.is_good(TODAY + 170)


def test_a_token_of_a_program_lives_for_longer_and_is_renewed_for_as_long() -> None:
    store = MemoryCredentials()
    secret, name = issue(CredentialRequest(READ, service=True), store, ONE_APP, TODAY)

    assert parse(store.stored[digest_of(secret)]).is_good(TODAY + 399)
    assert renew(name, None, store, TODAY + 390).expires == TODAY + 790
    with pytest.raises(CredentialError, match="must be at most 400"):
        issue(CredentialRequest(READ, service=True, days=401), store, ONE_APP, TODAY)
    with pytest.raises(CredentialError, match="service"):
        issue(CredentialRequest(WRITE, service=True), store, ONE_APP, TODAY)


def test_one_token_has_a_role_in_each_of_several_apps() -> None:
    store = MemoryCredentials()
    roles = {ONE_APP.apps[0]: "owner", "*": "viewer"}
    secret, _ = issue(CredentialRequest(READ, roles=roles), store, ONE_APP, TODAY)

    assert parse(store.stored[digest_of(secret)]).roles == roles
    with pytest.raises(CredentialError, match="app"):
        issue(CredentialRequest(READ, roles={"nobody": "owner"}), store, ONE_APP, TODAY)
    with pytest.raises(CredentialError, match="role"):
        issue(CredentialRequest(READ, roles=roles, metrics=("a",)), store, ONE_APP, TODAY)


@pytest.mark.parametrize(
    ("wish", "days", "later", "rule"),
    [
        (CredentialRequest(ADMIN), 90, 90, "id=?.*is expired"),
        (CredentialRequest(READ), 91, 1, "days=?.*must be at most 90"),
        (CredentialRequest(WRITE), 90, 1, "id=?.*never expires"),
    ],
)
def test_what_has_ended_or_may_not_last_is_not_renewed(
    wish: CredentialRequest, days: int, later: int, rule: str
) -> None:
    store = MemoryCredentials()
    _, name = issue(wish, store, ONE_APP, TODAY)
    before = dict(store.stored)

    with pytest.raises(CredentialError, match=rule):
        renew(name, days, store, TODAY + later)

    assert store.stored == before


def test_a_revoked_token_is_never_renewed() -> None:
    store = MemoryCredentials()
    _, name = issue(CredentialRequest(ADMIN), store, ONE_APP, TODAY)
    revoke(name, store)

    with pytest.raises(CredentialError, match="is revoked"):
        renew(name, 90, store, TODAY)


def test_a_write_key_that_has_shipped_can_be_given_a_quota_and_loses_it_again() -> None:
    store = MemoryCredentials()
    secret, name = issue(CredentialRequest(WRITE), store, ONE_APP, TODAY)

    limited = set_quota(name, 5, store, TODAY)

    assert limited == parse(store.stored[digest_of(secret)])
    assert limited.quota == 5
    assert set_quota(name, None, store, TODAY).quota is None


def test_a_quota_is_for_write_keys_that_are_good() -> None:
    store = MemoryCredentials()
    _, token = issue(CredentialRequest(ADMIN), store, ONE_APP, TODAY)
    _, key = issue(CredentialRequest(WRITE), store, ONE_APP, TODAY)
    revoke(key, store)

    for name, rule in ((token, "write keys only"), (key, "is revoked"), ("none", "of no key")):
        for quota in (5, None):
            with pytest.raises(CredentialError, match=rule):
                set_quota(name, quota, store, TODAY)


class Meanwhile(CredentialStore):
    """A store in which another operator does *what* between our first reading and our writing."""

    what: Callable[[], object] | None = None

    def records(self) -> dict[bytes, bytes]:
        read = super().records()
        what, self.what = self.what, None
        if what:
            what()
        return read


def test_a_token_that_is_revoked_while_it_is_renewed_stays_revoked(
    server: Connection, store: RedisStorage, keys: Keys
) -> None:
    credentials, other = (
        Meanwhile(RedisHashes(server, keys.prefix)),
        CredentialStore(RedisHashes(server, keys.prefix)),
    )
    secret, name = issue(CredentialRequest(ADMIN), other, ONE_APP, TODAY)
    credentials.what = lambda: revoke(name, other)

    with pytest.raises(CredentialError, match="is revoked"):
        renew(name, 90, credentials, TODAY + 80)

    assert parse(other.records()[digest_of(secret)]).revoked


def test_a_token_that_is_renewed_while_it_is_revoked_is_revoked(
    server: Connection, store: RedisStorage, keys: Keys
) -> None:
    credentials, other = (
        Meanwhile(RedisHashes(server, keys.prefix)),
        CredentialStore(RedisHashes(server, keys.prefix)),
    )
    secret, name = issue(CredentialRequest(ADMIN), other, ONE_APP, TODAY)
    credentials.what = lambda: renew(name, 90, other, TODAY + 80)

    revoked = revoke(name, credentials)

    assert revoked == parse(other.records()[digest_of(secret)])
    assert (revoked.revoked, revoked.expires) == (True, TODAY + 170)


def test_before_init_a_token_can_be_revoked_and_not_renewed() -> None:
    connection = fake_connection()
    credentials = CredentialStore(RedisHashes(connection, own_keys().prefix))
    _, name = issue(CredentialRequest(ADMIN), credentials, ONE_APP, TODAY)

    with pytest.raises(NotPreparedError, match="run hearsay init"):
        renew(name, 90, credentials, TODAY)
    revoke(name, credentials)

    assert [state for _, state, _ in listed(credentials, TODAY)] == ["revoked"]


@pytest.mark.parametrize("name", ["", "0" * 12, "*", "0" * 64])
def test_an_id_that_is_none_revokes_nothing(name: str) -> None:
    store = MemoryCredentials()
    issue(CredentialRequest(READ), store, ONE_APP, TODAY)

    with pytest.raises(CredentialError, match=r"^id: "):
        revoke(name, store)

    assert [state for _, state, _ in listed(store, TODAY)] == ["good"]


def test_a_record_that_cannot_be_read_is_listed_and_can_be_revoked() -> None:
    store = MemoryCredentials()
    store.put(b"d" * 32, '{"kind":"root"}')

    [(name, state, _)] = listed(store, TODAY)
    revoke(name, store)

    assert state == "revoked"
    assert parse(store.stored[b"d" * 32]).revoked


def test_days_are_shown_as_dates() -> None:
    assert (day_text(None), day_text(0), day_text(TODAY)) == ("never", "1970-01-01", "2024-10-04")


class Console:
    """``hearsay keys`` on a real store, under a prefix of its own."""

    def __init__(self, url: str, registry: Path) -> None:
        self.keys = own_keys()
        self.env = {
            "HEARSAY_REGISTRY": str(registry),
            "HEARSAY_PREFIX": self.keys.prefix,
            "REDIS_URL": url,
        }

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, ["keys", *arguments], env={**ENVIRONMENT, **self.env})


@pytest.fixture
def console(real_store: EmbeddedStore, tmp_path: Path) -> Iterator[Console]:
    registry = tmp_path / "metrics.toml"
    registry.write_text(registry_text(OURS), encoding="utf-8")
    made = Console(real_store.url, registry)
    yield made
    connection = Connection.open(real_store.url)
    RedisStorage(connection, made.keys).destroy()
    connection.close()


@pytest.mark.real
@needs_real
def test_a_secret_is_printed_once_and_alone_so_that_it_can_go_into_a_file(console: Console) -> None:
    results = {kind: console.run("create", kind) for kind in KINDS}
    secrets = {kind: result.stdout.strip() for kind, result in results.items()}

    shown = console.run("list").output + console.run("list", "--json").output

    assert {result.exit_code for result in results.values()} == {0}
    assert all(result.stdout == f"{secrets[kind]}\n" for kind, result in results.items())
    assert not [s for s in secrets.values() if s in shown or digest_of(s).hex() in shown]
    assert len(json.loads(console.run("list", "--json").output)["credentials"]) == len(KINDS)


@pytest.mark.real
@needs_real
def test_the_list_shows_what_each_may_do_and_whether_it_still_may(console: Console) -> None:
    name = console.run("create", "write", "--quota", "9", "--label", "shop").stderr.split()[1][:-1]
    console.run("create", "read", "--metric", "alpha", "--metric", "beta", "--days", "1")
    console.run("revoke", name)

    heading, *rows = console.run("list").output.splitlines()

    assert heading.split()[0] == "id"
    [key] = [row for row in rows if row.startswith(name)]
    assert key.split()[1:] == ["write", "-", OURS, "all", "never", "9", "revoked", "shop"]
    [token] = [row for row in rows if not row.startswith(name)]
    assert token.split()[1:5] == ["read", "viewer", OURS, "alpha,beta"]
    assert token.split()[-1] == "good"


@pytest.mark.real
@needs_real
def test_a_quota_is_given_and_taken_by_a_command_and_shown_in_the_list(console: Console) -> None:
    prepared = CliRunner().invoke(main, ["init"], env={**ENVIRONMENT, **console.env})
    name = console.run("create", "write").stderr.split()[1][:-1]

    given = console.run("quota", name, "5000000")
    listed = console.run("list").output
    taken = console.run("quota", name)
    wrong = console.run("quota", "nothing", "5")

    assert prepared.exit_code == 0, prepared.output
    assert given.output == f"quota: 5,000,000 a day, key {name}\n"
    assert "5000000" in listed
    assert taken.output == f"quota: none, key {name}\n"
    assert "5000000" not in console.run("list").output
    assert (wrong.exit_code, "is of no key" in wrong.output) == (1, True)


def test_the_help_says_the_range_of_days_of_each_kind_and_what_a_program_is() -> None:
    text = " ".join(CliRunner().invoke(main, ["keys", "create", "--help"]).output.split())

    assert "write or gateway key up to 3650, for ever by default" in text
    assert f"admin token up to {MAX_READ_DAYS}, with --service up to {MAX_SERVICE_DAYS}" in text
    assert "for a program, such as Grafana" in text


@pytest.mark.real
@needs_real
@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("create", "root"), 2, "'root' is not one of"),
        (("create", "read", "--role", "god"), 2, "--role must be one of viewer"),
        (
            ("create", "read", "--days", "91"),
            1,
            "must be at most 90 of a read or admin token; with --service",
        ),
        (("create", "write", "--metric", "gamma"), 1, "Error: metric: gamma is no metric of ours"),
        (("create", "write", "--quota", "0"), 2, "--quota"),
        (("revoke", "nothing"), 1, "Error: id: is of no key"),
        (("create",), 2, "Missing argument"),
    ],
)
def test_a_bad_wish_is_refused_in_words(
    console: Console, arguments: tuple[str, ...], status: int, text: str
) -> None:
    result = console.run(*arguments)

    assert result.exit_code == status
    assert text in result.stderr
    assert result.stdout == ""
