"""A metric of a compiled registry, made of what its entry says, and checked against it.

It is made as that of any registry: by the constructors of its domain, its mechanism and its policy,
which refuse what is not private.  Only the exact numbers that chance is drawn by are taken as they
are written, and what they spend is worked out from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from ..core.dataclass import field_names
from ..core.errors import HearsayError, InvalidParameterError, RegistryError
from ..core.typing import Any, Final
from ..mechanisms import UNIT, Constant, Mixture, Record
from .compiled_form import Entry, load_parameters
from .domain import Domain, Encoded
from .fields import Problems, fraction_of
from .longitudinal import Longitudinal
from .metric import Metric
from .selection import FAMILIES, choose, choose_policy
from .types import kind_of

GRID: Final = 1 << 128  # what 32 hexadecimal digits are parts of
_DIGITS: Final = 32
_LONGEST: Final = 160  # letters of a number
_HEX: Final = frozenset("0123456789abcdef")
_KEPT: Final = "kept"  # the constant of the mixture of a two-layer metric


def dump_constant(number: Constant) -> str | list[str]:
    """Return *number* as text: on the grid of 2^-128 as 32 hexadecimal digits, else as a/b."""
    if isinstance(number, tuple):
        return [str(dump_constant(part)) for part in number]
    if 0 <= number < 1 and GRID % number.denominator == 0:
        return f"{number.numerator * (GRID // number.denominator):0{_DIGITS}x}"
    return f"{number.numerator:x}/{number.denominator:x}"


def load_constant(text: object) -> Constant:
    """Return what was dumped.  Raises ValueError: it is nothing that is."""
    if isinstance(text, list):
        return tuple(_fraction(part) for part in text)
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise ValueError("must be hexadecimal digits")
    top, slash, bottom = text.partition("/")
    if not top or not _HEX.issuperset(top + bottom):
        raise ValueError("must be hexadecimal digits")
    if slash:
        return Fraction(int(top, 16), int(bottom or "0", 16) or 1)
    if len(text) != _DIGITS:
        raise ValueError(f"must be {_DIGITS} hexadecimal digits")
    return Fraction(int(text, 16), GRID)


def _fraction(text: object) -> Fraction:
    number = load_constant(text)
    if isinstance(number, tuple):
        raise ValueError("must be no list of lists")
    return number


def dump_encoded(encoded: Encoded) -> Any:
    """Return what a mechanism randomizes as JSON: its type follows from that of the metric."""
    if isinstance(encoded, int):
        return encoded
    if isinstance(encoded, bytes):
        return encoded.hex()
    if isinstance(encoded, frozenset):
        return sorted(encoded)
    if isinstance(encoded, tuple):
        return list(encoded)
    if isinstance(encoded, Mapping):
        return [[key, dump_constant(number)] for key, number in sorted(encoded.items())]
    return dump_constant(encoded)


def _load_encoded(domain: Domain, value: Any) -> Encoded:
    """Return what was dumped of a *domain*.  Raises ValueError, TypeError: nothing dumps so."""
    if domain.encodes is int:
        return int(value)
    if domain.encodes is bytes:
        return bytes.fromhex(value)
    if domain.encodes is frozenset:
        return frozenset(map(int, value))
    if issubclass(domain.encodes, tuple):
        return domain.encodes(map(int, value))
    if domain.encodes is Mapping:
        return {int(key): _fraction(number) for key, number in value}
    return _fraction(value)


def spent_of(metric: Metric) -> dict[str, int | None]:
    """Return what a *metric* charges: nano-epsilon of a report, and of a value if there is a bound.

    Delta is in whole 1e-12.
    """
    policy = metric.policy
    bound = None if policy is None or policy.spent_value is None else policy.nano_after(0)
    return {
        "report": metric.mechanism.spent_nano,
        "value": None if bound is None or policy is None else bound + policy.nano_after(1),
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
        family = FAMILIES[domain.encodes]
        _, mechanism = choose(name, family, epsilon, domain.size, own, domain.parameters, constants)
    else:
        own.pop(_KEPT, None)
        _, policy = choose_policy(name, domain.size, epsilon, of_value, own, constants)
        mechanism = policy.mechanism
    parts: dict[str, Any] = {
        "domain": domain,
        "mechanism": mechanism,
        "policy": policy,
        "otherwise": _otherwise(place, domain, entry["otherwise"]),
        "need": None if entry["need"] is None else _fraction_of(place, "need", entry["need"]),
    }
    return Metric(**{key: parts[key] if key in parts else getattr(light, key) for key in _FIELDS})


_FIELDS: Final = field_names(Metric)


def _domain(place: str, entry: Entry, parameters: Mapping[str, Any]) -> Domain:
    kind, problems = kind_of(entry["type"]), Problems()
    if kind is None:
        raise RegistryError([f"{place}.type: must be a type of values of this version"])
    table = {"type": entry["type"], **kind.declared(entry["domain"], parameters)}
    domain = kind.read(f"{place}.domain", table, problems)
    if domain is None or problems.lines:
        raise RegistryError(problems.lines or [f"{place}.domain: must be that of its type"])
    return domain


def _otherwise(place: str, domain: Domain, entry: Entry | None) -> Encoded | None:
    if entry is None:
        return None
    encoded = _load_encoded(domain, entry["encoded"])
    if dump_encoded(encoded) != entry["encoded"] or not _fits(domain, encoded):
        raise RegistryError([f"{place}.otherwise: must be a value of the metric"])
    return encoded


def _fraction_of(place: str, key: str, text: str) -> Fraction:
    number = fraction_of(text)
    if not isinstance(number, Fraction):
        raise RegistryError([f"{place}.{key}: must be a fraction, such as 1/3"])
    return number


def _differences(metric: Metric, light: Metric, entry: Entry) -> Iterator[str]:
    """Yield where *entry* says something else than its metric."""
    if metric.meaning != light.meaning:
        yield "digest: must be that of the parts: its domain, epsilon or parameters differ"
    if constants_of(metric) != entry["constants"]:
        yield "constants: must be those of the mechanism, as it writes them"
    if spent_of(metric) != entry["spent"] or metric.mechanism.spent > metric.epsilon:
        yield "spent: must be what its constants spend, and at most epsilon"
    for key, number in (
        ("domain_size", metric.domain.size),
        ("payload_size", metric.mechanism.payload_size),
    ):
        if entry[key] != number:
            yield f"{key}={entry[key]}: must be {number}"


def _fits(domain: Domain, encoded: Encoded) -> bool:
    """Whether *encoded* is what some value of *domain* becomes."""
    if isinstance(encoded, bytes):
        return len(encoded) <= domain.size
    if isinstance(encoded, int):
        return 0 <= encoded < domain.size
    if isinstance(encoded, frozenset):
        return all(0 <= item < domain.size for item in encoded)
    if isinstance(encoded, Record):
        ends: Any = domain
        spans = zip(ends.firsts, encoded, ends.firsts[1:], strict=False)
        fitting = [first <= item < end for first, item, end in spans]
        return len(encoded) == len(fitting) == len(ends.attributes) and all(fitting)
    if isinstance(encoded, tuple):
        inside = all(-UNIT <= part <= UNIT for part in encoded)
        short = sum(part * part for part in encoded) <= UNIT * UNIT
        is_cube = bool(domain.parameters.get("cube"))
        return len(encoded) == domain.size and inside and (short or is_cube)
    if isinstance(encoded, Mapping):
        return all(0 <= key < domain.size and 0 <= at <= 1 for key, at in encoded.items())
    return 0 <= encoded <= domain.size - 1
