"""The types of typed handles: how the values of a metric are written down in Python."""

from __future__ import annotations

from collections.abc import Iterator

from client_sdk.registry.metric import Metric
from client_sdk.registry.registry import Registry

from .handle_names import words


def alias(metric: Metric) -> str:
    """Return the name of the type that is defined for a metric."""
    return f"{words(metric.name.split('.'))}Value"


def value_type(metric: Metric) -> str:
    """Return the type of a value."""
    return metric.domain.python_type.format(label=alias(metric))


def typing_names(registry: Registry) -> str:
    """Return what the definitions of *registry* need of ``typing``."""
    labelled = any(metric.domain.value_labels() for metric in registry)
    pairs = any(metric.domain.parts for metric in registry)
    used = {"Literal": labelled or pairs, "TypeAlias": labelled, "TypedDict": pairs}
    return ", ".join(("Final", *(name for name, is_used in used.items() if is_used)))


def label_type(metric: Metric) -> Iterator[str]:
    """Yield the definition of the labels of a metric, if its values have one kind of them."""
    if labels := metric.domain.value_labels():
        yield from _literal_of(f"{alias(metric)}: TypeAlias = ", labels, "")
        yield "\n"


def pair_type(metric: Metric) -> Iterator[str]:
    """Yield the class of the values of a metric, if they are pairs."""
    if metric.domain.parts:
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
