"""Channels made for questions: a table of weighted sets, and its error beside other mechanisms.

Source: McKenna, Maity, Mazumdar, Miklau, PVLDB 2020 (the error of a workload).  The sets and their
weights are found by ``Program``.  Nothing here decides about privacy: any table is a channel of the
ε that is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Final, NamedTuple, cast

import numpy as np

from client_sdk.core.randomness import Randomness, system_randomness
from client_sdk.mechanisms import DesignedMechanism, ItemMechanism, load
from client_sdk.registry.keys import AUTO
from client_sdk.registry.metric import Metric
from client_sdk.registry.selection import candidates, choose, fitting_names

from ..core.errors import QueryError
from ..estimation.estimate import normal_quantile
from ..estimation.precision import ALPHA
from .weighted_sets import Array, Program, first_sets, starts

ASKS: Final = ("items", "quantiles", "ranges")
DEVICES: Final = 100_000  # of which half-widths are shown
MAX_ITEMS: Final = 128
MAX_WEIGHT: Final = 1_000_000  # of a question beside others
SETS_AN_ITEM: Final = 4
_ROUNDS: Final = 30
_EXCHANGES: Final = 6
_NEW: Final = 100  # sets that join in a round, at most
_BOUNDED: Final = 16  # items of which every set is looked at for the bound
_REPORTS: Final = 20_000  # where the error follows from reports alone


class Design(NamedTuple):
    """A mechanism made for questions, its *error* of one report, and the *bound* of all errors.

    Errors are root mean squares over the questions, of shares.  No channel of this epsilon goes
    below the bound where all items are equally common; None: it is not known.
    """

    name: str
    mechanism: ItemMechanism
    error: float
    bound: float | None


def gram(asks: Mapping[str, float], domain_size: int) -> Array:
    """Return the mean of the products of two items' weights over the questions.

    Args:    asks: weight by name, of ASKS: each item, the share up to each item, or the share of
                 every run of neighbouring items.
    Returns: shape (domain_size, domain_size).
    Raises:  QueryError: another name, or a weight that is not above 0 or above MAX_WEIGHT.
    """
    if not asks or not asks.keys() <= set(ASKS):
        raise QueryError("ask", f"must be of {', '.join(ASKS)}")
    if not all(0 < weight <= MAX_WEIGHT for weight in asks.values()):
        raise QueryError("ask", f"must have weights above 0, of at most {MAX_WEIGHT:,}")
    item = np.arange(domain_size)
    first, last = np.minimum.outer(item, item), np.maximum.outer(item, item)
    grams = {
        "items": np.eye(domain_size) / domain_size,
        "quantiles": (domain_size - 1 - last) / (domain_size - 1),
        "ranges": 2 * (first + 1) * (domain_size - last) / (domain_size * (domain_size + 1)),
    }
    parts = [weight * grams[name] for name, weight in asks.items()]
    mean: Array = np.array(parts).sum(axis=0) / sum(asks.values())
    return mean


def error_of(
    mechanism: ItemMechanism, questions: Array, randomness: Randomness | None = None
) -> float:
    """Return the root mean square error of one report, where all items are equally common.

    Args: questions: as ``gram`` returns them.  randomness: of reports that are drawn where the
          error follows from neither laws of sums nor an enumeration.
    """
    values, vectors = np.linalg.eigh(questions)
    weights = (vectors * np.sqrt(np.clip(values, 0, None))).T
    laws = mechanism.sum_laws(weights, np)
    if laws is not None:
        return math.sqrt(float(laws.sum(axis=0).mean()))
    chance, size = randomness or system_randomness(), mechanism.domain_size
    shares, law = np.full(size, 1 / size), mechanism.enumerated(np)
    if law is not None:
        tally = np.rint(_REPORTS * shares @ law.chances @ law.cells).astype(np.int64)
    else:
        reports = (mechanism.randomize(i % size, chance) for i in range(_REPORTS))
        tally = mechanism.tally(b"".join(reports), np)
    variances = mechanism.sum_variances(weights, np, tally=tally, n=_REPORTS, shares=shares)
    return math.sqrt(_REPORTS * float(variances.sum()))


def others(epsilon: Fraction, domain_size: int, questions: Array) -> dict[str, float]:
    """Return the error of what ``auto`` takes and of all that are taken by name, the least first.

    Of those whose errors of sums are known, and not bounds.
    """
    chosen, _ = choose(AUTO, ItemMechanism, epsilon, domain_size)
    known = {}
    for each in candidates(ItemMechanism, epsilon, domain_size):
        mechanism = each.mechanism
        if not isinstance(mechanism, ItemMechanism) or isinstance(mechanism, DesignedMechanism):
            continue
        if (each.name == chosen or not mechanism.automatic) and mechanism.knows_sums(np):
            known[each.name] = error_of(mechanism, questions)
    return dict(sorted(known.items(), key=lambda pair: pair[1]))


def design(
    epsilon: Fraction,
    domain_size: int,
    questions: Array,
    most: int | None = None,
    seed: int = 0,
) -> Design:
    """Return a mechanism of at most *most* sets, and of single items, for *questions*.

    Args:   questions: as ``gram`` returns them.  most: SETS_AN_ITEM an item by default.
            seed: of the sets that are tried.
    Raises: QueryError: more items than MAX_ITEMS.
    """
    if domain_size > MAX_ITEMS:
        raise QueryError("metric", f"must have at most {MAX_ITEMS} items to design for")
    limit = most or SETS_AN_ITEM * domain_size
    chance = np.random.default_rng(seed)
    program = Program(first_sets(domain_size), math.exp(epsilon), questions)
    for _ in range(_ROUNDS):
        new = program.better(starts(chance, program, domain_size))[:_NEW]
        if not new:
            break
        program = program.joined(new)
    bound = program.bound() if domain_size <= _BOUNDED else None
    best = program = program.thinned(limit)
    for _ in range(_EXCHANGES):
        new = program.better(starts(chance, program, domain_size))[: limit // 3]
        if not new:
            break
        program = program.joined(new).thinned(limit)
        best = min(best, program, key=lambda each: each.value)
    (name,) = fitting_names(DesignedMechanism)
    kind = cast("type[DesignedMechanism]", load(name))
    mechanism = kind(epsilon, domain_size, **kind.table_of(best.table(), domain_size))
    constant = float(np.trace(questions)) / domain_size
    least = None if bound is None else math.sqrt(max(bound - constant, 0))
    return Design(name, mechanism, error_of(mechanism, questions), least)


def design_lines(metric: Metric, asks: Mapping[str, float], most: int | None) -> Iterator[str]:
    """Yield what a design for *metric* errs beside other mechanisms, and its lines of the registry.

    Raises: QueryError: no metric of items, one that is not fresh, or as ``gram`` and ``design``.
    """
    mechanism = metric.mechanism
    if not isinstance(mechanism, ItemMechanism):
        raise QueryError("metric", "must be of items: a category or a boolean")
    if metric.policy is not None:
        rule = f"must be fresh, not {metric.longitudinal}: a design cannot be repeated"
        raise QueryError("longitudinal", rule)
    epsilon, size = mechanism.epsilon, mechanism.domain_size
    questions = gram(asks, size)
    result = design(epsilon, size, questions, most)
    points = 100 * normal_quantile(ALPHA) / math.sqrt(DEVICES)
    yield f"{metric.address}: {size} items, epsilon {float(epsilon):g}, asked {', '.join(asks)}"
    alike = "devices that hold all items alike"
    yield f"half-widths of 95 % intervals for {DEVICES:,} {alike}, in points"
    least = None if result.bound is None else math.floor(100 * points * result.bound) / 100
    bound = "" if least is None else f"; no channel goes below {least:.2f}"
    yield f"  {result.name:18} {points * result.error:.2f}{bound}"
    for name, error in others(epsilon, size, questions).items():
        more = f"{(error / result.error) ** 2:.2f} times as many devices for the same"
        yield f"  {name:18} {points * error:.2f}, {more}"
    yield f"one item by {result.name}: {points * result.mechanism.predict(1):.2f}"
    yield "in the registry:"
    yield f'mechanism = "{result.name}"'
    own = (f"{name} = {hex(number)}" for name, number in result.mechanism.parameters.items())
    yield f"parameters = {{ {', '.join(own)} }}"
