"""The rules of ``aggregate`` and ``otherwise``: metrics whose values add up over an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from .core.epoch import ONCE
from .core.errors import InvalidValueError
from .domains import Domain, Encoded, NumberDomain
from .metric import AGGREGATES
from .state_bytes import MAX_STATE, size_of


def problems_of(entry: Mapping[str, Any], every: object, domain: Domain) -> Iterator[str]:
    """Yield ``key: rule`` for each rule that the aggregate of a metric breaks.

    Args: entry: the metric's table; without either key nothing is wrong.
    """
    name = entry.get("aggregate")
    if name is None:
        if "otherwise" in entry:
            yield "otherwise: needs an aggregate beside it"
        return
    fitting = [each for each in AGGREGATES if each in domain.aggregates]
    if name not in fitting:
        yield f"aggregate: must be one of {', '.join(fitting)} for values of this type"
    if every == ONCE:
        yield f"aggregate: needs an epoch that ends, not every={ONCE}"
    if size_of(domain) > MAX_STATE:
        yield f"aggregate: takes a domain that fits {MAX_STATE} bytes, not {size_of(domain)}"
    if "otherwise" in entry:
        yield from _unfit(entry["otherwise"], domain)


def otherwise_of(entry: Mapping[str, Any], domain: Domain) -> Encoded | None:
    """Return the checked ``otherwise`` of *entry* as its metric encodes it, or None."""
    return domain.encode(entry["otherwise"], "otherwise") if "otherwise" in entry else None


def _unfit(value: object, domain: Domain) -> Iterator[str]:
    """Yield why *value* cannot be recorded, or would be recorded as another one."""
    try:
        domain.encode(value, "")
    except InvalidValueError as error:
        yield f"otherwise: {error.rule}"
        return
    given = value.values() if isinstance(value, Mapping) else [value]
    if (numbers := domain.numbers) and not all(_within(each, numbers) for each in given):
        yield "otherwise: must be from min to max"


def _within(number: object, domain: NumberDomain) -> bool:
    assert isinstance(number, int | Decimal)  # noqa: S101 - what TOML has, and encode took
    return domain.minimum <= Fraction(number) <= domain.maximum
