"""Typed handles: what the modules made by ``hearsay registry codegen`` are built from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from .core.errors import RegistryError

if TYPE_CHECKING:
    from .client import Client
    from .registry.registry import Registry

T = TypeVar("T")

Items: TypeAlias = list[T] | tuple[T, ...] | set[T] | frozenset[T]  # a value of type ``set``


class Handle(Generic[T]):
    """One metric of a client.  It takes only values of type *T*, as a type checker sees it."""

    __slots__ = ("_client", "_name")

    def __init__(self, client: Client, name: str) -> None:
        """Record under *name* with *client*."""
        self._client, self._name = client, name

    def record(self, value: T) -> None:
        """Report *value* as ``Client.record`` does: it never raises and counts what it refuses."""
        self._client.record(self._name, value)


def require_definitions(registry: Registry, digests: Mapping[str, str]) -> None:
    """Raise RegistryError unless *registry* defines every name with the digest given, in hex.

    A digest covers the type, the domain and ε of a metric, so handles that agree with it take
    exactly the values that the registry takes.
    """
    problems = [
        f"metrics.{name}: has not the definition that its handle was made from; run codegen again"
        for name, digest in digests.items()
        if name not in registry.metrics or registry.metric(name).digest.hex() != digest
    ]
    if problems:
        raise RegistryError(problems)
