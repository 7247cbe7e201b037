"""The rules of ``metrics.toml``.  Unknown keys are errors; all problems are reported at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from .epoch import EVERY
from .errors import HearsayError, RegistryError
from .limits import (
    DEFAULT_MIN_REPORTS,
    MAX_EPSILON_DIGITS,
    MAX_EXPONENT,
    MAX_LABEL,
    MAX_NAME,
    MIN_REPORTS_FLOOR,
)
from .longitudinal import Longitudinal, TwoLayer
from .longitudinal_choice import LONGITUDINAL, choose_policy
from .mechanism_choice import FAMILIES, choose
from .mechanisms._base import MAX_DOMAIN_SIZE
from .metric import (
    BOOLEAN_LABELS,
    MEAN_OF,
    Domain,
    Encoded,
    ItemDomain,
    KeyValueDomain,
    Metric,
    NumberDomain,
    fixed_parameters,
)
from .registry_text import load

SCHEMA: Final = 1
ITEM_TYPES: Final = ("boolean", "category")
NUMBER_TYPES: Final = ("number", "count", "duration")
SET_TYPES: Final = ("set",)
KEY_VALUE: Final = "key_value"
TYPES: Final = (*ITEM_TYPES, *SET_TYPES, *NUMBER_TYPES, KEY_VALUE)

_TOP_KEYS: Final = {"schema", "app", "segments", "metrics"}
_COMMON_KEYS: Final = {
    *("title", "question", "type", "epsilon", "every", "longitudinal", "mechanism", "segments"),
    *("expected_devices", "min_reports", "owner", "expires", "parameters", "epsilon_permanent"),
    *("aggregate", "otherwise"),
}
_DOMAIN_KEYS: Final = {
    "boolean": set[str](),
    "category": {"values"},
    "set": {"values"},
    **{kind: {"min", "max", "step", "unit"} for kind in NUMBER_TYPES},
    KEY_VALUE: {"values", "min", "max", "unit", "most"},
}
KEYS: Final = {  # by the heading of docs/registry.md that explains them
    "Keys of the file": _TOP_KEYS,
    "Keys of a metric": _COMMON_KEYS.union(*_DOMAIN_KEYS.values()),
}
_NAME: Final = re.compile(rf"[a-z0-9_.]{{1,{MAX_NAME}}}", re.ASCII)
_EPSILON: Final = re.compile(rf"[0-9]{{1,3}}(\.[0-9]{{1,{MAX_EPSILON_DIGITS}}})?", re.ASCII)


class _Problems:
    """Collects ``place: rule`` lines while a file is read."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, place: str, rule: str) -> None:
        shown = "".join(each if each.isprintable() else "?" for each in place)
        self.lines.append(f"{shown}: {rule}")


def parse(text: str) -> tuple[str, dict[str, tuple[str, ...]], list[Metric]]:
    """Return the application, the segment dimensions and the metrics of a registry.

    Raises: RegistryError: with every problem found.
    """
    table = load(text)
    problems = _Problems()
    _refuse_unknown("registry", table, _TOP_KEYS, problems)
    if type(table.get("schema")) is not int or table["schema"] != SCHEMA:
        problems.add("schema", f"must be {SCHEMA}")
    app = _name("app", table.get("app"), problems)
    segments = _segments(table.get("segments", {}), problems)
    entries = table.get("metrics")
    if not isinstance(entries, dict) or not entries:
        problems.add("metrics", "must hold at least one metric")
        entries = {}
    metrics = [_metric(name, entry, segments, problems) for name, entry in entries.items()]
    good = [metric for metric in metrics if metric is not None]
    if len({metric.digest for metric in good}) != len(good):
        problems.add("metrics", "two metrics share a digest; rename one")
    if problems.lines:
        raise RegistryError(problems.lines)
    return app, segments, good


