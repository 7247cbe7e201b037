"""Typed handles: from a registry to the Python module by which an application records.

Dotted names become attributes of attributes, and values have the types of their metric.  The text
depends on the registry alone and is laid out as ``ruff format`` leaves it, at any line length of 88
or more and for names of up to LAID_OUT_NAME characters: a new run makes a difference only
where the registry has one.
"""

from __future__ import annotations

import keyword
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from client_sdk.core.errors import RegistryError
from client_sdk.registry.contract import Registry
from client_sdk.registry.metric import Metric

from .registry_report import privacy

_WIDTH: Final = 88  # columns; the default of the formatters ruff and black
LAID_OUT_NAME: Final = 48  # characters; the types of longer names would need lines of their own
_DOC_WIDTH: Final = _WIDTH - len('        """')
_HEAD: Final = '''\
"""Typed handles of the metrics of {app}.

Made by ``hearsay registry codegen``; do not edit, make it anew when the registry changes.
"""

from __future__ import annotations

{mapping}from typing import {typing}

from client_sdk.handles import {handles}

'''
_ROOT: Final = '''

class Metrics:
    """The metrics of {app}."""

    def __init__(self, client: ClientLike) -> None:
        """Record with *client*.

        Raises: RegistryError: its registry gives a metric another meaning.
        """
        require_definitions(client, DIGESTS)
        self._client = client
'''
_BRANCH: Final = '''

class {name}:
    """The metrics whose names begin with ``{path}.``."""

    def __init__(self, client: ClientLike) -> None:
        """Record with *client*."""
        self._client = client
'''


@dataclass(frozen=True)
class Group:
    """The metrics whose names begin with *path*, by the next part of their names."""

    path: tuple[str, ...] = ()
    parts: dict[str, Metric | Group] = field(default_factory=dict)

    def groups(self) -> Iterator[Group]:
        """Iterate over all groups, each after those below it."""
        for part in self.parts.values():
            if isinstance(part, Group):
                yield from part.groups()
        yield self


def group(registry: Registry) -> Group:
    """Return the metrics of *registry* as a tree of names.

    Raises: RegistryError: a name is no Python name, or two names cannot both be attributes.
    """
    if problems := [*_unfit(registry), *_alike(registry)]:
        raise RegistryError(problems)
    root = Group()
    for metric in registry:
        *path, last = metric.name.split(".")
        at = root
        for part in path:
            below = at.parts.setdefault(part, Group((*at.path, part)))
            assert isinstance(below, Group)  # noqa: S101 - a name that begins another was refused
            at = below
        at.parts[last] = metric
    return root


def words(parts: Iterable[str]) -> str:
    """Return the parts of a name as one word of a class name, such as UiTheme."""
    return "".join(word.capitalize() for part in parts for word in part.split("_"))


def _unfit(registry: Registry) -> Iterator[str]:
    """Yield the names that have a part which is a keyword, private, or no identifier."""
    for metric in registry:
        for part in metric.name.split("."):
            if not _is_public(part):
                yield f"metrics.{metric.name}: {part!r} cannot be a public name in Python"
        for part in metric.domain.parts:
            if not _is_public(part):
                yield f"metrics.{metric.name}.parts: {part!r} cannot be a public name in Python"


