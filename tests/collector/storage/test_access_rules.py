"""The rights of each user as they are written: enough for its work, and no password among them."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import pytest

from collector.core.errors import ConfigError
from collector.storage.access import (
    INGEST,
    PRUNE,
    USERS,
    WATCH,
    acl_lines,
    database_in,
    passwords_in,
    rules,
)

PASSWORD: Final = "password-for-tests"


def test_every_command_inside_the_library_is_a_right_of_somebody() -> None:
    """A right that is missing would end a step between two writes, and leave half of it."""
    source = files("collector.storage").joinpath("hearsay.lua").read_text(encoding="utf-8")
    inside = {name.lower() for name in re.findall(r"(?:call\(|command = \{ )'([A-Z]+)'", source)}
    given = {
        word.strip("()+").partition("|")[0]
        for user in USERS
        for rule in rules(user, "p")
        for word in rule.split()
    }

    assert len(inside) >= 15
    assert inside - given == set()


def test_every_function_of_the_library_is_a_right_of_somebody() -> None:
    source = files("collector.storage").joinpath("hearsay.lua").read_text(encoding="utf-8")
    functions = set(re.findall(r"register\('(\w+)'", source))
    text = " ".join(rule for user in USERS for rule in rules(user, "p"))

    assert set(re.findall(r"\|hearsay_(\w+)", text)) == functions


def test_a_store_in_another_database_than_the_first_is_the_only_one_to_be_chosen(
    tmp_path: Path,
) -> None:
    for text in ("redis://u:a-password@store:6379/3", "unix://u:a-password@/run/s?db=3"):
        (tmp_path / "init_url").write_text(text)

        assert database_in(tmp_path) == 3

    chosen = [rule for user in USERS for rule in rules(user, "p", 3) if "select" in rule]
    assert chosen == ["+select|3"] * len(USERS)
    assert not [rule for user in USERS for rule in rules(user, "p") if "select" in rule]


@pytest.mark.parametrize("user", USERS)
def test_no_user_has_a_whole_category_or_every_key(user: str) -> None:
    words = [word for rule in rules(user, "p") for word in rule.strip("()").split()]

    assert not [word for word in words if word.startswith("+@") or word in ("allkeys", "~*")]
    assert all("p:" in word for word in words if "~" in word)


def test_an_acl_file_holds_no_password() -> None:
    text = "\n".join(acl_lines("p", dict.fromkeys(USERS, PASSWORD)))

    assert PASSWORD not in text
    assert text.count("#") == len(USERS)
    assert text.endswith("\nuser default reset off ~* &* +@all")


def test_passwords_are_taken_from_the_addresses_that_processes_use(tmp_path: Path) -> None:
    for user in USERS:
        (tmp_path / f"{user}_url").write_text(f"redis://h-{user}:p%40ss-{user}@store:6379/0\n")

    assert passwords_in(tmp_path) == {user: f"p@ss-{user}" for user in USERS}


def test_who_prunes_nothing_needs_no_user_for_it(tmp_path: Path) -> None:
    """Law: the folder of an older release is enough."""
    for user in set(USERS) - {PRUNE, WATCH}:
        (tmp_path / f"{user}_url").write_text(f"redis://h-{user}:password@store:6379/0\n")

    assert set(passwords_in(tmp_path)) == set(USERS) - {PRUNE, WATCH}


@pytest.mark.parametrize("text", [None, "", "redis://store:6379/0", "redis://canary@store/0"])
def test_an_address_without_a_password_is_named_and_not_shown(
    tmp_path: Path, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "init_url").write_text(text)

    with pytest.raises(ConfigError, match="init_url") as caught:
        passwords_in(tmp_path)

    assert "canary" not in str(caught.value)


def test_a_prefix_that_could_end_a_rule_is_refused() -> None:
    prefixes: list[Any] = ["a b", "a)", "*", "", "a\nuser x on nopass +@all ~*"]

    for prefix in prefixes:
        with pytest.raises(ConfigError, match=r"^prefix="):
            rules(INGEST, prefix)