def _metric(
    name: str, entry: object, segments: Mapping[str, tuple[str, ...]], problems: _Problems
) -> Metric | None:
    place = f"metrics.{name}"
    before = len(problems.lines)
    _name(place, name, problems)
    if not isinstance(entry, dict):
        problems.add(place, "must be a table")
        return None
    kind = _one_of(place, "type", entry, TYPES, problems)
    if kind is None:
        return None
    _refuse_unknown(place, entry, _COMMON_KEYS | _DOMAIN_KEYS[kind], problems)
    title, question, owner = (
        _text(f"{place}.{key}", entry.get(key), problems) for key in ("title", "question", "owner")
    )
    epsilon = _epsilon(f"{place}.epsilon", entry.get("epsilon"), problems)
    every = _one_of(place, "every", entry, EVERY, problems)
    longitudinal = _longitudinal(place, kind, entry, epsilon, problems)
    dimensions = _dimensions(f"{place}.segments", entry.get("segments", []), segments, problems)
    expected = _integer(f"{place}.expected_devices", entry.get("expected_devices"), 1, problems)
    least = entry.get("min_reports", DEFAULT_MIN_REPORTS)
    least = _integer(f"{place}.min_reports", least, MIN_REPORTS_FLOOR, problems)
    expires = entry.get("expires")
    if type(expires) is not date:
        problems.add(f"{place}.expires", "must be a date such as 2027-12-31")
        expires = date.min
    domain = _domain(place, kind, entry, problems)
    wanted = entry.get("mechanism", "auto")
    if not isinstance(wanted, str):
        problems.add(f"{place}.mechanism", 'must be "auto" or the name of a mechanism')
    parameters = _parameters(f"{place}.parameters", entry.get("parameters", {}), problems)
    otherwise = _aggregation(place, entry, every, domain, problems)
    if len(problems.lines) > before or domain is None:
        return None
    policy: Longitudinal | None = None
    try:
        if longitudinal == "fresh":
            family = FAMILIES.get(kind, kind in ITEM_TYPES)
            fixed = fixed_parameters(domain)
            chosen, mechanism = choose(wanted, family, epsilon, domain.size, parameters, fixed)
        else:
            of_value = entry.get("epsilon_permanent")
            chosen, policy = choose_policy(wanted, domain.size, epsilon, of_value, parameters)
            mechanism = policy.mechanism
    except HearsayError as error:
        problems.add(place, str(error))
        return None
    return Metric(
        *(name, title, question, kind, domain, chosen, mechanism, str(every), str(longitudinal)),
        *(dimensions, expected, least, owner, expires, policy),
        *(entry.get("aggregate"), otherwise),
    )


def _longitudinal(
    place: str, kind: str, entry: Mapping[str, Any], epsilon: str, problems: _Problems
) -> str | None:
    """Return the policy's name, having checked what only it allows."""
    name = _one_of(place, "longitudinal", entry, LONGITUDINAL, problems)
    if name not in (None, "fresh") and kind not in ITEM_TYPES:
        problems.add(f"{place}.longitudinal", f"must be fresh for a {kind}")
    if name != TwoLayer.name:
        if "epsilon_permanent" in entry:
            problems.add(f"{place}.epsilon_permanent", f"is for longitudinal={TwoLayer.name} only")
    else:
        of_value = _epsilon(f"{place}.epsilon_permanent", entry.get("epsilon_permanent"), problems)
        if "epsilon_permanent" in entry and Fraction(of_value) <= Fraction(epsilon):
            problems.add(f"{place}.epsilon_permanent", "must be above epsilon, that of a report")
    return name


def _aggregation(
    place: str, entry: Mapping[str, Any], every: object, domain: Domain | None, problems: _Problems
) -> Encoded | None:
    """Check ``aggregate`` and ``otherwise``, and return the latter as its metric encodes it."""
    if domain is None or not {"aggregate", "otherwise"} & entry.keys():
        return None
    from .registry_aggregates import otherwise_of, problems_of  # few metrics have any

    found = list(problems_of(entry, every, domain))
    problems.lines += [f"{place}.{problem}" for problem in found]
    return None if found else otherwise_of(entry, domain)


def _parameters(place: str, entry: object, problems: _Problems) -> dict[str, int]:
    if isinstance(entry, dict) and all(type(number) is int for number in entry.values()):
        return entry
    problems.add(place, "must be a table of integers, such as { order = 5 }")
    return {}


def _domain(place: str, kind: str, entry: Mapping[str, Any], problems: _Problems) -> Domain | None:
    if kind == "boolean":
        return ItemDomain(BOOLEAN_LABELS, boolean=True)
    if kind == KEY_VALUE:
        return _key_values(place, entry, problems)
    if kind not in NUMBER_TYPES:
        labels = _labels(f"{place}.values", entry.get("values"), problems)
        return ItemDomain(labels, several=kind in SET_TYPES) if labels else None
    low, high, unit = _range(place, entry, problems)
    step = _decimal(f"{place}.step", entry.get("step"), problems)
    if low is None or high is None or step is None:
        return None
    if step <= 0 or low >= high or (high - low) % step:
        problems.add(
            f"{place}.step", "must be positive and divide max - min, which must be positive"
        )
        return None
    if (high - low) / step >= MAX_DOMAIN_SIZE:
        problems.add(f"{place}.step", f"must leave fewer than {MAX_DOMAIN_SIZE} grid points")
        return None
    return NumberDomain(low, high, step, unit)


