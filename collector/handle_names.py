"""What the typed handles of a registry are called: dotted names become attributes of attributes."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from client_sdk.core.errors import RegistryError
from client_sdk.registry.metric import Metric
from client_sdk.registry.registry import Registry


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


def _confusable(name: str, one: str, other: str) -> str:
    return f"metrics.{name}: {one} and {other} differ in dots and underscores only"
