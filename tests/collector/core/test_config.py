"""Settings are checked as a whole, name the variable at fault, and never show a secret."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks.tables.operate_pages import settings_table
from client_sdk.privacy.opt_outs import HEARSAY_TELEMETRY
from client_sdk.recording.detached import IS_CHILD
from collector.cli import main
from collector.core.config import OF_DEVICES, Config, RelayTerms
from collector.core.credentials import ADMIN, ANALYST, GATEWAY, READ, WRITE, Credential, digest_of
from collector.core.errors import ConfigError
from collector.core.settings import integer, is_loopback, setting
from collector.demo.embedded import EmbeddedStore
from collector.operations.doctor.checkup import shown
from collector.storage.connection import Connection
from tests.collector.cli.test_cli import ENVIRONMENT
from tests.support.crowds.uploads import READ_TOKEN, WRITE_KEY, registry_text
from tests.support.store.cluster import free_port
from tests.support.store.servers import needs_real, real_server

KEY, GATEWAY_KEY, TOKEN, ADMIN_TOKEN = (
    f"{name}-0123456789-abcdefgh"
    for name in ("device-key", "gateway-key", "read-token", "admin-token")
)
LEAST = {"HEARSAY_REGISTRY": "metrics.toml"}
SECRETS = (
    *("HEARSAY_WRITE_KEY", "HEARSAY_GATEWAY_KEY"),
    *("HEARSAY_READ_TOKEN", "HEARSAY_ADMIN_TOKEN"),
)


def read(**env: str) -> Config:
    return Config.from_env(LEAST | env)


def test_an_operator_may_say_no_to_the_telemetry_of_other_programs() -> None:
    """Law: what devices read is no setting of the collector, and stops it as little."""
    assert {HEARSAY_TELEMETRY, IS_CHILD} == OF_DEVICES
    assert read(**dict.fromkeys(OF_DEVICES, "0")) == read()


@dataclass(frozen=True)
class Longer(Config):
    """The table with a row more."""

    soup: int = setting("HEARSAY_SOUP", integer(1, 9), "bowls of [soup](soup.md) a day", 3)


def test_a_row_is_all_that_a_new_setting_takes() -> None:
    """Law: it is read, refused where it is wrong, shown, and on the page of settings."""
    made = Longer.from_env(LEAST | {"HEARSAY_SOUP": "4"})

    assert (Longer.from_env(LEAST).soup, made.soup) == (3, 4)
    with pytest.raises(ConfigError, match=r"^HEARSAY_SOUP=x: must be an integer from 1 to 9$"):
        Longer.from_env(LEAST | {"HEARSAY_SOUP": "x"})
    with pytest.raises(ConfigError, match=r"^HEARSAY_SOUP=\*\*\*: is no setting; known are HEAR"):
        Config.from_env(LEAST | {"HEARSAY_SOUP": "4"})
    assert "soup = 4" in shown(made)
    assert "| `HEARSAY_SOUP` | `3` | bowls of [soup](soup.md) a day |" in settings_table(Longer)


def test_each_row_is_a_field_with_a_variable_of_its_own_and_a_good_default() -> None:
    rows = Config.rows()

    assert len({row.name for row in rows.values()}) == len(rows)
    for field, row in rows.items():
        assert row.help, field
        assert (
            row.unset == "needed"
            or row.parse(row.name, row.default) == getattr(read(), field)
            or field == "query_url"
        )


SHOP, LOCAL = "https://a:8443", "http://localhost:3000"
READ_AS: list[tuple[str, str, object]] = [
    ("registry_paths", os.pathsep.join(["new.toml", "old.toml"]), ("new.toml", "old.toml")),
    ("host", "localhost", "127.0.0.1"),
    ("new_tallies_mb", "", None),
    ("new_tallies_mb", "0", 0),
    ("keep_days", "0", 0),
    *(("origin", text, text) for text in ("", "https://stats.example.org", "https://[::2]")),
    *(("origin", text, text) for text in ("https://stats.example.org:8443", LOCAL)),
    *(("origin", text, text) for text in ("http://127.0.0.1:8000", "http://[::1]:8000")),
    ("origins", "", ()),
    ("origins", f" {SHOP} , {LOCAL},,{SHOP}", (SHOP, LOCAL)),
    ("origins", "capacitor://localhost,app://editor", ("capacitor://localhost", "app://editor")),
    ("origins", "http://127.0.0.1:5173,https://[::2]", ("http://127.0.0.1:5173", "https://[::2]")),
]


@pytest.mark.parametrize(("field", "text", "value"), READ_AS)
def test_a_setting_is_read_as_its_row_says(field: str, text: str, value: object) -> None:
    assert getattr(read(**{Config.rows()[field].name: text}), field) == value


def test_a_relay_is_declared_with_its_operator_and_the_part_that_is_dishonest() -> None:
    declared = read(HEARSAY_RELAY_OPERATOR="Example Relays", HEARSAY_COLLUDING="0.05").relay

    assert declared == RelayTerms("Example Relays", Fraction(1, 20))
    assert read().relay == RelayTerms()


@pytest.mark.parametrize(
    ("name", "text", "other"),
    [
        ("HEARSAY_COLLUDING", "0.1", "HEARSAY_RELAY_OPERATOR"),
        ("HEARSAY_REQUIRE_TOKEN", "1", "HEARSAY_ISSUER_KEYS"),
        ("HEARSAY_GROUPS", "*=viewer", "HEARSAY_TRUSTED_PROXIES"),
        ("HEARSAY_USER_HEADER", "X-User", "HEARSAY_TRUSTED_PROXIES"),
        ("HEARSAY_GROUPS_HEADER", "X-Groups", "HEARSAY_TRUSTED_PROXIES"),
        ("HEARSAY_TRUSTED_PROXIES", "10.0.3.7", "HEARSAY_GROUPS"),
    ],
)
def test_a_setting_that_means_nothing_alone_names_the_other(
    name: str, text: str, other: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{name}={re.escape(text)}: needs {other}$"):
        read(**{name: text})


def test_keys_and_tokens_are_known_by_their_digests_only() -> None:
    config = read(**dict(zip(SECRETS, (KEY, GATEWAY_KEY, TOKEN, ADMIN_TOKEN), strict=True)))

    assert config.credentials == {
        digest_of(KEY): Credential(WRITE),
        digest_of(GATEWAY_KEY): Credential(GATEWAY),
        digest_of(TOKEN): Credential(READ, role=ANALYST),
        digest_of(ADMIN_TOKEN): Credential(ADMIN),
    }
    assert not any(secret in repr(config) for secret in (KEY, GATEWAY_KEY, TOKEN, ADMIN_TOKEN))


def test_a_secret_can_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n", encoding="utf-8")

    assert list(read(HEARSAY_WRITE_KEY_FILE=str(file)).credentials) == [digest_of(KEY)]


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("content", [None, b"\n", b"canary-secret-0123456789\xff\xfe"])
def test_a_secret_file_that_is_missing_empty_or_no_text_is_named_but_not_shown(
    name: str, content: bytes | None, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ConfigError, match=f"^{name}_FILE=") as caught:
        read(**{f"{name}_FILE": str(file)})

    error: BaseException | None = caught.value
    assert error is not None
    assert error.__suppress_context__ == (content != b"\n")
    assert "canary" not in str(error)


@pytest.mark.parametrize(
    ("name", "least"),
    [*((name, 16) for name in SECRETS[:2]), *((name, 24) for name in SECRETS[2:])],
)
def test_a_token_is_longer_than_a_key_which_is_no_secret(name: str, least: int) -> None:
    assert read(**{name: "x" * least}).credentials
    with pytest.raises(ConfigError, match=f"at least {least} characters"):
        read(**{name: "x" * (least - 1)})


@pytest.mark.parametrize("name", [*SECRETS, "REDIS_URL"])
def test_a_secret_and_a_file_of_it_must_not_both_be_set(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{name}=\*\*\*: and {name}_FILE must not both be set"):
        read(**{name: KEY, f"{name}_FILE": "/run/x"})


@pytest.mark.parametrize("other", SECRETS[1:])
def test_one_secret_for_two_purposes_is_refused_but_not_shown(other: str) -> None:
    with pytest.raises(ConfigError, match=other) as caught:
        read(**{"HEARSAY_WRITE_KEY": KEY, other: KEY})

    assert KEY not in str(caught.value)


REFUSED = {
    "HEARSAY_REGISTRY": ("", os.pathsep),
    "HEARSAY_PROFILE": ("strictest",),
    "HEARSAY_SHARDS": ("0", "1025", "4.0", "-4", "", "٤", "0000000049999", "9" * 5_000),
    "HEARSAY_PORT": ("0", "65536", "http"),
    "HEARSAY_OPEN_DASHBOARD": ("yes",),
    "HEARSAY_HOST": ("example.org", "127.0.0.1.nip.io", "", "1.2.3"),
    "HEARSAY_ORIGIN": (  # which no browser would send
        *("http://stats.example.org", "stats.example.org", "https://", "https://a/", "https://a/b"),
        *("https://u@a", "https://a?q", "https://a#f", "https://A", "https://a:0x1", "ftp://a"),
        *("https://a b", "https://a:99999", "https://a:", "null", "https://ä.example"),
    ),
    "HEARSAY_ORIGINS": (  # of everybody, or which no browser would send
        *("*", "null", "https://*.example.org", "https://a,*", "https://a,null", "app.example.org"),
        *("http://app.example.org", "https://", "https://a/", "https://a/b", "https://u@a"),
        *(
            "https://a?q",
            "https://a#f",
            "https://A",
            "HTTPS://a",
            "https://a:443",
            "http://[::1]:80",
        ),
        *("https://a b", "https://a:99999", "https://a:", "https://ä.example", "file://", "data:"),
    ),
    "HEARSAY_COLLUDING": ("1", "-0.1", "nan", "5%", "1e-3", "0.5\n", ""),
    "HEARSAY_KEEP_DAYS": ("-1", "14"),
    "HEARSAY_EMBED_ORIGINS": ("*", "null", "http://wiki.example.org", "https://a/b", "https://a;b"),
    "FLASK_DEBUG": ("1", "true", "yes", "on"),
}
HIDDEN = {
    **{name: ("canary",) for name in SECRETS},
    "HEARSAY_WRITE_KEY": ("canary", "a key with canary in it", "schlüssel-mit-canary"),
    "HEARSAY_RELAY_OPERATOR": (f"canary{'x' * 95}", "canary\nb"),
    "HEARSAY_CORS": ("canary",),
    "HEARSAY_WRITE_KEYY": ("a-key-of-canary-0123456789",),  # which is no setting
    "REDIS_URL": (
        *("redis://canary:6379", "redis://u@canary", "redis://u:@canary", "rediss://canary.org"),
        *("redis-cluster://127.0.0.1:1,canary:2", "redis://", "http://canary", "canary:6379"),
        *("redis://127.0.0.1.canary.io", "redis://[::canary", "http://127.0.0.1", "redis://[::1"),
    ),
}


def each(values: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(name, value) for name in values for value in values[name]]


@pytest.mark.parametrize(("name", "value"), each(REFUSED))
def test_a_bad_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}="):
        read(**{name: value})


@pytest.mark.parametrize(("name", "value"), each(HIDDEN))
def test_what_may_hold_a_secret_is_named_but_not_shown(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{name}=\*\*\*: ") as caught:
        read(**{name: value})

    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1"])
def test_pages_may_be_open_on_loopback(host: str) -> None:
    assert read(HEARSAY_OPEN_DASHBOARD="1", HEARSAY_HOST=host).open_dashboard


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "192.168.1.7"],  # noqa: S104  # refused
)
def test_pages_may_not_be_open_elsewhere(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(ConfigError, match=r"^HEARSAY_OPEN_DASHBOARD="):
        read(HEARSAY_OPEN_DASHBOARD="1", HEARSAY_HOST=host)


def test_the_address_of_the_store_is_not_part_of_a_representation() -> None:
    assert "hunter2" not in repr(read(REDIS_URL="redis://:hunter2@127.0.0.1/0"))


def test_an_empty_address_of_the_store_is_the_default() -> None:
    """Law: so is one that compose passes on and nobody set."""
    assert read(REDIS_URL="").redis_url == read().redis_url


PASSWORD = "hunter2-hunter2"
ADDRESS = f"redis://ingest:{PASSWORD}@store:6379/0"


@pytest.mark.parametrize("name", ["REDIS_URL", "HEARSAY_QUERY_URL"])
def test_the_address_of_the_store_can_be_in_a_file(name: str, tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(f"{ADDRESS}\n", encoding="utf-8")

    config = read(**{f"{name}_FILE": str(file)})

    assert config.query_url == ADDRESS
    assert config.redis_url == (ADDRESS if name == "REDIS_URL" else "redis://127.0.0.1:6379/0")
    assert PASSWORD not in repr(config)


@pytest.mark.parametrize(
    "url",
    [
        *("redis://127.0.0.1", "redis://localhost:7000/1", "redis://[::1]:6379", "unix:///tmp/s"),
        *(ADDRESS, "rediss://u:p@example.org", "redis-cluster://127.0.0.1:7000,[::1]:7001"),
        *("redis-cluster://u:p@one:7000,two:7001", "rediss-cluster://:p@one:7000"),
    ],
)
def test_a_store_is_on_this_machine_or_asks_for_a_password(url: str) -> None:
    assert read(REDIS_URL=url).redis_url == url


CANARY = "canary-secret-0123456789"

# Settings added to good ones, and what the one line of the refusal begins with: one of each kind.
BAD: dict[str, tuple[dict[str, str], str]] = {
    "no registry": ({"HEARSAY_REGISTRY": ""}, "HEARSAY_REGISTRY="),
    "a registry that is not there": ({"HEARSAY_REGISTRY": "nothing.toml"}, "registry=nothing.toml"),
    "a setting that is none": ({"HEARSAY_REGISTRI": CANARY}, "HEARSAY_REGISTRI=***: is no setting"),
    "the debugger": ({"FLASK_DEBUG": "1"}, "FLASK_DEBUG=1: must not be set"),
    "a value that a row refuses": ({"HEARSAY_SHARDS": "0"}, "HEARSAY_SHARDS=0"),
    "open pages for the network": (
        {"HEARSAY_HOST": "0.0.0.0", "HEARSAY_OPEN_DASHBOARD": "1"},  # noqa: S104  # refused
        "HEARSAY_OPEN_DASHBOARD=1: needs a loopback",
    ),
    "a short key": ({"HEARSAY_WRITE_KEY": "canary"}, "HEARSAY_WRITE_KEY=***"),
    "one secret for two uses": ({"HEARSAY_ADMIN_TOKEN": READ_TOKEN}, "HEARSAY_WRITE_KEY, "),
    "a key file that is missing": (
        {"HEARSAY_WRITE_KEY": "", "HEARSAY_WRITE_KEY_FILE": "/nothing/here"},
        "HEARSAY_WRITE_KEY_FILE=/nothing/here: cannot be read: No such file",
    ),
    "a prefix that matches other keys": ({"HEARSAY_PREFIX": "*"}, "prefix=*"),
    "an address of another kind": ({"REDIS_URL": f"http://:{CANARY}@h"}, "REDIS_URL=***"),
    "a store elsewhere without a password": (
        {"HEARSAY_QUERY_URL": "redis://10.0.0.7:6379/0"},
        "HEARSAY_QUERY_URL=***: must hold",
    ),
    # the last: a key may be in the store, which the check does not ask
    "no key to report with": ({"HEARSAY_WRITE_KEY": ""}, "HEARSAY_WRITE_KEY=: must be set"),
}
UNSAFE = {
    "a store that evicts": ({}, [("maxmemory-policy", "allkeys-lru")], "maxmemory_policy=allkeys"),
    "a store without a log": ({}, [("appendonly", "no")], "aof_enabled=0"),
    "a store that syncs too rarely": (
        {"HEARSAY_PROFILE": "strict"},
        [("appendfsync", "everysec")],
        "appendfsync=everysec: must be always",
    ),
}
SAFE = {"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "everysec"}


@pytest.fixture(scope="module")
def own_store() -> Iterator[EmbeddedStore]:
    """A server whose settings these tests may spoil."""
    with real_server() as store:
        yield store


@pytest.fixture
def good(own_store: EmbeddedStore, tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(), encoding="utf-8")
    return {
        "HEARSAY_REGISTRY": str(path),
        "HEARSAY_WRITE_KEY": WRITE_KEY,
        "HEARSAY_READ_TOKEN": READ_TOKEN,
        "REDIS_URL": own_store.url,
        "HEARSAY_PORT": str(free_port()),  # whatever listens on the default one
    }


def start(settings: dict[str, str], command: str = "serve") -> Result:
    return CliRunner().invoke(main, [command], env={**ENVIRONMENT, **settings})


@pytest.mark.real
@needs_real
@pytest.mark.parametrize(
    ("command", "name"),
    [*(("serve", name) for name in BAD), *(("check-config", name) for name in BAD)][:-1],
)
def test_a_bad_setting_ends_the_start_and_the_check_with_its_name(
    command: str, name: str, good: dict[str, str]
) -> None:
    settings, reason = BAD[name]

    result = start(good | settings, command)

    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {reason}")
    assert result.stderr.count("\n") == 1
    assert not [secret for secret in (CANARY, WRITE_KEY, READ_TOKEN) if secret in result.stderr]


@pytest.mark.real
@needs_real
@pytest.mark.parametrize("name", UNSAFE)
def test_an_unsafe_store_ends_the_start_with_the_setting_at_fault(
    name: str, good: dict[str, str]
) -> None:
    settings, commands, reason = UNSAFE[name]
    server = Connection.open(good["REDIS_URL"])
    for directive, value in commands:
        server.call("CONFIG", "SET", directive, value)

    try:
        result = start(good | settings)
    finally:
        for directive, _ in commands:
            server.call("CONFIG", "SET", directive, SAFE[directive])
        server.close()

    assert result.exit_code == 1
    assert f"Error: {reason}" in result.stderr