def _key_values(place: str, entry: Mapping[str, Any], problems: _Problems) -> KeyValueDomain | None:
    labels = _labels(f"{place}.values", entry.get("values"), problems)
    if any(MEAN_OF + label in labels for label in labels):
        problems.add(f"{place}.values", f'must not hold both a key and "{MEAN_OF}" that key')
    low, high, unit = _range(place, entry, problems)
    most = _integer(f"{place}.most", entry.get("most", max(len(labels), 1)), 1, problems)
    if labels and most > len(labels):
        problems.add(f"{place}.most", f"must be at most the number of values, {len(labels)}")
    if low is None or high is None or not labels:
        return None
    if low >= high:
        problems.add(f"{place}.max", "must be above min")
        return None
    return KeyValueDomain(ItemDomain(labels), NumberDomain(low, high, high - low, unit), most)


def _range(
    place: str, entry: Mapping[str, Any], problems: _Problems
) -> tuple[Fraction | None, Fraction | None, str]:
    low, high = (_decimal(f"{place}.{key}", entry.get(key), problems) for key in ("min", "max"))
    return low, high, _text(f"{place}.unit", entry.get("unit"), problems)


def _segments(entry: object, problems: _Problems) -> dict[str, tuple[str, ...]]:
    if not isinstance(entry, dict):
        problems.add("segments", "must be a table of dimension = [values]")
        return {}
    return {
        _name(f"segments.{dimension}", dimension, problems): _labels(
            f"segments.{dimension}", values, problems
        )
        for dimension, values in entry.items()
    }


def _dimensions(
    place: str, entry: object, segments: Mapping[str, tuple[str, ...]], problems: _Problems
) -> dict[str, tuple[str, ...]]:
    if not isinstance(entry, list) or any(
        dimension not in segments for dimension in map(str, entry)
    ):
        problems.add(place, "must be a list of dimensions declared under [segments]")
        return {}
    return {dimension: segments[dimension] for dimension in sorted(set(map(str, entry)))}


def _labels(place: str, entry: object, problems: _Problems) -> tuple[str, ...]:
    rule = (
        f"must be a list of at least 2 different printable texts of at most {MAX_LABEL} characters"
    )
    if not isinstance(entry, list) or len(entry) < 2:
        problems.add(place, rule)
        return ()
    good = [label for label in entry if isinstance(label, str) and 0 < len(label) <= MAX_LABEL]
    if (
        len(good) != len(entry)
        or len(set(good)) != len(good)
        or not all(map(str.isprintable, good))
    ):
        problems.add(place, rule)
        return ()
    return tuple(good)


def _refuse_unknown(
    place: str, entry: Mapping[str, Any], known: set[str], problems: _Problems
) -> None:
    for key in sorted(set(entry) - known):
        problems.add(f"{place}.{key}", f"is not a known key; known: {', '.join(sorted(known))}")


def _name(place: str, entry: object, problems: _Problems) -> str:
    if not isinstance(entry, str) or not _NAME.fullmatch(entry):
        problems.add(place, f"a name must be 1 to {MAX_NAME} of a-z, 0-9, _ and .")
    return str(entry)


def _text(place: str, entry: object, problems: _Problems) -> str:
    # not printable: line ends, escapes of a terminal, and what turns the direction of writing
    if not isinstance(entry, str) or not entry.strip() or not entry.isprintable():
        problems.add(place, "must be a non-empty text of printable characters")
    return str(entry)


def _integer(place: str, entry: object, least: int, problems: _Problems) -> int:
    if type(entry) is not int or entry < least:
        problems.add(place, f"must be an integer of at least {least}")
        return least
    return entry


def _one_of(
    place: str, key: str, entry: Mapping[str, Any], allowed: tuple[str, ...], problems: _Problems
) -> str | None:
    value = entry.get(key)
    if isinstance(value, str) and value in allowed:
        return value
    problems.add(f"{place}.{key}", f"must be one of {', '.join(allowed)}")
    return None


def _epsilon(place: str, entry: object, problems: _Problems) -> str:
    if not isinstance(entry, str) or not _EPSILON.fullmatch(entry):
        rule = f'must be a decimal in quotes, such as "1.0", at most {MAX_EPSILON_DIGITS} decimals'
        problems.add(place, rule)
        return "1"
    return entry


def _decimal(place: str, entry: object, problems: _Problems) -> Fraction | None:
    # TOML knows nan and inf, and 1e999999999, which as a fraction would fill the memory
    if isinstance(entry, Decimal) and entry.is_finite() and abs(entry.adjusted()) <= MAX_EXPONENT:
        return Fraction(entry)
    if isinstance(entry, int) and not isinstance(entry, bool):
        return Fraction(entry)
    problems.add(place, "must be a finite number")
    return None
