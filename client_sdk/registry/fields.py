"""The fields of ``metrics.toml``: its text as TOML's tables, and each field by its rule.

Any text is read in little time or refused.  Where a field breaks its rule, a
problem is added and a stand-in returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from decimal import Decimal
from fractions import Fraction

from ..core.errors import RegistryError, nearest
from ..core.limits import MAX_EXPONENT, MAX_REGISTRY
from ..core.typing import Any, Final
from .keys import rule_of

_FRACTION: Final = re.compile(r"-?[0-9]{1,400}(/[1-9][0-9]{0,400})?", re.ASCII)

MAX_PARTS: Final = 32  # of a dotted key, where a registry has four; time grows as their square

# Each kind begins where none of its like goes on, and gives nothing back: the search is linear.
_PART: Final = r"""(?:(?<![\w-])[\w-]++|(?<!\\)"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY: Final = re.compile(rf"(?:{_PART}[ \t]*\.[ \t]*){{{MAX_PARTS}}}", re.ASCII)


def load(text: str) -> dict[str, object]:
    """Return the table that *text* describes.

    Raises: RegistryError: it is too long, no TOML, or beyond what TOML's reader can hold.
    """
    import tomllib  # 3 ms that an import of the SDK must not pay

    if len(text) > MAX_REGISTRY:
        raise RegistryError([f"registry: must have at most {MAX_REGISTRY} characters"])
    if _LONG_KEY.search(text):
        raise RegistryError([f"registry: must have no key of more than {MAX_PARTS} parts"])
    try:
        return tomllib.loads(text, parse_float=Decimal)
    # numbers without end, and tables within tables, are errors of the machine, not of the grammar
    except (ValueError, ArithmeticError, RecursionError) as error:
        reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "is too deep or long"
        raise RegistryError([f"registry: is not TOML: {reason}"]) from None


class Problems:
    """Collects ``place: rule`` lines while a file is read."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, place: str, rule: str) -> None:
        """Add one; a key may hold anything, so what cannot be printed is not."""
        line = f"{place}: {rule}"
        self.lines.append("".join(letter if letter.isprintable() else "?" for letter in line))


def labels(place: str, entry: object, problems: Problems) -> tuple[str, ...]:
    """Return a list of at least two different texts; empty if it is none."""
    return tuple(value(place, "labels", entry, problems, ()))


def refuse_unknown(
    place: str, entry: Mapping[str, object], allowed: Set[str], problems: Problems
) -> None:
    """Add a problem for each key of *entry* that is not *allowed*."""
    for key in sorted(set(entry) - allowed):
        like = nearest(key, allowed)
        rest = like or f"; known: {', '.join(sorted(allowed))}"
        problems.add(f"{place}.{key}", f"is not a known key{rest}")


def inner_metrics(entry: Mapping[str, object]) -> Iterator[tuple[str, ...]]:
    """Yield the keys to each table within *entry* that is meant as a metric."""
    for key, part in entry.items():
        if isinstance(part, dict):
            if isinstance(part.get("question"), str):
                yield (key,)
            yield from ((key, *keys) for keys in inner_metrics(part))


def value(place: str, kind: str, entry: object, problems: Problems, stand_in: object = None) -> Any:
    """Return *entry* if it is of a *kind* of keys; a *stand_in* if it is not."""
    is_kept, rule = rule_of(kind)
    if is_kept(entry):
        return entry
    like = nearest(entry, kind.split("|")) if "|" in kind and isinstance(entry, str) else ""
    problems.add(place, f"{rule}{like}")
    return stand_in


def fraction_of(text: object) -> object:
    """Return *text*, such as "-1/3", as a Fraction; anything else as it is."""
    if not isinstance(text, str) or not _FRACTION.fullmatch(text):
        return text
    return Fraction(text)


def decimal(place: str, entry: object, problems: Problems) -> Fraction | None:
    """Return a finite number, exactly; None if it is none."""
    # TOML knows nan and inf, and 1e999999999, which as a fraction would fill the memory
    if isinstance(entry, Decimal) and entry.is_finite() and abs(entry.adjusted()) <= MAX_EXPONENT:
        return Fraction(entry)
    if isinstance(entry, int | Fraction) and not isinstance(entry, bool):
        return Fraction(entry)
    problems.add(place, "must be a finite number")
    return None