def _is_public(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")


def _alike(registry: Registry) -> Iterator[str]:
    """Yield the names that collide: ``ui.theme`` with ``ui``, ``a_b`` with ``a.b``."""
    seen: dict[str, str] = {}
    for name in registry.metrics:
        parts = name.split(".")
        for end in range(1, len(parts)):
            prefix = ".".join(parts[:end])
            if prefix in registry.metrics:
                yield f"metrics.{name}: begins with {prefix}, which is a metric too"
            elif seen.setdefault(words(parts[:end]), prefix) != prefix:
                yield _confusable(name, prefix, seen[words(parts[:end])])
        if seen.setdefault(words(parts), name) != name:
            yield _confusable(name, name, seen[words(parts)])


def _confusable(name: str, first: str, second: str) -> str:
    return f"metrics.{name}: {first} and {second} differ in dots and underscores only"


def alias(metric: Metric) -> str:
    """Return the name of the type that is defined for a metric."""
    return f"{words(metric.name.split('.'))}Value"


def value_type(metric: Metric) -> str:
    """Return the type of a value."""
    label = alias(metric) if metric.domain.other is None else "str"
    return metric.domain.python_type.format(label=label)


def kind_of(metric: Metric) -> tuple[str, tuple[str, ...]]:
    """Return the class of the handle of *metric*, and what it takes beside client and name."""
    grid = metric.domain.grid
    unit = None if grid is None or metric.type == "count" else grid.nanoseconds
    if unit is not None:
        return "TimeCounter" if metric.aggregate == "sum" else "Timer", (f"{unit:_}",)
    if metric.aggregate == "sum":
        return "Counter", ()
    return "Flag" if metric.aggregate == "any" else "Handle", ()


def _handle_type(metric: Metric) -> str:
    """Return the type of the handle of *metric*."""
    kind, _ = kind_of(metric)
    return f"{kind}[{value_type(metric)}]" if kind == "Handle" else kind


def _typing_names(registry: Registry) -> str:
    """Return what the definitions of *registry* need of ``typing``."""
    labelled = any(metric.domain.value_labels() for metric in registry)
    pairs = any(metric.domain.parts for metric in registry)
    used = {"Literal": labelled or pairs, "TypeAlias": labelled, "TypedDict": pairs}
    return ", ".join(("Final", *(name for name, is_used in used.items() if is_used)))


def _label_type(metric: Metric) -> Iterator[str]:
    """Yield the definition of the labels of a metric, if its values have one kind of them."""
    if labels := metric.domain.value_labels():
        yield from _literal_of(f"{alias(metric)}: TypeAlias = ", labels, "")
        yield "\n"


def _pair_type(metric: Metric) -> Iterator[str]:
    """Yield the class of the values of a metric, if they are pairs."""
    if metric.domain.parts:
        yield f"\n\nclass {alias(metric)}(TypedDict):\n"
        yield f'    """A value of ``{metric.name}``."""\n\n'
        for name, labels in metric.domain.parts.items():
            if name in metric.domain.numeric_parts:
                yield f"    {name}: float\n"
            else:
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


def module_of(registry: Registry) -> str:
    """Return the module of typed handles for *registry*.

    Raises: RegistryError: a name is no Python name, or two names cannot both be attributes.
    """
    root = group(registry)
    return "".join((*_definitions(registry), *_classes(registry, root)))


def _definitions(registry: Registry) -> Iterator[str]:
    """Yield what stands before the classes: imports, types of items, digests."""
    types = " ".join(map(value_type, registry))
    used = [name for name in ("Mapping", "Sequence") if f"{name}[" in types]
    handles = {"ClientLike", "require_definitions", *(kind_of(metric)[0] for metric in registry)}
    handles |= {"Items"} if any("Items[" in _handle_type(metric) for metric in registry) else set()
    yield _HEAD.format(
        app=registry.app,
        mapping=f"from collections.abc import {', '.join(used)}\n" if used else "",
        typing=_typing_names(registry),
        handles=_listed(sorted(handles), _WIDTH - len("from client_sdk.handles import ")),
    )
    for metric in registry:
        yield from _label_type(metric)
    yield "DIGESTS: Final = {\n"
    yield from (f'    "{metric.name}": "{metric.digest.hex()}",\n' for metric in registry)
    yield "}\n"
    for metric in registry:
        yield from _pair_type(metric)


def _classes(registry: Registry, root: Group) -> Iterator[str]:
    for branch in root.groups():
        if branch is root:
            yield _ROOT.format(app=registry.app)
        else:
            yield _BRANCH.format(name=_class(branch), path=".".join(branch.path))
        for name, part in branch.parts.items():
            yield from _group(name, part) if isinstance(part, Group) else _handle(name, part)


def _group(name: str, below: Group) -> Iterator[str]:
    yield from _property(name, _class(below))
    yield f'        """The metrics whose names begin with ``{".".join(below.path)}.``."""\n'
    yield f"        return {_class(below)}(self._client)\n"


def _handle(name: str, metric: Metric) -> Iterator[str]:
    yield from _property(name, _handle_type(metric))
    yield f'        """{_indented(metric.title)}\n\n'
    yield f"        {_indented(metric.question)}\n\n"
    yield f"        {_indented(facts(metric))}\n"
    yield '        """\n'
    kind, further = kind_of(metric)
    yield from _call(f"        return {kind}", ("self._client", f'"{metric.name}"', *further), "")


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


def _listed(names: list[str], width: int) -> str:
    """Return *names* to import, in parentheses if they are longer than *width*."""
    line = ", ".join(names)
    return line if len(line) <= width else "(\n" + "".join(f"    {n},\n" for n in names) + ")"


def _class(below: Group) -> str:
    return f"{words(below.path)}Metrics"


def facts(metric: Metric) -> str:
    """Return the facts that a developer needs to record *metric*, in sentences."""
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
