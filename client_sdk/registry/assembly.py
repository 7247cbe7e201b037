"""A metric of a compiled registry, made of what its entry says, and checked against it.

It is made as in any registry: by the constructors of its domain, its mechanism and its policy,
which refuse what is not private.  Only the exact numbers that chance is drawn by are taken as
written, and what they spend is computed from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from fractions import Fraction

from ..core.dataclass import field_names
from ..core.errors import HearsayError, InvalidParameterError, RegistryError
from ..core.typing import Any, Final
from ..mechanisms import Mechanism, Mixture
from .domain import Domain
from .encodings import Encoded, Encoding, dump_constant, load_constant
from .fields import Problems, fraction_of
from .keys import Entry, load_parameters
from .longitudinal import Longitudinal
from .metric import Metric
from .selection import choose, choose_policy
from .types import kind_of

_KEPT: Final = "kept"  # the constant of the mixture of a two-layer metric


def spent_of(metric: Metric) -> dict[str, int | None]:
    """Return what a *metric* charges: nano-epsilon of a report, and of a value if there is a bound.

    Delta is in whole 1e-12.
    """
    policy = metric.policy
    return {
        "report": metric.mechanism.spent_nano,
        "value": None if policy is None else policy.nano_after(0) + policy.nano_after(1),
        "delta": metric.whole_delta,
    }


def constants_of(metric: Metric) -> dict[str, str | list[str]]:
    """Return the exact numbers that reports of *metric* are drawn by, as they are written."""
    mechanism = metric.mechanism
    if isinstance(mechanism, Mixture):
        numbers = {**mechanism.base.constant_values(), _KEPT: mechanism.kept}
    else:
        numbers = mechanism.constant_values()
    return {name: dump_constant(number) for name, number in numbers.items()}


def assembled(light: Metric, entry: Entry) -> Metric:
    """Return the whole of the metric *light* from its *entry*.

    Raises: RegistryError: names the field that differs from what the rest of the entry gives.
    """
    place = f"metrics.{light.name}"
    try:
        metric = _metric(light, entry)
        problems = [f"{place}.{line}" for line in _differences(metric, light, entry)]
    except RegistryError:
        raise
    except InvalidParameterError as error:
        raise RegistryError([f"{place}.{error}"]) from None
    except (HearsayError, ValueError, TypeError, ArithmeticError) as error:
        raise RegistryError([f"{place}: cannot be made: {error}"]) from None
    if problems:
        raise RegistryError(problems)
    return metric


def _metric(light: Metric, entry: Entry) -> Metric:
    place = f"metrics.{light.name}"
    own = load_parameters(entry["mechanism"])
    name = own.pop("name")
    domain = _domain(place, entry, own)
    constants = {key: load_constant(number) for key, number in entry["constants"].items()}
    if entry["longitudinal"] == "two_layer":
        constants.pop(_KEPT, None)  # it follows from the rest, and is compared
    epsilon: Any = fraction_of(entry["epsilon"])
    of_value: Any = fraction_of(entry["epsilon_permanent"])
    policy: Longitudinal | None = None
    if entry["longitudinal"] == "fresh":
        own = {key: number for key, number in own.items() if key not in domain.parameters}
        family = domain.encodes.family
        _, mechanism = choose(name, family, epsilon, domain.size, own, domain.parameters, constants)
    else:
        own.pop(_KEPT, None)
        _, policy = choose_policy(name, domain.size, epsilon, of_value, own, constants)
        mechanism = policy.mechanism
    need = fraction_of(entry["need"])
    if need is not None and not isinstance(need, Fraction):
        raise RegistryError([f"{place}.need: must be a fraction, such as 1/3"])
    parts: dict[str, Any] = {
        "domain": domain,
        "mechanism": mechanism,
        "policy": policy,
        "otherwise": _otherwise(place, domain.encoding, mechanism, entry["otherwise"]),
        "need": need,
    }
    return Metric(**{key: parts[key] if key in parts else getattr(light, key) for key in _FIELDS})


_FIELDS: Final = field_names(Metric)


def _domain(place: str, entry: Entry, parameters: Mapping[str, int]) -> Domain:
    kind, problems = kind_of(entry["type"]), Problems()
    if kind is None:
        raise RegistryError([f"{place}.type: must be a type of values of this version"])
    table = {"type": entry["type"], **kind.declared(entry["domain"], parameters)}
    domain = kind.read(f"{place}.domain", table, problems)
    if domain is None or problems.lines:
        raise RegistryError(problems.lines or [f"{place}.domain: must match its type"])
    return domain


def _otherwise(
    place: str, encoding: Encoding, mechanism: Mechanism[Any], entry: Entry | None
) -> Encoded | None:
    if entry is None:
        return None
    with suppress(ValueError, TypeError):
        encoded: Encoded = encoding.from_json(entry["encoded"])
        mechanism.require_value(encoded)
        if encoding.as_json(encoded) == entry["encoded"]:
            return encoded
    raise RegistryError([f"{place}.otherwise: must be a value of the metric"])


def _differences(metric: Metric, light: Metric, entry: Entry) -> Iterator[str]:
    """Yield where *entry* says something else than its metric."""
    if metric.meaning != light.meaning:
        yield "digest: must match the parts: its domain, epsilon or parameters differ"
    if constants_of(metric) != entry["constants"]:
        yield "constants: must be as the mechanism writes them"
    if spent_of(metric) != entry["spent"] or metric.mechanism.spent > metric.epsilon:
        yield "spent: must be what its constants spend, and at most epsilon"
    for key, number in (
        ("domain_size", metric.domain.size),
        ("payload_size", metric.mechanism.payload_size),
    ):
        if entry[key] != number:
            yield f"{key}={entry[key]}: must be {number}"
