"""Which textbook arithmetic gives the estimates of a mechanism, in decimals."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from client_sdk.mechanisms import (
    DistributionMechanism,
    FrequencyOracle,
    KeyValueMechanism,
    MeanMechanism,
    Mechanism,
    SetMechanism,
    VectorMechanism,
)
from client_sdk.mechanisms.composite.pem import PEM
from client_sdk.mechanisms.composite.sampled_attribute import SampledAttribute
from client_sdk.mechanisms.composite.sampled_item import SampledItem
from client_sdk.mechanisms.deployed.cms import CMS
from client_sdk.mechanisms.deployed.dbitflip import DBitFlip
from client_sdk.mechanisms.deployed.hcms import HCMS
from client_sdk.mechanisms.deployed.rappor import RAPPOR
from client_sdk.mechanisms.items.cover import Cover
from client_sdk.mechanisms.items.exponential import Exponential
from client_sdk.mechanisms.items.hierarchy import Hierarchy
from client_sdk.mechanisms.numbers._symbols import MomentReports
from client_sdk.mechanisms.numbers.minimax import Minimax
from client_sdk.mechanisms.numbers.sampled_number import SampledNumber
from tests.support.enumeration.formula import CONTEXT
from tests.support.references import (
    codebook_reference,
    cover_reference,
    exponential_reference,
    hierarchy_reference,
    key_value_reference,
    minimax_reference,
    regression_reference,
)
from tests.support.references.distribution_reference import sum_and_variance
from tests.support.references.prefix_reference import of_cells
from tests.support.references.sampled_reference import (
    of_cms,
    of_dbitflip,
    of_hcms,
    of_sampled_attribute,
    of_sampled_item,
    of_sampled_number,
)
from tests.support.references.support_reference import of_supports


def estimates(
    mechanism: Mechanism[Any],
    payloads: list[bytes],
    tally: list[int],
    numbers: dict[str, Decimal],
) -> tuple[Sequence[Decimal], Sequence[Decimal]]:
    """Return totals and variances by the reference of the mechanism's family."""
    n = len(payloads)
    match mechanism:
        case Minimax():
            symbols = [int.from_bytes(payload, "big") for payload in payloads]
            total, variance = minimax_reference.sum_and_variance(mechanism, symbols, numbers)
            return [total], [variance]
        case MeanMechanism():
            reports = [_decimal(mechanism.decode(payload)) for payload in payloads]
            variance = _variance_of_sum(mechanism, reports, numbers)
            return [sum(reports, Decimal(0))], [variance]
        case DistributionMechanism():
            symbols = [int.from_bytes(payload, "big") for payload in payloads]
            total, variance = sum_and_variance(mechanism, symbols, numbers)
            return [total], [variance]
        case Exponential():
            named = [int.from_bytes(payload, "big") for payload in payloads]
            return exponential_reference.counts_and_variances(
                numbers["decay"], mechanism.domain_size, named
            )
        case Cover():
            named = [int.from_bytes(payload, "big") for payload in payloads]
            return cover_reference.counts_and_variances(
                numbers["odds"], mechanism.sets, mechanism.domain_size, named
            )
        case SampledNumber():
            symbols = [int.from_bytes(payload, "big") for payload in payloads]
            return of_sampled_number(mechanism, numbers, symbols)
        case SampledAttribute():
            told = [sorted(mechanism.supports(payload)) for payload in payloads]
            return of_sampled_attribute(mechanism, numbers["odds"], told)
        case VectorMechanism():
            words = [int.from_bytes(payload, "big") for payload in payloads]
            return codebook_reference.positions(mechanism, numbers, words)
        case KeyValueMechanism():
            supported = [mechanism.supports(payload) for payload in payloads]
            size, pad, top = mechanism.domain_size, mechanism.pad, mechanism.top
            return key_value_reference.totals_and_variances(numbers, size, pad, top, supported)
    p, q = numbers["p"], numbers["q"]
    match mechanism:
        case CMS():
            return of_cms(mechanism, tally, n, p, q)
        case HCMS():
            return of_hcms(mechanism, tally, n, p, q)
        case DBitFlip():
            return of_dbitflip(mechanism, tally, n, p, q)
        case RAPPOR():
            return regression_reference.counts_and_variances(mechanism, tally, p, q)
        case PEM():
            return of_cells(mechanism, payloads, p, q)
        case Hierarchy():
            named = [int.from_bytes(payload, "big") for payload in payloads]
            size, fanout = mechanism.domain_size, mechanism.fanout
            return hierarchy_reference.counts_and_variances(p, size, fanout, named)
        case SampledItem():
            return of_sampled_item(tally, n, numbers["flip"])
    assert isinstance(mechanism, FrequencyOracle | SetMechanism)
    supports = [mechanism.supports(payload) for payload in payloads]
    return of_supports(mechanism.domain_size, supports, p, q)


def _decimal(number: Fraction) -> Decimal:
    return CONTEXT.divide(Decimal(number.numerator), Decimal(number.denominator))


def _variance_of_sum(
    mechanism: MeanMechanism, reports: list[Decimal], numbers: dict[str, Decimal]
) -> Decimal:
    """Return the variance of the sum of *reports* as the docstrings of ``debias`` derive it.

    Of symbols ``end`` is E[(y - 1/2)^2] at an end of the range, which is taken as the unit.
    """
    n = len(reports)
    if not isinstance(mechanism, MomentReports):
        return n * numbers["variance"]
    centred = [CONTEXT.divide(y, Decimal(mechanism.top)) - Decimal("0.5") for y in reports]
    mean = CONTEXT.divide(sum(centred, Decimal(0)), Decimal(n))
    least = n * min(max(mean, Decimal("-0.5")), Decimal("0.5")) ** 2
    if mechanism.payload_count == 2:
        return (n * numbers["end"] - least) * mechanism.top**2
    square, steps = numbers["square"], mechanism.moments.steps
    constant = numbers["end"] - square / 4
    squares = sum((y * y for y in centred), Decimal(0))
    spread = CONTEXT.divide(squares - n * constant, square)
    spread = min(max(spread, least), Decimal(n) / 4)
    rounding = CONTEXT.divide(Decimal(n), Decimal(4 * steps**2))
    stated = n * constant + (square - 1) * spread + rounding
    return min(stated * mechanism.top**2, n * Decimal(mechanism.worst_variance))
