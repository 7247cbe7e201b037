"""Settings are checked as a whole, name the variable at fault, and never show a secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from collector.config import DEVICE, GATEWAY, Config, digest_of, is_loopback
from collector.errors import ConfigError

KEY, GATEWAY_KEY, TOKEN = "device-key-0123456789", "gateway-key-012345678", "read-token-0123456789"
LEAST = {"HEARSAY_REGISTRY": "metrics.toml"}
SECRETS = ("HEARSAY_WRITE_KEY", "HEARSAY_GATEWAY_KEY", "HEARSAY_READ_TOKEN")


def read(**env: str) -> Config:
    return Config.from_env(LEAST | env)


def test_a_registry_is_all_that_must_be_set() -> None:
    config = Config.from_env(LEAST)

    assert config.registry_paths == ("metrics.toml",)
    assert (config.host, config.port, config.profile) == ("127.0.0.1", 8000, "standard")
    assert len(config.write_keys) + len(config.read_tokens) == 0
    assert config.open_dashboard is False


def test_several_registries_are_separated_as_paths_are() -> None:
    config = read(HEARSAY_REGISTRY=os.pathsep.join(["new.toml", "old.toml"]))

    assert config.registry_paths == ("new.toml", "old.toml")


def test_keys_and_tokens_are_known_by_their_digests_only() -> None:
    config = read(HEARSAY_WRITE_KEY=KEY, HEARSAY_GATEWAY_KEY=GATEWAY_KEY, HEARSAY_READ_TOKEN=TOKEN)

    assert config.write_keys == {digest_of(KEY): DEVICE, digest_of(GATEWAY_KEY): GATEWAY}
    assert config.read_tokens == {digest_of(TOKEN)}
    assert not any(secret in repr(config) for secret in (KEY, GATEWAY_KEY, TOKEN))


def test_a_secret_can_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n", encoding="utf-8")

    assert read(HEARSAY_WRITE_KEY_FILE=str(file)).write_keys == {digest_of(KEY): DEVICE}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_file_that_is_missing_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"^{name}_FILE="):
        read(**{f"{name}_FILE": str(tmp_path / "nothing")})


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_file_that_is_no_text_is_named_but_not_shown(name: str, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"canary-secret-0123456789\xff\xfe")

    with pytest.raises(ConfigError, match=f"^{name}_FILE=") as caught:
        read(**{f"{name}_FILE": str(file)})

    error: BaseException | None = caught.value
    assert error is not None
    assert error.__suppress_context__
    assert "canary" not in str(error)


@pytest.mark.parametrize("name", SECRETS)
def test_a_short_secret_is_named_but_not_shown(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}=") as caught:
        read(**{name: "canary"})

    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("other", SECRETS[1:])
def test_one_secret_for_two_purposes_is_refused_but_not_shown(other: str) -> None:
    with pytest.raises(ConfigError, match=other) as caught:
        read(**{"HEARSAY_WRITE_KEY": KEY, other: KEY})

    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HEARSAY_REGISTRY", ""),
        ("HEARSAY_REGISTRY", os.pathsep),
        ("HEARSAY_PROFILE", "strictest"),
        ("HEARSAY_SHARDS", "0"),
        ("HEARSAY_SHARDS", "1025"),
        ("HEARSAY_SHARDS", "4.0"),
        ("HEARSAY_SHARDS", "-4"),
        ("HEARSAY_SHARDS", ""),
        ("HEARSAY_SHARDS", "٤"),
        ("HEARSAY_SHARDS", "0000000049999"),
        ("HEARSAY_SHARDS", "9" * 5_000),
        ("HEARSAY_PORT", "0"),
        ("HEARSAY_PORT", "65536"),
        ("HEARSAY_PORT", "http"),
        ("HEARSAY_OPEN_DASHBOARD", "yes"),
    ],
)
def test_a_bad_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}="):
        read(**{name: value})


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


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1.nip.io", "", "1.2.3"])
def test_a_host_is_an_address_of_this_machine_or_localhost(host: str) -> None:
    with pytest.raises(ConfigError, match=r"^HEARSAY_HOST="):
        read(HEARSAY_HOST=host)


def test_localhost_is_listened_on_as_an_address() -> None:
    assert read(HEARSAY_HOST="localhost").host == "127.0.0.1"


def test_a_setting_that_is_misspelled_is_refused_without_its_value() -> None:
    with pytest.raises(ConfigError, match=r"^HEARSAY_WRITE_KEYY=\*\*\*: is no setting"):
        read(HEARSAY_WRITE_KEYY="a-key-for-tests-0123456789")


@pytest.mark.parametrize("key", ["a key with spaces in it", "schlüssel-mit-umlaut"])
def test_a_key_that_no_header_can_hold_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match=r"^HEARSAY_WRITE_KEY=\*\*\*"):
        read(HEARSAY_WRITE_KEY=key)


def test_an_empty_secret_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("\n", encoding="utf-8")

    with pytest.raises(ConfigError, match="is empty"):
        read(HEARSAY_WRITE_KEY_FILE=str(path))


def test_the_address_of_the_store_is_not_part_of_a_representation() -> None:
    assert "hunter2" not in repr(read(REDIS_URL="redis://:hunter2@127.0.0.1/0"))
