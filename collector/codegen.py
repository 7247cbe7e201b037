"""Typed handles: from a registry to the Python module by which an application records.

The text depends on the registry alone and is laid out as ``ruff format`` leaves it, at any line
length of 88 or more and for names of up to LAID_OUT_NAME characters: who makes it anew sees a
difference only where the registry has one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from client_sdk.registry.metric import Metric
from client_sdk.registry.registry import Registry

from .handle_names import Group, group, words
from .handle_types import label_type, pair_type, typing_names, value_type
from .planning import privacy

_WIDTH: Final = 88  # columns; the default of the formatters ruff and black
LAID_OUT_NAME: Final = 48  # characters; the types of longer names would need lines of their own
_DOC_WIDTH: Final = _WIDTH - len('        """')

_HEAD: Final = '''\
"""Typed handles of the metrics of {app}.

Made by ``hearsay registry codegen``; do not edit, make it anew when the registry changes.
"""

from __future__ import annotations

{mapping}from typing import {typing}

from client_sdk import Client
from client_sdk.handles import Handle, {items}require_definitions

'''
_ROOT: Final = '''

class Metrics:
    """The metrics of {app}."""

    def __init__(self, client: Client) -> None:
        """Record with *client*.

        Raises: RegistryError: its registry gives a metric another meaning.
        """
        require_definitions(client.registry, DIGESTS)
        self._client = client
'''
_BRANCH: Final = '''

class {name}:
    """The metrics whose names begin with ``{path}.``."""

    def __init__(self, client: Client) -> None:
        """Record with *client*."""
        self._client = client
'''


def module_of(registry: Registry) -> str:
    """Return the module of typed handles for *registry*.

    Raises: RegistryError: a name is no Python name, or two names cannot both be attributes.
    """
    root = group(registry)
    return "".join((*_definitions(registry), *_classes(registry, root)))


def _definitions(registry: Registry) -> Iterator[str]:
    """Yield what stands before the classes: imports, types of items, digests."""
    types = " ".join(map(value_type, registry))
    yield _HEAD.format(
        app=registry.app,
        mapping="from collections.abc import Mapping\n" if "Mapping[" in types else "",
        typing=typing_names(registry),
        items="Items, " if "Items[" in types else "",
    )
    for metric in registry:
        yield from label_type(metric)
    yield "DIGESTS: Final = {\n"
    yield from (f'    "{metric.name}": "{metric.digest.hex()}",\n' for metric in registry)
    yield "}\n"
    for metric in registry:
        yield from pair_type(metric)


def _classes(registry: Registry, root: Group) -> Iterator[str]:
    for found in root.groups():
        if found is root:
            yield _ROOT.format(app=registry.app)
        else:
            yield _BRANCH.format(name=_class(found), path=".".join(found.path))
        for name, part in found.parts.items():
            yield from _group(name, part) if isinstance(part, Group) else _handle(name, part)


def _group(name: str, below: Group) -> Iterator[str]:
    yield from _property(name, _class(below))
    yield f'        """The metrics whose names begin with ``{".".join(below.path)}.``."""\n'
    yield f"        return {_class(below)}(self._client)\n"


def _handle(name: str, metric: Metric) -> Iterator[str]:
    yield from _property(name, f"Handle[{value_type(metric)}]")
    yield f'        """{_indented(metric.title)}\n\n'
    yield f"        {_indented(metric.question)}\n\n"
    yield f"        {_indented(_facts(metric))}\n"
    yield '        """\n'
    yield from _call("        return Handle", ("self._client", f'"{metric.name}"'), "")


def _property(name: str, kind: str) -> Iterator[str]:
    yield "\n    @property\n"
    yield from _call(f"    def {name}", ("self",), f" -> {kind}:")


def _call(start: str, arguments: tuple[str, ...], end: str) -> Iterator[str]:
    """Yield a call or a signature; if it is long, one argument a line, at every line length."""
    line = f"{start}({', '.join(arguments)}){end}"
    if len(line) <= _WIDTH:
        yield f"{line}\n"
        return
    margin = " " * (len(start) - len(start.lstrip()))
    yield f"{start}(\n"
    yield from (f"{margin}    {argument},\n" for argument in arguments)
    yield f"{margin}){end}\n"


def _class(below: Group) -> str:
    return f"{words(below.path)}Metrics"


def _facts(metric: Metric) -> str:
    domain = metric.domain
    often = "" if metric.every == "once" else f" every {metric.every}"
    facts = f"Reported at most once{often}, at {privacy(metric)} a report, until {metric.expires}."
    if metric.aggregation is not None:
        facts = f"The values of a period make one report: {metric.aggregation}. {facts}"
    return f"{domain.remark}{facts}"


def _indented(text: str) -> str:
    """Return *text* as lines of a docstring that nothing in it can end."""
    plain = "".join(c if c.isprintable() else " " for c in text).replace('"', "'")
    lines = textwrap.wrap(
        plain.replace("\\", "\\\\"), _DOC_WIDTH, break_long_words=False, break_on_hyphens=False
    )
    return "\n        ".join(lines)
