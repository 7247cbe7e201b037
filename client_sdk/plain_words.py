"""What a report says and why it can be denied, in words for the person it came from.

Reads payloads, which are perturbed: nothing here knows a true value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final

from .mechanisms import KeyValueMechanism, MeanMechanism, SupportReports
from .privacy.budget import nano_of, odds, percent
from .registry.domains import Domain, NumberDomain
from .registry.metric import Metric

_SHOWN: Final = 4  # labels; more would not be read


def what_was_sent(metric: Metric, payload: bytes) -> str:
    """Return what *payload* tells the collector, in words."""
    mechanism, domain = metric.mechanism, metric.domain
    if len(payload) != mechanism.payload_size or mechanism.reason(payload) is not None:
        return f"the bytes {payload.hex()}, which mean nothing here"
    if isinstance(mechanism, KeyValueMechanism) and domain.numbers:
        return _pairs(mechanism.supports(payload), domain.labels, domain.numbers)
    if isinstance(mechanism, SupportReports) and domain.labels:
        return _items(list(mechanism.supports(payload)), domain)
    if isinstance(mechanism, MeanMechanism) and (grid := domain.grid):
        number = grid.minimum + grid.step * mechanism.decode(payload)
        return f"{_rounded(number)} {grid.unit}, which is the value and noise together"
    return f"the code {int.from_bytes(payload, 'big')}, which every value can give"


def why_deniable(metric: Metric) -> str:
    """Return how little one report of *metric* says about what was true."""
    mechanism = metric.mechanism
    said = (
        f"{_chances(metric)}It shifts nobody's odds by more than"
        f" {odds(mechanism.spent_nano, mechanism.delta)}."
    )
    spent_value = None if metric.policy is None else metric.policy.spent_value
    if spent_value is None:
        return said
    return (
        f"{said} All reports of one answer together: by no more than {odds(nano_of(spent_value))}."
    )


def _chances(metric: Metric) -> str:
    """Return how often a report speaks for what is true, and for what is not, if that is simple."""
    mechanism, domain = metric.mechanism, metric.domain
    if not isinstance(mechanism, SupportReports) or domain.numbers or not domain.labels:
        return "Any value could have given this report. "
    p, q = mechanism.channel.p, mechanism.channel.q
    return (
        f"A report points to the true answer with a chance of at most {percent(p, up=True)}, and to"
        f" each other answer with at least {percent(q, up=False)}. "
    )


def _items(items: Sequence[int], domain: Domain) -> str:
    if not items:
        return f"none of the {domain.size} answers"
    named = _joined([f'"{domain.told(item)}"' for item in items])
    return named if len(items) == 1 else f"{len(items)} of {domain.size} answers: {named}"


def _pairs(supports: Iterable[int], keys: Sequence[str], numbers: NumberDomain) -> str:
    """Return the keys with the end of the range that each was rounded to."""
    ends = numbers.maximum, numbers.minimum  # the cells of plus come first
    found = [
        f'"{keys[cell % len(keys)]}" with {_rounded(ends[cell // len(keys)])} {numbers.unit}'
        for cell in supports
    ]
    return _joined(found) if found else f"none of the {len(keys)} keys"


def _joined(texts: Sequence[str]) -> str:
    rest = len(texts) - _SHOWN
    return ", ".join(texts[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _rounded(number: Fraction) -> str:
    return f"{float(number):,.6g}"
