"""What stands in a registry where a rule is broken, and on which line.

Loaded for a registry that is wrong, whose values are settings of an application: they may be shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from ..core.typing import Final

_LONGEST: Final = 40  # letters that are shown of a value
_KEY: Final = re.compile(r""""([^"]*)"|'([^']*)'|([\w-]+)""")
_RULES: Final = ("must ", "is not a known key", "is a table in a table")


def explained(lines: Sequence[str], table: Mapping[str, object], text: str) -> list[str]:
    """Return the problems *lines* of *table* with what its *text* has there, where it is known."""
    numbers = _numbers(text)
    return [_explained(line, table, numbers) for line in lines]


def _explained(
    line: str, table: Mapping[str, object], numbers: Mapping[tuple[str, ...], int]
) -> str:
    place, _, rule = line.partition(": ")
    if not rule.startswith(_RULES):
        return line
    keys, value = _at(place.removeprefix("registry."), table)
    if value is None:
        rule += "; it is missing"
    elif not isinstance(value, dict) and "must " in rule:
        rule += f"; found {_shown(value)}"
    while keys and keys not in numbers:
        keys = keys[:-1]
    return f"{place}: {rule}" + (f" (line {numbers[keys]})" if numbers.get(keys) else "")


def _at(place: str, table: Mapping[str, object]) -> tuple[tuple[str, ...], object]:
    """Return the keys that *place* names, and what is there; None: nothing is."""
    entry: object = table
    keys: tuple[str, ...] = ()
    while place and isinstance(entry, dict):
        known = [key for key in entry if f"{place}.".startswith(f"{key}.")]
        if not known:
            return keys, None if place.isidentifier() else entry
        key = max(known, key=len)
        keys, entry, place = (*keys, key), entry[key], place[len(key) + 1 :]
    return keys, entry


def _shown(value: object) -> str:
    is_json = isinstance(value, str | bool | list)  # a number is written as it stands there
    try:
        text = json.dumps(value, default=str) if is_json else str(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits in decimal
        return "a number of too many digits"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _numbers(text: str) -> dict[tuple[str, ...], int]:
    """Return the line of each key, by the keys that lead to it; 0 where two lines may be it."""
    numbers: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        head, sign, _ = line.partition("=")
        if line.startswith("["):
            table = own = _split(line.strip("[").partition("]")[0])
        elif line.startswith("#") or not sign:
            continue
        else:
            own = (*table, *_split(head))
        numbers[own] = 0 if own in numbers else number
    return numbers


def _split(dotted: str) -> tuple[str, ...]:
    return tuple("".join(groups) for groups in _KEY.findall(dotted))
