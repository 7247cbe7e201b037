"""The types of typed handles: how the values of a metric are written down in Python."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from client_sdk.domains import (
    BooleanDomain,
    Domain,
    ItemDomain,
    KeyValueDomain,
    NumberDomain,
    SetDomain,
)
from client_sdk.metric import Metric
from client_sdk.registry import Registry
from client_sdk.structured_domains import FunnelDomain, GridDomain, PairDomain, RetentionDomain
from client_sdk.text_domain import TextDomain

from .handle_names import words


def alias(metric: Metric) -> str:
    """Return the name of the type that is defined for a metric."""
    return f"{words(metric.name.split('.'))}Value"


def _labels(metric: Metric) -> tuple[str, ...]:
    """Return the labels that a value is made of; none for what has no labels, or two kinds."""
    match metric.domain:
        case KeyValueDomain(keys=keys):
            return keys.labels
        case FunnelDomain(steps=steps):
            return steps
        case RetentionDomain(periods=periods):
            return periods
        case NumberDomain() | BooleanDomain() | GridDomain() | PairDomain() | TextDomain():
            return ()
        case ItemDomain(labels=labels):
            return labels


def value_type(metric: Metric) -> str:
    """Return the type of a value."""
    match metric.domain:
        case NumberDomain():
            return "float"
        case KeyValueDomain():
            return f"Mapping[{alias(metric)}, float]"
        case BooleanDomain():
            return "bool"
        case TextDomain():
            return "str"
        case GridDomain():
            return "tuple[float, float]"
        case FunnelDomain():
            return f"{alias(metric)} | None"
        case SetDomain() | RetentionDomain():
            return f"Items[{alias(metric)}]"
    return alias(metric)


def typing_names(registry: Registry) -> str:
    """Return what the definitions of *registry* need of ``typing``."""
    labelled = any(map(_labels, registry))
    pairs = any(isinstance(metric.domain, PairDomain) for metric in registry)
    used = {"Literal": labelled or pairs, "TypeAlias": labelled, "TypedDict": pairs}
    return ", ".join(("Final", *(name for name, is_used in used.items() if is_used)))


def label_type(metric: Metric) -> Iterator[str]:
    """Yield the definition of the labels of a metric, if its values have one kind of them."""
    if labels := _labels(metric):
        yield from _literal_of(f"{alias(metric)}: TypeAlias = ", labels, "")
        yield "\n"


def pair_type(metric: Metric) -> Iterator[str]:
    """Yield the class of the values of a metric, if they are pairs."""
    if isinstance(metric.domain, PairDomain):
        yield f"\n\nclass {alias(metric)}(TypedDict):\n"
        yield f'    """A value of ``{metric.name}``."""\n\n'
        for name, labels in metric.domain.parts.items():
            yield from _literal_of(f"    {name}: ", labels, "    ")


def _literal_of(start: str, labels: tuple[str, ...], margin: str) -> Iterator[str]:
    yield f"{start}Literal[\n"
    yield from (f"{margin}    {literal(label)},\n" for label in labels)
    yield f"{margin}]\n"


def literal(text: str) -> str:
    """Return *text*, of printable characters, as a string in the quotes that need fewer escapes."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    escaped = text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    return f"{quote}{escaped}{quote}"


def left_open(domain: Domain) -> str:
    """Return what the type of a value leaves open."""
    match domain:
        case GridDomain(longitude=longitude, latitude=latitude):
            return (
                f"Longitude {_ends(longitude)} and latitude {_ends(latitude)}, in this order; what"
                " lies beyond counts as the nearest cell. "
            )
        case FunnelDomain():
            return "The furthest step that was reached; None if none was. "
        case RetentionDomain():
            return "The periods with activity. "
        case ItemDomain():
            return ""
        case TextDomain(length=length):
            return f"Of a longer text the first {length} bytes of UTF-8 count. "
        case KeyValueDomain(numbers=numbers) | (NumberDomain() as numbers):
            low_to_high = _ends(numbers)
    return f"{low_to_high.capitalize()} {numbers.unit}; what lies beyond counts as the end. "


def _ends(domain: NumberDomain) -> str:
    return f"from {_plain(domain.minimum)} to {_plain(domain.maximum)}"


def _plain(number: Fraction) -> str:
    """Return *number* as a decimal without exponent."""
    return format(Decimal(number.numerator) / number.denominator, "f")
