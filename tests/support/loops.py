"""Tests of many cases as one test each: thousands of parametrized ones cost more than they check.

The loop stops at the first case that fails, and the failure names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, signature
from typing import Any

import pytest

from client_sdk.mechanisms import Mechanism, load, names

Test = Callable[..., None]


def label(case: object) -> str:
    """Return a short name of *case*, for the report of a test."""
    return repr(case)[:120]


def run(test: Test, arguments: list[str], case: Any, others: dict[str, Any]) -> None:
    """Run *test* on *case*, a value or a tuple of one for each of several arguments."""
    values = (case,) if len(arguments) == 1 else case
    try:
        test(**dict(zip(arguments, values, strict=True)), **others)
    except BaseException as failure:
        failure.add_note(f"case: {', '.join(map(label, values))}")
        raise


def in_turn(arguments: str, cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test on all *cases* in a loop: ``pytest.mark.parametrize`` as a single test."""
    looped, every = arguments.split(","), list(cases)
    assert every

    def decorate(test: Test) -> Test:
        @wraps(test)
        def loop(**others: Any) -> None:
            for case in every:
                run(test, looped, case, others)

        return without(looped, loop)

    return decorate


def per_mechanism(
    arguments: str,
    cases_of: Callable[[str], Iterable[Any]],
    which: Callable[[type[Mechanism[Any]]], bool] = lambda _: True,
    step: int = 1,
) -> Callable[[Test], Test]:
    """Run a test once for *which* mechanisms, on all that *cases_of* gives for its name.

    Args: step: make test runs each *step*-th case only, and make test-rest all of them.
    """
    looped = arguments.split(",")

    def decorate(test: Test) -> Test:
        @wraps(test)
        def loop(of: str, step: int, **others: Any) -> None:
            cases = list(cases_of(of))
            assert cases, "a law without a case holds nothing"
            for case in cases[::step]:
                run(test, looped, case, others)

        chosen = [name for name in names() if which(load(name))]
        rows = [pytest.param(name, step, id=name) for name in chosen]
        if step > 1:
            whole = pytest.mark.whole
            rows += [pytest.param(name, 1, id=f"{name}-all", marks=whole) for name in chosen]
        return pytest.mark.parametrize(("of", "step"), rows)(without(looped, loop, "of", "step"))

    return decorate


def without(looped: list[str], loop: Test, *added: str) -> Test:
    """Show pytest the arguments of *loop* that are not *looped*, and those that are *added*."""
    of_test = signature(loop)
    kept = [p for name, p in of_test.parameters.items() if name not in looped]
    assert len(kept) + len(looped) == len(of_test.parameters)
    first = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in added]
    shown = of_test.replace(parameters=[*first, *kept])
    loop.__signature__ = shown  # type: ignore[attr-defined]  # PEP 362
    return loop
