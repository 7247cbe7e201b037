"""Errors of the collector: one root, names that say so, and a tree drawn as it is."""

from __future__ import annotations

import inspect
import re

import pytest

from collector.core import errors
from collector.core.errors import CollectorError, ConfigError, CredentialError, QueryError

PUBLIC = [
    error
    for _, error in inspect.getmembers(errors, inspect.isclass)
    if error.__module__ == errors.__name__
]
DEPTH = 4  # characters by which a branch is drawn further right


def drawn() -> dict[str, tuple[str, ...]]:
    """Return the bases of each error as the docstring draws them, the builtin one last."""
    found: dict[str, tuple[str, ...]] = {}
    above = [CollectorError.__name__]
    for line in (inspect.getdoc(errors) or "").splitlines():
        branch = re.match(r"([│ ]*)[├└]── (\w+)(?: \((\w+)\))?  ", line)
        if branch:
            place, name, builtin = branch.groups()
            del above[1 + len(place) // DEPTH :]
            found[name] = (above[-1], *([builtin] if builtin else []))
            above.append(name)
    return found


@pytest.mark.parametrize("error", PUBLIC, ids=lambda error: error.__name__)
def test_every_error_is_a_collector_error_and_says_so_in_its_name(error: type[Exception]) -> None:
    assert issubclass(error, CollectorError)
    assert error.__name__.endswith("Error")


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    """Law: who catches a branch, or a builtin, catches what the drawing shows below it."""
    bases = {error.__name__: tuple(b.__name__ for b in error.__bases__) for error in PUBLIC}
    del bases[CollectorError.__name__]

    assert drawn() == bases


def test_errors_of_settings_and_credentials_keep_their_parts() -> None:
    setting = ConfigError("HEARSAY_PORT", 0, "must be from 1 to 65535")
    credential = CredentialError("expires", "must be a day to come")

    assert str(setting) == "HEARSAY_PORT=0: must be from 1 to 65535"
    assert (setting.name, setting.value, setting.rule) == (
        "HEARSAY_PORT",
        0,
        "must be from 1 to 65535",
    )
    assert str(credential) == "expires: must be a day to come"
    assert (credential.name, credential.rule) == ("expires", "must be a day to come")


def test_a_query_error_tells_place_and_rule_apart() -> None:
    error = QueryError("filters.0.1: must be a dimension")

    assert (error.place, error.rule) == ("filters.0.1", "must be a dimension")
