"""Choosing the oracle of a metric that reports a value again and again: by name, or ``auto``.

Only pure oracles serve: the permanent payload of any other mechanism costs more than its epsilon
says, or has a permanence of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .core.errors import InvalidParameterError
from .longitudinal import Fresh, Longitudinal, Permanent, TwoLayer
from .mechanism_choice import (
    AUTO,
    MAX_AUTO_PAYLOAD,
    Candidate,
    candidates,
    choose,
    contenders,
)
from .mechanisms import EpsilonLike, FrequencyOracle, Mixture

LONGITUDINAL: Final = (Fresh.name, Permanent.name, TwoLayer.name)


def choose_policy(
    wanted: str,
    domain_size: int,
    epsilon: EpsilonLike,
    epsilon_permanent: EpsilonLike | None,
    parameters: Mapping[str, int],
) -> tuple[str, Longitudinal]:
    """Return the name of the oracle and the policy around it.

    Args:   epsilon: of a report.  epsilon_permanent: of a value, for two layers; None: permanent.
            parameters: the oracle's own, which need it to be *wanted* by name.
    Raises: UnknownMechanismError, InvalidParameterError: *wanted* cannot serve these parameters.
    """
    of_value = epsilon if epsilon_permanent is None else epsilon_permanent
    if wanted == AUTO and not parameters:
        ranked = policy_candidates(domain_size, epsilon, epsilon_permanent)
        near = contenders(ranked)
        if not near:
            raise next(each.refusal for each in ranked if each.refusal is not None)
        name, mechanism = near[0].name, near[0].mechanism
        oracle = mechanism.base if isinstance(mechanism, Mixture) else mechanism
    else:
        name, oracle = choose(wanted, True, of_value, domain_size, parameters)
    return name, _around(name, oracle, epsilon, epsilon_permanent)


def policy_candidates(
    domain_size: int,
    epsilon: EpsilonLike,
    epsilon_permanent: EpsilonLike | None,
    payload_bits: int = MAX_AUTO_PAYLOAD,
) -> list[Candidate]:
    """Return every mechanism of items as a report under the policy shows it, or its refusal."""
    of_value = epsilon if epsilon_permanent is None else epsilon_permanent
    policies = []
    for each in candidates(True, of_value, domain_size, payload_bits):
        if each.mechanism is None:
            policies.append(each)
            continue
        try:
            policy = _around(each.name, each.mechanism, epsilon, epsilon_permanent)
        except InvalidParameterError as refusal:
            policies.append(Candidate(each.name, None, refusal))
        else:
            policies.append(Candidate(each.name, policy.mechanism))
    return sorted(policies, key=lambda candidate: (candidate.error, candidate.costs))


def _around(
    name: str, oracle: object, epsilon: EpsilonLike, epsilon_permanent: EpsilonLike | None
) -> Longitudinal:
    """Return the policy around *oracle*.  Raises InvalidParameterError: it cannot serve."""
    if not isinstance(oracle, FrequencyOracle) or not oracle.pure:
        rule = "has no pure channel, without which only longitudinal=fresh is possible"
        raise InvalidParameterError("mechanism", name, rule)
    return Permanent(oracle) if epsilon_permanent is None else TwoLayer(oracle, epsilon)
