"""Errors: one root, a builtin beside it, parts kept as data, and a tree drawn as it is."""

from __future__ import annotations

import inspect
import re

import pytest

from client_sdk.core import errors
from client_sdk.core.errors import (
    HearsayError,
    InvalidParameterError,
    InvalidValueError,
    RegistryError,
    UnknownMetricError,
)

PUBLIC = [
    error
    for name, error in inspect.getmembers(errors, inspect.isclass)
    if error.__module__ == errors.__name__ and not name.startswith("_")
]
BUILTIN = (ValueError, KeyError, OSError, ImportError)
POLICY = {  # what was decided rather than what was wrong: no builtin means that
    *("HearsayError", "AutomatedError", "BudgetExhaustedError", "AlreadyReportedError"),
    *("ConsentError", "OptedOutError", "ExpiredMetricError", "NotInPanelError"),
}


@pytest.mark.parametrize("error", PUBLIC, ids=lambda error: error.__name__)
def test_every_error_is_a_hearsay_error_and_says_so_in_its_name(error: type[Exception]) -> None:
    assert issubclass(error, HearsayError)
    assert error.__name__.endswith("Error")


@pytest.mark.parametrize("error", PUBLIC, ids=lambda error: error.__name__)
def test_every_error_but_those_of_policy_is_also_a_builtin_one(error: type[Exception]) -> None:
    builtin = any(issubclass(error, base) for base in BUILTIN)

    assert builtin == (error.__name__ not in POLICY)


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = re.findall(r"── (\w+)(?: \((\w+)\))?", inspect.getdoc(errors) or "")

    actual = {
        error.__name__: next(
            (
                b.__name__
                for b in (ValueError, KeyError, OSError, ImportError)
                if issubclass(error, b)
            ),
            "",
        )
        for error in PUBLIC
        if error is not HearsayError
    }
    assert dict(drawn) == actual


def test_a_parameter_error_reads_name_value_rule_and_keeps_the_parts() -> None:
    error = InvalidParameterError("epsilon", "nan", "must be positive")

    assert str(error) == "epsilon=nan: must be positive"
    assert (error.name, error.value, error.rule) == ("epsilon", "nan", "must be positive")


def test_a_value_error_has_no_place_for_the_value() -> None:
    error = InvalidValueError("dark_mode", "takes True or False")

    assert str(error) == "dark_mode: takes True or False"
    assert vars(error) == {"what": "dark_mode", "rule": "takes True or False"}


def test_a_registry_error_keeps_every_problem() -> None:
    error = RegistryError(["a: x", "b: y"])

    assert error.problems == ("a: x", "b: y")
    assert str(error) == "a: x; b: y"


def test_an_unknown_name_prints_plainly_although_it_is_a_key_error() -> None:
    error = UnknownMetricError("darkmode", ["dark_mode", "plan"])

    assert isinstance(error, KeyError)
    said = "metric=darkmode: is not known (did you mean dark_mode?); known: dark_mode, plan"
    assert str(error) == said
    assert str(UnknownMetricError("x")) == "metric=x: is not known"
