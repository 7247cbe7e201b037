"""Run audits of mechanisms by name over the operating system's entropy, and print them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import Mechanism, load, names

from .audit import ALPHA, PAIRS, audit, table


def mechanisms_of(wanted: Sequence[str], epsilon: str, domain_size: int) -> list[Mechanism[Any]]:
    """Return the *wanted* mechanisms, or all of them, with these parameters.

    Raises: UnknownMechanismError, InvalidParameterError: there is no such mechanism.
    """
    return [load(name)(epsilon, domain_size) for name in wanted or names()]


def run(
    mechanisms: Sequence[Mechanism[Any]],
    draws: int,
    as_json: bool,
    show: Callable[[str], object],
    pairs: int = PAIRS,
) -> int:
    """Audit *mechanisms*, show what was found, and return the exit status: 1 if a claim fails.

    Raises: InvalidParameterError: too few draws to say anything, or no pair.
    """
    audits = [audit(mechanism, system_randomness(), draws, pairs) for mechanism in mechanisms]
    if as_json:
        show(json.dumps({"alpha": ALPHA, "audits": [a.as_dict() for a in audits]}))
    else:
        show(table(audits))
        show(closing(draws))
    return 0 if all(found.passed for found in audits) else 1


def closing(draws: int) -> str:
    """Return the last line: what the bounds rest on."""
    return (
        f"{draws:,} reports a side, shared by the pairs;"
        f" an honest mechanism fails with probability {ALPHA:g}"
    )
