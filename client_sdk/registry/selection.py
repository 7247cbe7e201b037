"""Choosing a mechanism, and the oracle of a repeated metric: by name, or ``auto`` by error.

``auto`` takes the smallest predicted error within a payload limit; of nearly equal errors
(SAME_ERROR) the shortest payload, and of equal payloads the cheapest fold.  It never pays more than
four times the fold of another for an error that is hardly smaller (FAIR_ERROR, FAIR_FOLD).  A
*spare* mechanism is looked at only where it errs clearly less than all others (SPARE_ERROR).

Only pure oracles serve a metric that reports a value again and again: the permanent payload of any
other mechanism costs more than its epsilon says, or has a permanence of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from ..core.dataclass import dataclass
from ..core.errors import InvalidParameterError, UnknownMechanismError
from ..core.typing import Any, Final, TypeAlias
from ..mechanisms import (
    Constant,
    DistributionMechanism,
    EpsilonLike,
    FrequencyOracle,
    ItemMechanism,
    Mechanism,
    Mixture,
    SetMechanism,
    load,
    names,
)
from .encodings import Family
from .keys import AUTO
from .longitudinal import Longitudinal, Permanent, TwoLayer

MAX_AUTO_PAYLOAD: Final = 8 * 8  # bits; 64 fit every frequency oracle that is near the optimum
MAX_SET_PAYLOAD: Final = 8 * 32  # bits; what is near the optimum needs some for every item of a set

# 1 % of a standard error shows in no interval, but 2 bytes for 8 and one addition for a thousand
# hashes show in every bill.
SAME_ERROR: Final = 1.01

# Errors may differ by little more than SAME_ERROR: the fold must not grow a thousandfold for that.
FAIR_ERROR: Final = 1.02
FAIR_FOLD: Final = 4

# The square of it is what keeps the square of the error within 1.05 of the optimum's: as much as
# others may err before a spare mechanism is taken.  Below it every metric keeps what it has.
_SPARE_ERROR: Final = 1.024

Costs: TypeAlias = tuple[int, int, float, str]


@dataclass(frozen=True)
class Candidate:
    """A mechanism at its best parameters for one metric, or the *refusal* to serve it."""

    name: str
    mechanism: Mechanism[Any] | None
    refusal: InvalidParameterError | None = None

    def fits(self, payload_bits: int) -> bool:
        """Whether ``auto`` may take it for payloads of at most *payload_bits*."""
        return (
            self.mechanism is not None
            and self.mechanism.automatic
            and 8 * self.mechanism.payload_size <= payload_bits
        )

    @property
    def error(self) -> float:
        """Predicted standard error of one report; infinite for a refusal."""
        return self.mechanism.predict(1) if self.mechanism else float("inf")

    @property
    def spare(self) -> bool:
        """Whether ``auto`` keeps it for where all others err more."""
        return self.mechanism is not None and self.mechanism.spare

    @property
    def fold_steps(self) -> int:
        """Cells that the fold of one report looks at; 0 for a refusal."""
        return self.mechanism.fold_steps if self.mechanism else 0

    @property
    def costs(self) -> Costs:
        """What ``auto`` compares if errors are nearly equal: payload, fold, error, name."""
        size = self.mechanism.payload_size if self.mechanism else 0
        return size, self.fold_steps, self.error, self.name

    def overpriced(self, others: Iterable[Candidate]) -> bool:
        """Whether one of *others* errs hardly more, and folds at less than a quarter."""
        limit, steps = self.error * FAIR_ERROR, self.fold_steps
        return any(each.error <= limit and FAIR_FOLD * each.fold_steps < steps for each in others)


def choose(
    requested: str,
    family: Family,
    epsilon: EpsilonLike,
    domain_size: int,
    parameters: Mapping[str, int] | None = None,
    fixed: Mapping[str, int] | None = None,
    constants: Mapping[str, Constant] | None = None,
) -> tuple[str, Mechanism[Any]]:
    """Return the name and the mechanism of a *family* for a domain.

    Args:   parameters: the mechanism's own, which need it to be *requested* by name.
            fixed: parameters that follow from the metric's domain; a registry cannot set them.
            constants: numbers of the mechanism that were worked out before.
    Raises: UnknownMechanismError, InvalidParameterError: *requested* cannot serve these parameters.
    """
    own, derived = dict(parameters or {}), dict(fixed or {})
    if requested == AUTO:
        if own:
            rule = "needs a mechanism by name, as auto sets all parameters"
            raise InvalidParameterError("parameters", ",".join(own), rule)
        return _best(family, epsilon, domain_size, tuple(derived.items()))
    if requested not in names():
        raise UnknownMechanismError(requested, (AUTO, *fitting_names(family)))
    mechanism = load(requested)
    if not issubclass(mechanism, family):  # the others are loaded only now: a device pays for it
        rule = f"does not fit this type; fitting: {', '.join((AUTO, *fitting_names(family)))}"
        raise InvalidParameterError("mechanism", requested, rule)
    if taken := sorted(set(own) & set(derived)):
        raise InvalidParameterError(taken[0], own[taken[0]], "follows from the metric's domain")
    known = mechanism.parameter_names()
    for name in sorted(set(own) - set(known)):
        rule = f"is not a parameter of {requested}; known: {', '.join(known) or 'none'}"
        raise InvalidParameterError(name, own[name], rule)
    own |= _known(mechanism, derived)
    return requested, mechanism.with_constants(constants or {}, epsilon, domain_size, **own)


def fitting_names(family: Family) -> list[str]:
    """Return the mechanisms of a *family*."""
    return [name for name in names() if issubclass(load(name), family)]


def candidates(
    family: Family,
    epsilon: EpsilonLike,
    domain_size: int,
    payload_bits: int = MAX_AUTO_PAYLOAD,
    fixed: Mapping[str, int] | None = None,
    automatic: bool = False,
) -> list[Candidate]:
    """Return every fitting mechanism at its best for *payload_bits*, the most accurate first.

    Args: automatic: only those that ``auto`` may choose.
    """
    fitted = [
        _candidate(name, epsilon, domain_size, payload_bits, fixed or {})
        for name in fitting_names(family)
        if load(name).automatic or not automatic
    ]
    return sorted(fitted, key=lambda candidate: (candidate.error, candidate.costs))


def contenders(ranked: list[Candidate], payload_bits: int = MAX_AUTO_PAYLOAD) -> list[Candidate]:
    """Return those that fit with nearly the smallest error; ``auto`` takes the first."""
    fitting = [candidate for candidate in ranked if candidate.fits(payload_bits)]
    least = min((candidate.error for candidate in fitting), default=0)
    fair = [candidate for candidate in fitting if not candidate.overpriced(fitting)]
    usual = [candidate for candidate in fair if not candidate.spare]
    if any(candidate.error <= least * _SPARE_ERROR for candidate in usual):
        fair = usual
    limit = min((candidate.error for candidate in fair), default=0) * SAME_ERROR
    near = [candidate for candidate in fair if candidate.error <= limit]
    return sorted(near, key=lambda candidate: candidate.costs)


def distribution_name(epsilon: EpsilonLike, domain_size: int) -> str:
    """Return the name of the mechanism that shows the distribution of numbers best.

    ``auto`` takes none of these by itself, as a mean costs less error without.
    """
    return candidates(DistributionMechanism, epsilon, domain_size)[0].name


def _candidate(
    name: str,
    epsilon: EpsilonLike,
    domain_size: int,
    payload_bits: int,
    fixed: Mapping[str, int],
) -> Candidate:
    mechanism = load(name)
    try:
        if derived := _known(mechanism, fixed):  # nothing is left to fit
            return Candidate(name, mechanism(epsilon, domain_size, **derived))
        return Candidate(name, mechanism.fit(epsilon, domain_size, payload_bits))
    except InvalidParameterError as refusal:
        return Candidate(name, None, refusal)


def payload_limit(family: Family) -> int:
    """Return the bits of the longest payload that ``auto`` may take for a family."""
    return MAX_SET_PAYLOAD if family is SetMechanism else MAX_AUTO_PAYLOAD


def _known(mechanism: type[Mechanism[Any]], fixed: Mapping[str, int]) -> dict[str, int]:
    """Return the parameters among *fixed* that *mechanism* has."""
    names_of = mechanism.parameter_names()
    return {name: number for name, number in fixed.items() if name in names_of}


@lru_cache(maxsize=256, typed=True)  # metrics are often alike, and mechanisms never change
def _best(
    family: Family, epsilon: EpsilonLike, domain_size: int, fixed: tuple[tuple[str, int], ...]
) -> tuple[str, Mechanism[Any]]:
    bits = payload_limit(family)
    ranked = candidates(family, epsilon, domain_size, bits, fixed=dict(fixed), automatic=True)
    for candidate in contenders(ranked, bits):
        if candidate.mechanism is not None:
            return candidate.name, candidate.mechanism
    refusals = [candidate.refusal for candidate in ranked if candidate.refusal is not None]
    raise next(
        iter(refusals), InvalidParameterError("domain_size", domain_size, "fits no mechanism")
    )


def choose_policy(
    requested: str,
    domain_size: int,
    epsilon: EpsilonLike,
    epsilon_permanent: EpsilonLike | None,
    parameters: Mapping[str, int],
    constants: Mapping[str, Constant] | None = None,
) -> tuple[str, Longitudinal]:
    """Return the name of the oracle and the policy around it.

    Args:   epsilon: of a report.  epsilon_permanent: of a value, for two layers; None: permanent.
            parameters, constants: the oracle's, which need it to be *requested* by name.
    Raises: UnknownMechanismError, InvalidParameterError: *requested* cannot serve these parameters.
    """
    of_value = epsilon if epsilon_permanent is None else epsilon_permanent
    if requested == AUTO and not parameters:
        ranked = policy_candidates(domain_size, epsilon, epsilon_permanent, automatic=True)
        near = contenders(ranked)
        if not near:
            raise next(candidate.refusal for candidate in ranked if candidate.refusal is not None)
        name, mechanism = near[0].name, near[0].mechanism
        oracle = mechanism.base if isinstance(mechanism, Mixture) else mechanism
    else:
        own = parameters
        if epsilon_permanent is not None and not own:  # its best as one report shows it
            own = choose(requested, ItemMechanism, epsilon, domain_size)[1].parameters
        name, oracle = choose(
            requested, ItemMechanism, of_value, domain_size, own, constants=constants
        )
    return name, _around(name, oracle, epsilon, epsilon_permanent)


def policy_candidates(
    domain_size: int,
    epsilon: EpsilonLike,
    epsilon_permanent: EpsilonLike | None,
    payload_bits: int = MAX_AUTO_PAYLOAD,
    automatic: bool = False,
) -> list[Candidate]:
    """Return every mechanism of items as a report under the policy shows it, or its refusal.

    Of two layers parameters are fitted to what a report shows, not to the permanent answer below.

    Args: automatic: only those that ``auto`` may choose.
    """
    fitted = candidates(ItemMechanism, epsilon, domain_size, payload_bits, automatic=automatic)
    policies = [_policy_candidate(each, domain_size, epsilon, epsilon_permanent) for each in fitted]
    return sorted(policies, key=lambda candidate: (candidate.error, candidate.costs))


def _policy_candidate(
    fitted: Candidate,
    domain_size: int,
    epsilon: EpsilonLike,
    epsilon_permanent: EpsilonLike | None,
) -> Candidate:
    """Return *fitted*, the best for one report of *epsilon*, as the policy around it shows it."""
    oracle = fitted.mechanism
    if oracle is None:
        return fitted
    try:
        if epsilon_permanent is not None:
            oracle = type(oracle)(epsilon_permanent, domain_size, **oracle.parameters)
        policy = _around(fitted.name, oracle, epsilon, epsilon_permanent)
    except InvalidParameterError as refusal:
        return Candidate(fitted.name, None, refusal)
    return Candidate(fitted.name, policy.mechanism)


def _around(
    name: str, oracle: object, epsilon: EpsilonLike, epsilon_permanent: EpsilonLike | None
) -> Longitudinal:
    """Return the policy around *oracle*.  Raises InvalidParameterError: it cannot serve."""
    if not isinstance(oracle, FrequencyOracle) or not oracle.pure:
        rule = "has no pure channel, without which only longitudinal=fresh is possible"
        raise InvalidParameterError("mechanism", name, rule)
    return Permanent(oracle) if epsilon_permanent is None else TwoLayer(oracle, epsilon)
