"""Typed metrics for the device in TypeScript: names, types of values, mechanisms and the registry.

One module is all that an application adds to the package.  The types exist for the compiler only;
the mechanisms, types of values and parts that are imported are those that the registry needs, so
that a bundle has no other.
The text depends on the registry alone.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Final

from client_sdk.core.errors import RegistryError
from client_sdk.registry.contract import Registry
from client_sdk.registry.encodings import VectorEncoding
from client_sdk.registry.metric import Metric
from client_sdk.registry.types import kinds

from .codegen import facts
from .compilation import compiled

PACKAGE: Final = "hearsay-telemetry"
# What the device in TypeScript does not draw by: mechanisms of others' telemetry, and one more.
MISSING: Final = frozenset(
    {
        *("cms", "codebook", "dbitflip", "discrete_gaussian", "hcms", "loloha", "rappor"),
        *("sampled_attribute", "sampled_number"),
    }
)
MISSING_TYPES: Final = frozenset(
    name for name, kind in kinds().items() if issubclass(kind.encodes, VectorEncoding)
)
_IN_EVERY_DEVICE: Final = frozenset({"boolean", "category"})  # types that need no import
_WIDTH: Final = 100 - len("   * ")  # columns of a comment
# What the SDK takes in TypeScript where it takes these types in Python.
_TYPES: Final = {
    "{label}": "{label}",
    "{label} | None": "{label} | null",
    "Items[{label}]": "readonly ({label})[] | ReadonlySet<{label}>",
    "Mapping[{label}, float]": (
        "{{ readonly [Key in {label}]?: number }} | ReadonlyMap<{label}, number>"
    ),
    "bool": "boolean",
    "float": "number",
    "int": "number",
    "str": "string",
    "tuple[float, float]": "readonly [longitude: number, latitude: number]",
}
_HEAD: Final = """\
/**
 * The metrics of {app}.
 *
 * Made by `hearsay registry codegen --language typescript`; do not edit, make it anew when the
 * registry changes.
 */

"""


def typescript_module(registry: Registry) -> str:
    """Return the module of typed metrics for *registry*.

    Raises: RegistryError: a metric needs what the device in TypeScript does not have.
    """
    if problems := list(_missing(registry)):
        raise RegistryError(problems)
    return "".join(_parts(registry))


def _missing(registry: Registry) -> Iterator[str]:
    for metric in registry:
        place, name = f"metrics.{metric.name}", metric.mechanism_name
        if name in MISSING and metric.type not in MISSING_TYPES:
            yield f"{place}.mechanism={name}: is not in the TypeScript device; choose another"
        if metric.type in MISSING_TYPES or metric.domain.python_type not in _TYPES:
            yield f"{place}.type={metric.type}: has no type in TypeScript"


def _parts(registry: Registry) -> Iterator[str]:
    mechanisms = sorted({metric.mechanism_name for metric in registry})
    yield _HEAD.format(app=_plain(registry.app))
    types = sorted({metric.type for metric in registry} - _IN_EVERY_DEVICE)
    parts = list(_needed_parts(registry))
    for folder, imports in (("mechanisms", mechanisms), ("types", types), ("parts", parts)):
        for name in imports:
            yield f'import {{ {name} }} from "{PACKAGE}/{folder}/{name}";\n'
    yield "\n/** Each metric with the type of its values, for `Client<Metrics>`. */\n"
    yield "export type Metrics = {\n"
    for metric in registry:
        yield from _comment(metric)
        yield f"  {_text(metric.name)}: {value_type(metric)};\n"
    yield "};\n\n/** Mechanisms, types and parts that these metrics need, and no other. */\n"
    yield f"export const mechanisms = [{', '.join(mechanisms + types + parts)}] as const;\n"
    yield "\n/** What `hearsay registry compile` writes of the same registry. */\n"
    # a text, since "__proto__" in an object of JavaScript is no key as in JSON
    text = json.dumps(json.loads(compiled(registry)), separators=(",", ":"))
    yield f"export const registry: string = {_text(text)};\n"


def _needed_parts(registry: Registry) -> Iterator[str]:
    """Yield the parts of the device that *registry* needs beside mechanisms, sorted."""
    document = json.loads(compiled(registry))
    if any(metric["aggregate"] for metric in document["metrics"]):
        yield "aggregates"
    if document["seats"] is not None:
        yield "panel"
    if any(metric["longitudinal"] != "fresh" for metric in document["metrics"]):
        yield "permanent"
    if document["retire_key"] is not None:
        yield "retirement"


def value_type(metric: Metric) -> str:
    """Return the type of a value in TypeScript."""
    if metric.domain.parts:
        fields = (f"readonly {_text(n)}: {_union(v)}" for n, v in metric.domain.parts.items())
        return f"{{ {'; '.join(fields)} }}"
    label = "string" if metric.domain.other is not None else _union(metric.domain.value_labels())
    return _TYPES[metric.domain.python_type].format(label=label)


def _union(labels: tuple[str, ...]) -> str:
    return " | ".join(map(_text, labels))


def _text(text: str) -> str:
    """Return *text* as a string of TypeScript, which that of JSON is."""
    return json.dumps(text, ensure_ascii=False)


def _comment(metric: Metric) -> Iterator[str]:
    """Yield what an editor shows beside the name of *metric*."""
    yield "  /**\n"
    for number, text in enumerate((metric.title, metric.question, facts(metric))):
        yield "   *\n" if number else ""
        for line in textwrap.wrap(_plain(text), _WIDTH, break_on_hyphens=False):
            yield f"   * {line}\n"
    yield "   */\n"


def _plain(text: str) -> str:
    """Return *text* as words of a comment that nothing in it can end."""
    return "".join(c if c.isprintable() else " " for c in text).replace("*/", "* /")
