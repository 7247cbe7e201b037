"""Which slice is compared with which.  Pure.

Each comparison stays within one value of every other dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from client_sdk.registry.domains import listed

from ...core.errors import QueryError
from ..items.joined import unsure
from ..rows import AGAINST, TIME
from ..sizes import too_few
from ..slices import Slice, merged
from .series import others, series_of

PREVIOUS, FIRST = "previous", "first"  # stretches of time
REST: Final = "(rest)"  # all other values together
_ALONE: Final = "nothing else beside it has enough reports"


@dataclass(frozen=True)
class Pair:
    """Two slices to compare, or the *refusal*."""

    dimensions: Mapping[str, str]  # of the first, with AGAINST
    first: Slice
    second: Slice
    refusal: str | None = None


def pairs_of(slices: Sequence[Slice], by: str, against: str | None) -> list[Pair]:
    """Return the pairs along dimension *by*.

    Args: against: of time "previous", the default, or "first"; of another dimension one of its
          values, or None: of all others together.
    Raises: QueryError: names ``options.against``: no slice has this value.
    """
    if by == TIME:
        if against not in (None, PREVIOUS, FIRST):
            raise QueryError(f"options.against: of time must be {PREVIOUS} or {FIRST}")
        return [
            _pair(second, parts[0 if against == FIRST else i], by)
            for parts in series_of(slices)
            for i, second in enumerate(parts[1:])
        ]
    groups: dict[tuple[tuple[str, str], ...], list[Slice]] = {}
    for one in slices:
        groups.setdefault(tuple(others(one, by).items()), []).append(one)
    if against is None:
        return [pair for group in groups.values() for pair in _with_rest(group, by)]
    require_value(slices, by, against, "options.against")
    return [pair for group in groups.values() for pair in _with_value(group, by, against)]


def require_value(slices: Sequence[Slice], by: str, value: str, field: str) -> None:
    """Raise QueryError, which names *field*, unless some slice has this *value* of *by*."""
    known = tuple(dict.fromkeys(one.dimensions[by] for one in slices))
    if value not in known:
        raise QueryError(f"{field}: must be a value of {by} that has reports: {listed(known)}")


def _with_value(group: Sequence[Slice], by: str, value: str) -> Iterator[Pair]:
    reference = next((one for one in group if one.dimensions[by] == value), None)
    for one in group:
        if reference is not None and one is not reference:
            yield _pair(one, reference, by)


def _pair(first: Slice, second: Slice, by: str) -> Pair:
    named = {**first.dimensions, AGAINST: second.dimensions[by]}
    return Pair(named, first, second, first.refusal or second.refusal)


def _with_rest(group: Sequence[Slice], by: str) -> Iterator[Pair]:
    """Compare each with all others together, however few reports some of them have."""
    whole = merged(group, {**others(group[0], by), by: REST})
    for one in group:
        # of its epochs no less is known than that they are among those of the whole
        rest = replace(whole, n=whole.n - one.n, tally=whole.tally - one.tally)
        alone = _ALONE if too_few(rest.metric, rest.n) else unsure(rest)
        yield Pair({**one.dimensions, AGAINST: REST}, one, rest, one.refusal or alone)
